package coppice_test

import (
	"fmt"
	"testing"

	"github.com/coppice-go/coppice/backend"
	"github.com/coppice-go/coppice/entry"
	"github.com/coppice-go/coppice/transcript"
)

// named is a draft with an id of the caller's.
func named(n int) transcript.Draft {
	d := entry.User("m")
	d.ID = fmt.Sprintf("own-%d", n)
	return d
}

// BenchmarkAppendOwnID is an Append with an id that the caller chose, in sessions of two lengths whose entries are
// stored or pending: what it allocates does not grow.
func BenchmarkAppendOwnID(b *testing.B) {
	for name, stored := range map[string]bool{"stored": true, "pending": false} {
		for kind := range gates {
			for _, n := range []int{1_000, 16_000} {
				b.Run(fmt.Sprintf("%s/%s/%d", kind, name, n), func(b *testing.B) {
					appendOwnIDs(b, gates[kind](), n, stored)
				})
			}
		}
	}
}

func appendOwnIDs(b *testing.B, d backend.Backend, n int, stored bool) {
	s := create(b, newStore(b, d, nil), "s", nil)
	drafts := make([]transcript.Draft, n)
	for i := range drafts {
		drafts[i] = entry.User("m")
	}
	must(s.Append(b.Context(), drafts...))(b)
	if stored {
		commit(b, s, nil)
	}
	must(s.Append(b.Context(), named(0)))(b) // the first call reads the tree
	b.ReportAllocs()
	for i := 1; b.Loop(); i++ {
		must(s.Append(b.Context(), named(i)))(b)
	}
}
