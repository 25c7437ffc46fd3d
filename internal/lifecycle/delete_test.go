package lifecycle_test

import (
	"context"
	"errors"
	"io/fs"
	"iter"
	"strings"
	"testing"

	"github.com/coppice-go/coppice"
	"github.com/coppice-go/coppice/backend"
	"github.com/coppice-go/coppice/backend/memory"
)

// between is a store that calls a function after the first listing of a whole session.
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

// A session is created while a deletion of the same, previously unused id runs: it exists afterwards, with all of its
// segments.
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

// overtaken is a store that calls a function after the first read of an object.
type overtaken struct {
	backend.Backend
	happens func()
}

func (o *overtaken) Get(ctx context.Context, key string, r backend.Range) ([]byte, backend.Info, error) {
	p, info, err := o.Backend.Get(ctx, key, r)
	if happens := o.happens; happens != nil {
		o.happens = nil
		happens()
	}
	return p, info, err
}

// DeleteAt deletes the session only if its newest commit is the named one.
func TestDeleteAt(t *testing.T) {
	onEach(t, func(t *testing.T, store *coppice.Store) {
		s, rs := grown(t, store, "s", 3, nil)
		if err := store.DeleteAt(bg, "s", rs[1].Commit); !errors.Is(err, coppice.ErrConflict) {
			t.Errorf("not the newest commit: %v", err)
		}
		same(t, "still there", texts(t, open(t, store, "s")), "u1 a1 u2 a2 u3 a3")
		say(t, s, "u4")
		commit(t, s, nil)
		ok(t, store.DeleteAt(bg, "s", s.Head().Commit))
		if _, err := store.Open(bg, "s", nil); !errors.Is(err, coppice.ErrDeleted) {
			t.Errorf("after the deletion: %v", err)
		}
		for _, id := range []string{"s", "nothing"} {
			if err := store.DeleteAt(bg, id, rs[1].Commit); !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("%s: %v", id, err)
			}
		}
	})
}

// If another writer commits between the read of the head and the deletion, commit and session stay.
func TestDeleteAtIsOvertaken(t *testing.T) {
	inner := memory.New()
	store := newStore(t, inner, nil)
	s, rs := grown(t, store, "s", 2, nil)
	deletes := newStore(t, &overtaken{inner, func() {
		say(t, s, "u3")
		commit(t, s, nil)
	}}, nil)
	if err := deletes.DeleteAt(bg, "s", rs[1].Commit); !errors.Is(err, coppice.ErrConflict) {
		t.Errorf("overtaken: %v", err)
	}
	same(t, "the session", texts(t, open(t, store, "s")), "u1 a1 u2 a2 u3")
}
