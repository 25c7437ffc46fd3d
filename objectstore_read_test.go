package coppice_test

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
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

// small keeps next to nothing in memory, so that what is old has to be read.
var small = &coppice.SessionOptions{ContextBytes: 2 << 10, Snapshots: snapshot.Policy{Every: -1}}

// sealed is a session of some turns of 300 entries each, each sealed, and the ids of its entries.
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

// lookups are the ways in which a reader meets old segments. want are the ids of all entries.
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

// A segment is damaged, repaired, and collected. Readers that resumed before that, with whatever they had
// read by then, read the head again by themselves and find all that was there.
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

// A segment that the newest head names and that is not there is damage, and is said to be, with its name;
// the rest can be read.
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

// beside is one session that hosts write, read and collect at once.
type beside struct {
	t     *testing.T
	b     *memory.Backend
	news  [2]chan struct{} // a turn has ended; closed when all have
	mu    sync.Mutex
	acked map[string]bool // texts that were acknowledged
	doubt map[string]bool // texts of turns whose host died
}

func (w *beside) known() map[string]bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return maps.Clone(w.acked)
}

// life is one host that commits turns until it dies, somewhere between two requests.
func (w *beside) life(name string, rng *rand.Rand) {
	h := newHost(w.t, w.b, name)
	s, err := h.Open(bg, "s", &coppice.SessionOptions{KeepBoth: true, Snapshots: snapshot.Policy{Every: 3}})
	if err == nil && rng.IntN(3) == 0 {
		_, err = s.Claim(bg)
	}
	if err != nil {
		w.t.Error(err)
		return
	}
	folder := []string{"/transcript/", "/blobs/", "/snapshots/", "checkpoint_latest/"}[rng.IntN(4)]
	kind, left := []fault.Kind{fault.Before, fault.After, fault.Late}[rng.IntN(3)], 1+rng.IntN(3)
	h.dies(kind, func(c fault.Call) bool {
		if putIn(folder)(c) {
			left--
		}
		return left < 0
	})
	for turn := range 3 {
		var d []transcript.Draft
		if rng.IntN(3) == 0 {
			d = append(d, image(rng.IntN(40)))
		}
		texts := []string{}
		for i := range 40 + rng.IntN(60) {
			texts = append(texts, fmt.Sprintf("%s-%d-%d", name, turn, i))
			d = append(d, entry.User(texts[i]))
		}
		_, err := s.Append(bg, d...)
		if errors.Is(err, coppice.ErrFenced) {
			break // an earlier turn was fenced: nothing of this one was appended
		}
		if err == nil {
			_, err = s.Commit(bg, coppice.Turn{State: state{Turns: turn}})
		}
		if errors.Is(err, coppice.ErrFenced) {
			_, err = s.Rebase(bg)
		}
		into := w.acked
		if err != nil {
			into = w.doubt
		}
		w.mu.Lock()
		for _, text := range texts {
			into[text] = true
		}
		w.mu.Unlock()
		for _, news := range w.news {
			select {
			case news <- struct{}{}:
			default: // it has not looked at the last yet
			}
		}
		if err != nil {
			break
		}
	}
	died := len(h.b.Faults()) > 0
	if err := s.Close(); err != nil && !died {
		w.t.Error(err)
	}
	if h.b.Clear(); rng.IntN(2) == 0 {
		h.b.Deliver(bg) // what it had sent arrives when it is gone
	}
}

// read has a reader resume, and look at all that there is, by the head of now and by that of before.
func (w *beside) read(name string, news chan struct{}, rng *rand.Rand) {
	store := newHost(w.t, w.b, name)
	var old *coppice.Session
	var seen map[string]bool
	for range news {
		known := w.known()
		s, err := store.Open(bg, "s", &coppice.SessionOptions{ReadOnly: true, ContextBytes: 8 << 10})
		if err == nil {
			err = w.holds(s, known, rng)
		}
		if err == nil && old != nil && rng.IntN(3) == 0 {
			err = w.holds(old, seen, rng)
			old = nil
		}
		if err != nil {
			w.t.Errorf("a reader: %v", err)
			return
		}
		if old == nil {
			old, seen = s, known
		}
	}
}

// holds checks that a reader finds all of known, the tree, a commit of long ago and the snapshots.
func (w *beside) holds(s *coppice.Session, known map[string]bool, rng *rand.Rand) error {
	texts := map[string]int{}
	for e, err := range s.Entries(bg) {
		if err != nil {
			return err
		}
		m, _ := e.Message()
		texts[m.Text()]++
	}
	for text := range known {
		if texts[text] != 1 {
			return fmt.Errorf("%s was acknowledged and is there %d times", text, texts[text])
		}
	}
	if _, err := s.Tree(bg); err != nil {
		return err
	}
	v, err := s.At(bg, coppice.Target{Seq: 1 + rng.Uint64N(s.Head().Seq)})
	if err == nil {
		_, err = v.Context(bg)
	}
	if err != nil {
		return err
	}
	var snapshots []snapshot.Info
	for info, err := range s.Snapshots(bg) {
		if err != nil {
			return err
		}
		snapshots = append(snapshots, info)
	}
	if n := len(snapshots); n > 0 {
		_, err = s.At(bg, coppice.Target{Snapshot: snapshots[rng.IntN(n)].ID})
	}
	return err
}

// Hosts that write, die and come back, readers of the newest head and of older ones, and a collection that
// never stops: nothing that anyone can reach disappears. In the end, one claim and one collection later, what
// the dead left behind is gone, and nothing else is.
func TestCollectBesideHosts(t *testing.T) {
	w := &beside{t: t, b: memory.New(), acked: map[string]bool{}, doubt: map[string]bool{}}
	for i := range w.news {
		w.news[i] = make(chan struct{}, 1)
	}
	keeper := newHost(t, w.b, "keeper")
	for turn := range 2 { // hosts of one turn: what they seal when they leave is named by nobody
		s := must(keeper.OpenOrCreate(bg, "s", nil))(t)
		bulk(t, s, turn, 520)
		ok(t, s.Close())
		for i := range 520 {
			w.acked[fmt.Sprintf("%d-%d", turn, i)] = true
		}
	}
	var writers, others sync.WaitGroup
	for i := range 3 {
		writers.Go(func() {
			rng := rand.New(rand.NewPCG(uint64(i), 1))
			for life := range 2 {
				w.life(fmt.Sprintf("w%d-%d", i, life), rng)
			}
		})
	}
	others.Go(func() { w.read("reader", w.news[0], rand.New(rand.NewPCG(1, 2))) })
	removed := 0
	others.Go(func() {
		store := newHost(t, w.b, "collector")
		for range w.news[1] {
			r, err := store.GC(bg, "", false)
			if removed += r.Removed; err != nil || len(r.Problems) > 0 {
				t.Errorf("gc: %+v, %v", r, err)
			}
		}
	})
	writers.Wait()
	for _, news := range w.news {
		close(news)
	}
	others.Wait()

	claims(t, keeper.Store)
	images, before := keysIn(t, w.b, "/blobs/"), len(keysIn(t, w.b, "/s/"))
	dry := must(keeper.GC(bg, "s", true))(t)
	r := must(keeper.GC(bg, "s", false))(t)
	same(t, "collected", r.Removed, dry.Removed)
	same(t, "objects", len(keysIn(t, w.b, "/s/")), before-r.Removed)
	same(t, "images", keysIn(t, w.b, "/blobs/"), images)
	same(t, "collected twice", must(keeper.GC(bg, "s", false))(t).Removed, 0)
	starts := map[string]string{}
	for _, key := range keysIn(t, w.b, "/transcript/") {
		at, _, _ := strings.Cut(key[strings.LastIndexByte(key, '/')+1:], "-")
		if starts[at] != "" {
			t.Errorf("an orphan is left: %s or %s", starts[at], key)
		}
		starts[at] = key
	}
	same(t, "left over", sound(t, keeper.Store), 0)
	last := open(t, keeper.Store, "s")
	ok(t, w.holds(last, w.acked, rand.New(rand.NewPCG(1, 3))))
	for e, err := range last.Entries(bg) {
		ok(t, err)
		if m, _ := e.Message(); !w.acked[m.Text()] && !w.doubt[m.Text()] && m.Text() != "look" {
			t.Errorf("%q came from nowhere", m.Text())
		}
	}
	if removed+r.Removed < 1 || len(starts) == 0 { // how many more depends on who came first
		t.Errorf("%d objects collected, %d segments: nothing was proven", removed+r.Removed, len(starts))
	}
	t.Logf("%d entries acknowledged, %d in doubt, %d segments, %d objects collected on the way, %d at the end of %d",
		len(w.acked), len(w.doubt), len(starts), removed, r.Removed, before)
}
