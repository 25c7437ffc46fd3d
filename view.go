package coppice

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"

	"github.com/coppice-go/coppice/checkpoint"
	"github.com/coppice-go/coppice/internal/journal"
	"github.com/coppice-go/coppice/internal/journal/store"
	"github.com/coppice-go/coppice/internal/rawjson"
	"github.com/coppice-go/coppice/internal/session"
	"github.com/coppice-go/coppice/snapshot"
	"github.com/coppice-go/coppice/transcript"
)

// A View is the session as it was at one commit, or at one entry: then with the document in force there. Entries
// are amended as they were at that commit, or at the commit that the document is of. It never changes. Its handle
// has to stay open while the view is read.
type View struct {
	s *Session
	v *session.View
}

// At returns the session as it was at a target, and moves nothing. It reads the nearest snapshot or
// keyframe and the patches since; the head and the last commit need no read.
func (s *Session) At(ctx context.Context, t Target) (*View, error) {
	v, err := s.at(ctx, t)
	if err != nil {
		return nil, s.fail("at", err)
	}
	return v, nil
}

func (s *Session) at(ctx context.Context, t Target) (*View, error) {
	if err := t.valid(); err != nil {
		return nil, err
	}
	v, err := s.find(ctx, t)
	if err != nil {
		return nil, err
	}
	return &View{s: s, v: v}, nil
}

// find looks for what a target names.
func (s *Session) find(ctx context.Context, t Target) (*session.View, error) {
	if err := s.h.Ready(ctx); err != nil {
		return nil, err
	}
	head := s.h.AtHead()
	switch {
	case head == nil:
		return nil, session.Missing("commit", t.String())
	case t.Seq > 0 || t.first:
		return s.h.AtSeq(ctx, t.Seq)
	case t.Commit != "":
		return s.h.AtCommit(ctx, t.Commit)
	case t.Entry != "":
		return s.h.AtEntry(ctx, t.Entry)
	case t.Snapshot != "" || t.Tag != "":
		return s.h.AtSnapshot(ctx, t.Snapshot, t.Tag)
	case t.bare != "":
		return s.h.AtWord(ctx, t.bare)
	case !t.Time.IsZero():
		return s.h.AtTime(ctx, t.Time)
	}
	return head, nil
}

// Commit returns the commit that the view shows; for an entry, the one whose document is in force there.
func (v *View) Commit() checkpoint.Commit { return v.v.Commit }

// Document returns the document in force. Its parts must not be changed.
func (v *View) Document() checkpoint.Document { return readable(v.v.Doc) }

// State decodes the agent's state at the view into dst; if there was none, dst is unchanged.
func (v *View) State(dst any) error { return v.s.fail("state", decode(v.v.Doc.State, dst)) }

// Doc decodes a document (Turn.Docs) at the view into dst; if there was none of this name, dst is unchanged.
func (v *View) Doc(name string, dst any) error {
	return v.s.fail("document", decode(v.v.Doc.Docs[name], dst))
}

// Docs yields the names and the JSON of all documents at the view, in ascending order of their names. The JSON must not
// be changed.
func (v *View) Docs() iter.Seq2[string, json.RawMessage] { return inOrder(v.v.Doc.Docs) }

// Context returns the whole context at the view, without a limit: a view of the head returns what
// Session.Context omits.
func (v *View) Context(ctx context.Context) (transcript.Context, error) {
	c, err := v.v.Context(ctx)
	return c, v.s.fail("context", err)
}

// Path returns the entries from the view's head towards the root, newest first.
func (v *View) Path(ctx context.Context) iter.Seq2[transcript.Entry, error] {
	return iterate(ctx, v.s, "path", func(yield func(transcript.Entry, error) bool) error {
		return v.v.Path(ctx, yield)
	})
}

// Page returns a page of the path to the view's head: as Session.Page, where To "" is that head. All is an error.
func (v *View) Page(ctx context.Context, p Page) iter.Seq2[transcript.Entry, error] {
	return iterate(ctx, v.s, "page", func(yield func(transcript.Entry, error) bool) error {
		return v.v.Page(ctx, session.Page(p), yield)
	})
}

// Diff returns the differences between this view, A, and another of the same session, B. It holds every entry that only
// one of the two paths has.
func (v *View) Diff(ctx context.Context, to *View) (checkpoint.Diff, error) {
	return v.DiffLimit(ctx, to, 0)
}

// DiffLimit is Diff with at most so many entries of each path, the first ones; 0 = all. It counts the others.
func (v *View) DiffLimit(ctx context.Context, to *View, most int) (checkpoint.Diff, error) {
	if to == nil {
		return checkpoint.Diff{}, v.s.fail("diff", errors.New("the other view is nil"))
	}
	d, err := v.v.Diff(ctx, to.v, most)
	d.State = rawjson.ValidText(d.State)
	return d, v.s.fail("diff", err)
}

// Log yields commits from a target on, newest first. The last 64 are in memory.
func (s *Session) Log(ctx context.Context, from Target) iter.Seq2[checkpoint.Commit, error] {
	return iterate(ctx, s, "log", func(yield func(checkpoint.Commit, error) bool) error {
		st := s.h.State()
		if st.Summary.Commit == "" && from == (Target{}) {
			return nil
		}
		v, err := s.at(ctx, from)
		if err != nil {
			return err
		}
		return forward(s.h.Journal().Log(ctx, st, v.v.Commit.Seq), yield)
	})
}

// StateAt is a commit, and the document that it left.
type StateAt struct {
	Commit   checkpoint.Commit
	Document checkpoint.Document // its parts must not be changed
}

// States yields the commits from a target on, newest first, each with the document that At returns for it, in one pass
// over the log: a segment, of up to 1 MiB on disk and 256 entries in an object store, is read once for all of its
// commits, and the commits since the last one was sealed cost no read. At most three segments are in memory, and of the
// 64 commits between two documents that are stored whole 16 documents, each as long as the state. A commit that keeps a
// losing turn on a branch (Commit.Kept is Commit.Branch) comes with that turn's document, which was never the
// session's.
func (s *Session) States(ctx context.Context, from Target) iter.Seq2[StateAt, error] {
	return iterate(ctx, s, "states", func(yield func(StateAt, error) bool) error {
		if s.h.State().Summary.Commit == "" && from == (Target{}) {
			return nil
		}
		v, err := s.at(ctx, from)
		if err != nil {
			return err
		}
		return s.h.States(ctx, v.v, func(c checkpoint.Commit, doc checkpoint.Document) bool {
			return yield(StateAt{c, readable(doc)}, nil)
		})
	})
}

// Rollback restores state, context and head exactly as they were at a target, in a new commit on a new
// branch. The path that is left is kept as branch Receipt.Kept.
func (s *Session) Rollback(ctx context.Context, t Target, opts ...MoveOption) (Receipt, error) {
	v, err := s.at(ctx, t)
	if err != nil {
		return Receipt{}, s.fail("rollback", err)
	}
	r, err := s.h.Rollback(ctx, optionsOf(opts), v.v, t.String())
	return s.receipt("rollback", r, err)
}

// Fork creates a new session from the path to a target: its entries byte for byte, the labels on them and the
// amendments of them that are in force now, and the document in force there. Its header names this session as its
// parent. id "" = a new UUIDv7; with nil options it has the title and working directory of this session. If the
// entries set another title or directory than the options, one more commit sets those of the options.
func (s *Session) Fork(ctx context.Context, t Target, id string, o *SessionOptions) (*Session, error) {
	v, err := s.at(ctx, t)
	if err != nil {
		return nil, s.fail("fork", err)
	}
	f, err := s.store.fork(ctx, s, v, id, o)
	if err != nil {
		return nil, s.fail("fork", err)
	}
	return f, nil
}

// Snapshot stores the state of the last commit as a snapshot, under a tag, which may be "". One PUT.
func (s *Session) Snapshot(ctx context.Context, tag string) (snapshot.Info, error) {
	if err := s.h.Writable(ctx); err != nil {
		return snapshot.Info{}, s.fail("snapshot", err)
	}
	st := s.h.State()
	if st.Summary.Commit == "" {
		return snapshot.Info{}, s.fail("snapshot", session.Missing("commit", "head"))
	}
	if err := session.CheckName("tag", tag); err != nil {
		return snapshot.Info{}, s.fail("snapshot", err)
	}
	info, err := s.h.Journal().Snapshot(ctx, st, tag)
	return info, s.fail("snapshot", err)
}

// Snapshots yields the session's snapshots, newest first.
func (s *Session) Snapshots(ctx context.Context) iter.Seq2[snapshot.Info, error] {
	return iterate(ctx, s, "snapshots", func(yield func(snapshot.Info, error) bool) error {
		return forward(s.h.Journal().Snapshots(ctx), yield)
	})
}

// Prune removes the snapshots that a retention does not keep, and returns them; with DryRun it only returns
// them. Commits are not changed: each can still be restored from the log. Prune reads every snapshot before it removes
// it, and keeps one whose state can, because of damage, no longer be restored from the log.
func (s *Session) Prune(ctx context.Context, keep snapshot.Retention) ([]snapshot.Info, error) {
	if !keep.DryRun && s.o.ReadOnly {
		return nil, s.fail("prune", journal.ErrReadOnly)
	}
	var list []snapshot.Info
	for info, err := range s.Snapshots(ctx) {
		if err != nil {
			return nil, s.fail("prune", err)
		}
		list = append(list, info)
	}
	_, drop := keep.Select(list)
	only, err := s.h.OnlyWays(ctx, drop)
	if err != nil {
		return nil, s.fail("prune", err)
	}
	for i := range list {
		list[i].Only = only[list[i].ID]
	}
	if _, drop = keep.Select(list); keep.DryRun {
		return drop, nil
	}
	for i, info := range drop {
		if err := s.h.Journal().DropSnapshot(ctx, info.ID); err != nil {
			return drop[:i], s.fail("prune", fmt.Errorf("drop snapshot %s: %w", info.ID, err))
		}
	}
	return drop, nil
}

// Watch yields every commit with a seq above after, old ones first and new ones as they come, from
// any writer, with the entries that each made durable, until ctx is done. A call that continues at the seq
// where another ended misses nothing. Once it has begun, what any handle of the same Store commits, an import too,
// comes at once and without a read of the head; the commits of others are looked for once per Options.Poll, for one
// Stat. It moves a read-only handle forward. The end of ctx is not an error.
func (s *Session) Watch(ctx context.Context, after uint64) iter.Seq2[Change, error] {
	return func(yield func(Change, error) bool) { s.watch(ctx, after, yield, nil) }
}

func (s *Session) watch(
	ctx context.Context, after uint64, yield func(Change, error) bool, partial func(json.RawMessage) bool,
) {
	err := s.h.Watch(ctx, after, func(b store.Batch, entries []transcript.Entry) bool {
		return yield(Change{Commit: b.Commit, Entries: entries, statePatch: s.statePatch(b)}, nil)
	}, partial)
	if err != nil && ctx.Err() == nil {
		yield(Change{}, s.fail("watch", err))
	}
}

// statePatch returns what Change.StatePatch calls.
func (s *Session) statePatch(b store.Batch) func(ctx context.Context) (json.RawMessage, error) {
	return func(ctx context.Context) (json.RawMessage, error) {
		if b.Before == b.After {
			return json.RawMessage("[]"), nil
		}
		var docs [2]checkpoint.Document
		for i, p := range []*store.Past{b.Before, b.After} {
			raw, err := p.Document(ctx)
			if err != nil {
				return nil, s.fail("state patch", err)
			}
			if len(raw) == 0 { // before the first commit
				continue
			}
			if docs[i], err = checkpoint.DecodeDocument(raw); err != nil {
				return nil, s.fail("state patch", err)
			}
		}
		patch, err := docs[0].DiffState(docs[1])
		return rawjson.ValidText(patch), s.fail("state patch", err)
	}
}
