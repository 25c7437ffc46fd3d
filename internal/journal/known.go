package journal

import (
	"bytes"
	"context"
	"fmt"
	"io/fs"

	"github.com/coppice-go/coppice/checkpoint"
	"github.com/coppice-go/coppice/internal/journal/state"
	"github.com/coppice-go/coppice/internal/journal/store"
)

// Known looks for durable lines of st with these ids: see store.History.Known.
func (j *Journal) Known(ctx context.Context, st *state.State, ids []string) (map[string]store.KnownID, error) {
	return j.past.Known(ctx, st, ids)
}

// ForgetIDs drops what the handle has read of ids.
func (j *Journal) ForgetIDs() { j.past.ForgetIDs() }

// lookUpIDs looks for the ids that the caller of a turn chose in the history of st, on which the batch is composed: who
// commits after st makes the batch fail, and it is asked again.
func (j *Journal) lookUpIDs(ctx context.Context, st *state.State, t *turn) (err error) {
	if t.known != nil && !t.kept || t.lost != nil {
		return nil
	}
	var ids []string
	for _, e := range t.step.Entries {
		if e.Named {
			ids = append(ids, e.ID)
		}
	}
	if t.stored, err = j.past.Known(ctx, st, ids); err != nil {
		return fmt.Errorf("look for the ids of entries: %w", err)
	}
	return nil
}

// decideIDs decides which entries of a turn the session has already: durable ones, and those of lines before it in the
// batch. What grows from such an entry grows from the one that is known. Of a turn that Rebase knows all such entries
// are left out: that they are stored is what Rebase is for.
func (b *batch) decideIDs(t *turn) error {
	for _, e := range t.step.Entries {
		if e.skip = false; !e.Named {
			continue
		}
		ord, known := uint64(0), false
		if l, ok := t.stored[e.ID]; ok {
			if ord, known = l.Ord, !l.Commit; l.Commit && !t.kept {
				return exists(e.ID)
			}
		}
		if o := b.composed(e.ID); o != nil {
			ord, known = b.ords[o], true
		}
		switch {
		case !known:
		case !t.step.Ignore && !t.kept:
			return exists(e.ID)
		default:
			if t.skipped == nil {
				t.skipped = map[*Entry]uint64{}
			}
			t.skipped[e], b.ords[e], e.skip = ord, ord, true
		}
	}
	return nil
}

// composed returns the entry with an id in the lines of the batch so far; nil = there is none.
func (b *batch) composed(id string) *Entry {
	if b.byID == nil {
		b.byID = map[string]*Entry{}
	}
	for ; b.mapped < len(b.lines); b.mapped++ {
		for _, e := range b.lines[b.mapped].entries {
			b.byID[e.ID] = e
		}
	}
	return b.byID[id]
}

// rest returns the entries of a turn that are to be stored where the session has some: those that it has not, and what
// is stored in the place of those that it has.
func (t *turn) rest() []*Entry {
	var list []*Entry
	for _, e := range t.step.Entries {
		if _, known := t.skipped[e]; !known {
			list = append(list, e)
		} else if e.Instead != nil {
			list = append(list, e.Instead)
		}
	}
	return list
}

// nothing reports whether a turn that brought entries has nothing left to store: the session has them all, and its
// document stays. One with a key is stored nevertheless, so that the key is known.
func (b *batch) nothing(t *turn) bool {
	s := t.step
	if !s.Ignore && !t.kept || s.Key != "" || len(t.own()) > 0 || s.moves {
		return false
	}
	if s.Edit == nil {
		return true
	}
	doc, was := b.Next.Doc, []byte(b.Next.DocJSON)
	if b.keep {
		doc, was = b.from.doc, b.from.json
	}
	raw, err := s.Edit(doc).Encode()
	return err == nil && bytes.Equal(raw, was)
}

// nothingApplied is the result of a turn that had nothing to store.
func (b *batch) nothingApplied(t *turn, st *state.State) Result {
	return Result{
		Commit: checkpoint.Commit{Head: st.Head()}, State: st, Repeated: true, Pending: b.j.pendingBefore(t.upto),
		IDs: t.ids(), Kept: b.keptBefore(t.upto),
	}
}

// exists refuses an id that is taken.
func exists(id string) error { return fmt.Errorf("entry %s: %w", id, fs.ErrExist) }

// Skipped reports whether the commit that is being composed leaves the entry out, because the session has it. It is for
// Step.Edit.
func (e *Entry) Skipped() bool { return e.skip }
