package lifecycle_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"testing"

	"github.com/coppice-go/coppice"
	"github.com/coppice-go/coppice/backend"
	"github.com/coppice-go/coppice/checkpoint"
	"github.com/coppice-go/coppice/entry"
	"github.com/coppice-go/coppice/transcript"
)

// pictured commits an entry with a large image, and takes a snapshot.
func pictured(t *testing.T, s *coppice.Session) {
	t.Helper()
	must(s.Append(bg, image(1)))(t)
	commit(t, s, 1)
	must(s.Snapshot(bg, "x"))(t)
}

// The id of a deleted session can be used again on request. The new session has its own entries, images and snapshots,
// and is listed, verified, collected, repaired and deleted like any other.
func TestAgain(t *testing.T) {
	for kind, open := range backends {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			b := open(t)
			store := newStore(t, b, nil)
			first, _ := grown(t, store, "s", 2, nil)
			pictured(t, first)
			ok(t, store.Delete(bg, "s"))
			for _, o := range []*coppice.SessionOptions{nil, {Title: "x"}} {
				s := create(t, store, "s", o)
				if _, err := s.Commit(bg, coppice.Turn{}); !errors.Is(err, fs.ErrExist) {
					t.Errorf("used again without a request: %v", err)
				}
				ok(t, s.Close())
			}
			for _, name := range []string{"second", "third"} {
				s := must(store.OpenOrCreate(bg, "s", &coppice.SessionOptions{Title: name, Again: true}))(t)
				say(t, s, name)
				commit(t, s, name)
				pictured(t, s)
				if _, err := first.Commit(bg, coppice.Turn{State: name}); !errors.Is(err, coppice.ErrDeleted) {
					t.Errorf("a writer of the deleted session: %v", err)
				}
				if _, err := first.Append(bg, entry.User("late")); !errors.Is(err, coppice.ErrDeleted) {
					t.Errorf("append to what was deleted: %v, want ErrDeleted", err)
				}
				if err := first.Reload(bg); !errors.Is(err, coppice.ErrDeleted) {
					t.Errorf("a reader of the deleted session: %v", err)
				}
				ok(t, s.Close())
				s = must(store.OpenOrCreate(bg, "s", &coppice.SessionOptions{Title: "not new", Again: true}))(t)
				same(t, "title", s.Info().Title, name)
				same(t, "entries", s.Info().Entries, uint64(2))
				ctx := must(s.Context(bg))(t)
				same(t, "messages", len(ctx.Messages), 2)
				if p := must(json.Marshal(ctx.Messages[1]))(t); len(p) < 80_000 {
					t.Errorf("the message is without its image: %.100s", p)
				}
				ok(t, s.Close())
				same(t, "listed", len(collect(t, store.List(bg, coppice.ListOptions{}))), 1)
				same(t, "left over", sound(t, store), 0)
				same(t, "removed", must(store.GC(bg, "s", false))(t).Removed, 0)
				same(t, "repaired", len(must(store.Repair(bg, "s", false))(t).Problems), 0)
				ok(t, store.Delete(bg, "s"))
				same(t, "left", keysIn(t, b, "/s/"), []string(nil))
			}
		})
	}
}

// An import under the id of a deleted session stores the original of its own file, also if it is the same file.
func TestImportAgain(t *testing.T) {
	onEach(t, func(t *testing.T, store *coppice.Store) {
		for n := range 3 {
			data := []byte("the file")
			o := &coppice.SessionOptions{
				ID: "s", Again: n > 0,
				Source:   func() (*checkpoint.Source, error) { return nil, nil },
				Original: func() (io.Reader, error) { return bytes.NewReader(data), nil },
			}
			lines := func(yield func(transcript.Draft, error) bool) { yield(entry.User("hello"), nil) }
			s := must(store.Import(bg, lines, o))(t)
			ok(t, s.Close())
			var out bytes.Buffer
			ok(t, store.Export(bg, "s", &out))
			same(t, "original", out.String(), string(data))
			same(t, "left over", sound(t, store), 0)
			if _, err := store.Import(bg, lines, o); !errors.Is(err, fs.ErrExist) {
				t.Errorf("%d: imported over a session that is there: %v", n, err)
			}
			sound(t, store)
			ok(t, store.Delete(bg, "s"))
		}
	})
}

// A deletion was interrupted, and the id is used again. Verify reports the remaining objects of the deleted session, a
// collection removes exactly those, and a repair of the new session uses none of them.
func TestAgainOverLeftovers(t *testing.T) {
	for kind, opens := range backends {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			b := opens(t)
			store := newStore(t, b, nil)
			s, _ := grown(t, store, "s", 2, nil)
			pictured(t, s)
			ok(t, s.Close())
			kept := map[string][]byte{}
			for _, key := range keysIn(t, b, "/s/") {
				kept[key], _, _ = b.Get(bg, key, backend.Range{})
			}
			ok(t, store.Delete(bg, "s"))
			for key, p := range kept {
				must(b.Put(bg, key, p, backend.IfAbsent()))(t)
			}
			s = create(t, store, "s", &coppice.SessionOptions{Again: true})
			say(t, s, "new")
			commit(t, s, 1)
			pictured(t, s)
			ok(t, s.Close())
			same(t, "left over", sound(t, store) > 0, true)
			same(t, "in a dry run", must(store.GC(bg, "s", true))(t).Removed, len(kept))
			same(t, "repaired", len(must(store.Repair(bg, "s", false))(t).Problems), 0)
			same(t, "removed", must(store.GC(bg, "s", false))(t).Removed, len(kept))
			same(t, "left over", sound(t, store), 0)
			same(t, "texts", texts(t, open(t, store, "s")), "new look")
		})
	}
}

// On a disk a process dies between the first segment of the new session and its checkpoint: the tombstone still exists.
// The session is listed, read, verified, collected and deleted like any other.
func TestAgainBeforeTheCheckpoint(t *testing.T) {
	b := backends["append"](t)
	store := newStore(t, b, nil)
	s, _ := grown(t, store, "s", 2, nil)
	ok(t, s.Close())
	ok(t, store.Delete(bg, "s"))
	key := keysIn(t, b, "checkpoint_latest")[0]
	tombstone, _, err := b.Get(bg, key, backend.Range{})
	ok(t, err)
	s = create(t, store, "s", &coppice.SessionOptions{Again: true, Title: "new"})
	say(t, s, "new")
	commit(t, s, 1)
	ok(t, s.Close())
	must(b.Put(bg, key, tombstone, backend.Cond{}))(t)
	for _, order := range []string{coppice.ByActivity, coppice.ByCreated, coppice.ByID} {
		list := collect(t, store.List(bg, coppice.ListOptions{Order: order}))
		if len(list) != 1 || list[0].Title != "new" {
			t.Errorf("by %s: %+v", order, list)
		}
	}
	same(t, "left over", sound(t, store), 0)
	same(t, "removed", must(store.GC(bg, "s", false))(t).Removed, 0)
	s = open(t, store, "s")
	same(t, "texts", texts(t, s), "new")
	say(t, s, "more")
	commit(t, s, 2)
	ok(t, s.Close())
	same(t, "texts", texts(t, open(t, store, "s")), "new more")
	ok(t, store.Delete(bg, "s"))
	same(t, "left", keysIn(t, b, "/s/"), []string(nil))
}

// A later session of an id loses its checkpoint, and then its first segment too, while objects of the earlier one
// exist. The repair restores the later session.
func TestRepairAgain(t *testing.T) {
	for kind, opens := range backends {
		for _, first := range []bool{false, true} {
			t.Run(fmt.Sprint(kind, first), func(t *testing.T) {
				t.Parallel()
				repairAgain(t, opens(t), first)
			})
		}
	}
}

func repairAgain(t *testing.T, b backend.Backend, first bool) {
	store := newStore(t, b, nil)
	s := create(t, store, "s", nil)
	for turn := range 4 {
		bulk(t, s, turn, 600)
	}
	ok(t, s.Close())
	left := map[string][]byte{}
	for _, key := range keysIn(t, b, "/s/") {
		left[key], _, _ = b.Get(bg, key, backend.Range{})
	}
	ok(t, store.Delete(bg, "s"))
	s = create(t, store, "s", &coppice.SessionOptions{Again: true})
	must(s.Append(bg, image(1)))(t)
	for turn := range 4 {
		bulk(t, s, turn, 600)
	}
	ok(t, s.Close())
	epoch := fmt.Sprintf("/transcript/%020d-%020d-", 0, s.Head().Epoch)
	for key, p := range left {
		must(b.Put(bg, key, p, backend.IfAbsent()))(t)
	}
	ok(t, b.Delete(bg, keysIn(t, b, "checkpoint_latest")[0]))
	if first {
		key := keysIn(t, b, epoch)[0]
		p, _, err := b.Get(bg, key, backend.Range{})
		ok(t, err)
		p[len(p)/2] ^= 1
		must(b.Put(bg, key, p, backend.Cond{}))(t)
	}
	must(store.Repair(bg, "s", false))(t)
	sound(t, store)
	s = open(t, store, "s")
	if n := s.Info().Entries; n < 601 {
		t.Errorf("%d entries", n)
	}
	for e, err := range s.Entries(bg) {
		ok(t, err)
		if !first && e.Ordinal < 2 && e.Type == "message" && len(e.Raw) < 80_000 {
			t.Errorf("the image is lost: %.100s", e.Raw)
		}
	}
	say(t, s, "more")
	commit(t, s, 3)
	must(store.GC(bg, "s", false))(t)
	same(t, "left over", sound(t, store), 0)
}
