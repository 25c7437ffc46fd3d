package lifecycle_test

import (
	"errors"
	"fmt"
	"io/fs"
	"testing"

	"github.com/coppice-go/coppice"
	"github.com/coppice-go/coppice/backend"
	"github.com/coppice-go/coppice/backend/local"
	"github.com/coppice-go/coppice/backend/memory"
	"github.com/coppice-go/coppice/internal/fault"
)

// pairs are stores that append, each opened by two processes.
var pairs = map[string]func(t *testing.T) (one, two backend.Backend){
	"append": func(*testing.T) (one, two backend.Backend) {
		b := memory.NewAppender()
		return b, b.Share()
	},
	"local": func(t *testing.T) (one, two backend.Backend) {
		dir := t.TempDir()
		open := func() backend.Backend {
			b := must(local.Open(dir, nil))(t)
			t.Cleanup(func() { _ = b.Close() })
			return b
		}
		return open(), open()
	},
}

// Delete: "first a tombstone, so that the id is never used again". While a writer is about to create a session, another
// process creates and deletes it. Since the session opens as deleted, no commit of the writer was acknowledged.
func TestCreateWhileAnotherCreatesAndDeletes(t *testing.T) {
	for kind, open := range pairs {
		t.Run(kind, func(t *testing.T) {
			one, two := open(t)
			faulty := fault.New(one, 1)
			other := processOn(t, two, "other")
			raced := false
			faulty.Add(fault.Rule{Count: -1, When: func(c fault.Call) bool {
				if !raced && putIn("/transcript/")(c) { // it is about to create a session with this id
					raced = true
					s := create(t, other, "s", nil)
					say(t, s, "of the other")
					commit(t, s, nil)
					ok(t, s.Close())
					ok(t, other.Delete(bg, "s"))
				}
				return false
			}})
			s := create(t, processOn(t, faulty, "creator"), "s", nil)
			acked := 0
			for i := range 4 {
				say(t, s, fmt.Sprint("u", i))
				_, err := s.Commit(bg, coppice.Turn{State: state{Turns: i}})
				switch {
				case err == nil:
					acked++
				case !errors.Is(err, fs.ErrExist) && !errors.Is(err, coppice.ErrFenced):
					t.Errorf("commit %d: %v", i, err)
				}
			}
			same(t, "raced", raced, true)
			_ = s.Close() // it counts uncommitted entries
			same(t, "commits acknowledged after Delete returned", acked, 0)
			if _, err := other.Open(bg, "s", nil); !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("open: %v", err)
			}
			ok(t, other.Delete(bg, "s"))
			same(t, "left after another Delete", keysIn(t, two, "/s/"), []string(nil))
		})
	}
}

// Open: "fs.ErrNotExist if there is none, or if it was deleted". A deletion dies at any of its calls. Afterwards the
// session exists as a whole, or is deleted; it never opens and then fails to be read.
func TestHalfDeletedSessionOnDisk(t *testing.T) {
	writes := func(c fault.Call) bool { return c.Op != "get" && c.Op != "stat" && c.Op != "list" }
	for _, kind := range []fault.Kind{fault.Before, fault.After} {
		for n, more := 1, true; more; n++ {
			b := memory.NewAppender()
			faulty := fault.New(b.Share(), 1)
			dying, other := processOn(t, faulty, "dying"), processOn(t, b, "other")
			s := create(t, dying, "s", nil)
			bulk(t, s, 1, 3)
			must(s.Append(bg, image(1)))(t)
			commit(t, s, state{Turns: 2})
			must(s.Snapshot(bg, "x"))(t)
			ok(t, s.Close())
			var seen []string
			dead := false
			at := func(c fault.Call) bool {
				if writes(c) {
					seen = append(seen, c.Op+" "+c.Key)
				}
				dead = dead || len(seen) == n
				return dead
			}
			faulty.Add(fault.Rule{Kind: kind, When: at}, fault.Rule{Count: -1, When: func(fault.Call) bool { return dead }})
			err := dying.Delete(bg, "s")
			if more = dead; !more {
				ok(t, err)
				continue
			}
			where := fmt.Sprintf("%v at %s", kind, seen[len(seen)-1])
			halfDeleted(t, where, other)
			ok(t, other.Delete(bg, "s"))
			if _, err := other.Open(bg, "s", nil); !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("%s: open after the deletion was repeated: %v", where, err)
			}
			same(t, where+": left", keysIn(t, b, "/s/"), []string(nil))
		}
	}
}

// halfDeleted opens a session, reads everything in it, and commits to it.
func halfDeleted(t *testing.T, where string, store *coppice.Store) {
	t.Helper()
	s, err := store.Open(bg, "s", nil)
	if errors.Is(err, fs.ErrNotExist) {
		return
	}
	ok(t, err)
	_, errs := s.Context(bg)
	n := 0
	for _, err := range s.Entries(bg) {
		errs = errors.Join(errs, err)
		n++
	}
	for _, err := range s.Snapshots(bg) {
		errs = errors.Join(errs, err)
	}
	say(t, s, "u")
	_, err = s.Commit(bg, coppice.Turn{})
	if errs = errors.Join(errs, err); errs != nil || n != 4 {
		t.Errorf("%s: the session opens, and then: %d of 4 entries, %v", where, n, errs)
	}
	_ = s.Close() // with uncommitted entries, if the commit failed
}
