package lifecycle_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/coppice-go/coppice"
	"github.com/coppice-go/coppice/backend"
	"github.com/coppice-go/coppice/backend/memory"
	"github.com/coppice-go/coppice/entry"
	"github.com/coppice-go/coppice/snapshot"
	"github.com/coppice-go/coppice/transcript"
)

// Many goroutines on one handle: every appended entry is stored once, on one path, and every commit has its own seq.
func TestManyGoroutines(t *testing.T) {
	onEach(t, func(t *testing.T, store *coppice.Store) {
		s := create(t, store, "s", nil)
		const writers, turns = 8, 10
		var wg sync.WaitGroup
		var mu sync.Mutex
		seqs := map[uint64]int{}
		entries := 0
		for w := range writers {
			wg.Go(func() {
				for i := range turns {
					if _, err := s.Append(bg, entry.User(fmt.Sprintf("%d-%d", w, i)), entry.Assistant("a")); err != nil {
						t.Error(err)
						return
					}
					if _, err := s.Context(bg); err != nil {
						t.Error(err)
					}
					r, err := s.Commit(bg, coppice.Turn{State: state{Turns: i}})
					if err != nil {
						t.Error(err)
						return
					}
					mu.Lock()
					seqs[r.Seq]++
					entries += r.Entries
					mu.Unlock()
					tree, err := s.Tree(bg)
					if err != nil {
						t.Error(err)
						return
					}
					if n := len(slices.Collect(tree.Path(tree.Head()))); n < 2*(i+1) {
						t.Errorf("path of %d entries", n)
					}
				}
			})
		}
		wg.Wait()
		same(t, "seqs", len(seqs), writers*turns)
		same(t, "entries", entries, 2*writers*turns)
		ok(t, s.Close())
		again := open(t, store, "s")
		same(t, "path", len(collect(t, again.Path(bg, ""))), 2*writers*turns)
		seen := map[string]int{}
		for _, m := range must(again.Context(bg))(t).Messages {
			seen[m.Text()]++
		}
		for w := range writers {
			for i := range turns {
				same(t, "once", seen[fmt.Sprintf("%d-%d", w, i)], 1)
			}
		}
	})
}

// Concurrent readers, movers and appenders: nothing is lost, in any order.
func TestMovesAmongCommits(t *testing.T) {
	onEach(t, func(t *testing.T, store *coppice.Store) {
		s, _ := grown(t, store, "s", 3, nil)
		path := ids(collect(t, s.Path(bg, "")))
		var wg sync.WaitGroup
		for w := range 4 {
			wg.Go(func() {
				for i := range 6 {
					var err error
					switch (w + i) % 4 { // turns carry their entries: a buffer would refuse the moves
					case 0:
						_, err = s.Branch(bg, path[i%len(path)], nil)
					case 1:
						_, err = s.Edit(bg, path[i%len(path)], entry.User(fmt.Sprintf("e%d-%d", w, i)))
					case 2:
						_, err = s.Label(bg, path[i%len(path)], "l")
					default:
						own := []transcript.Draft{entry.User(fmt.Sprintf("p%d-%d", w, i))}
						_, err = s.Commit(bg, coppice.Turn{Entries: own})
					}
					if err != nil {
						t.Error(err)
					}
				}
			})
		}
		wg.Wait()
		commit(t, s, nil)
		again := open(t, store, "s")
		same(t, "head", again.Head().Entry, s.Head().Entry)
		same(t, "context", texts(t, again), texts(t, s))
		n := 0
		for _, e := range collect(t, again.Entries(bg)) {
			if m, is := e.Message(); is && (strings.HasPrefix(m.Text(), "p") || strings.HasPrefix(m.Text(), "e")) {
				n++
			}
		}
		same(t, "entries", n, 12)
	})
}

// Equal clocks and equal randomness result in equal bytes, ids included, except for background work: the commit that
// names a snapshot depends on when the snapshot was written.
func TestDeterminism(t *testing.T) {
	run := func(b backend.Backend) string {
		store := newStore(t, b, &coppice.Options{Now: clock(), Rand: rand.NewChaCha8([32]byte{1}), Writer: "test"})
		s, rs := grown(t, store, "", 60, &coppice.SessionOptions{Snapshots: snapshot.Policy{Every: -1}})
		must(s.Edit(bg, rs[3].Entry, entry.User("again")))(t)
		must(s.Snapshot(bg, "tag"))(t)
		must(s.Fork(bg, coppice.Target{Seq: 5}, "", nil))(t)
		ok(t, s.Close())
		var all strings.Builder
		for info, err := range b.List(bg, backend.ListOptions{}) {
			ok(t, err)
			p, _, err := b.Get(bg, info.Key, backend.Range{})
			ok(t, err)
			fmt.Fprintf(&all, "%s %x\n", info.Key, p)
		}
		return all.String()
	}
	for kind, open := range map[string]func() backend.Backend{
		"replace": func() backend.Backend { return memory.New() },
		"append":  func() backend.Backend { return memory.NewAppender() },
	} {
		first := run(open())
		if second := run(open()); first != second {
			t.Errorf("%s: two runs differ", kind)
		}
	}
}
