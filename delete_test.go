package coppice_test

import (
	"context"
	"iter"
	"strings"
	"testing"

	"github.com/coppice-go/coppice/backend"
	"github.com/coppice-go/coppice/backend/memory"
)

// between is a store on which something happens after the first listing of a whole session.
type between struct {
	backend.Backend
	happens func()
}

func (b *between) List(ctx context.Context, o backend.ListOptions) iter.Seq2[backend.Info, error] {
	return func(yield func(backend.Info, error) bool) {
		for info, err := range b.Backend.List(ctx, o) {
			if !yield(info, err) {
				return
			}
		}
		if happens := b.happens; strings.HasSuffix(o.Prefix, "/s/") && happens != nil {
			b.happens = nil
			happens()
		}
	}
}

// The id does not exist when it is deleted, and a session begins under it while the deletion looks: it is there
// afterwards, with all of its segments.
func TestDeleteBesideABirth(t *testing.T) {
	inner := memory.New()
	store := newStore(t, inner, nil)
	born := false
	deletes := newStore(t, &between{inner, func() {
		s := create(t, store, "s", nil)
		for range 600 { // more than a segment
			say(t, s, "u1")
		}
		commit(t, s, 1)
		say(t, s, "u2")
		commit(t, s, 2)
		ok(t, s.Close())
		born = true
	}}, nil)
	ok(t, deletes.Delete(bg, "s"))
	if !born {
		t.Fatal("the deletion did not look for leftovers")
	}
	same(t, "entries", len(collect(t, open(t, store, "s").Entries(bg))), 601)
	same(t, "damage", len(must(store.Verify(bg, "s", true))(t).Problems), 0)
}
