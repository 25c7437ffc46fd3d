package coppice

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"

	"github.com/coppice-go/coppice/backend"
	"github.com/coppice-go/coppice/checkpoint"
	"github.com/coppice-go/coppice/internal/journal"
	"github.com/coppice-go/coppice/snapshot"
	"github.com/coppice-go/coppice/transcript"
)

// A View is the session as it was at one commit, or at one entry: then with the document in force there.
// It never changes. Its handle has to stay open while the view is read.
type View struct {
	s      *Session
	st     *journal.State
	commit checkpoint.Commit
	doc    checkpoint.Document
	head   place
	window *transcript.PathWindow // unbounded; nil = has to be read
}

// At gives the session as it was at a target. Nothing moves. It costs what the nearest snapshot or
// keyframe and the patches since cost; the head and the last commit cost nothing.
func (s *Session) At(ctx context.Context, t Target) (*View, error) {
	err := s.ready(ctx)
	if err == nil {
		err = t.valid()
	}
	var v *View
	if err == nil {
		v, err = s.at(ctx, t)
	}
	if err != nil {
		return nil, s.fail("at", err)
	}
	return v, nil
}

func (s *Session) at(ctx context.Context, t Target) (*View, error) {
	var st *journal.State
	s.look(func(w *work) { st = w.st })
	if st.Summary.Commit == "" {
		return nil, missing("commit", t.String())
	}
	switch {
	case t.Seq > 0 || t.first:
		return s.atSeq(ctx, st, t.Seq)
	case t.Commit != "":
		return s.atCommit(ctx, st, t.Commit)
	case t.Entry != "":
		return s.atEntry(ctx, t.Entry)
	case t.Snapshot != "" || t.Tag != "":
		return s.atSnapshot(ctx, st, t.Snapshot, t.Tag)
	case t.bare != "":
		return s.atWord(ctx, st, t.bare)
	case !t.Time.IsZero():
		for c, err := range s.j.Log(ctx, st, st.Summary.Seq) {
			if err != nil {
				return nil, err
			}
			if !c.Time.After(t.Time) {
				return s.atSeq(ctx, st, c.Seq)
			}
		}
		return nil, missing("commit at or before", t.String())
	}
	return &View{s: s, st: st, commit: st.Newest(), doc: st.Doc, head: headOf(st)}, nil
}

func (s *Session) atSeq(ctx context.Context, st *journal.State, seq uint64) (*View, error) {
	switch {
	case seq == st.Summary.Seq:
		return &View{s: s, st: st, commit: st.Newest(), doc: st.Doc, head: headOf(st)}, nil
	case seq > st.Summary.Seq:
		return nil, missing("commit", fmt.Sprintf("seq:%d", seq))
	}
	mo, err := s.j.At(ctx, st, seq)
	return s.viewOf(st, mo), err
}

func (s *Session) viewOf(st *journal.State, mo journal.Moment) *View {
	return &View{s: s, st: st, commit: mo.Commit, doc: mo.Doc, head: place{id: mo.Commit.Entry, ord: mo.Commit.HeadOrd}}
}

// atCommit finds a commit by its id or a unique prefix: in memory, then in the tree, where commits are
// rows like any other, then in the log.
func (s *Session) atCommit(ctx context.Context, st *journal.State, id string) (*View, error) {
	for _, c := range st.Lineage {
		if c.Commit == id {
			return s.atSeq(ctx, st, c.Seq)
		}
	}
	var found []uint64
	for c, err := range s.j.Log(ctx, st, st.Summary.Seq) {
		if err != nil {
			return nil, err
		}
		if c.Commit == id {
			return s.atSeq(ctx, st, c.Seq)
		}
		if strings.HasPrefix(c.Commit, id) {
			found = append(found, c.Seq)
		}
	}
	switch len(found) {
	case 0:
		return nil, missing("commit", id)
	case 1:
		return s.atSeq(ctx, st, found[0])
	}
	return nil, fmt.Errorf("commit %q: %w", id, transcript.ErrAmbiguous)
}

func (s *Session) atEntry(ctx context.Context, id string) (*View, error) {
	m, err := s.moment(ctx)
	if err != nil {
		return nil, err
	}
	ord, err := m.find(id)
	if err != nil {
		return nil, err
	}
	v := &View{s: s, st: m.st, head: m.place(ord)}
	if c, ok := m.tree.CommitOn(ord); ok {
		mo, err := s.j.CommitLine(ctx, m.st, c)
		if err != nil {
			return nil, err
		}
		v.commit = mo.Commit
	}
	v.doc, err = s.documentAt(ctx, m, v.head)
	return v, err
}

// atSnapshot reads a snapshot by its id, or a unique prefix, or the newest one with a tag: state, head
// and window come with it (I9).
func (s *Session) atSnapshot(ctx context.Context, st *journal.State, id, tag string) (*View, error) {
	if _, _, whole := snapshot.ParseName(id); !whole {
		var found []string
		for info, err := range s.j.Snapshots(ctx) {
			if err != nil {
				return nil, err
			}
			if tag != "" && info.Tag == tag || tag == "" && strings.HasPrefix(info.ID, id) {
				if found = append(found, info.ID); tag != "" {
					break
				}
			}
		}
		switch {
		case len(found) == 0:
			return nil, missing("snapshot", id+tag)
		case len(found) > 1:
			return nil, fmt.Errorf("snapshot %q: %w", id, transcript.ErrAmbiguous)
		}
		id = found[0]
	}
	then, err := s.j.ReadSnapshot(ctx, id)
	if err != nil {
		return nil, err
	}
	v := &View{s: s, st: st, commit: then.Newest(), doc: then.Doc, head: headOf(then)}
	if w := then.Window; w != nil && w.Omitted() == 0 {
		v.window = w
	}
	return v, nil
}

// atWord looks for a bare word: a branch, an entry, a commit, a snapshot, a tag.
func (s *Session) atWord(ctx context.Context, st *journal.State, word string) (*View, error) {
	id := word
	if b, ok := st.Branch(word); ok && b.Head != "" {
		id = b.Head
	}
	v, err := s.atEntry(ctx, id)
	if !isMissing(err) {
		return v, err
	}
	if v, err = s.atCommit(ctx, st, word); !isMissing(err) {
		return v, err
	}
	if v, err = s.atSnapshot(ctx, st, word, ""); !isMissing(err) {
		return v, err
	}
	if v, err = s.atSnapshot(ctx, st, "", word); !isMissing(err) {
		return v, err
	}
	return nil, missing("branch, entry, commit, snapshot or tag", word)
}

// Commit is the commit that the view shows; of an entry, the one whose document is in force there.
func (v *View) Commit() checkpoint.Commit { return v.commit }

// Document is the document in force. Its parts must not be changed.
func (v *View) Document() checkpoint.Document { return v.doc }

// State decodes the agent's state then into dst; where there was none it leaves dst alone.
func (v *View) State(dst any) error {
	if len(v.doc.State) == 0 {
		return nil
	}
	return v.s.fail("state", json.Unmarshal(v.doc.State, dst))
}

// Context gives the whole context then, not cut to any bound: a view of the head is how one reads past
// the window.
func (v *View) Context(ctx context.Context) (transcript.Context, error) {
	c, err := v.context(ctx)
	return c, v.s.fail("context", err)
}

func (v *View) context(ctx context.Context) (transcript.Context, error) {
	if err := v.s.ready(ctx); err != nil {
		return transcript.Context{}, err
	}
	win, err := v.whole(ctx)
	if err != nil {
		return transcript.Context{}, err
	}
	c := win.Context()
	if v.doc.Context != nil {
		if c, err = v.s.explicit(ctx, c, win, v.doc.Context); err != nil {
			return transcript.Context{}, err
		}
	}
	return c, v.s.images.putBack(ctx, v.s, &c)
}

// whole gives the window without a bound.
func (v *View) whole(ctx context.Context) (*transcript.PathWindow, error) {
	profile, _ := v.s.rules()
	if w := v.window; w != nil && w.Profile() == profile {
		return w, nil
	}
	if w := v.st.Window; w != nil && v.head.is(headOf(v.st)) && w.Omitted() == 0 && w.Profile() == profile {
		return w, nil
	}
	m, err := v.s.moment(ctx)
	if err != nil {
		return nil, err
	}
	return v.s.windowAt(ctx, m, v.head, profile, -1)
}

// Path gives the entries from the view's head towards the root, newest first.
func (v *View) Path(ctx context.Context) iter.Seq2[transcript.Entry, error] {
	if v.head.id == "" {
		return func(func(transcript.Entry, error) bool) {}
	}
	return v.s.iterate(ctx, "path", func(yield func(transcript.Entry, error) bool) error {
		m, err := v.s.moment(ctx)
		if err != nil {
			return err
		}
		ord, _ := m.ordinal(v.head)
		return v.s.read(ctx, m, m.up(ord), yield)
	})
}

// Diff gives what lies between this view, A, and another of the same session, B.
func (v *View) Diff(ctx context.Context, to *View) (checkpoint.Diff, error) {
	d, err := v.diff(ctx, to)
	return d, v.s.fail("diff", err)
}

func (v *View) diff(ctx context.Context, to *View) (d checkpoint.Diff, err error) {
	if to == nil || to.s.id != v.s.id {
		return d, errors.New("a view of another session")
	}
	m, err := v.s.moment(ctx)
	if err != nil {
		return d, err
	}
	paths := [2][]uint64{}
	for i, head := range []place{v.head, to.head} {
		if ord, ok := m.ordinal(head); ok {
			paths[i] = slices.Collect(m.up(ord))
			slices.Reverse(paths[i])
		}
	}
	a, b := paths[0], paths[1]
	for len(a) > 0 && len(b) > 0 && a[0] == b[0] {
		d.Base = m.tree.NodeAt(a[0]).ID
		a, b = a[1:], b[1:]
	}
	collect := func(ords []uint64, into *[]transcript.Entry) error {
		return v.s.read(ctx, m, slices.Values(ords), func(e transcript.Entry, _ error) bool {
			*into = append(*into, e)
			return true
		})
	}
	if err := errors.Join(collect(a, &d.OnlyA), collect(b, &d.OnlyB)); err != nil {
		return d, err
	}
	d.State, err = v.doc.DiffState(to.doc)
	return d, err
}

// Log yields commits from a target on, newest first. The last 64 are in memory.
func (s *Session) Log(ctx context.Context, from Target) iter.Seq2[checkpoint.Commit, error] {
	return func(yield func(checkpoint.Commit, error) bool) {
		err := s.ready(ctx)
		var st *journal.State
		s.look(func(w *work) { st = w.st })
		if err == nil && st.Summary.Commit == "" && from.String() == "head" {
			return
		}
		var v *View
		if err == nil {
			v, err = s.At(ctx, from)
		}
		if err != nil {
			yield(checkpoint.Commit{}, s.fail("log", err))
			return
		}
		for c, err := range s.j.Log(ctx, st, v.commit.Seq) {
			if !yield(c, s.fail("log", err)) || err != nil {
				return
			}
		}
	}
}

// Rollback goes back to a target: state, context and head are exactly those of then, as a new commit on
// a new branch. The line that is left stays, as branch Receipt.Kept.
func (s *Session) Rollback(ctx context.Context, t Target) (Receipt, error) {
	v, err := s.At(ctx, t)
	if err != nil {
		return Receipt{}, s.fail("rollback", err)
	}
	return s.travel(ctx, "rollback", func(m *moment) (*move, error) {
		name := fmt.Sprintf("rollback-%d", v.commit.Seq)
		for n := 2; ; n++ {
			if _, taken := m.st.Branch(name); !taken {
				break
			}
			name = fmt.Sprintf("rollback-%d-%d", v.commit.Seq, n)
		}
		return &move{at: v.head.settled(), reason: "rollback", branch: name, kept: m.st.Summary.Branch, doc: &v.doc}, nil
	})
}

// Snapshot keeps the state of the last commit for good, under a tag; the tag may be "". One PUT.
func (s *Session) Snapshot(ctx context.Context, tag string) (snapshot.Info, error) {
	err := s.writable(ctx)
	var st *journal.State
	s.look(func(w *work) { st = w.st })
	switch {
	case err != nil:
	case st.Summary.Commit == "":
		err = missing("commit", "head")
	case len(tag) > checkpoint.MaxName:
		err = limitError("tag", checkpoint.MaxName, len(tag))
	}
	if err != nil {
		return snapshot.Info{}, s.fail("snapshot", err)
	}
	info, err := s.j.Snapshot(ctx, st, tag)
	return info, s.fail("snapshot", err)
}

// Snapshots yields the session's snapshots, newest first.
func (s *Session) Snapshots(ctx context.Context) iter.Seq2[snapshot.Info, error] {
	return func(yield func(snapshot.Info, error) bool) {
		if err := s.ready(ctx); err != nil {
			yield(snapshot.Info{}, s.fail("snapshots", err))
			return
		}
		for info, err := range s.j.Snapshots(ctx) {
			if !yield(info, s.fail("snapshots", err)) || err != nil {
				return
			}
		}
	}
}

// Prune removes the snapshots that a retention does not keep, and gives them; with DryRun it only says
// which. Commits stay exactly as they are: each can still be restored from the log.
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
	if keep.DryRun {
		return drop, nil
	}
	for i, info := range drop {
		if err := s.j.DropSnapshot(ctx, info.ID); err != nil && !errors.Is(err, backend.ErrNotExist) {
			return drop[:i], s.fail("prune", err)
		}
	}
	return drop, nil
}
