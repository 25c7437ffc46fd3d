package coppice

import (
	"cmp"
	"context"
	"errors"

	"github.com/coppice-go/coppice/backend"
	"github.com/coppice-go/coppice/entry"
	"github.com/coppice-go/coppice/transcript"
)

// RunOptions determine how Run takes over a session, and how it answers interrupted tool calls.
type RunOptions struct {
	Session *SessionOptions // of the handle that Store.Run opens; nil = those of the store

	// Claim fences every older writer before the turn, so that a host that was only slow stores nothing more: one
	// commit, once for each handle. Without it the first commit decides.
	Claim bool

	// Key makes the turn a job that is done once, on whichever host, as Turn.Key does: if a commit with the key is
	// stored, Run returns its receipt, with Repeated, and does not call turn.
	Key string

	// Interrupted is the text of the results that answer tool calls which an earlier process left open;
	// "" = "interrupted: it is unknown whether this ran; check before repeating it".
	Interrupted string
}

const interrupted = "interrupted: it is unknown whether this ran; check before repeating it"

// settleTries bounds how often Run asks whether a commit in doubt is stored. Each try reads first, and waits and
// repeats as the backend does.
const settleTries = 3

// Run opens a session or creates it, runs one turn on it as Session.Run does, and closes the handle.
func (s *Store) Run(
	ctx context.Context, id string, state any, turn func(ctx context.Context, s *Session) error, o *RunOptions,
) (r Receipt, err error) {
	if o == nil {
		o = &RunOptions{}
	}
	h, err := s.OpenOrCreate(ctx, id, o.Session)
	if err != nil {
		return Receipt{}, err
	}
	defer func() { err = errors.Join(err, h.Close()) }()
	return h.Run(ctx, state, func(ctx context.Context) error { return turn(ctx, h) }, o)
}

// Run does one turn of an agent: it claims the session if asked to, decodes the agent's state into state (a pointer, to
// a fresh value; nil = the agent has none), answers the tool calls that an earlier process left open with error
// results, calls turn, and commits what turn appended together with state. It returns the receipt.
//
// turn appends the new messages, and may commit on its way: for example before a tool runs, so that its call is durable
// before its effects are. If turn returns an error, Run returns it, and what was not committed is dropped. That is so
// for an error of the last commit too, with these exceptions:
//
//   - If another writer committed first, the turn is kept as a branch, Receipt.Kept, and Run returns nil: both are
//     stored, and the head is the winner's, which the handle shows then.
//   - If another writer claimed the session, the turn is kept as a branch too, and Run returns ErrFenced: this process
//     should stop.
//   - If the outcome of the commit is unknown, Run calls Settle, up to three times. Then it returns ErrCommitUnknown;
//     the next Run of the handle settles it before it begins.
//
// The same holds if turn itself returns ErrConflict, ErrFenced or ErrCommitUnknown of one of its commits, but then
// Run returns that error with the receipt: the turn did not end. Run is for one caller of a handle at a time.
func (s *Session) Run(
	ctx context.Context, state any, turn func(ctx context.Context) error, o *RunOptions,
) (Receipt, error) {
	if o == nil {
		o = &RunOptions{}
	}
	if o.Key != "" {
		if r, err := s.keyed(ctx, o.Key); r.Repeated || err != nil {
			return r, err
		}
	}
	if err := s.resume(ctx, state, o); err != nil {
		return Receipt{}, errors.Join(err, s.drop(ctx))
	}
	if err := turn(ctx); err != nil {
		r, serr := s.keep(ctx, Turn{State: state}, err)
		return r, errors.Join(err, serr)
	}
	last := Turn{State: state, Key: o.Key}
	r, err := s.Commit(ctx, last)
	switch {
	case err == nil:
		return r, nil
	case errors.Is(err, ErrKeyReused): // another host did the job meanwhile
		r, err := s.keyed(ctx, o.Key)
		return r, s.fail("run", errors.Join(err, s.drop(ctx)))
	}
	r, serr := s.keep(ctx, last, err)
	if serr == nil && (errors.Is(err, ErrConflict) || errors.Is(err, ErrCommitUnknown)) {
		return r, nil
	}
	return r, errors.Join(err, serr)
}

// resume brings the handle to the start of a turn.
func (s *Session) resume(ctx context.Context, state any, o *RunOptions) error {
	if s.j.InDoubt() {
		if _, err := s.Settle(ctx, ""); errors.Is(err, ErrCommitUnknown) {
			return err
		} else if err := s.drop(ctx); err != nil {
			return err
		}
	}
	if o.Claim && !s.claimed.Load() {
		if _, err := s.Claim(ctx); err != nil {
			return err
		}
		s.claimed.Store(true)
	}
	if s.j.Behind() && !s.j.Fenced() { // Reload would lift a fence
		if err := s.Reload(ctx); err != nil {
			return err
		}
	}
	if state != nil {
		if err := s.State(state); err != nil {
			return err
		}
	}
	calls, err := s.openCalls(ctx)
	if err != nil {
		return s.fail("run", err)
	}
	text := cmp.Or(o.Interrupted, interrupted)
	answers := make([]transcript.Draft, len(calls))
	for i, c := range calls {
		answers[i] = entry.ToolResult(c.ID, c.Name, text, true)
	}
	_, err = s.Append(ctx, answers...) // none: a fenced handle refuses here, before anything is paid for
	return err
}

// keep stores what the handle has of a turn that failed with err, as a branch if another writer was first, or drops it.
func (s *Session) keep(ctx context.Context, last Turn, err error) (r Receipt, _ error) {
	for try := 0; errors.Is(err, ErrCommitUnknown) && try < settleTries; try++ {
		if r, err = s.Settle(ctx, ""); errors.Is(err, backend.ErrBusy) { // it is lost, and nothing else was stored
			r, err = s.Commit(ctx, last)
		}
	}
	if !errors.Is(err, ErrConflict) && !errors.Is(err, ErrFenced) {
		if err == nil || errors.Is(err, ErrCommitUnknown) {
			return r, err
		}
		return r, s.drop(ctx)
	}
	last.KeepBoth = true
	r, kerr := s.Commit(ctx, last)
	if kerr != nil || errors.Is(err, ErrFenced) { // a fence stays, which Reload would lift
		return r, kerr
	}
	return r, s.Reload(ctx)
}

// drop forgets what was appended and not committed, also for a caller who has gone.
func (s *Session) drop(ctx context.Context) error { return s.Discard(context.WithoutCancel(ctx)) }
