package soak

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	coppice "github.com/coppice-go/coppice"
	"github.com/coppice-go/coppice/backend"
	"github.com/coppice-go/coppice/entry"
	"github.com/coppice-go/coppice/internal/fault"
	"github.com/coppice-go/coppice/snapshot"
)

const (
	chance = 0.03 // probability that a request fails
	most   = 400  // maximum number of turns of a session
)

// write runs the lives of one writer, one after another, until the round is over.
func (h *house) write(ctx context.Context, room *room, who int) {
	rng := h.rng(who)
	for n := 0; ctx.Err() == nil && !h.r.Full(); n++ {
		if acked, _ := room.known(); len(acked) >= most {
			return
		}
		h.life(ctx, room, rng, fmt.Sprintf("%d.%d", who, n))
	}
}

// life is a writer from its start to its death: its time ends during a call, or it ends regularly. Its requests may
// arrive after its death.
func (h *house) life(ctx context.Context, room *room, rng *rand.Rand, name string) {
	rules := fault.Chaos(chance)
	if h.dir != "" { // a disk does nothing after the call has ended
		rules = slices.DeleteFunc(rules, func(r fault.Rule) bool { return r.Kind == fault.Late })
	}
	inner := h.open()
	network := fault.New(inner, rng.Uint64(), rules...)
	h.mu.Lock()
	h.networks[network] = true
	h.mu.Unlock()
	defer func() {
		network.Deliver(h.t.Context())
		h.mu.Lock()
		delete(h.networks, network)
		h.mu.Unlock()
		_ = inner.Close() // while background work of the dead writer still runs
	}()
	ctx, cancel := context.WithTimeout(ctx, time.Duration(rng.Int64N(int64(400*time.Millisecond))))
	defer cancel()
	st, err := coppice.New(network, nil)
	if err != nil {
		h.broken("%v", err)
		return
	}
	s, err := st.OpenOrCreate(ctx, room.id, &coppice.SessionOptions{KeepBoth: rng.IntN(2) == 0})
	if err != nil {
		return
	}
	for turn := 0; ctx.Err() == nil && turn < most; turn++ {
		if !h.turn(ctx, room, s, fmt.Sprintf("%s.%d", name, turn), rng) {
			break
		}
		if s = h.odd(ctx, room, st, s, rng); s == nil {
			break
		}
	}
	if rng.IntN(2) == 0 {
		_ = st.Close() // an error counts uncommitted entries
	}
}

// turn commits one turn, and handles an error in each possible way. false = the handle is unusable.
func (h *house) turn(ctx context.Context, room *room, s *coppice.Session, name string, rng *rand.Rand) bool {
	if _, err := s.Append(ctx, entry.User(name), entry.Custom("filler", strings.Repeat("x", rng.IntN(3000)))); err != nil {
		return false
	}
	state := coppice.Turn{State: map[string]string{"turn": name}}
	_, err := s.Commit(ctx, state)
	doubt, behind := false, false
	var told []error
	for try := 0; err != nil && try < 3; try++ {
		told = append(told, err)
		switch {
		case errors.Is(err, coppice.ErrCommitUnknown):
			doubt = true
			if _, err = s.Settle(ctx, ""); err != nil && !errors.Is(err, coppice.ErrCommitUnknown) {
				doubt = false // it was lost, and its entries are in the buffer
			}
		case errors.Is(err, coppice.ErrConflict), errors.Is(err, coppice.ErrFenced):
			state.KeepBoth, behind = true, true
			_, err = s.Commit(ctx, state)
		case backend.OutcomeOf(err) != backend.NotApplied || ctx.Err() != nil:
			return h.gone(room, name, doubt, errors.Join(append(told, err)...), err)
		default:
			_, err = s.Commit(ctx, state)
		}
	}
	if err != nil {
		return h.gone(room, name, doubt, errors.Join(append(told, err)...), err)
	}
	room.tell(name, nil)
	return !behind || s.Reload(ctx) == nil
}

// gone records a turn that its writer drops: it is in doubt, or it was never applied.
func (h *house) gone(room *room, name string, doubt bool, told, err error) bool {
	if !doubt && !errors.Is(err, coppice.ErrCommitUnknown) && backend.OutcomeOf(err) == backend.NotApplied {
		room.tell(name, told)
	}
	return false
}

// odd runs an occasional operation of agents. It returns the handle to continue with; nil = none.
func (h *house) odd(ctx context.Context, room *room, st *coppice.Store, s *coppice.Session, rng *rand.Rand) *coppice.Session {
	var err error
	seq := s.Head().Seq
	switch rng.IntN(40) {
	case 0:
		_, err = s.Snapshot(ctx, "")
	case 1:
		_, err = s.Rollback(ctx, coppice.Target{Seq: 1 + rng.Uint64N(max(seq, 1))})
	case 2:
		_, err = s.Claim(ctx)
	case 3:
		_, err = st.GC(ctx, room.id, false)
	case 4:
		_, err = s.Prune(ctx, snapshot.Retention{Last: 2})
	case 5:
		_, err = s.Label(ctx, s.Head().Entry, "here")
	case 6:
		_, err = s.Branch(ctx, s.Head().Entry, nil)
	case 7:
		_, err = s.Tree(ctx)
	case 8:
		if err = s.Close(); err == nil {
			s, err = st.Open(ctx, room.id, nil)
		}
	case 9:
		pause(ctx, time.Duration(rng.Int64N(int64(30*time.Millisecond))))
	}
	if err == nil {
		return s
	}
	if errors.Is(err, coppice.ErrCorrupt) && !errors.Is(err, context.Canceled) && !errors.Is(err, context.DeadlineExceeded) {
		h.broken("%s: %v", room.id, err)
	}
	if s == nil || s.Reload(ctx) != nil {
		return nil
	}
	return s
}
