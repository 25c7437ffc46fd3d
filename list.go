package coppice

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"iter"
	"slices"
	"strings"

	"github.com/coppice-go/coppice/backend"
	"github.com/coppice-go/coppice/checkpoint"
	"github.com/coppice-go/coppice/internal/images"
	"github.com/coppice-go/coppice/internal/layout"
	"github.com/coppice-go/coppice/internal/working"
)

const (
	summaryBytes = 4 << 10 // where a checkpoint's summary lies
	pageSize     = 16      // summaries that are read at once
)

// List yields sessions, newest activity first. It costs one listing, and one read of at most 4 KiB for
// each session that is looked at. After is the last id of the page before; one that is not there is an
// error. A session whose summary cannot be read is listed with its id and its last activity alone:
// opening it says why.
func (s *Store) List(ctx context.Context, o ListOptions) iter.Seq2[checkpoint.Summary, error] {
	return func(yield func(checkpoint.Summary, error) bool) {
		if o.Limit < 0 {
			yield(checkpoint.Summary{}, fail("list", "", errors.New("negative limit")))
			return
		}
		found, err := s.checkpoints(ctx, o.After)
		if err != nil {
			yield(checkpoint.Summary{}, fail("list", "", err))
			return
		}
		left := o.Limit
		for len(found) > 0 {
			n := min(len(found), pageSize)
			if o.Limit > 0 && o.Cwd == "" {
				n = min(n, left)
			}
			page := make([]checkpoint.Summary, n)
			err := images.Each(ctx, n, func(i int) error { return s.summary(ctx, found[i], &page[i]) })
			if err != nil {
				yield(checkpoint.Summary{}, fail("list", "", err))
				return
			}
			found = found[n:]
			for _, sum := range page {
				if sum.Tombstone || sum.ID == "" || o.Cwd != "" && !sameCwd(sum.Cwd, o.Cwd) {
					continue
				}
				if !yield(sum, nil) {
					return
				}
				if left--; left == 0 {
					return
				}
			}
		}
	}
}

// sameCwd compares a summary's working directory, which may be cut with a mark, with a whole one.
func sameCwd(have, want string) bool {
	if cut, ok := strings.CutSuffix(have, "…"); ok && len(have) > 1000 {
		return strings.HasPrefix(want, cut)
	}
	return have == want
}

// checkpoints lists checkpoint_latest, newest first, behind the session with the id after.
func (s *Store) checkpoints(ctx context.Context, after string) ([]backend.Info, error) {
	var found []backend.Info
	for info, err := range s.b.List(ctx, backend.ListOptions{Prefix: layout.Checkpoints}) {
		if err != nil {
			return nil, err
		}
		if _, ours := layout.Unescape(info.Key[len(layout.Checkpoints):]); ours {
			found = append(found, info)
		}
	}
	slices.SortFunc(found, func(a, b backend.Info) int {
		return cmp.Or(b.ModTime.Compare(a.ModTime), strings.Compare(b.Key, a.Key))
	})
	if after == "" {
		return found, nil
	}
	key := layout.CheckpointKey(after)
	at := slices.IndexFunc(found, func(i backend.Info) bool { return i.Key == key })
	if at < 0 {
		return nil, working.Missing("session", after)
	}
	return found[at+1:], nil
}

// summary reads one summary. A session that was deleted meanwhile leaves it empty.
func (s *Store) summary(ctx context.Context, info backend.Info, sum *checkpoint.Summary) error {
	prefix, _, err := s.b.Get(ctx, info.Key, backend.Bytes(0, min(info.Size, summaryBytes)))
	if errors.Is(err, backend.ErrRange) { // replaced by a smaller one
		prefix, _, err = s.b.Get(ctx, info.Key, backend.Range{})
	}
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return err
	}
	if *sum, err = checkpoint.DecodeSummary(prefix); err != nil {
		id, _ := layout.Unescape(info.Key[len(layout.Checkpoints):])
		*sum = checkpoint.Summary{ID: id, Updated: info.ModTime}
	}
	return nil
}
