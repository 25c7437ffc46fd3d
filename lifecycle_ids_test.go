package coppice_test

import (
	"errors"
	"fmt"
	"io/fs"
	"runtime"
	"slices"
	"testing"

	"github.com/coppice-go/coppice"
	"github.com/coppice-go/coppice/entry"
	"github.com/coppice-go/coppice/internal/testutil"
	"github.com/coppice-go/coppice/transcript"
)

// named is a draft with an id of the caller's.
func named(n int) transcript.Draft {
	d := entry.User("m")
	d.ID = fmt.Sprintf("own-%d", n)
	return d
}

// An Append with an id that the caller chose costs the same however many entries the session has, and however many are
// pending. Such an id is refused where an entry has it, stored or pending.
func TestOwnIDsCostTheSame(t *testing.T) {
	testutil.SkipSizes(t)
	for name, stored := range map[string]bool{"stored": true, "pending": false} {
		t.Run(name, func(t *testing.T) {
			for kind := range gates {
				allocs, size := map[int]uint64{}, map[int]uint64{}
				for _, n := range []int{1_000, 16_000} {
					s := create(t, newStore(t, gates[kind](), nil), "s", nil)
					for range n / 1_000 {
						drafts := make([]transcript.Draft, 1_000)
						for i := range drafts {
							drafts[i] = entry.User("m")
						}
						must(s.Append(bg, drafts...))(t)
						if stored {
							commit(t, s, nil)
						}
					}
					allocs[n], size[n] = appendCost(t, s, stored)
				}
				if allocs[16_000] > 2*allocs[1_000] {
					t.Errorf("%s: %d allocations with 1,000 entries, %d with 16,000", kind, allocs[1_000], allocs[16_000])
				}
				if size[16_000] > 2*size[1_000] {
					t.Errorf("%s: %d bytes allocated with 1,000 entries, %d with 16,000", kind, size[1_000], size[16_000])
				}
			}
		})
	}
}

// appendCost returns what one Append with an id allocates: the median of many, so that a list that grows now and then
// does not count.
func appendCost(t *testing.T, s *coppice.Session, stored bool) (allocs, size uint64) {
	t.Helper()
	const runs = 31
	must(s.Append(bg, named(0)))(t) // the first call reads the tree
	if stored {
		commit(t, s, nil)
	}
	if _, err := s.Append(bg, named(0)); !errors.Is(err, fs.ErrExist) {
		t.Errorf("an id that is taken: %v", err)
	}
	var counts, sizes []uint64
	for i := range runs {
		var before, after runtime.MemStats
		d := named(i + 1)
		runtime.ReadMemStats(&before)
		_, err := s.Append(bg, d)
		runtime.ReadMemStats(&after)
		ok(t, err)
		if stored {
			commit(t, s, nil)
		}
		counts, sizes = append(counts, after.Mallocs-before.Mallocs), append(sizes, after.TotalAlloc-before.TotalAlloc)
	}
	slices.Sort(counts)
	slices.Sort(sizes)
	return counts[runs/2], sizes[runs/2]
}
