package manager

import (
	"context"
	"slices"
	"strings"

	coppice "github.com/coppice-go/coppice"
	"github.com/coppice-go/coppice/checkpoint"
)

// pinned returns the pinned sessions that match, newest activity first. One that cannot be read is left to the listing,
// which yields it in its order.
func (p *picker) pinned(ctx context.Context, st *coppice.Store) (all []Found) {
	p.first = map[string]bool{}
	for _, id := range p.o.Pinned {
		if p.first[id] {
			continue
		}
		sum, err := infoOf(ctx, st, id)
		if err != nil || p.o.Cwd != "" && !inDirectory(p.o.Cwd, sum.Cwd) {
			continue
		}
		if f, fits := p.match(sum); fits {
			p.first[id] = true
			p.Found++
			all = append(all, f)
		}
	}
	slices.SortStableFunc(all, func(a, b Found) int { return b.Updated.Compare(a.Updated) })
	return all
}

// inDirectory reports whether a session belongs to a directory; the directory in a summary may be truncated, with a
// mark.
func inDirectory(cwd, have string) bool {
	cut, long := strings.CutSuffix(have, "…")
	return have == cwd || long && len(have) > 1000 && strings.HasPrefix(cwd, cut)
}

func infoOf(ctx context.Context, st *coppice.Store, id string) (checkpoint.Summary, error) {
	s, err := st.Open(ctx, id, &coppice.SessionOptions{ReadOnly: true})
	if err != nil {
		return checkpoint.Summary{}, err
	}
	return s.Info(), s.Close()
}
