package searchindex

import (
	"context"
	"errors"
	"fmt"
	"io/fs"

	coppice "github.com/coppice-go/coppice"
	"github.com/coppice-go/coppice/checkpoint"
	"github.com/coppice-go/coppice/transcript"
)

// UpdateOptions of Index.Update.
type UpdateOptions struct {
	// Shallow opens only sessions whose summary in the listing changed since the last time. That is complete on stores
	// that replace the checkpoint with every commit: S3. On disk a summary may be up to 64 commits behind the log, so
	// there every session must be opened, which reads only its newest part.
	Shallow bool
	// Session limits the update to one session; "" = all in the store.
	Session string
	// Progress receives the bytes of transcripts read so far, and the approximate total.
	Progress func(done, total int64)
}

// Report is the result of an update.
type Report struct {
	Sessions int     // in the store
	Entries  int     // added
	Removed  int     // sessions that are no longer in the store
	Problems []error // sessions that were not read, or not to the end; the part that was read is indexed
}

// Update reads new entries of the store. Concurrent updates, also in several processes, have the same result. After an
// error the entries read so far stay. An index that turns out to be damaged is rebuilt.
func (x *Index) Update(ctx context.Context, st *coppice.Store, o *UpdateOptions) (Report, error) {
	if o == nil {
		o = &UpdateOptions{}
	}
	r, err := x.update(ctx, st, o)
	if err != nil && damaged(err) {
		if err = x.renew(ctx); err == nil {
			r, err = x.update(ctx, st, o)
		}
	}
	return r, x.fail("update", err)
}

// Rebuild rebuilds the index from the store. Meanwhile searches find what it has read so far.
func (x *Index) Rebuild(ctx context.Context, st *coppice.Store, o *UpdateOptions) (Report, error) {
	if err := x.renew(ctx); err != nil {
		return Report{}, x.fail("rebuild", err)
	}
	return x.Update(ctx, st, o)
}

func (x *Index) update(ctx context.Context, st *coppice.Store, o *UpdateOptions) (Report, error) {
	var r Report
	sums, err := listed(ctx, st, o.Session)
	if err != nil {
		return r, err
	}
	r.Sessions = len(sums)
	known, bytes, err := x.places(ctx)
	if err != nil {
		return r, err
	}
	u := updater{x: x, st: st, o: o}
	here := map[string]bool{}
	for _, sum := range sums {
		u.total += max(0, sum.Bytes-bytes[sum.ID])
		here[sum.ID] = true
	}
	for id := range known {
		if here[id] || o.Session != "" {
			continue
		}
		if err := x.erase(ctx, id); err != nil {
			return r, err
		}
		r.Removed++
	}
	if err := x.purge(ctx); err != nil {
		return r, err
	}
	for _, sum := range sums {
		at, ok := known[sum.ID]
		if !ok {
			at.tail = -1
		}
		n, err := u.session(ctx, sum.ID, sum.Commit, at)
		r.Entries += n
		if _, unreadable := errors.AsType[*unreadableError](err); unreadable && ctx.Err() == nil {
			r.Problems = append(r.Problems, err)
		} else if err != nil {
			return r, err
		}
	}
	return r, nil
}

// listed returns the summaries of the store's sessions. For one session it does not ask the store.
func listed(ctx context.Context, st *coppice.Store, one string) ([]checkpoint.Summary, error) {
	if one != "" {
		return []checkpoint.Summary{{ID: one}}, nil
	}
	var sums []checkpoint.Summary
	for sum, err := range st.List(ctx, coppice.ListOptions{Exact: true}) {
		if err != nil {
			return nil, err
		}
		sums = append(sums, sum)
	}
	return sums, nil
}

// unreadableError is the error of a session, not of the index.
type unreadableError struct{ error }

func (u *unreadableError) Unwrap() error { return u.error }

// updater is one pass over a store.
type updater struct {
	x           *Index
	st          *coppice.Store
	o           *UpdateOptions
	done, total int64
}

// session brings one session up to date and returns the number of entries read. listed is the last commit according to
// the listing, "" = unknown; at is the progress of the index.
func (u *updater) session(ctx context.Context, id, listed string, at place) (int, error) {
	if u.o.Shallow && listed != "" && at.seen == listed {
		return 0, nil
	}
	s, err := u.st.Open(ctx, id, &coppice.SessionOptions{ReadOnly: true, Intact: true})
	if errors.Is(err, fs.ErrNotExist) { // it was deleted
		return 0, u.x.Erase(ctx, id)
	}
	if err != nil {
		return 0, &unreadableError{err}
	}
	n, err := u.opened(ctx, s, listed, at)
	if errors.Is(err, errAmended) {
		if err = u.x.remove(ctx, id); err == nil {
			n, err = u.opened(ctx, s, listed, place{tail: -1})
		}
	}
	if errors.Is(err, errErased) {
		if err = u.x.Erase(ctx, id); err == nil {
			n, err = u.opened(ctx, s, listed, place{tail: -1})
		}
	}
	if errors.Is(err, errRaced) {
		n, err = u.opened(ctx, s, listed, place{tail: -1})
	}
	if cerr := s.Close(); err == nil && cerr != nil {
		err = &unreadableError{cerr}
	}
	return n, err
}

// errAmended means that entries in the index were amended since: the session must be read again.
var errAmended = errors.New("entries were amended")

// errErased means that entries in the index were erased since: no byte of them may stay in it, and the session must be
// read again.
var errErased = errors.New("entries were erased")

func (u *updater) opened(ctx context.Context, s *coppice.Session, listed string, at place) (int, error) {
	info := s.Info()
	if at.commit != "" && at.commit == info.Commit {
		if at.seen == listed || listed == "" {
			return 0, nil
		}
		return 0, u.x.with(noteSeen(ctx, at.n, listed))
	}
	t, err := s.Tree(ctx)
	if err != nil {
		return 0, &unreadableError{err}
	}
	if at.n > 0 && at.next > 0 && (at.next > int64(t.Len()) || t.ID(uint64(at.next-1)) != at.last) {
		if err := u.x.remove(ctx, s.ID()); err != nil { // another history: a restored backup
			return 0, err
		}
		at = place{tail: -1}
	}
	if listed == "" {
		listed = at.seen
	}
	w := &writer{x: u.x, tree: t, info: info, seen: listed, place: at, from: at.next}
	after := uint64(at.seq)
	if at.commit == "" {
		after = 0 // it was read in part or not at all
	}
	err = since(ctx, s, after, func(e transcript.Entry) error {
		if _, erases := e.Erasure(); erases && (after > 0 || at.next > 0) {
			return errErased
		}
		_, amends := e.Amendment()
		if amends && after > 0 || e.AmendedBy != "" && int64(e.Ordinal) < at.next {
			return errAmended
		}
		return u.add(ctx, w, e)
	})
	if _, unreadable := errors.AsType[*unreadableError](err); unreadable {
		return w.added, errors.Join(err, w.flush(ctx, false))
	}
	if err != nil {
		return w.added, err
	}
	err = w.flush(ctx, true)
	return w.added, err
}

func (u *updater) add(ctx context.Context, w *writer, e transcript.Entry) error {
	u.done += int64(len(e.Raw)) + 1
	if u.o.Progress != nil {
		u.o.Progress(u.done, max(u.total, u.done))
	}
	return w.add(ctx, e)
}

// since returns the entries of all stored commits after a seq; 0 = of the whole session.
func since(ctx context.Context, s *coppice.Session, after uint64, take func(transcript.Entry) error) error {
	last := s.Info().Seq
	if after == 0 {
		for e, err := range s.Entries(ctx) {
			if err != nil {
				return &unreadableError{err}
			}
			if err := take(e); err != nil {
				return err
			}
		}
		return nil
	}
	if last <= after {
		return nil // Watch would wait for the next commit
	}
	for change, err := range s.Watch(ctx, after) {
		if err != nil {
			return &unreadableError{err}
		}
		for _, e := range change.Entries {
			if err := take(e); err != nil {
				return err
			}
		}
		if change.Commit.Seq >= last {
			return nil
		}
	}
	return fmt.Errorf("read session %s: %w", s.ID(), context.Cause(ctx))
}
