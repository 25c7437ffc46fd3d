// Package listing guarantees that sessions come newest activity first, in an order that pages agree on,
// at the cost of one listing and of one short read for each session that is looked at.
//
// The order is that of the checkpoints' times of writing. Object stores tell these to the second: among
// checkpoints of one second the time of the last commit decides, which their summaries hold.
package listing

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"slices"
	"strings"

	"github.com/coppice-go/coppice/backend"
	"github.com/coppice-go/coppice/checkpoint"
	"github.com/coppice-go/coppice/internal/layout"
	"github.com/coppice-go/coppice/internal/parallel"
)

const (
	summaryBytes = 4 << 10 // where a checkpoint's summary lies
	pageSize     = 16      // summaries that are read at once
	maxTied      = 1000    // checkpoints of one second that are put in order; after them the order is by id
)

// Options narrow a listing.
type Options struct {
	Cwd   string // only sessions of this working directory; "" = all
	After string // the last id of the page before; "" = from the newest. One that is not there: fs.ErrNotExist
	Limit int    // at most so many; 0 = all

	// Progress receives how many sessions were looked at and how many there are, those of pages before
	// included; nil = no one asks. Deleted ones leave the total when they are come upon.
	Progress func(looked, total int)
}

// progress counts for Options.Progress.
type progress struct {
	tell          func(looked, total int)
	looked, total int
}

// step counts n more that were looked at, or, where they are gone, no longer counts them.
func (p *progress) step(n int, gone bool) {
	if gone {
		p.total -= n
	} else {
		p.looked += n
	}
	if p.tell != nil {
		p.tell(p.looked, p.total)
	}
}

// found is a checkpoint and what its summary says.
type found struct {
	info backend.Info
	sum  checkpoint.Summary
}

// Sessions yields the summaries of the sessions of b. One whose summary cannot be read has its id and its
// last activity alone.
func Sessions(ctx context.Context, b backend.Backend, o Options) iter.Seq2[checkpoint.Summary, error] {
	return func(yield func(checkpoint.Summary, error) bool) {
		left, after := o.Limit, o.After
		p := &progress{tell: o.Progress}
		err := pages(ctx, b, o, p, func(page []found) bool {
			if after != "" {
				at := slices.IndexFunc(page, func(f found) bool { return f.info.Key == layout.CheckpointKey(after) })
				if at < 0 {
					p.step(len(page), false)
					return true // behind more of one second than are put in order
				}
				p.step(at+1, false)
				page, after = page[at+1:], ""
			}
			for i := range page {
				sum := &page[i].sum
				gone := sum.Tombstone || sum.ID == ""
				p.step(1, gone)
				if gone || o.Cwd != "" && !sameCwd(sum.Cwd, o.Cwd) {
					continue
				}
				if !yield(*sum, nil) {
					return false
				}
				if left--; left == 0 {
					return false
				}
			}
			return true
		})
		if err != nil {
			yield(checkpoint.Summary{}, err)
		}
	}
}

// pages hands out the checkpoints in order, with their summaries, from the group that holds o.After on.
func pages(ctx context.Context, b backend.Backend, o Options, p *progress, take func(page []found) bool) error {
	all, before, err := checkpoints(ctx, b, o.After)
	if err != nil {
		return err
	}
	p.total = before + len(all)
	p.step(before, false)
	for len(all) > 0 {
		n := min(len(all), pageSize)
		if o.Limit > 0 && o.Cwd == "" {
			n = min(n, o.Limit)
		}
		for n < min(len(all), maxTied) && tied(all[n-1], all[n]) {
			n++ // a group of one second is read as a whole
		}
		page := make([]found, n)
		err := parallel.Each(ctx, n, func(i int) (err error) {
			page[i].info = all[i]
			page[i].sum, err = summary(ctx, b, all[i])
			return err
		})
		if err != nil {
			return err
		}
		slices.SortStableFunc(page, func(a, b found) int {
			if !tied(a.info, b.info) {
				return b.info.ModTime.Compare(a.info.ModTime)
			}
			return cmp.Or(b.sum.Updated.Compare(a.sum.Updated), strings.Compare(b.info.Key, a.info.Key))
		})
		if !take(page) {
			return nil
		}
		all = all[n:]
	}
	return nil
}

// tied reports that two times are the same second of a store that tells no more.
func tied(a, b backend.Info) bool { return a.ModTime.Nanosecond() == 0 && a.ModTime.Equal(b.ModTime) }

// sameCwd compares a summary's working directory, which may be cut with a mark, with a whole one.
func sameCwd(have, want string) bool {
	if cut, ok := strings.CutSuffix(have, "…"); ok && len(have) > 1000 {
		return strings.HasPrefix(want, cut)
	}
	return have == want
}

// checkpoints lists checkpoint_latest, newest first, from the group on that holds the session after, and
// gives how many stand before those.
func checkpoints(ctx context.Context, b backend.Backend, after string) (all []backend.Info, before int, err error) {
	for info, err := range b.List(ctx, backend.ListOptions{Prefix: layout.Checkpoints}) {
		if err != nil {
			return nil, 0, err
		}
		if _, ours := layout.Unescape(info.Key[len(layout.Checkpoints):]); ours {
			all = append(all, info)
		}
	}
	slices.SortFunc(all, func(a, b backend.Info) int {
		return cmp.Or(b.ModTime.Compare(a.ModTime), strings.Compare(b.Key, a.Key))
	})
	if after == "" {
		return all, 0, nil
	}
	key := layout.CheckpointKey(after)
	at := slices.IndexFunc(all, func(i backend.Info) bool { return i.Key == key })
	if at < 0 {
		return nil, 0, fmt.Errorf("session %q: %w", after, fs.ErrNotExist)
	}
	for at > 0 && tied(all[at-1], all[at]) {
		at--
	}
	return all[at:], at, nil
}

// summary reads one summary. That of a session which was deleted meanwhile is empty.
func summary(ctx context.Context, b backend.Backend, info backend.Info) (checkpoint.Summary, error) {
	prefix, _, err := b.Get(ctx, info.Key, backend.Bytes(0, min(info.Size, summaryBytes)))
	if errors.Is(err, backend.ErrRange) { // replaced by a smaller one
		prefix, _, err = b.Get(ctx, info.Key, backend.Range{})
	}
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return checkpoint.Summary{}, nil
	case err != nil:
		return checkpoint.Summary{}, err
	}
	id, _ := layout.Unescape(info.Key[len(layout.Checkpoints):])
	sum, err := checkpoint.DecodeSummary(prefix)
	if err != nil || sum.ID != id || sum.Snapshot != "" {
		return checkpoint.Summary{ID: id, Updated: info.ModTime}, nil //nolint:nilerr // opening it says what is wrong
	}
	return sum, nil
}
