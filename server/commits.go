package server

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"reflect"
	"sync"

	coppice "github.com/coppice-go/coppice"
	"github.com/coppice-go/coppice/checkpoint"
	"github.com/coppice-go/coppice/internal/api"
	"github.com/coppice-go/coppice/transcript"
)

// maxTries bounds how often a commit on the newest head, whatever it is, begins again because others commit.
const maxTries = 8

// newCommit is the body of a commit.
type newCommit struct {
	Entries    []json.RawMessage          `json:"entries,omitempty" doc:"messages of any provider, or entries"`
	State      json.RawMessage            `json:"state,omitempty" doc:"absent = unchanged, null clears"`
	Manager    json.RawMessage            `json:"manager,omitempty" doc:"as state, of the conversation manager"`
	Docs       map[string]json.RawMessage `json:"docs,omitempty" doc:"documents by name; null removes"`
	Reason     string                     `json:"reason,omitempty" maxLength:"32"`
	OnKnownID  string                     `json:"onKnownId,omitempty" enum:"error,ignore,amend"`
	OnConflict string                     `json:"onConflict,omitempty" enum:"fail,keep-both"`
}

func (s *Server) describeCommits() {
	handle[keyedWrite, api.Committed](s, operation{
		method: "POST", path: "/v1/sessions/{id}/commits", id: "commit", needs: rightWrite,
		summary: "Commit entries and state, all or nothing",
		text: "Entries without a parent grow from the head of the commit in If-Match. A conflict is 412 with the " +
			"winner and the entries since; with onConflict keep-both the commit is stored on a branch, kept.",
		body: reflect.TypeFor[newCommit](), size: sizeTurn, names: true, errors: []int{409, 412, 428, 507},
	}, s.commit)
	handle[sessionPath, api.Resume](s, operation{
		method: "GET", path: "/v1/sessions/{id}/resume", id: "resume", needs: rightRead, statuses: []int{304},
		summary: "What an agent needs to continue: state, context, head. One read of the store",
	}, s.resume)
	handle[stateQuery, any](s, operation{
		method: "GET", path: "/v1/sessions/{id}/state", id: "state", needs: rightRead, names: true,
		statuses: []int{304},
		summary:  "The agent's state, now or at any time",
	}, s.state)
	handle[diffQuery, api.Diff](s, operation{
		method: "GET", path: "/v1/sessions/{id}/diff", id: "diff", needs: rightRead, names: true,
		summary: "What differs in messages and state between two times",
	}, s.diff)
}

// turn returns the turn of a body.
func (b newCommit) turn() (t coppice.Turn, err error) {
	t = coppice.Turn{Reason: b.Reason, Docs: map[string]any{}}
	for i, line := range b.Entries {
		d, err := api.Draft(line)
		if err != nil {
			return t, badInput(fmt.Sprintf("entries[%d]", i), err)
		}
		t.Entries = append(t.Entries, d)
		b.Entries[i] = nil // d is a copy
	}
	if len(b.State) > 0 {
		t.State = b.State
	}
	if len(b.Manager) > 0 {
		t.Manager = b.Manager
	}
	for name, doc := range b.Docs {
		if err := checkpoint.CheckDocName(name); err != nil {
			return t, badInput("docs", err)
		}
		t.Docs[name] = doc
	}
	known, ok := map[string]transcript.KnownID{
		"": transcript.KnownError, "error": transcript.KnownError, "ignore": transcript.KnownIgnore,
		"amend": transcript.KnownAmend,
	}[b.OnKnownID]
	if !ok {
		return t, badInput("onKnownId", fmt.Errorf("%.40q: want error, ignore or amend", b.OnKnownID))
	}
	for i := range t.Entries {
		t.Entries[i].OnKnownID = known
	}
	switch b.OnConflict {
	case "", "fail":
	case "keep-both":
		t.KeepBoth = true
	default:
		return t, badInput("onConflict", fmt.Errorf("%.40q: want fail or keep-both", b.OnConflict))
	}
	return t, nil
}

// inFlight are the keys of commits that are on their way.
type inFlight struct {
	mu   sync.Mutex
	keys map[inFlightKey]struct{}
}

type inFlightKey struct {
	writerKey
	key string
}

// enter reports whether no commit with the key is on its way; then one is, until leave.
func (f *inFlight) enter(k inFlightKey) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.keys == nil {
		f.keys = map[inFlightKey]struct{}{}
	}
	if _, there := f.keys[k]; there {
		return false
	}
	f.keys[k] = struct{}{}
	return true
}

func (f *inFlight) leave(k inFlightKey) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.keys, k)
}

// enter refuses a request with a key with which another one is on its way; leave is to be called at its end.
func (s *Server) enter(q *request, key string) (leave func(), err error) {
	if key == "" {
		return func() {}, nil
	}
	k := inFlightKey{writerKey{q.on.Store, q.id}, key}
	if !s.inFlight.enter(k) {
		return nil, retry(newProblem(http.StatusConflict, "in-flight", "send it again: its answer is near",
			errors.New("a request with this Idempotency-Key is on its way")))
	}
	return func() { s.inFlight.leave(k) }, nil
}

// noCommit is the base of a commit without If-Match: no commit has this id, and no tag of a header has a comma.
const noCommit = ","

func (s *Server) commit(ctx context.Context, q *keyedWrite) (answer, error) {
	made, err := base(q.r)
	if errors.Is(err, errNoCondition) && q.Key != "" { // a repeat gets its receipt all the same
		made, err = noCommit, nil
	}
	if err != nil {
		return answer{}, err
	}
	var b newCommit
	if err := decode(q.r, &b); err != nil {
		return answer{}, err
	}
	t, err := b.turn()
	if err != nil {
		return answer{}, err
	}
	t.Key = q.Key
	leave, err := s.enter(&q.request, t.Key)
	if err != nil {
		return answer{}, err
	}
	defer leave()
	var r coppice.Receipt
	var newest string // commit of the session
	err = s.write(ctx, &q.request, func(ctx context.Context, h *coppice.Session) (bool, error) {
		if _, err = fenced(ctx, h, made, t.Key); err != nil {
			return false, err
		}
		r, err = commitOn(ctx, h, t, made)
		if errors.Is(err, coppice.ErrConflict) && made == noCommit {
			return false, errNoCondition
		}
		if errors.Is(err, coppice.ErrConflict) {
			hint := "nothing was stored: make it anew on the winner, or send it with onConflict keep-both"
			if t.KeepBoth { // no branch can begin at a commit that is not there
				hint = "nothing was stored: make it anew on the winner"
			}
			err = lost(ctx, h, made, hint, err)
		}
		if newest = r.Commit; r.Kept != "" { // the head stays where the winner left it, and no write begins at r.Commit
			newest = h.Head().Commit
		}
		return spent(err), err
	})
	if err != nil {
		return answer{}, err
	}
	return answer{etag: newest, doc: committed(r)}, nil
}

// fenced returns the error of a commit that was made on one of before the newest claim: all clients share the handle,
// so only this tells the one that claimed the session from the others. Epochs do not: they change with every handle
// that commits. stored reports whether the log has the write by its key, after that commit: then it is not fenced.
func fenced(ctx context.Context, h *coppice.Session, made, key string) (stored bool, err error) {
	if made == "*" || made == noCommit || made == h.Head().Commit {
		return false, nil
	}
	claimed := false
	for c, err := range h.Log(ctx, coppice.Target{}) {
		switch {
		case err != nil:
			return false, err
		case key != "" && c.Key == key:
			return true, nil
		case c.Commit == made && claimed:
			return false, newProblem(http.StatusConflict, "fenced", "another client has taken over the session: read "+
				"it again, and write on its newest commit only if you are to take part",
				errors.New("the session was claimed since the commit in If-Match; nothing was stored"))
		case c.Commit == made:
			return false, nil
		}
		claimed = claimed || c.Reason == "claim" // which no turn can have as its reason
	}
	return false, nil // commitOn says that there is no such commit
}

// committed is the answer to a commit.
func committed(r coppice.Receipt) api.Committed {
	c := api.CommittedOf(r, r.IDs)
	c.IO = r.IO
	return c
}

// write runs f on the handle of a session, in a context that the client cannot cancel. f returns whether the handle
// must be replaced.
func (s *Server) write(
	ctx context.Context, q *request, f func(context.Context, *coppice.Session) (spent bool, err error),
) error {
	return s.writers.use(ctx, writerKey{q.on.Store, q.id}, func(h *coppice.Session) (bool, error) {
		ctx, cancel := s.detached(ctx)
		defer cancel()
		q.find()
		return f(ctx, h)
	})
}

// detached returns a context that the client cannot cancel: a commit that has begun is finished, within a time.
func (s *Server) detached(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.WithoutCancel(ctx), s.o.Timeout)
}

// spent reports whether a handle must be replaced after an error: it has a commit in doubt, or another writer has taken
// over or deleted the session. Then the next request opens it anew, and finds what became of the commit.
func spent(err error) bool {
	return errors.Is(err, coppice.ErrCommitUnknown) || errors.Is(err, coppice.ErrInDoubt) ||
		errors.Is(err, coppice.ErrFenced) || errors.Is(err, coppice.ErrDeleted) ||
		errors.Is(err, coppice.ErrCorrupt) || errors.Is(err, fs.ErrClosed)
}

// commitOn commits a turn that was made on a commit; "*" = on whatever is newest.
func commitOn(ctx context.Context, h *coppice.Session, t coppice.Turn, made string) (r coppice.Receipt, err error) {
	for try := 1; ; try++ {
		if t.Base = made; made == "*" {
			t.Base = h.Head().Commit
		}
		r, err = h.Commit(ctx, t)
		missing := errors.Is(err, fs.ErrNotExist) && !errors.Is(err, coppice.ErrDeleted)
		switch {
		case err == nil:
			return r, nil
		case missing && try == 1: // the commit or entry of another server, which this handle has not seen
		case missing:
			return r, absentBase(ctx, h, made, err)
		case made == "*" && errors.Is(err, coppice.ErrConflict) && try < maxTries:
		default:
			return r, err
		}
		if rerr := h.Reload(ctx); rerr != nil {
			return r, errors.Join(err, rerr)
		}
	}
}

// absentBase returns the error of a commit that names something which does not exist: a conflict if that is the commit
// of If-Match, and else the error itself, which is about an entry of the body.
func absentBase(ctx context.Context, h *coppice.Session, made string, err error) error {
	if made == "*" {
		return err
	}
	if made != noCommit {
		_, berr := h.At(ctx, coppice.Target{Commit: made})
		if berr == nil || !errors.Is(berr, fs.ErrNotExist) {
			return errors.Join(err, berr)
		}
	}
	return fmt.Errorf("%w: If-Match names no commit of this session", coppice.ErrConflict)
}

// Bounds of the winner's entries in the answer to a conflict.
const (
	maxWinnerEntries = 100
	maxWinnerBytes   = 1 << 20
)

// lost returns the answer to a write that lost: the winner, and the entries since the commit on which it was made.
func lost(ctx context.Context, h *coppice.Session, made, hint string, err error) error {
	p := problemOf(err)
	p.Status, p.Code = http.StatusPreconditionFailed, "conflict"
	p.Title = http.StatusText(p.Status)
	p.Hint = hint
	v, verr := h.At(ctx, coppice.Target{})
	if verr != nil {
		return p // the answer is the conflict, though it says less
	}
	winner := api.CommitOf(v.Commit())
	p.Winner = &winner
	p.header = http.Header{"Etag": {quoteTag(winner.Commit)}}
	from, verr := h.At(ctx, coppice.Target{Commit: made})
	if made == "*" || verr != nil {
		return p
	}
	p.Entries, p.More = since(ctx, h, from.Commit().Seq, winner.Seq)
	return p
}

// since returns the entries of the commits after one, up to another.
func since(ctx context.Context, h *coppice.Session, after, until uint64) (entries []json.RawMessage, more bool) {
	if after >= until {
		return nil, false
	}
	size := 0
	for c, err := range h.Watch(ctx, after) {
		if err != nil {
			return entries, true
		}
		for _, e := range c.Entries {
			size += len(e.Raw)
			if len(entries) == maxWinnerEntries || size > maxWinnerBytes {
				return entries, true
			}
			entries = append(entries, e.Raw)
		}
		if c.Commit.Seq >= until {
			break
		}
	}
	return entries, false
}

// move makes a write that is not a turn: on the newest head, which has to be what If-Match says.
func (s *Server) move(
	ctx context.Context, q *request, key string,
	f func(context.Context, *coppice.Session) (coppice.Receipt, any, error),
) (a answer, err error) {
	made, err := base(q.r)
	if err != nil {
		return answer{}, err
	}
	leave, err := s.enter(q, key)
	if err != nil {
		return answer{}, err
	}
	defer leave()
	err = s.write(ctx, q, func(ctx context.Context, h *coppice.Session) (bool, error) {
		for try := 1; ; try++ {
			if err := h.Reload(ctx); err != nil {
				return true, err
			}
			if err := newest(ctx, h, made, key); errors.Is(err, coppice.ErrConflict) {
				return false, lost(ctx, h, made, "nothing was stored: make it anew on the winner", err)
			} else if err != nil {
				return spent(err), err
			}
			r, doc, err := f(ctx, h)
			if errors.Is(err, coppice.ErrConflict) {
				if made == "*" && try < maxTries {
					continue
				}
				if rerr := h.Reload(ctx); rerr != nil {
					return true, rerr
				}
				return false, lost(ctx, h, made, "nothing was stored: make it anew on the winner", err)
			}
			a = answer{etag: r.Commit, doc: doc}
			return spent(err) || q.r.Method == http.MethodDelete, err
		}
	})
	if err == nil && q.r.Method == http.MethodDelete {
		s.views.forget(func(of writerKey) bool { return of == writerKey{q.on.Store, q.id} })
	}
	return a, err
}

func (s *Server) resume(ctx context.Context, q *sessionPath) (answer, error) {
	return read(ctx, &q.request, func(h *coppice.Session) (answer, error) {
		doc, _, err := api.Resumed(ctx, h)
		doc.IO = h.IO()
		return answer{etag: doc.Commit, doc: doc}, err
	})
}

// stateQuery is the parameters of a read of the state.
type stateQuery struct {
	request
	ID string `path:"id" maxLength:"128" doc:"the session's id"`
	At string `query:"at" doc:"a target: seq:N, commit:ID, entry:ID, snap:ID, tag:NAME, a branch, a time; default head"`
}

// target returns the target that a parameter names.
func target(name, text string) (t coppice.Target, err error) {
	if text == "" {
		return t, nil
	}
	if err := t.UnmarshalText([]byte(text)); err != nil {
		return t, badInput(name, err)
	}
	return t, nil
}

func (s *Server) state(ctx context.Context, q *stateQuery) (answer, error) {
	at, err := target("at", q.At)
	if err != nil {
		return answer{}, err
	}
	return read(ctx, &q.request, func(h *coppice.Session) (answer, error) {
		v, err := h.At(ctx, at)
		if err != nil {
			return answer{}, err
		}
		state := v.Document().State
		if len(state) == 0 {
			state = json.RawMessage("null")
		}
		return answer{etag: v.Commit().Commit, lasting: fixed(at), doc: state}, nil
	})
}

// fixed reports whether a target is the same for ever: a commit is, a branch is not.
func fixed(t coppice.Target) bool { return t.Commit != "" && len(t.Commit) == 36 }

// diffQuery is the parameters of a comparison.
type diffQuery struct {
	request
	ID string `path:"id" maxLength:"128" doc:"the session's id"`
	A  string `query:"a" required:"true" doc:"a target, as at of state"`
	B  string `query:"b" doc:"a target; default head"`

	Limit int `query:"limit" minimum:"1" maximum:"500" default:"500" doc:"entries of each path, the first ones"`
}

func (s *Server) diff(ctx context.Context, q *diffQuery) (answer, error) {
	a, err := target("a", q.A)
	if err != nil {
		return answer{}, err
	}
	b, err := target("b", q.B)
	if err != nil {
		return answer{}, err
	}
	return s.readTree(ctx, &q.request, func(h *coppice.Session) (answer, error) {
		va, err := h.At(ctx, a)
		if err != nil {
			return answer{}, err
		}
		vb, err := h.At(ctx, b)
		if err != nil {
			return answer{}, err
		}
		d, err := va.DiffLimit(ctx, vb, q.Limit)
		if err != nil {
			return answer{}, err
		}
		return answer{doc: api.DiffOf(d)}, nil
	})
}
