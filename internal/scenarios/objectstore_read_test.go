package scenarios_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/coppice-go/coppice"
	"github.com/coppice-go/coppice/backend"
	"github.com/coppice-go/coppice/backend/memory"
	"github.com/coppice-go/coppice/entry"
	"github.com/coppice-go/coppice/internal/fault"
	"github.com/coppice-go/coppice/snapshot"
	"github.com/coppice-go/coppice/transcript"
)

// small keeps almost nothing in memory, so that old entries have to be read.
var small = &coppice.SessionOptions{ContextBytes: 2 << 10, Snapshots: snapshot.Policy{Every: -1}}

// sealed makes a session of some turns of 300 entries each, each sealed, and returns the ids of its entries.
func sealed(t *testing.T, b *memory.Backend, turns int) (ids []string) {
	t.Helper()
	h := newHost(t, b, "writer")
	for turn := range turns {
		s := must(h.OpenOrCreate(bg, "s", small))(t)
		d := make([]transcript.Draft, 600) // more than two thresholds: the next commit seals them
		for i := range d {
			d[i] = entry.User(fmt.Sprintf("%d-%d", turn, i))
		}
		ids = append(ids, must(s.Append(bg, d...))(t)...)
		commit(t, s, state{Turns: turn})
		ok(t, s.Close())
	}
	s := must(h.Open(bg, "s", small))(t)
	must(s.Claim(bg))(t)
	ok(t, s.Close())
	must(h.GC(bg, "s", false))(t)
	same(t, "segments", len(keysIn(t, b, "/transcript/")), turns)
	return ids
}

// lookups are the ways in which a reader uses old segments. want are the ids of all entries.
func lookups(want []string) map[string]func(s *coppice.Session) error {
	return map[string]func(s *coppice.Session) error{
		"entries": func(s *coppice.Session) error {
			var got []string
			for e, err := range s.Entries(bg) {
				if err != nil {
					return err
				}
				got = append(got, e.ID)
			}
			if !slices.Equal(got, want) {
				return fmt.Errorf("%d entries of %d", len(got), len(want))
			}
			return nil
		},
		"entry": func(s *coppice.Session) error {
			e, err := s.Entry(bg, want[3])
			if err == nil && (e.ID != want[3] || !strings.Contains(string(e.Raw), `"0-3"`)) {
				err = fmt.Errorf("entry %s: %s", e.ID, e.Raw)
			}
			return err
		},
		"tree": func(s *coppice.Session) error {
			tree, err := s.Tree(bg)
			if err != nil {
				return err
			}
			if path := slices.Collect(tree.Path(tree.Head())); len(path) != len(want) {
				return fmt.Errorf("a path of %d entries", len(path))
			}
			return nil
		},
		"at": func(s *coppice.Session) error {
			v, err := s.At(bg, coppice.Target{Seq: 1})
			if err != nil {
				return err
			}
			c, err := v.Context(bg)
			if err == nil && len(c.Messages) != 600 {
				err = fmt.Errorf("%d messages", len(c.Messages))
			}
			return err
		},
		"export": func(s *coppice.Session) error {
			n := 0
			for _, err := range s.Path(bg, want[700]) {
				if err != nil {
					return err
				}
				n++
			}
			if n != 701 {
				return fmt.Errorf("%d entries on the way", n)
			}
			return nil
		},
	}
}

// A segment is damaged, repaired, and collected. Readers that resumed before, and had read any part of it, read the
// head again by themselves and find all entries.
func TestReadersOfAnOldMap(t *testing.T) {
	b := memory.New()
	want := sealed(t, b, 3)
	keeper := newHost(t, b, "keeper")
	type reader struct {
		*coppice.Session
		heads *atomic.Int64 // reads of the newest head
	}
	readers := map[string]reader{}
	for look := range lookups(want) {
		for _, warm := range []string{"nothing", "entries", "entry", "tree", "at"} {
			h, heads := newHost(t, b, look+warm), &atomic.Int64{}
			h.b.Add(fault.Rule{When: func(c fault.Call) bool {
				if c.Op == "get" && c.Key == latestKey {
					heads.Add(1)
				}
				return false
			}})
			s := must(h.Open(bg, "s", small))(t)
			if warm != "nothing" {
				ok(t, lookups(want)[warm](s))
			}
			heads.Store(0)
			readers[look+" after "+warm] = reader{s, heads}
		}
	}
	first := keysIn(t, b, "/transcript/")[0]
	p, _, err := b.Get(bg, first, backend.Range{})
	ok(t, err)
	p[len(p)-30] ^= 1 // in the index at its end: no entry is lost
	must(b.Put(bg, first, p, backend.Cond{}))(t)
	must(keeper.Repair(bg, "s", false))(t)
	claims(t, keeper.Store)
	must(keeper.GC(bg, "s", false))(t)
	if slices.Contains(keysIn(t, b, "/transcript/"), first) {
		t.Fatal("the damaged segment is still there")
	}
	for name, r := range readers {
		look, _, _ := strings.Cut(name, " ")
		if err := lookups(want)[look](r.Session); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if n := r.heads.Load(); n > 4 {
			t.Errorf("%s: the head was read %d times", name, n)
		}
	}
}

// A segment that the newest head names and that is missing is reported as damage, with its name; the rest can be read.
func TestMissingSegment(t *testing.T) {
	for _, warm := range []string{"nothing", "entries", "tree"} {
		b := memory.New()
		want := sealed(t, b, 3)
		h := newHost(t, b, "reader")
		readers := map[string]*coppice.Session{}
		for look := range lookups(want) {
			readers[look] = must(h.Open(bg, "s", small))(t)
			if warm != "nothing" {
				ok(t, lookups(want)[warm](readers[look]))
			}
		}
		first := keysIn(t, b, "/transcript/")[0]
		ok(t, b.Delete(bg, first))
		for look, s := range readers {
			err := lookups(want)[look](s)
			var e *coppice.Error
			inMemory := warm != "nothing" && look == "tree" || warm == "entries" && look == "at"
			if inMemory && err == nil {
				continue
			}
			if !errors.Is(err, coppice.ErrCorrupt) || !errors.As(err, &e) || e.Object != first || !strings.Contains(e.Hint, "repair") {
				t.Errorf("%s after %s: %v", look, warm, err)
			}
			if v, err := s.At(bg, coppice.Target{Seq: s.Head().Seq - 1}); err != nil || stateOf(t, v) != (state{Turns: 2}) {
				t.Errorf("what is intact: %v", err)
			}
		}
	}
}
