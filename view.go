package coppice

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"slices"
	"strings"
	"time"

	"github.com/coppice-go/coppice/checkpoint"
	"github.com/coppice-go/coppice/internal/journal"
	"github.com/coppice-go/coppice/internal/journal/state"
	"github.com/coppice-go/coppice/internal/journal/store"
	"github.com/coppice-go/coppice/internal/rawjson"
	"github.com/coppice-go/coppice/internal/shortid"
	"github.com/coppice-go/coppice/snapshot"
	"github.com/coppice-go/coppice/transcript"
)

// A View is the session as it was at one commit, or at one entry: then with the document in force there. Entries
// are amended as they were at that commit, or at the commit that the document is of. It never changes. Its handle
// has to stay open while the view is read.
type View struct {
	s      *Session
	st     *state.State // in which the view was found
	commit checkpoint.Commit
	doc    checkpoint.Document
	head   journal.Place

	window *transcript.WorkingContext // not cut; nil = has to be read
	upto   uint64                     // amendments from this ordinal on do not count; 0 = the commit's own ordinal
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
	if err := errors.Join(t.valid(), s.ready(ctx)); err != nil {
		return nil, err
	}
	st := s.state()
	if st.Summary.Commit == "" {
		return nil, missing("commit", t.String())
	}
	switch {
	case t.Seq > 0 || t.first:
		return s.atSeq(ctx, st, t.Seq)
	case t.Commit != "":
		return s.atCommit(ctx, s.j.Tip(), t.Commit) // it may be newer than what the handle shows
	case t.Entry != "":
		return s.atEntry(ctx, t.Entry)
	case t.Snapshot != "" || t.Tag != "":
		return s.atSnapshot(ctx, st, t.Snapshot, t.Tag)
	case t.bare != "":
		return s.atWord(ctx, st, t.bare)
	case !t.Time.IsZero():
		return s.atTime(ctx, st, t.Time)
	}
	return s.viewAt(st), nil
}

// viewAt returns the session as the newest commit of a state left it.
func (s *Session) viewAt(st *state.State) *View {
	return &View{s: s, st: st, commit: st.Newest(), doc: st.Doc, head: journal.PlaceOf(st), upto: st.Next}
}

// viewOf returns the session as a commit that was read left it.
func (s *Session) viewOf(st *state.State, mo store.CommitState) *View {
	return &View{
		s: s, st: st, commit: mo.Commit, doc: mo.Doc, upto: mo.Ord + 1,
		head: journal.Place{ID: mo.Commit.Entry, Ord: mo.Commit.HeadOrd},
	}
}

// atTime returns the session as the newest commit that is not later left it.
func (s *Session) atTime(ctx context.Context, st *state.State, t time.Time) (*View, error) {
	for c, err := range s.j.Log(ctx, st, st.Summary.Seq) {
		if err != nil {
			return nil, err
		}
		if !c.Time.After(t) {
			return s.atSeq(ctx, s.state(), c.Seq)
		}
	}
	return nil, missing("commit at or before", t.Format(time.RFC3339Nano))
}

// atSeq returns the session as a commit left it, by its number.
func (s *Session) atSeq(ctx context.Context, st *state.State, seq uint64) (*View, error) {
	if seq > st.Summary.Seq {
		return nil, missing("commit", fmt.Sprintf("seq:%d", seq))
	}
	mo, err := s.j.At(ctx, st, seq)
	return s.viewOf(st, mo), err
}

// atCommit finds a commit by its id, or by a unique prefix: then it reads the log.
func (s *Session) atCommit(ctx context.Context, st *state.State, id string) (*View, error) {
	if v, err := s.commitByID(ctx, st, id); !isMissing(err) || len(id) == 36 {
		return v, err
	}
	var found []uint64
	var ids []string
	for c, err := range s.j.Log(ctx, st, st.Summary.Seq) {
		if err != nil {
			return nil, err
		}
		if c.Commit == id {
			return s.atSeq(ctx, st, c.Seq)
		}
		if strings.HasPrefix(c.Commit, id) {
			found, ids = append(found, c.Seq), append(ids, c.Commit)
		}
	}
	switch len(found) {
	case 0:
		return nil, missing("commit", id)
	case 1:
		return s.atSeq(ctx, st, found[0])
	}
	return nil, fmt.Errorf("commit %q: %w: %s", id, transcript.ErrAmbiguous, shortid.Candidates(ids))
}

// commitByID finds a commit of st by its whole id: in memory, or in the id index, and then by one read of the segment
// that has its line.
func (s *Session) commitByID(ctx context.Context, st *state.State, id string) (*View, error) {
	if len(id) != 36 { // no UUID, and so no commit's: nothing is read
		return nil, missing("commit", id)
	}
	for _, c := range st.Lineage {
		if c.Commit == id {
			return s.atSeq(ctx, st, c.Seq)
		}
	}
	known, err := s.j.Known(ctx, st, []string{id})
	if err != nil {
		return nil, err
	}
	l, ok := known[id]
	if !ok || !l.Commit {
		return nil, missing("commit", id)
	}
	mo, err := s.j.CommitLine(ctx, st, l.Ord)
	if err != nil {
		return nil, err
	}
	if mo.Commit.Commit != id { // another id of the same hash
		return nil, missing("commit", id)
	}
	return s.viewOf(st, mo), nil
}

// atEntry returns the session at an entry, by its id or a unique prefix, with the document in force there.
func (s *Session) atEntry(ctx context.Context, id string) (*View, error) {
	m, err := s.treeView(ctx)
	if err != nil {
		return nil, err
	}
	ord, err := m.find(id)
	if err != nil {
		return nil, err
	}
	v := &View{s: s, st: m.State, head: m.place(ord), upto: 1} // of no commit: nothing is amended
	if c, ok := m.Tree.CommitOn(ord); ok {
		mo, err := s.j.CommitLine(ctx, m.State, c)
		if err != nil {
			return nil, err
		}
		v.commit, v.upto = mo.Commit, c+1
	}
	v.doc, err = s.documentAt(ctx, m, v.head)
	return v, err
}

// atSnapshot reads a snapshot by its id, or a unique prefix, or the newest one with a tag: state, head
// and window come with it (I9).
func (s *Session) atSnapshot(ctx context.Context, st *state.State, id, tag string) (*View, error) {
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
			return nil, fmt.Errorf("snapshot %q: %w: %s", id, transcript.ErrAmbiguous, shortid.Candidates(found))
		}
		id = found[0]
	}
	then, err := s.j.ReadSnapshot(ctx, id)
	if err != nil {
		return nil, err
	}
	if st, err = s.withCommit(ctx, st, then.Newest()); err != nil {
		return nil, fmt.Errorf("snapshot %s: %w", id, err)
	}
	v := &View{s: s, st: st, commit: then.Newest(), doc: then.Doc, head: journal.PlaceOf(then)}
	if w := then.Window; w != nil && w.Omitted() == 0 {
		v.window = w
	}
	return v, nil
}

// withCommit returns a state whose log has a commit: st, or a newer one. A log that has another commit in its place, or
// ends before it, is ErrCorrupt: the files of a session were copied at different times, or its log was cut. Where the
// log cannot be read there, the commit counts as in it.
func (s *Session) withCommit(ctx context.Context, st *state.State, is checkpoint.Commit) (*state.State, error) {
	if is.Seq > st.Summary.Seq { // another handle made it
		now, err := s.newer(ctx, st)
		if err != nil {
			return nil, err
		}
		st = now
	}
	for c, err := range s.j.Log(ctx, st, min(is.Seq, st.Summary.Seq)) {
		if err != nil || c.Commit == is.Commit {
			return st, nil //nolint:nilerr // see above
		}
		if c.Seq <= is.Seq {
			break
		}
	}
	return nil, fmt.Errorf("its commit %d (%s) is not in the log: %w", is.Seq, is.Commit, ErrCorrupt)
}

// atWord looks for a bare word: a branch, an entry, a commit, a snapshot, a tag.
func (s *Session) atWord(ctx context.Context, st *state.State, word string) (*View, error) {
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

func isMissing(err error) bool { return errors.Is(err, fs.ErrNotExist) }

// Commit returns the commit that the view shows; for an entry, the one whose document is in force there.
func (v *View) Commit() checkpoint.Commit { return v.commit }

// Document returns the document in force. Its parts must not be changed.
func (v *View) Document() checkpoint.Document { return readable(v.doc) }

// State decodes the agent's state at the view into dst; if there was none, dst is unchanged.
// ErrStateLost: it was lost.
func (v *View) State(dst any) error { return v.s.fail("state", stateOf(v.doc, dst)) }

// Doc decodes a document (Turn.Docs) at the view into dst; if there was none of this name, dst is unchanged.
func (v *View) Doc(name string, dst any) error {
	return v.s.fail("document", decode(v.doc.Docs[name], dst))
}

// Docs yields the names and the JSON of all documents at the view, in ascending order of their names. The JSON must not
// be changed.
func (v *View) Docs() iter.Seq2[string, json.RawMessage] { return inOrder(v.doc.Docs) }

// tree returns the tree as readers at the view's commit see it: with the amendments that were committed then.
func (v *View) tree(ctx context.Context) (*treeView, error) { return v.s.treeOf(ctx, v) }

// treeOf is the tree of a view, which another handle may have made.
func (s *Session) treeOf(ctx context.Context, v *View) (*treeView, error) {
	m, err := s.treeView(ctx)
	if err != nil || !m.Tree.Amends() {
		return m, err
	}
	upto := v.upto
	if upto == 0 {
		mo, err := s.j.At(ctx, v.st, v.commit.Seq)
		if err != nil {
			return nil, err
		}
		upto = mo.Ord + 1
	}
	return m.before(upto), nil
}

// Context returns the whole context at the view, without a limit: a view of the head returns what
// Session.Context omits, and Window.Beyond names it.
func (v *View) Context(ctx context.Context) (transcript.Context, error) {
	if err := v.s.ready(ctx); err != nil {
		return transcript.Context{}, v.s.fail("context", err)
	}
	win, err := v.whole(ctx)
	if err != nil {
		return transcript.Context{}, v.s.fail("context", err)
	}
	c, err := v.s.contextOf(ctx, v.tree, win, v.doc.Context)
	if _, bound := v.s.rules(); err == nil && !c.Explicit {
		c.Window.Beyond = win.BeyondOf(c, bound)
	}
	return c, v.s.fail("context", err)
}

// whole returns the window without a bound.
func (v *View) whole(ctx context.Context) (*transcript.WorkingContext, error) {
	profile, _ := v.s.rules()
	if w := v.window; w != nil && w.Profile() == profile {
		return w, nil
	}
	if w := v.st.Window; w != nil && v.head.Is(journal.PlaceOf(v.st)) && w.Omitted() == 0 &&
		w.Profile() == profile && v.upto >= v.st.Amended && v.upto > 0 {
		return w, nil
	}
	m, err := v.tree(ctx)
	if err != nil {
		return nil, err
	}
	return v.s.windowAt(ctx, m, v.head, profile, -1)
}

// Path returns the entries from the view's head towards the root, newest first.
func (v *View) Path(ctx context.Context) iter.Seq2[transcript.Entry, error] {
	return iterate(ctx, v.s, "path", func(yield func(transcript.Entry, error) bool) error {
		if v.head.ID == "" {
			return nil
		}
		m, err := v.tree(ctx)
		if err != nil {
			return err
		}
		ord, _ := m.ordinal(v.head)
		return v.s.read(ctx, m, m.shown(ord), yield)
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
	d, err := v.diff(ctx, to, most)
	d.State = rawjson.ValidText(d.State)
	return d, v.s.fail("diff", err)
}

func (v *View) diff(ctx context.Context, to *View, most int) (d checkpoint.Diff, err error) {
	if to.st.Summary.ID != v.st.Summary.ID {
		return d, errors.New("a view of another session")
	}
	paths, then := [2][]uint64{}, [2]*treeView{}
	for i, at := range []*View{v, to} {
		m, err := v.s.treeOf(ctx, at)
		if err != nil {
			return d, err
		}
		then[i] = m
		if ord, ok := m.ordinal(at.head); ok {
			paths[i] = slices.Collect(m.up(ord))
			slices.Reverse(paths[i])
		}
	}
	a, b := paths[0], paths[1]
	for len(a) > 0 && len(b) > 0 && a[0] == b[0] {
		d.Base = then[0].Tree.ID(a[0])
		a, b = a[1:], b[1:]
	}
	collect := func(m *treeView, path []uint64, into *[]transcript.Entry, more *int) error {
		ords := slices.Collect(m.unhidden(slices.Values(path)))
		if most > 0 && len(ords) > most {
			ords, *more = ords[:most], len(ords)-most
		}
		return v.s.read(ctx, m, slices.Values(ords), func(e transcript.Entry, _ error) bool {
			*into = append(*into, e)
			return true
		})
	}
	err = errors.Join(collect(then[0], a, &d.OnlyA, &d.MoreA), collect(then[1], b, &d.OnlyB, &d.MoreB))
	if err != nil {
		return d, err
	}
	d.State, err = v.doc.DiffState(to.doc)
	return d, err
}

// Log yields commits from a target on, newest first. The last 64 are in memory.
func (s *Session) Log(ctx context.Context, from Target) iter.Seq2[checkpoint.Commit, error] {
	return readOn(ctx, s, func(s *Session) iter.Seq2[checkpoint.Commit, error] {
		return unmade(iterate(ctx, s, "log", func(yield func(checkpoint.Commit, error) bool) error {
			st := s.state()
			if st.Summary.Commit == "" && from == (Target{}) {
				return nil
			}
			v, err := s.at(ctx, from)
			if err != nil {
				return err
			}
			return forward(s.j.Log(ctx, st, v.commit.Seq), yield)
		}))
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
		if s.state().Summary.Commit == "" && from == (Target{}) {
			return nil
		}
		v, err := s.at(ctx, from)
		if err != nil {
			return err
		}
		for m, err := range s.j.States(ctx, v.st, v.commit.Seq) {
			if err != nil {
				return err
			}
			if !yield(StateAt{m.Commit, readable(m.Doc)}, nil) {
				return errStop
			}
		}
		return nil
	})
}
