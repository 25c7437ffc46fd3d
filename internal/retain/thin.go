package retain

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	coppice "github.com/coppice-go/coppice"
	"github.com/coppice-go/coppice/backend"
	"github.com/coppice-go/coppice/internal/layout"
	"github.com/coppice-go/coppice/internal/seam"
	"github.com/coppice-go/coppice/snapshot"
)

// holding is what a store has of a session.
type holding struct {
	bytes     int64 // of all objects
	snapshots int
}

// Survey returns what a decision by a policy needs of every session of a store, in the order of their ids. It costs an
// exact list, and a listing of all objects.
func Survey(ctx context.Context, st *coppice.Store, p Policy) ([]Session, error) {
	have := map[string]holding{}
	for _, prefix := range []string{layout.Checkpoints, layout.Sessions} {
		for info, err := range seam.Config(st).Backend.List(ctx, backend.ListOptions{Prefix: prefix}) {
			if err != nil {
				return nil, fmt.Errorf("list what the store has: %w", err)
			}
			name, rest, _ := strings.Cut(strings.TrimPrefix(info.Key, prefix), "/")
			h := have[name]
			h.bytes += info.Size
			if strings.HasPrefix(rest, layout.Snapshots) {
				h.snapshots++
			}
			have[name] = h
		}
	}
	var all []Session
	for sum, err := range st.List(ctx, coppice.ListOptions{Exact: true}) {
		if err != nil {
			return nil, err
		}
		s := p.Of(&sum)
		h := have[layout.Escape(s.ID)]
		s.Bytes, s.Snapshots = h.bytes, h.snapshots
		all = append(all, s)
	}
	slices.SortFunc(all, func(a, b Session) int { return cmp.Compare(a.ID, b.ID) })
	return all, nil
}

// Thinned is what was removed of a session that stays.
type Thinned struct {
	Session   string
	Snapshots []snapshot.Info
}

// Prune removes the snapshots of a session that a retention does not keep.
func Prune(ctx context.Context, st *coppice.Store, id string, keep snapshot.Retention) ([]snapshot.Info, error) {
	s, err := st.Open(ctx, id, &coppice.SessionOptions{ReadOnly: keep.DryRun})
	if err != nil {
		return nil, err
	}
	gone, err := s.Prune(ctx, keep)
	return gone, errors.Join(err, s.Close())
}

// thin removes the snapshots that the policy does not keep, of sessions in the order of their ids, and takes their
// bytes off. It reports whether it came to its end: else the next run continues.
func (r *Run) thin(ctx context.Context, c *claim, res *Result, all []Session, spent func() int) (done bool, err error) {
	keep := res.Policy.Snapshots
	if keep.DryRun = r.Dry; !res.Policy.thins() || c.After != nil && c.After.Thinned {
		return true, nil
	}
	goes := map[string]bool{} // for its age or number: all of it goes
	if res.Policy.MaxBytes == 0 {
		for _, rem := range Decide(res.Policy, all, r.Now()).Removals {
			goes[rem.ID] = true
		}
	}
	tried, row := false, 0
	for i := range all {
		s := &all[i]
		few := keep.Last < 0 || s.Snapshots <= keep.Last
		if few || s.Held || s.Commit == "" || goes[s.ID] || c.After != nil && s.ID <= c.After.Session {
			continue
		}
		if r.Most > 0 && tried && spent() >= r.Most || row == failuresMost {
			return false, err
		}
		if !r.Dry {
			if werr := c.write(ctx); werr != nil {
				return false, errors.Join(err, werr)
			}
		}
		tried = true
		gone, perr := r.Prune(ctx, s.ID, keep)
		c.After, row = &place{Session: s.ID}, 0
		if len(gone) > 0 {
			res.Thinned = append(res.Thinned, Thinned{s.ID, gone})
		}
		for _, g := range gone {
			s.Bytes -= g.Bytes
		}
		if perr != nil && !stays(perr) && !errors.Is(perr, fs.ErrNotExist) {
			err, row = errors.Join(err, perr), row+1
		}
		if ctx.Err() != nil {
			return false, err
		}
	}
	c.After = nil
	return true, err
}

// Freed returns the bytes of the snapshots.
func (t Thinned) Freed() (n int64) {
	for _, s := range t.Snapshots {
		n += s.Bytes
	}
	return n
}

// IDs returns the ids of the snapshots.
func (t Thinned) IDs() []string {
	ids := make([]string, len(t.Snapshots))
	for i, s := range t.Snapshots {
		ids[i] = s.ID
	}
	return slices.Clip(ids)
}
