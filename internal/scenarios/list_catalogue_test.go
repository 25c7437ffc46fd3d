package scenarios_test

import (
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/coppice-go/coppice"
	"github.com/coppice-go/coppice/backend"
	"github.com/coppice-go/coppice/backend/local"
	"github.com/coppice-go/coppice/backend/memory"
	"github.com/coppice-go/coppice/checkpoint"
	"github.com/coppice-go/coppice/internal/fault"
	"github.com/coppice-go/coppice/internal/seam"
	"github.com/coppice-go/coppice/internal/testutil"
	"github.com/coppice-go/coppice/internal/trace"
	"github.com/coppice-go/coppice/internal/vfs"
)

// many is how many sessions a large store of these tests has.
const many = 70

// listing returns a store with a clock and a folder for its catalogue, for which 40 sessions are many.
func listing(t *testing.T, b backend.Backend, clock *hand, cache string) *coppice.Store {
	t.Helper()
	s := newStore(t, b, &coppice.Options{Now: clock.Now, ListCache: cache})
	seam.Large(s, 40, 16)
	return s
}

// hand is a clock that moves when it is told to. Its time is after that of every file.
type hand struct {
	mu  sync.Mutex
	now time.Time
}

func newHand() *hand { return &hand{now: later()} }

func (h *hand) Now() time.Time {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.now = h.now.Add(time.Millisecond)
	return h.now
}

func (h *hand) move(d time.Duration) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.now = h.now.Add(d)
}

// largeStore fills a store with sessions s-000 to s-069.
func largeStore(t *testing.T, b backend.Backend) {
	t.Helper()
	now := testutil.Clock(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC), time.Millisecond)
	s := newStore(t, b, &coppice.Options{Now: now})
	for i := range many {
		meta := map[string]string{"user": fmt.Sprint(i % 10)}
		h := create(t, s, fmt.Sprintf("s-%03d", i), &coppice.SessionOptions{Title: fmt.Sprint("title ", i), Meta: meta})
		say(t, h, "hello")
		commit(t, h, nil)
		ok(t, h.Close())
	}
	ok(t, s.Close())
}

// largeMemory returns a large store that replaces.
func largeMemory(t *testing.T) *memory.Backend {
	t.Helper()
	b := memory.New()
	largeStore(t, b)
	return b
}

// listed returns what a listing yields, and the age of the catalogue that answered; -1 = none did.
func listed(
	t *testing.T, s *coppice.Store, o coppice.ListOptions,
) ([]checkpoint.Summary, time.Duration) {
	t.Helper()
	age := time.Duration(-1)
	o.Age = func(d time.Duration) { age = d }
	return collect(t, s.List(bg, o)), age
}

// A list of the newest sessions of a large store that only replaces costs two listings that end at their first page,
// the head of the catalogue, the blocks of it that the page needs, two here, and a read of each session that is shown;
// for a process that has listed before, no listing. It shows what an exact list shows, and a commit stays one PUT.
func TestListFromCatalogue(t *testing.T) {
	b, clock := trace.New(largeMemory(t)), newHand()
	first := listing(t, b, clock, "")
	newest := coppice.ListOptions{Limit: 20}
	exact, age := listed(t, first, coppice.ListOptions{Limit: 20, Exact: true})
	same(t, "exact", age, time.Duration(-1))
	same(t, "objects that an exact list wrote", b.IO().Put, 0)
	got, _ := listed(t, first, newest)
	same(t, "cold", got, exact)
	cost := func(s *coppice.Store, o coppice.ListOptions) (io backend.IO, keys int) {
		t.Helper()
		before := b.IO()
		got, age := listed(t, s, o)
		if age < 0 || age > 30*time.Second {
			t.Errorf("age %v", age)
		}
		o.Exact = true
		io = b.IO().Sub(before)
		want, _ := listed(t, s, o)
		same(t, fmt.Sprintf("%+v", o), got, want)
		return io, len(got)
	}
	mine := coppice.ListOptions{Meta: map[string]string{"user": "7"}}
	cost(first, mine) // reads all, and keeps what it learned
	io, _ := cost(first, newest)
	same(t, "warm", []int{io.List, io.Get, io.Put}, []int{0, 23, 0})
	next := listing(t, b, clock, "")
	io, _ = cost(next, newest)
	same(t, "the next process", []int{io.List, io.Get, io.Put}, []int{2, 23, 0})
	io, _ = cost(next, coppice.ListOptions{Limit: 20, After: got[len(got)-1].Cursor})
	if io.Get > 2+20+16 || io.List+io.Put != 0 {
		t.Errorf("the next page: %+v", io)
	}
	io, n := cost(next, mine)
	if io.Get > 1+(many+13)/14+n || n != many/10 {
		t.Errorf("by metadata: %d sessions, %+v", n, io)
	}
	h := open(t, next, "s-003")
	before := b.IO()
	say(t, h, "more")
	commit(t, h, nil)
	io = b.IO().Sub(before)
	same(t, "a turn", []int{io.Get, io.Put, io.List}, []int{0, 1, 0})
	io, _ = cost(next, newest)
	same(t, "with a session of this process", []int{io.List, io.Get}, []int{0, 23})
}

// On a disk the sessions that are not shown cost nothing, and those that are shown two looks.
func TestListFromCatalogueOnDisk(t *testing.T) {
	dir, cache := t.TempDir(), filepath.Join(t.TempDir(), "lists")
	b := must(local.Open("", &local.Options{FS: unsynced{vfs.OS(dir)}}))(t)
	largeStore(t, b)
	ok(t, b.Close())
	var ids []string
	for i := range many {
		ids = append(ids, fmt.Sprintf("s-%03d", i))
	}
	newest := coppice.ListOptions{Limit: 20}
	s, _ := diskOf(t, dir, cache)
	seam.Large(s, 60, 32)
	want := collect(t, s.List(bg, coppice.ListOptions{Limit: 20, Exact: true}))
	same(t, "cold", collect(t, s.List(bg, newest)), want)
	same(t, "again", collect(t, s.List(bg, newest)), want)
	ok(t, s.Close())
	next, calls := diskOf(t, dir, cache)
	seam.Large(next, 60, 32)
	shown, of := callsFor(t, next, calls, newest, ids)
	same(t, "shown", len(shown), 20)
	same(t, "sessions that were touched", len(of), 20)
	for _, c := range calls.Calls() {
		if strings.HasPrefix(c.Name, "opendir") {
			t.Errorf("a folder is read: %s", c.Name)
		}
	}
}

// What others do is in a list after 30 seconds, in an exact one at once; what this process does is in both at once. A
// session that was deleted is in neither.
func TestCatalogueIsRefreshed(t *testing.T) {
	for name, open := range map[string]func(t *testing.T) (a, b *coppice.Store, clock *hand){
		"replace": func(t *testing.T) (*coppice.Store, *coppice.Store, *hand) {
			b, clock := largeMemory(t), newHand()
			return listing(t, b, clock, ""), listing(t, b, clock, ""), clock
		},
		"disk": func(t *testing.T) (*coppice.Store, *coppice.Store, *hand) {
			dir, clock, lists := t.TempDir(), newHand(), t.TempDir()
			var all [2]*coppice.Store
			for i := range all {
				b := must(local.Open("", &local.Options{FS: unsynced{vfs.OS(dir)}}))(t)
				t.Cleanup(func() { b.Close() })
				if i == 0 {
					largeStore(t, b)
				}
				cache := filepath.Join(lists, fmt.Sprint(i))
				all[i] = listing(t, b, clock, cache)
			}
			return all[0], all[1], clock
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			one, two, clock := open(t)
			newest := coppice.ListOptions{Limit: 3}
			ids := func(s *coppice.Store, o coppice.ListOptions) (ids []string) {
				t.Helper()
				list, _ := listed(t, s, o)
				for _, sum := range list {
					ids = append(ids, sum.ID)
				}
				return ids
			}
			was := []string{"s-069", "s-068", "s-067"}
			same(t, "one", ids(one, newest), was)
			same(t, "two", ids(two, newest), was)
			h := must(two.OpenOrCreate(bg, "new", nil))(t)
			say(t, h, "hello")
			commit(t, h, nil)
			ok(t, h.Close())
			now := append([]string{"new"}, was[:2]...)
			same(t, "of the writer", ids(two, newest), now)
			same(t, "of another", ids(one, newest), was)
			same(t, "exact", ids(one, coppice.ListOptions{Limit: 3, Exact: true}), now)
			ok(t, two.Delete(bg, "s-069"))
			same(t, "without a deleted one", ids(one, newest), []string{"s-068", "s-067", "s-066"})
			same(t, "without a deleted one, of its deleter", ids(two, newest), []string{"new", "s-068", "s-067"})
			clock.move(31 * time.Second)
			same(t, "refreshed", ids(one, newest), []string{"new", "s-068", "s-067"})
			list, age := listed(t, one, newest)
			same(t, "refreshed: sessions", len(list), 3)
			if age < 0 || age > time.Second {
				t.Errorf("age %v", age)
			}
		})
	}
}

// Whatever happens to the catalogue (faults, damage, objects of others, a second writer), an exact list has every
// session, and the other one shows sessions only as they are, and all that its own process committed.
func TestCatalogueUnderFaults(t *testing.T) {
	for seed := range uint64(6) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			r := rand.New(rand.NewPCG(seed, 7))
			inner, clock := largeMemory(t), newHand()
			var stores [2]*coppice.Store
			open := func(i int) {
				b := fault.New(inner, seed*2+uint64(i),
					fault.Rule{When: fault.On("put", "catalogue/"), Count: -1, Chance: 0.2},
					fault.Rule{When: fault.On("put", "catalogue/"), Count: -1, Chance: 0.2, Kind: fault.After},
					fault.Rule{When: fault.On("get", "catalogue/"), Count: -1, Chance: 0.1},
					fault.Rule{When: fault.On("get", "catalogue/"), Count: -1, Chance: 0.1, Kind: fault.Damage},
					fault.Rule{When: fault.On("delete", "catalogue/"), Count: -1, Chance: 0.3},
				)
				stores[i] = listing(t, b, clock, "")
			}
			open(0)
			open(1)
			own := [2]map[string]bool{{}, {}}
			for step := range 40 {
				i := r.IntN(2)
				switch id := fmt.Sprintf("s-%03d", r.IntN(many+20)); r.IntN(8) {
				case 0:
					ok(t, stores[i].Delete(bg, id))
					delete(own[0], id)
					delete(own[1], id)
				case 1:
					clock.move(time.Duration(r.IntN(40)) * time.Second)
				case 2:
					open(i)
					own[i] = map[string]bool{}
				case 3:
					spoil(t, r, inner)
				default:
					s, err := stores[i].OpenOrCreate(bg, id, &coppice.SessionOptions{Again: true})
					if err == nil {
						say(t, s, fmt.Sprint("hello ", step))
						_, err = s.Commit(bg, coppice.Turn{})
					}
					if err != nil && !errors.Is(err, fs.ErrExist) {
						t.Fatal(err)
					}
					if err == nil {
						own[i][id] = true
						ok(t, s.Close())
					}
				}
				checkLists(t, r, step, stores[i], listing(t, inner, clock, ""), own[i])
				if t.Failed() {
					return
				}
			}
		})
	}
}

// checkLists compares a list of a store with an exact one, and with one of a store that knows nothing.
func checkLists(t *testing.T, r *rand.Rand, step int, s, fresh *coppice.Store, own map[string]bool) {
	t.Helper()
	want := collect(t, fresh.List(bg, coppice.ListOptions{Exact: true}))
	same(t, fmt.Sprint("exact, step ", step), collect(t, s.List(bg, coppice.ListOptions{Exact: true})), want)
	o := coppice.ListOptions{Limit: []int{0, 1, 20}[r.IntN(3)]}
	if r.IntN(3) == 0 {
		o.Meta = map[string]string{"user": fmt.Sprint(r.IntN(10))}
	}
	age := time.Duration(-1)
	o.Age = func(d time.Duration) { age = d }
	got := collect(t, s.List(bg, o))
	of := map[string]checkpoint.Summary{}
	for _, sum := range want {
		of[sum.ID] = sum
	}
	seen := map[string]bool{}
	for _, sum := range got {
		if seen[sum.ID] {
			t.Errorf("step %d: %s is there twice", step, sum.ID)
		}
		seen[sum.ID] = true
		same(t, fmt.Sprintf("step %d: %s", step, sum.ID), sum, of[sum.ID])
	}
	if age < 0 { // it lists everything
		o.Exact, o.Age = true, nil
		same(t, fmt.Sprint("listed, step ", step), got, collect(t, fresh.List(bg, o)))
	}
	if o.Limit == 0 && o.Meta == nil {
		for id := range own {
			if !seen[id] {
				t.Errorf("step %d: %s, of this process, is missing", step, id)
			}
		}
	}
}

// spoil damages an object of the catalogue, replaces it by an older one or by another, or removes it.
func spoil(t *testing.T, r *rand.Rand, b *memory.Backend) {
	t.Helper()
	var keys []string
	for info, err := range b.List(bg, backend.ListOptions{Prefix: "catalogue/"}) {
		ok(t, err)
		keys = append(keys, info.Key)
	}
	if len(keys) == 0 {
		return
	}
	key := keys[r.IntN(len(keys))]
	p, _, err := b.Get(bg, keys[r.IntN(len(keys))], backend.Range{})
	ok(t, err)
	switch r.IntN(3) {
	case 0:
		ok(t, b.Delete(bg, key))
		return
	case 1:
		p = p[:len(p)/2]
	}
	_, err = b.Put(bg, key, p, backend.Cond{})
	ok(t, err)
}
