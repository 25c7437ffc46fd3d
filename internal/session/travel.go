package session

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"time"

	"github.com/coppice-go/coppice/checkpoint"
	"github.com/coppice-go/coppice/internal/journal"
	"github.com/coppice-go/coppice/internal/journal/state"
	"github.com/coppice-go/coppice/internal/journal/store"
	"github.com/coppice-go/coppice/internal/shortid"
	"github.com/coppice-go/coppice/snapshot"
	"github.com/coppice-go/coppice/transcript"
)

// View is the session as it was at one commit, or at one entry.
type View struct {
	h      *Handle
	State  *state.State // in which the view was found
	Commit checkpoint.Commit
	Doc    checkpoint.Document
	Head   journal.Place

	window *transcript.WorkingContext // not cut; nil = has to be read
	upto   uint64                     // amendments from this ordinal on do not count; 0 = the commit's own ordinal
}

// moment returns the present one as readers at the view's commit see it: with the amendments that were committed then.
func (v *View) moment(ctx context.Context) (*Moment, error) { return v.h.momentOf(ctx, v) }

// momentOf is moment of a view, which another handle may have made.
func (h *Handle) momentOf(ctx context.Context, v *View) (*Moment, error) {
	m, err := h.Moment(ctx)
	if err != nil || !m.Tree.Amends() {
		return m, err
	}
	upto := v.upto
	if upto == 0 {
		mo, err := h.j.At(ctx, v.State, v.Commit.Seq)
		if err != nil {
			return nil, err
		}
		upto = mo.Ord + 1
	}
	return m.before(upto), nil
}

// AtHead returns the session as the newest commit left it; nil where it has none.
func (h *Handle) AtHead() *View {
	st := h.State()
	if st.Summary.Commit == "" {
		return nil
	}
	return &View{h: h, State: st, Commit: st.Newest(), Doc: st.Doc, Head: journal.PlaceOf(st), upto: st.Next}
}

// AtTime returns the session as the newest commit that is not later left it.
func (h *Handle) AtTime(ctx context.Context, t time.Time) (*View, error) {
	st := h.State()
	for c, err := range h.j.Log(ctx, st, st.Summary.Seq) {
		if err != nil {
			return nil, err
		}
		if !c.Time.After(t) {
			return h.AtSeq(ctx, c.Seq)
		}
	}
	return nil, Missing("commit at or before", t.Format(time.RFC3339Nano))
}

// AtSeq returns the session as a commit left it, by its number.
func (h *Handle) AtSeq(ctx context.Context, seq uint64) (*View, error) {
	return h.atSeq(ctx, h.State(), seq)
}

// AtCommit returns the session as a commit left it, by its id or a unique prefix: also one that is newer than the view.
func (h *Handle) AtCommit(ctx context.Context, id string) (*View, error) {
	return h.atCommit(ctx, h.j.Tip(), id)
}

// AtSnapshot returns the session as a snapshot holds it, by its id, or a unique prefix, or the newest one with a tag.
func (h *Handle) AtSnapshot(ctx context.Context, id, tag string) (*View, error) {
	return h.atSnapshot(ctx, h.State(), id, tag)
}

// AtWord returns the session at a branch, an entry, a commit, a snapshot or a tag, whichever the word names first.
func (h *Handle) AtWord(ctx context.Context, word string) (*View, error) {
	return h.atWord(ctx, h.State(), word)
}

func (h *Handle) atSeq(ctx context.Context, st *state.State, seq uint64) (*View, error) {
	switch {
	case seq == st.Summary.Seq && !st.AfterKept: // a kept line has a head and a document of its own
		return &View{
			h: h, State: st, Commit: st.Newest(), Doc: st.Doc, Head: journal.PlaceOf(st), upto: st.Next,
		}, nil
	case seq > st.Summary.Seq:
		return nil, Missing("commit", fmt.Sprintf("seq:%d", seq))
	}
	mo, err := h.j.At(ctx, st, seq)
	return h.viewOf(st, mo), err
}

// States yields the session as each commit left it, newest first, from the commit of a view on.
func (h *Handle) States(ctx context.Context, v *View, yield func(checkpoint.Commit, checkpoint.Document) bool) error {
	for m, err := range h.j.States(ctx, v.State, v.Commit.Seq) {
		if err != nil {
			return err
		}
		if !yield(m.Commit, m.Doc) {
			return ErrStop
		}
	}
	return nil
}

func (h *Handle) viewOf(st *state.State, mo store.Moment) *View {
	return &View{
		h: h, State: st, Commit: mo.Commit, Doc: mo.Doc, upto: mo.Ord + 1,
		Head: journal.Place{ID: mo.Commit.Entry, Ord: mo.Commit.HeadOrd},
	}
}

// atCommit finds a commit by its id, or by a unique prefix: then it reads the log.
func (h *Handle) atCommit(ctx context.Context, st *state.State, id string) (*View, error) {
	if v, err := h.commitByID(ctx, st, id); !isMissing(err) || len(id) == 36 {
		return v, err
	}
	var found []uint64
	var ids []string
	for c, err := range h.j.Log(ctx, st, st.Summary.Seq) {
		if err != nil {
			return nil, err
		}
		if c.Commit == id {
			return h.atSeq(ctx, st, c.Seq)
		}
		if strings.HasPrefix(c.Commit, id) {
			found, ids = append(found, c.Seq), append(ids, c.Commit)
		}
	}
	switch len(found) {
	case 0:
		return nil, Missing("commit", id)
	case 1:
		return h.atSeq(ctx, st, found[0])
	}
	return nil, fmt.Errorf("commit %q: %w: %s", id, transcript.ErrAmbiguous, shortid.Candidates(ids))
}

// AtEntry returns the session at an entry, by its id or a unique prefix, with the document in force there.
func (h *Handle) AtEntry(ctx context.Context, id string) (*View, error) {
	m, err := h.Moment(ctx)
	if err != nil {
		return nil, err
	}
	ord, err := m.Find(id)
	if err != nil {
		return nil, err
	}
	v := &View{h: h, State: m.State, Head: m.Place(ord), upto: 1} // of no commit: nothing is amended
	if c, ok := m.Tree.CommitOn(ord); ok {
		mo, err := h.j.CommitLine(ctx, m.State, c)
		if err != nil {
			return nil, err
		}
		v.Commit, v.upto = mo.Commit, c+1
	}
	v.Doc, err = h.documentAt(ctx, m, v.Head)
	return v, err
}

// atSnapshot reads a snapshot by its id, or a unique prefix, or the newest one with a tag: state, head
// and window come with it (I9).
func (h *Handle) atSnapshot(ctx context.Context, st *state.State, id, tag string) (*View, error) {
	if _, _, whole := snapshot.ParseName(id); !whole {
		var found []string
		for info, err := range h.j.Snapshots(ctx) {
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
			return nil, Missing("snapshot", id+tag)
		case len(found) > 1:
			return nil, fmt.Errorf("snapshot %q: %w: %s", id, transcript.ErrAmbiguous, shortid.Candidates(found))
		}
		id = found[0]
	}
	then, err := h.j.ReadSnapshot(ctx, id)
	if err != nil {
		return nil, err
	}
	v := &View{h: h, State: st, Commit: then.Newest(), Doc: then.Doc, Head: journal.PlaceOf(then)}
	if w := then.Window; w != nil && w.Omitted() == 0 {
		v.window = w
	}
	return v, nil
}

// atWord looks for a bare word: a branch, an entry, a commit, a snapshot, a tag.
func (h *Handle) atWord(ctx context.Context, st *state.State, word string) (*View, error) {
	id := word
	if b, ok := st.Branch(word); ok && b.Head != "" {
		id = b.Head
	}
	v, err := h.AtEntry(ctx, id)
	if !isMissing(err) {
		return v, err
	}
	if v, err = h.atCommit(ctx, st, word); !isMissing(err) {
		return v, err
	}
	if v, err = h.atSnapshot(ctx, st, word, ""); !isMissing(err) {
		return v, err
	}
	if v, err = h.atSnapshot(ctx, st, "", word); !isMissing(err) {
		return v, err
	}
	return nil, Missing("branch, entry, commit, snapshot or tag", word)
}

// Context returns the whole context then, not cut to any bound.
func (v *View) Context(ctx context.Context) (transcript.Context, error) {
	if err := v.h.Ready(ctx); err != nil {
		return transcript.Context{}, err
	}
	win, err := v.whole(ctx)
	if err != nil {
		return transcript.Context{}, err
	}
	return v.h.ContextOf(ctx, v.moment, win, v.Doc.Context)
}

// whole returns the window without a bound.
func (v *View) whole(ctx context.Context) (*transcript.WorkingContext, error) {
	profile, _ := v.h.Rules()
	if w := v.window; w != nil && w.Profile() == profile {
		return w, nil
	}
	if w := v.State.Window; w != nil && v.Head.Is(journal.PlaceOf(v.State)) && w.Omitted() == 0 &&
		w.Profile() == profile && v.upto >= v.State.Amended && v.upto > 0 {
		return w, nil
	}
	m, err := v.moment(ctx)
	if err != nil {
		return nil, err
	}
	return v.h.WindowAt(ctx, m, v.Head, profile, -1)
}

// Path yields the entries from the view's head towards the root, newest first.
func (v *View) Path(ctx context.Context, yield func(transcript.Entry, error) bool) error {
	if v.Head.ID == "" {
		return nil
	}
	m, err := v.moment(ctx)
	if err != nil {
		return err
	}
	ord, _ := m.Ordinal(v.Head)
	return v.h.Read(ctx, m, m.Shown(ord), yield)
}

// Diff returns what lies between this view, A, and another of the same session, B: of each path the first entries, at
// most so many; 0 = all.
func (v *View) Diff(ctx context.Context, to *View, most int) (d checkpoint.Diff, err error) {
	if to == nil || to.State.Summary.ID != v.State.Summary.ID {
		return d, errors.New("a view of another session")
	}
	paths, then := [2][]uint64{}, [2]*Moment{}
	for i, at := range []*View{v, to} {
		m, err := v.h.momentOf(ctx, at)
		if err != nil {
			return d, err
		}
		then[i] = m
		if ord, ok := m.Ordinal(at.Head); ok {
			paths[i] = slices.Collect(m.Up(ord))
			slices.Reverse(paths[i])
		}
	}
	a, b := paths[0], paths[1]
	for len(a) > 0 && len(b) > 0 && a[0] == b[0] {
		d.Base = then[0].Tree.ID(a[0])
		a, b = a[1:], b[1:]
	}
	collect := func(m *Moment, path []uint64, into *[]transcript.Entry, more *int) error {
		ords := slices.Collect(m.unhidden(slices.Values(path)))
		if most > 0 && len(ords) > most {
			ords, *more = ords[:most], len(ords)-most
		}
		return v.h.Read(ctx, m, slices.Values(ords), func(e transcript.Entry, _ error) bool {
			*into = append(*into, e)
			return true
		})
	}
	err = errors.Join(collect(then[0], a, &d.OnlyA, &d.MoreA), collect(then[1], b, &d.OnlyB, &d.MoreB))
	if err != nil {
		return d, err
	}
	d.State, err = v.Doc.DiffState(to.Doc)
	return d, err
}

// Rollback goes back to a view: its state, context and head, as a new commit on a new branch. The line
// that is left keeps its name, which is in the receipt. to is what the caller called the view.
func (h *Handle) Rollback(ctx context.Context, k MoveOptions, v *View, to string) (journal.Result, error) {
	return h.travel(ctx, k.of("rollback", to), func(m *Moment) (*move, error) {
		name := freeRollback(m.State, v.Commit.Seq)
		return &move{at: v.Head.Settled(), reason: "rollback", branch: name, kept: m.State.Summary.Branch, doc: &v.Doc},
			nil
	})
}

// freeRollback names the branch of a rollback.
func freeRollback(st *state.State, seq uint64) string {
	taken := make(map[string]bool, len(st.Branches))
	for _, b := range st.Branches {
		taken[b.Name] = true
	}
	name := fmt.Sprintf("rollback-%d", seq)
	for n := 2; taken[name]; n++ {
		name = fmt.Sprintf("rollback-%d-%d", seq, n)
	}
	return name
}

func isMissing(err error) bool { return errors.Is(err, fs.ErrNotExist) }
