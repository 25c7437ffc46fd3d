package demostore

import (
	"context"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	coppice "github.com/coppice-go/coppice"
	"github.com/coppice-go/coppice/internal/testutil"
)

func liveOn(st *coppice.Store, session string, turns int, after func(time.Duration) <-chan time.Time) Live {
	return Live{
		Store: st, Session: session, Turns: turns, Every: time.Second, Rand: rand.NewChaCha8([32]byte{byte(turns)}),
		Now: testutil.Clock(time.Date(2026, 3, 3, 0, 0, 0, 0, time.UTC), time.Second), After: after,
	}
}

// atOnce lets no one wait.
func atOnce(time.Duration) <-chan time.Time {
	c := make(chan time.Time, 1)
	c <- time.Time{}
	return c
}

// The agent continues from the head and the state that someone else has put the session to.
func TestLiveFollowsARollback(t *testing.T) {
	b := build(t)
	st := openStore(t, b)
	testutil.OK(t, liveOn(st, Gauge, 3, atOnce).Run(t.Context()))
	h := testutil.Must(st.Open(t.Context(), Gauge, nil))(t)
	if got := readings(t, h); !slices.Equal(got, []int{0, 1, 2, 3}) {
		t.Fatalf("readings %v", got)
	}
	testutil.Must(h.Rollback(t.Context(), coppice.Target{Seq: 2}))(t)
	testutil.OK(t, liveOn(st, Gauge, 1, atOnce).Run(t.Context()))
	testutil.OK(t, h.Reload(t.Context()))
	var s gaugeState
	testutil.OK(t, h.State(&s))
	if s.Readings != 2 || h.Head().Seq != 6 {
		t.Errorf("reading %d at seq %d after a rollback to the first one", s.Readings, h.Head().Seq)
	}
}

// readings returns how many readings there were at each commit, oldest first.
func readings(t *testing.T, h *coppice.Session) (list []int) {
	t.Helper()
	for seq := uint64(1); seq <= h.Head().Seq; seq++ {
		var s gaugeState
		testutil.OK(t, testutil.Must(h.At(t.Context(), coppice.Target{Seq: seq}))(t).State(&s))
		list = append(list, s.Readings)
	}
	return list
}

// It ends when it is told to, in the middle of a wait.
func TestLiveEnds(t *testing.T) {
	b := build(t)
	st := openStore(t, b)
	ctx, cancel := context.WithCancel(t.Context())
	never := func(time.Duration) <-chan time.Time {
		cancel()
		return nil
	}
	testutil.OK(t, liveOn(st, Gauge, 5, never).Run(ctx))
	if seq := openSession(t, st, Gauge).Head().Seq; seq != 1 {
		t.Errorf("seq %d: it committed after its end", seq)
	}
}
