package lifecycle_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/coppice-go/coppice"
	"github.com/coppice-go/coppice/backend"
	"github.com/coppice-go/coppice/internal/trace"
)

// "Nothing is written by Open, Create, Append or any read." The same holds for Close of a handle that committed
// nothing, whatever a killed writer left unfinished: the session is not moved to another commit or epoch, and no object
// changes.
func TestOpenAndCloseWriteNothing(t *testing.T) {
	for name, c := range map[string]struct {
		turns int // of 140 KiB each: the first handle is closed, the second is not
		leave func(t *testing.T, b backend.Backend, s *coppice.Session)
	}{
		"checkpoint is behind": {leave: func(*testing.T, backend.Backend, *coppice.Session) {}},
		"checkpoint is lost": {leave: func(t *testing.T, b backend.Backend, _ *coppice.Session) {
			ok(t, b.Delete(bg, "checkpoint_latest/s"))
		}},
		"claimed":      {leave: func(t *testing.T, _ backend.Backend, s *coppice.Session) { must(s.Claim(bg))(t) }},
		"over 256 KiB": {turns: 2, leave: func(*testing.T, backend.Backend, *coppice.Session) {}},
		"over 256 KiB and moved": {turns: 2, leave: func(t *testing.T, _ backend.Backend, s *coppice.Session) {
			must(s.Branch(bg, "", nil))(t)
		}},
	} {
		for kind, open := range pairs {
			t.Run(name+"/"+kind, func(t *testing.T) {
				one, two := open(t)
				s := killed(t, one, c.turns)
				c.leave(t, one, s)
				head, before := s.Head(), objects(t, two)
				counted := trace.New(two)
				for range 2 {
					opensReadsAndCloses(t, counted, head)
				}
				io := counted.IO()
				same(t, "writes", []int{io.Put, io.Append, io.Delete}, []int{0, 0, 0})
				same(t, "objects that changed", changed(before, objects(t, two)), []string(nil))
			})
		}
	}
}

// killed returns a handle that committed and is never closed, the second one of its session.
func killed(t *testing.T, b backend.Backend, turns int) *coppice.Session {
	t.Helper()
	s := create(t, processOn(t, b, "first"), "s", nil)
	for turn := range 2 {
		bulk(t, s, turn, 2)
		if turn < turns {
			for range 10 {
				say(t, s, "u "+strings.Repeat("words of a long session ", 600))
			}
			commit(t, s, nil)
		}
		if turn == 0 {
			ok(t, s.Close())
			s = open(t, processOn(t, b, "killed"), "s")
		}
	}
	return s
}

// opensReadsAndCloses is a process that reads everything in a session, appends, and commits nothing.
func opensReadsAndCloses(t *testing.T, b backend.Backend, head any) {
	t.Helper()
	store := processOn(t, b, "reader")
	s := open(t, store, "s")
	same(t, "head", s.Head(), head)
	texts(t, s)
	must(s.Tree(bg))(t)
	collect(t, s.Entries(bg))
	collect(t, s.Log(bg, coppice.Target{}))
	ok(t, s.Close())

	s = open(t, store, "s")
	say(t, s, "u never committed")
	if err := s.Close(); !errors.Is(err, coppice.ErrUncommitted) {
		t.Errorf("close: %v", err)
	}
	ok(t, store.Close())
}

// changed returns the keys whose objects differ, in order.
func changed(before, after map[string]string) (keys []string) {
	for key, object := range before {
		if now, there := after[key]; !there || now != object {
			keys = append(keys, key)
		}
	}
	for key := range after {
		if _, there := before[key]; !there {
			keys = append(keys, key)
		}
	}
	slices.Sort(keys)
	return keys
}
