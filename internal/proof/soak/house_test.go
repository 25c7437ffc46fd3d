package soak

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	coppice "github.com/coppice-go/coppice"
	"github.com/coppice-go/coppice/backend"
	"github.com/coppice-go/coppice/backend/local"
	"github.com/coppice-go/coppice/backend/memory"
	"github.com/coppice-go/coppice/internal/fault"
	"github.com/coppice-go/coppice/internal/layout"
	"github.com/coppice-go/coppice/internal/proof"
)

// house is a store, its sessions, and the answers of their writers.
type house struct {
	t    *testing.T
	r    *proof.Report
	seed uint64
	n    int
	dir  string          // of a disk
	mem  *memory.Backend // of a bucket

	mu       sync.Mutex
	networks map[fault.Backend]bool // of living writers
	rooms    []*room
}

// room is a session: its acknowledged turns, and those reported as failed.
type room struct {
	id string

	mu     sync.Mutex
	acked  map[string]bool
	failed map[string]error
}

// newHouse creates a house on a disk, if n is even, or in a bucket.
func newHouse(t *testing.T, r *proof.Report, seed uint64, n, sessions int) *house {
	h := &house{t: t, r: r, seed: seed, n: n, networks: map[fault.Backend]bool{}}
	if n%2 == 0 {
		h.dir = filepath.Join(t.TempDir(), "store")
	} else {
		h.mem = memory.New()
	}
	for i := range sessions {
		h.rooms = append(h.rooms, &room{id: fmt.Sprintf("s%d", i), acked: map[string]bool{}, failed: map[string]error{}})
	}
	return h
}

// rng returns the random source of one writer or checker.
func (h *house) rng(who int) *rand.Rand {
	return rand.New(rand.NewPCG(h.seed, uint64(h.n)<<32|uint64(who)))
}

// open opens the house's store as a process would, without faults.
func (h *house) open() backend.Backend {
	if h.mem != nil {
		return h.mem.Share()
	}
	b, err := local.Open(h.dir, nil)
	if err != nil {
		panic(err) // nothing is damaged yet
	}
	return b
}

func (h *house) broken(format string, args ...any) {
	h.r.Violation(fmt.Sprintf("seed %d, house %d: ", h.seed, h.n)+format, args...)
}

// live runs two writers in each session, and a checker, for a while; then it checks everything once more, deletes all,
// and checks that nothing remains.
func (h *house) live(d time.Duration) {
	ctx, cancel := context.WithTimeout(h.t.Context(), d)
	defer cancel()
	var all sync.WaitGroup
	for i, room := range h.rooms {
		for k := range 2 {
			all.Go(func() { h.write(ctx, room, 2*i+k) })
		}
	}
	all.Go(func() { h.watch(ctx) })
	all.Wait()
	for _, room := range h.rooms {
		if h.check(room, true) {
			h.remove(room)
		}
	}
	if h.dir != "" {
		if err := os.RemoveAll(h.dir); err != nil {
			h.broken("%v", err)
		}
	}
}

// watch checks one session after another while they are written to, and delivers messages that the network holds back.
func (h *house) watch(ctx context.Context) {
	rng := h.rng(1 << 20)
	for ctx.Err() == nil && !h.r.Full() {
		h.deliver(ctx)
		h.check(h.rooms[rng.IntN(len(h.rooms))], false)
		pause(ctx, time.Duration(rng.Int64N(int64(50*time.Millisecond))))
	}
	h.deliver(h.t.Context())
}

// deliver delivers the writes under way, also those of dead writers.
func (h *house) deliver(ctx context.Context) {
	h.mu.Lock()
	networks := slices.Collect(maps.Keys(h.networks))
	h.mu.Unlock()
	for _, f := range networks {
		f.Deliver(ctx) // the bucket's answer is dropped
	}
}

// pause waits, but no longer than ctx lasts.
func pause(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}

// check reads a session by a fresh handle, on a network without faults: a turn acknowledged before it began is there
// once, one reported as failed is not (I1, I2). With last all writers have ended: their commits count, and the whole
// session must verify.
func (h *house) check(room *room, last bool) (there bool) {
	acked, failed := room.known()
	b := h.open()
	defer func() { _ = b.Close() }()
	st, err := coppice.New(b, nil)
	if err != nil {
		h.broken("%v", err)
		return false
	}
	defer func() { _ = st.Close() }()
	ctx := h.t.Context()
	s, err := st.Open(ctx, room.id, &coppice.SessionOptions{ReadOnly: true})
	if err != nil {
		if len(acked) > 0 || !errors.Is(err, fs.ErrNotExist) {
			h.broken("%s: %d turns were acknowledged: %v", room.id, len(acked), err)
		}
		return false
	}
	times := map[string]int{}
	for e, err := range s.Entries(ctx) {
		if err != nil {
			h.broken("%s: %v", room.id, err)
			return false
		}
		if m, ok := e.Message(); ok {
			times[m.Text()]++
		}
	}
	for text := range acked {
		if times[text] != 1 {
			h.broken("%s: %s was acknowledged and stands there %d times", room.id, text, times[text])
		}
	}
	for text, n := range times {
		if n > 1 || failed[text] != nil {
			h.broken("%s: %s stands there %d times, and its writer was told: %v", room.id, text, n, failed[text])
		}
	}
	var now struct{ Turn string }
	if err := s.State(&now); err != nil || now.Turn == "" || times[now.Turn] != 1 {
		h.broken("%s: the state is of turn %q: %v", room.id, now.Turn, err)
	}
	if _, err := s.Context(ctx); err != nil {
		h.broken("%s: context: %v", room.id, err)
	}
	if last {
		h.r.Explored(int(s.Head().Seq) + 1)
		h.verify(st, room)
	}
	return true
}

// verify reads every object of a session.
func (h *house) verify(st *coppice.Store, room *room) {
	report, err := st.Verify(h.t.Context(), room.id, true)
	if err != nil {
		h.broken("%s: verify: %v", room.id, err)
	}
	for _, p := range report.Problems {
		if errors.Is(p, coppice.ErrCorrupt) {
			h.broken("%s: %v", room.id, p)
		}
	}
}

// remove deletes a session. It stays deleted whichever late requests of its writers arrive, and after a repeated
// deletion no object remains.
func (h *house) remove(room *room) {
	b := h.open()
	defer func() { _ = b.Close() }()
	st, err := coppice.New(b, nil)
	if err != nil {
		h.broken("%v", err)
		return
	}
	defer func() { _ = st.Close() }()
	ctx := h.t.Context()
	for range 2 {
		if err := st.Delete(ctx, room.id); err != nil {
			h.broken("%s: delete: %v", room.id, err)
		}
		h.deliver(ctx)
	}
	if err := st.Delete(ctx, room.id); err != nil {
		h.broken("%s: delete: %v", room.id, err)
	}
	if _, err := st.Open(ctx, room.id, nil); !errors.Is(err, fs.ErrNotExist) {
		h.broken("%s was deleted: %v", room.id, err)
	}
	for info, err := range b.List(ctx, backend.ListOptions{Prefix: layout.SessionPrefix(room.id)}) {
		h.broken("%s was deleted, and there is %s: %v", room.id, info.Key, err)
	}
}

// known returns the writers' knowledge so far.
func (r *room) known() (acked map[string]bool, failed map[string]error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return maps.Clone(r.acked), maps.Clone(r.failed)
}

// tell records the final answer for a turn: nil = acknowledged, an error = never applied.
func (r *room) tell(turn string, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if err == nil {
		r.acked[turn] = true
	} else {
		r.failed[turn] = err
	}
}
