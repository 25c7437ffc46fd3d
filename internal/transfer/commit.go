package transfer

import (
	"context"
	"slices"
	"time"

	"github.com/coppice-go/coppice/internal/journal"
	"github.com/coppice-go/coppice/internal/rawjson"
	"github.com/coppice-go/coppice/transcript"
)

// Heads that are not an index of an entry.
const (
	here   = -1 // the last entry
	nobody = -2 // before the first one
)

// commitAll commits the gathered entries that are not committed yet, in chunks, and leaves the session as if it had
// grown turn by turn. head is the index of the entry at which it opens; last completes the last step.
func (ld *loader) commitAll(ctx context.Context, reason string, head int, last func(*journal.Step)) error {
	parents, odd := transcript.ResolveParents(ld.heads)
	if len(odd) > 0 && ld.older == nil {
		ld.source = ld.source.Whole() // a later line may change the differences
	}
	ld.ords = slices.Grow(ld.ords, len(ld.heads)-len(ld.ords))
	begun := len(ld.ords)
	for at := begun; ; {
		end := ld.chunk(at, parents)
		entries, err := ld.entries(at, end, parents)
		if err != nil {
			return err
		}
		step := &journal.Step{Reason: reason, Entries: entries, Time: ld.age(at, end), Source: ld.source}
		if end < len(ld.heads) {
			step.Source = ld.source.Begun()
		} else {
			step.Blobs = map[string][]byte{}
			for _, b := range ld.small {
				step.Blobs[b.Sum] = b.Data
			}
			switch {
			case head == nobody:
				step.Head = &journal.Place{Ord: -1}
			case head >= at:
				step.Head = &journal.Place{ID: ld.heads[head].ID, Ord: -1, Entry: entries[head-at]}
			case head >= 0:
				step.Head = &journal.Place{ID: ld.heads[head].ID, Ord: int64(ld.ords[head])}
			}
			last(step)
		}
		if _, err := ld.j.Commit(ctx, step); err != nil {
			return err
		}
		for _, e := range entries {
			ord, _ := e.Ordinal()
			ld.ords = append(ld.ords, ord)
		}
		ld.lines.drop(at, end)
		few := at == begun && ld.older != nil // one commit, as in a session that grew turn by turn
		if at = end; at == len(ld.heads) && few {
			return nil
		} else if at == len(ld.heads) {
			return ld.tidy(ctx)
		}
	}
}

// tidy compacts a session whose entries are all committed. A failure of only that is not an error: the entries are
// stored, and later commits and Close complete the work. It is an error if the outcome of a write is unknown, or ctx is
// done.
func (ld *loader) tidy(ctx context.Context) error {
	err := ld.j.Tidy(ctx)
	if ctx.Err() != nil || ld.j.InDoubt() {
		return err
	}
	return nil
}

// entries makes the entries of a chunk.
func (ld *loader) entries(at, end int, parents []int64) ([]*journal.Entry, error) {
	entries := make([]*journal.Entry, end-at)
	for i := range entries {
		raw, err := ld.lines.get(at + i)
		if err != nil {
			return nil, err
		}
		l := ld.heads[at+i]
		l.Raw = raw
		entries[i] = &journal.Entry{Raw: raw, Head: l, ID: l.ID, Parent: journal.Place{ID: l.ParentID, Ord: -1}}
	}
	for i, e := range entries {
		switch p := parents[at+i]; {
		case p >= int64(end): // further ahead than a commit can refer to: a root, reported as an orphan
		case p >= int64(at):
			e.Parent = journal.PlaceAt(entries[p-int64(at)])
		case p >= 0:
			e.Parent = journal.Place{ID: e.Head.ParentID, Ord: int64(ld.ords[p])}
		default:
			if ord, ok := ld.older[e.Head.ParentID]; ok {
				e.Parent.Ord = int64(ord)
			}
		}
	}
	return entries, nil
}

// target returns the entry to which a leaf entry at the end of the file moves the head, as in pi's harness and
// operator.
func (ld *loader) target() int {
	if string(ld.leaf) == "null" {
		return nobody
	}
	if id := rawjson.Text(ld.leaf); id != "" {
		for i := len(ld.heads) - 1; i >= 0; i-- {
			if ld.heads[i].ID == id {
				return i
			}
		}
	}
	return here
}

// age returns the time of the newest of some entries, or of those before them: the activity of an import's commit, so
// that imported sessions are listed by their own dates. A time in the future counts as now.
func (ld *loader) age(from, to int) time.Time {
	if ld.dated.IsZero() {
		return ld.dated
	}
	now := ld.in.Config.Now()
	for _, l := range ld.heads[from:to] {
		if l.Time.After(ld.dated) && !l.Time.After(now) {
			ld.dated = l.Time
		}
	}
	return ld.dated
}

// chunk returns the end of the chunk that begins at an entry: the chunk is full, and contains the parents of all of its
// entries.
func (ld *loader) chunk(at int, parents []int64) int {
	size, need := 0, int64(0)
	for i := at; i < len(ld.heads); i++ {
		n := ld.lines.size(i) + 1
		if i > at && (size+n > chunkMost || size+n > chunkBytes && need < int64(i)) {
			return i
		}
		size, need = size+n, max(need, parents[i])
	}
	return len(ld.heads)
}
