package session

import (
	"maps"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/coppice-go/coppice/internal/journal/state"
)

// Watched is the registry of the handles of a store on which Watch is running, by session. A commit of another handle
// of the store passes them its state at once, so they read nothing to find it. Safe for concurrent use.
type Watched struct {
	Calls atomic.Int64 // of Watch: a commit looks no further where there are none
	mu    sync.Mutex
	by    map[string]map[*Handle]int // calls of Watch on each
}

// NewWatched returns an empty Watched.
func NewWatched() *Watched { return &Watched{by: map[string]map[*Handle]int{}} }

// begin registers a call of Watch on a handle. A nil Watched registers nothing.
func (w *Watched) begin(id string, h *Handle) {
	if w == nil {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.by[id] == nil {
		w.by[id] = map[*Handle]int{}
	}
	w.by[id][h]++
	w.Calls.Add(1)
}

// end removes what begin registered.
func (w *Watched) end(id string, h *Handle) {
	if w == nil {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.Calls.Add(-1)
	if w.by[id][h]--; w.by[id][h] > 0 {
		return
	}
	if delete(w.by[id], h); len(w.by[id]) == 0 {
		delete(w.by, id)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.told = nil
}

// Tell passes an acknowledged state to every registered handle of the session. No lock of a journal or of a handle may
// be held.
func (w *Watched) Tell(id string, st *state.State) {
	w.mu.Lock()
	list := slices.Collect(maps.Keys(w.by[id]))
	w.mu.Unlock()
	for _, h := range list {
		h.tell(st)
	}
}

// tell wakes the calls of Watch on the handle, unless it has st or a newer state.
func (h *Handle) tell(st *state.State) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if newest := newer(h.sync().State, h.told); newer(newest, st) == newest {
		return
	}
	h.told = st
	close(h.wake)
	h.wake = make(chan struct{})
}

// newer returns the newer of two states of a session: a where they are the same; b may be nil.
func newer(a, b *state.State) *state.State {
	if b == nil || a.Summary.Commit != "" && a.Summary.Seq >= b.Summary.Seq {
		return a
	}
	return b
}
