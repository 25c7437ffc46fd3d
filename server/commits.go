package server

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"reflect"
	"strings"

	coppice "github.com/coppice-go/coppice"
	"github.com/coppice-go/coppice/backend"
	"github.com/coppice-go/coppice/checkpoint"
	"github.com/coppice-go/coppice/internal/api"
	"github.com/coppice-go/coppice/interop"
	"github.com/coppice-go/coppice/transcript"
)

// newCommit is the body of a commit.
type newCommit struct {
	Entries    sentEntries                `json:"entries,omitzero" doc:"messages of any provider, or entries"`
	State      json.RawMessage            `json:"state,omitempty" doc:"absent = unchanged, null clears"`
	Manager    json.RawMessage            `json:"manager,omitempty" doc:"as state, of the conversation manager"`
	Docs       map[string]json.RawMessage `json:"docs,omitempty" doc:"documents by name; null removes"`
	Reason     string                     `json:"reason,omitempty" maxLength:"32"`
	From       *string                    `json:"from,omitempty" doc:"entry to move the head to; empty = before all"`
	Context    *[]contextItem             `json:"context,omitempty" doc:"for the model; none = derived again"`
	OnKnownID  string                     `json:"onKnownId,omitempty" enum:"error,ignore,amend"`
	Images     string                     `json:"images,omitempty" enum:"inline,ref" doc:"ref: entries have references"`
	OnConflict string                     `json:"onConflict,omitempty" enum:"fail,keep-both,keep-fenced"`
	Create     *newSession                `json:"create,omitempty" doc:"session to create, if there is none"`
}

// contextItem is a message of an explicit context.
type contextItem struct {
	Entry   string          `json:"entry,omitempty" doc:"the entry that contains it, or"`
	Message json.RawMessage `json:"message,omitempty" doc:"the message itself"`
}

func (s *Server) describeCommits() {
	handle[commitQuery, api.Committed](s, operation{
		method: "POST", path: "/v1/sessions/{id}/commits", id: "commit",
		summary: "Commit entries and state, all or nothing",
		text: "Entries without a parent grow from the head of the commit in If-Match. A conflict is 412 with the " +
			"winner and the entries since; with onConflict keep-both the commit is stored on a branch, kept; with " +
			"keep-fenced also where another client has claimed the session. An entry may be {message, original}, " +
			"which keeps what a program has of the message, or {entry, onKnownId}. With a format entries are lines " +
			"of that program, as they are in its files, or the body is: they become the entries of an import, and " +
			"each keeps its lines as original, or originals. Lines that the session has are passed over.",
		body: reflect.TypeFor[newCommit](), size: sizeTurn, condition: ifMatchOrKey, names: true,
		mayCreate: true, lines: true,
		errors: []int{409},
	}, s.commit)
	handle[sessionPath, api.Resume](s, operation{
		method: "GET", path: "/v1/sessions/{id}/resume", id: "resume", statuses: []int{304},
		summary: "What an agent needs to continue: state, context, head. One read of the store",
	}, s.resume)
	handle[stateQuery, any](s, operation{
		method: "GET", path: "/v1/sessions/{id}/state", id: "state", names: true,
		statuses: []int{304},
		summary:  "The agent's state, now or at any time",
	}, s.state)
	handle[diffQuery, api.Diff](s, operation{
		method: "GET", path: "/v1/sessions/{id}/diff", id: "diff", names: true, whole: true,
		summary: "What differs in messages and state between two times",
	}, s.diff)
}

// turn returns the turn of a body.
func (b newCommit) turn() (t coppice.Turn, err error) {
	t = coppice.Turn{Reason: b.Reason, Docs: map[string]any{}}
	known, err := api.KnownRule(b.OnKnownID)
	if err != nil {
		return t, badInput("onKnownId", err)
	}
	for _, e := range b.Entries.drafts {
		if e.OnKnownID = known; e.own != nil {
			e.OnKnownID = *e.own
		}
		t.Entries = append(t.Entries, e.Draft)
	}
	t.From = b.From
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
	switch b.OnConflict {
	case "", "fail":
	case "keep-both": // at a fence its client has to learn of it
		t.KeepBoth, t.FailFenced = true, true
	case "keep-fenced":
		t.KeepBoth = true
	default:
		return t, badInput("onConflict", fmt.Errorf("%.40q: want fail, keep-both or keep-fenced", b.OnConflict))
	}
	if b.Images != "" && b.Images != "inline" && b.Images != "ref" {
		return t, badInput("images", fmt.Errorf("%.40q: want inline or ref", b.Images))
	}
	if b.Context != nil && (b.From != nil || b.Create != nil || strings.HasPrefix(b.OnConflict, "keep")) {
		return t, badInput("context", errors.New("it cannot be set together with from, create, or onConflict"))
	}
	return t, nil
}

// noCommit is the base of a commit without If-Match: no commit has this id, and no tag of a header has a comma. Above a
// quota the tag of If-Match follows it, for tagOf.
const noCommit = ","

func (s *Server) commit(ctx context.Context, in *commitQuery) (answer, error) {
	q := &keyedWrite{request: in.request, ID: in.ID, Key: in.Key, Writer: in.Writer}
	defer func() { in.request = q.request }()
	b, err := readCommit(q.r, in.Format)
	if err != nil {
		return answer{}, err
	}
	t, err := b.turn()
	if err != nil {
		return answer{}, err
	}
	t.Key, t.Base, t.Writer = q.Key, q.made, q.Writer
	l := lines{format: interop.Format(in.Format), list: b.Entries.lines, known: b.OnKnownID, salt: q.Key}
	on := func(ctx context.Context, h *coppice.Session) (r coppice.Receipt, err error) {
		t := t
		if t.Entries, err = l.entries(ctx, h, t.Entries); err != nil {
			return r, err
		}
		if b.Images == "ref" {
			if t.Entries, err = s.withImages(ctx, h, &q.request, t.Entries); err != nil {
				return r, err
			}
		}
		if h.Info().Commit == "" { // it is a new session
			t.Base = ""
			return h.Commit(ctx, t)
		}
		return s.commitOn(ctx, h, t, q.made)
	}
	var r coppice.Receipt
	switch absent := seenOf(q.r).absent; {
	case b.Create != nil:
		r, err = s.createWith(ctx, q, birth{b.Create, l.profile()}, on)
	case absent:
		err = s.narrowed(q.r, &operation{}, q.on)
	case b.Context != nil:
		err = s.onNewest(ctx, &q.request, func(ctx context.Context, h *coppice.Session) error {
			if t.Base, err = setContext(ctx, h, q.made, *b.Context); err == nil {
				r, err = on(ctx, h)
			}
			return err
		})
	default:
		r, err = s.writeTurn(ctx, &q.request, on)
	}
	if err != nil {
		return answer{}, err
	}
	doc := committed(r)
	doc.Created = seenOf(q.r).created && !r.Repeated
	return answer{etag: tagOf(r, q.made), doc: doc}, nil
}

// storing makes a commit on a handle.
type storing func(context.Context, *coppice.Session) (coppice.Receipt, error)

// writeTurn runs f as write does.
func (s *Server) writeTurn(ctx context.Context, q *request, f storing) (r coppice.Receipt, err error) {
	err = s.write(ctx, q, func(ctx context.Context, h *coppice.Session) error {
		r, err = f(ctx, h)
		return err
	})
	return r, err
}

// commitOn commits a turn that was made on the commit of If-Match.
func (s *Server) commitOn(
	ctx context.Context, h *coppice.Session, t coppice.Turn, made string,
) (coppice.Receipt, error) {
	r, err := h.Commit(ctx, t)
	if err != nil {
		r, err = s.settled(ctx, h, err)
	}
	switch {
	case err == nil:
		return r, nil
	case errors.Is(err, fs.ErrNotExist) && !errors.Is(err, coppice.ErrDeleted):
		err = absentBase(ctx, h, t.Base, err)
	}
	if errors.Is(err, coppice.ErrConflict) && made == noCommit {
		return r, errNoCondition
	}
	if errors.Is(err, coppice.ErrConflict) {
		hint := "nothing was stored: make it again on the winner, or send it with onConflict keep-both"
		if t.KeepBoth { // no branch can begin at a commit that is not there
			hint = againOnWinner
		}
		err = lost(ctx, h, made, hint, err)
	}
	return r, err
}

// setContext makes the context of a handle explicit, for a commit on the newest commit, and returns its base: what is
// set goes with a commit without one. A commit that was made on another one is a repeat, or a conflict.
func setContext(ctx context.Context, h *coppice.Session, made string, items []contextItem) (base string, err error) {
	if made != coppice.Newest && made != h.Info().Commit {
		return noCommit, nil
	}
	list := make([]transcript.Item, len(items))
	for i, it := range items {
		list[i] = transcript.Item(it)
	}
	err = h.SetContext(ctx, list...)
	if _, failed := errors.AsType[*backend.Error](err); err != nil && !failed && api.Describe(err).Code == "failed" {
		err = badInput("context", err)
	}
	return "", err
}

// againOnWinner is the hint of a write that lost and cannot be kept.
const againOnWinner = "nothing was stored: make it again on the winner"

// tagOf returns the ETag of the answer to a write: the commit on which its client can write next. A client whose
// annotation, or whose known entries, met a session that has moved on stays where it was: what others made since it has
// not seen.
func tagOf(r coppice.Receipt, made string) string {
	made = strings.TrimPrefix(made, noCommit)
	if !r.Behind || r.Kept != "" || made == coppice.Newest {
		return r.Commit
	}
	return made
}

// settled finds out whether a commit of unknown outcome is stored, within the time of another commit.
func (s *Server) settled(ctx context.Context, h *coppice.Session, err error) (coppice.Receipt, error) {
	doubt, is := errors.AsType[*coppice.Error](err)
	if !is || !errors.Is(err, coppice.ErrCommitUnknown) || doubt.Commit == "" {
		return coppice.Receipt{}, err
	}
	ctx, cancel := s.detached(ctx)
	defer cancel()
	r, serr := h.Settle(ctx, doubt.Commit)
	if errors.Is(serr, coppice.ErrCommitUnknown) {
		return r, err
	}
	return r, serr
}

// committed is the answer to a commit.
func committed(r coppice.Receipt) api.Committed {
	c := api.CommittedOf(r, r.IDs)
	c.IO = r.IO
	return c
}

// write runs f on the handle of a session, in a context that the client cannot cancel.
func (s *Server) write(
	ctx context.Context, q *request, f func(context.Context, *coppice.Session) error,
) error {
	return s.writers.use(ctx, writerKey{q.on.Store, q.id}, func(h *coppice.Session) error {
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

// absentBase returns the error of a commit that names something which does not exist: a conflict if that is the commit
// of If-Match, and else the error itself, which is about an entry of the body.
func absentBase(ctx context.Context, h *coppice.Session, made string, err error) error {
	if made == coppice.Newest {
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
	if p.Winner == nil { // If-Match names no commit
		v, err := h.At(ctx, coppice.Target{})
		if err != nil {
			return p // the answer is the conflict, though it holds less
		}
		winner := api.CommitOf(v.Commit())
		p.Winner = &winner
	}
	p.header = http.Header{"Etag": {quoteTag(p.Winner.Commit)}}
	from, verr := h.At(ctx, coppice.Target{Commit: made})
	if made == coppice.Newest || verr != nil {
		return p
	}
	p.Entries, p.More = since(ctx, h, from.Commit().Seq, p.Winner.Seq)
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

// move makes a move, an annotation or a claim on the commit in If-Match.
func (s *Server) move(
	ctx context.Context, q *request, k keys,
	f func(context.Context, *coppice.Session, ...coppice.MoveOption) (coppice.Receipt, error),
) (a answer, err error) {
	made := q.made
	err = s.write(ctx, q, func(ctx context.Context, h *coppice.Session) error {
		r, err := f(ctx, h, coppice.WithBase(made), coppice.WithKey(k.key), coppice.WithWriter(k.writer))
		if err != nil {
			r, err = s.settled(ctx, h, err)
		}
		if errors.Is(err, fs.ErrNotExist) && !errors.Is(err, coppice.ErrDeleted) {
			err = absentBase(ctx, h, made, err)
		}
		if errors.Is(err, coppice.ErrConflict) {
			return lost(ctx, h, made, againOnWinner, err)
		}
		if err != nil {
			return err
		}
		doc, err := movedDoc(ctx, h, k.operation, r)
		a = answer{etag: tagOf(r, made), doc: doc}
		if len(q.r.Header.Values("If-Match")) == 0 { // its client has seen no commit
			a.etag = ""
		}
		return err
	})
	return a, err
}

// keys are what identifies a write.
type keys struct {
	key, writer, operation string
}

// own runs f on a handle of its own, which shows the newest commit: that has to be the one in If-Match.
func (s *Server) own(
	ctx context.Context, q *request, f func(context.Context, *coppice.Session) (coppice.Receipt, any, error),
) (a answer, err error) {
	made := q.made
	err = s.onNewest(ctx, q, func(ctx context.Context, h *coppice.Session) error {
		if newest := h.Info().Commit; made != coppice.Newest && made != newest {
			err := fmt.Errorf("%w: the session moved since the commit in If-Match, or never had it",
				coppice.ErrConflict)
			return lost(ctx, h, made, againOnWinner, err)
		}
		r, doc, err := f(ctx, h)
		if errors.Is(err, coppice.ErrConflict) {
			err = lost(ctx, h, made, againOnWinner, err)
		}
		a = answer{etag: r.Commit, doc: doc}
		return err
	})
	return a, err
}

// onNewest runs f on a handle of its own, which shows the newest commit, in a context that the client cannot cancel.
func (s *Server) onNewest(
	ctx context.Context, q *request, f func(context.Context, *coppice.Session) error,
) (err error) {
	ctx, cancel := s.detached(ctx)
	defer cancel()
	h, err := q.on.Store.Open(ctx, q.id, &coppice.SessionOptions{NameLeft: true})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, h.Close()) }()
	q.find()
	return f(ctx, h)
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
