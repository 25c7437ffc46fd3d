package journal

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/coppice-go/coppice/backend"
	"github.com/coppice-go/coppice/backend/memory"
	"github.com/coppice-go/coppice/internal/fault"
	"github.com/coppice-go/coppice/internal/journal/state"
	"github.com/coppice-go/coppice/internal/journal/store"
	"github.com/coppice-go/coppice/internal/segment"
	"github.com/coppice-go/coppice/internal/testutil"
)

// ledger is what callers were told, held against what the history holds in the end.
type ledger struct {
	acked  map[string]string // entry -> commit that was acknowledged for it
	failed map[string]bool   // entries that were reported as not applied and dropped
	doubt  map[string]bool   // entries whose outcome is unknown to their caller
}

func newLedger() *ledger {
	return &ledger{acked: map[string]string{}, failed: map[string]bool{}, doubt: map[string]bool{}}
}

// check reads the whole history by a fresh handle on a store without faults.
func (l *ledger) check(t *testing.T, w *world, id string) {
	t.Helper()
	j, err := Open(t.Context(), w.config(id))
	if err != nil {
		if len(l.acked) == 0 {
			return
		}
		t.Fatalf("reopen: %v", err)
	}
	defer j.Close(t.Context())
	st := j.State()
	times, commits := map[string]int{}, map[string]int{}
	seq := int64(-1)
	for b, err := range j.Since(t.Context(), st, -1, nil) {
		if err != nil {
			t.Fatalf("history: %v", err)
		}
		seq++
		if int64(b.Commit.Seq) != seq {
			t.Fatalf("commit %d where %d is due", b.Commit.Seq, seq)
		}
		commits[b.Commit.Commit]++
		for _, line := range b.Lines {
			if e, err := segment.Entry(line.Ord, line.Raw); err == nil && !line.Commit {
				times[e.ID]++
			}
		}
	}
	if seq != int64(st.Summary.Seq) {
		t.Fatalf("history ends with %d, the head is %d", seq, st.Summary.Seq)
	}
	for e, c := range l.acked {
		if times[e] != 1 || commits[c] != 1 {
			t.Errorf("I1: entry %s was acknowledged by commit %s, and stands %d and %d times in the history", e, c, times[e], commits[c])
		}
	}
	for e := range l.failed {
		if times[e] != 0 {
			t.Errorf("I2: entry %s was reported as not applied and is in the history", e)
		}
	}
	for e, n := range times {
		if n > 1 {
			t.Errorf("entry %s stands %d times in the history", e, n)
		}
	}
}

// settle asks until the outcome of a turn that failed is known, and books it. A turn that lost is kept as a branch, or
// dropped. It returns nil where the handle is of no more use.
func (l *ledger) settle(ctx context.Context, rng *rand.Rand, j *Journal, step *Step, err error) *Journal {
	id := step.Entries[0].ID
	for range 4 {
		var r Outcome
		drop, keep := rng.IntN(4) == 0, false
		switch {
		case errors.Is(err, ErrUnknown) && drop:
			l.doubt[id] = true
			return reloaded(ctx, j)
		case errors.Is(err, ErrUnknown):
			r, err = j.Settle(ctx, "")
		case (errors.Is(err, ErrConflict) || errors.Is(err, ErrFenced)) && !drop:
			step.KeepBoth, step.KeepFenced, keep = true, true, true
			r, err = j.Commit(ctx, step)
		case errors.Is(err, ErrConflict), errors.Is(err, ErrFenced):
			l.failed[id] = true
			return reloaded(ctx, j)
		case backend.OutcomeOf(err) == backend.NotApplied:
			l.failed[id] = true
			return j
		default:
			l.doubt[id] = true
			return nil
		}
		if err == nil {
			l.acked[id] = r.Commit.Commit
			if keep && rng.IntN(2) == 0 { // else the handle is behind: what follows is kept as well
				return reloaded(ctx, j)
			}
			return j
		}
	}
	l.doubt[id] = true
	return nil
}

// reloaded is a handle at the newest head, nil where that cannot be read.
func reloaded(ctx context.Context, j *Journal) *Journal {
	if j.Reload(ctx) != nil {
		return nil
	}
	return j
}

// Three writers on one session, over a store that drops, loses, delays and repeats: what is acknowledged
// is in the history once, what failed is not (I1, I2).
func TestChaos(t *testing.T) {
	testutil.SkipLong(t)
	seeds := 100
	if testing.Short() {
		seeds = 24 // of each kind
	}
	for _, kind := range []string{"replace", "append"} {
		t.Run(kind, func(t *testing.T) {
			for seed := range seeds {
				chaos(t, kind, uint64(seed))
				if t.Failed() {
					t.Fatalf("replay: -run 'TestChaos/%s' with seed %d", kind, seed)
				}
			}
		})
	}
}

func chaos(t *testing.T, kind string, seed uint64) {
	var inner backend.Backend = memory.New()
	if kind == "append" {
		inner = memory.NewAppender()
	}
	w := newWorld(t, inner)
	w.lim = Limits{SealEntries: 6, RollEntries: 8, PublishCommits: 3, Keyframe: 4, WholeDoc: 8, Attempts: 4}
	first := w.create("s1")
	w.turn(first, "root", `0`)
	_ = first.Close(t.Context())
	rules := fault.Chaos(0.15)
	if kind == "append" {
		// A disk does not apply what a call did after the call is over.
		rules = slices.DeleteFunc(rules, func(r fault.Rule) bool { return r.Kind == fault.Late })
	}
	f := fault.New(inner, seed, rules...)
	faulty := *w
	faulty.b = f
	rng := rand.New(rand.NewPCG(seed, 1))
	l := newLedger()
	handles := make([]*Journal, 3)
	ctx := t.Context()
	for i := range 40 {
		k := rng.IntN(len(handles))
		if handles[k] == nil {
			cfg := faulty.config("s1")
			cfg.Go = func(job func()) { job() } // one order of events for each seed
			j, err := Open(ctx, cfg)
			if err != nil {
				continue
			}
			handles[k] = j
		}
		j := handles[k]
		switch rng.IntN(12) {
		case 0:
			_ = j.Close(ctx)
			handles[k] = nil
			continue
		case 1:
			_ = f.Deliver(ctx)
			continue
		case 2:
			if _, err := j.Commit(ctx, &Step{Reason: "claim", Claim: true}); err != nil && j.InDoubt() {
				handles[k] = reloaded(ctx, j)
			}
			continue
		}
		e := say(j, fmt.Sprintf("e%02d-%d", i, k), "x")
		step := &Step{
			Reason: "turn", Entries: []*Entry{e}, Edit: setState(fmt.Sprintf(`{"turn":%d}`, i)), KeepBoth: rng.IntN(3) == 0,
		}
		r, err := j.Commit(ctx, step)
		if err == nil {
			l.acked[e.ID] = r.Commit.Commit
			continue
		}
		if handles[k] = l.settle(ctx, rng, j, step, err); handles[k] == nil {
			_ = j.Close(ctx)
		}
	}
	for _, j := range handles {
		if j != nil {
			_ = j.Close(ctx)
		}
	}
	_ = f.Deliver(ctx)
	l.check(t, w, "s1")
}

// Power is lost at a random stage of a random write, after syncs that failed now and then, and twice more
// during what follows: the session opens again, with all that was acknowledged, and takes commits (I13).
func TestPowerLoss(t *testing.T) {
	testutil.SkipLong(t)
	seeds := 200
	if testing.Short() {
		seeds = 60
	}
	for seed := range seeds {
		powerLoss(t, uint64(seed))
		if t.Failed() {
			t.Fatalf("replay with seed %d", seed)
		}
	}
}

// plug is the power supply of a store, and the disk below it.
type plug struct {
	rng     *rand.Rand
	store   *memory.Appender
	left    int    // stages until the power goes
	seed    uint64 // of the crash
	crashed *memory.Appender
}

func (p *plug) hook(s memory.Step) error {
	if p.left--; p.left == 0 && p.crashed == nil {
		p.crashed = p.store.Crash(p.seed)
	}
	switch {
	case p.crashed != nil:
		return errors.New("the power is off")
	case s.Stage == memory.Visible && p.rng.IntN(8) == 0:
		return errors.New("sync failed")
	case s.Stage == memory.Begun && s.Op == "append" && p.rng.IntN(16) == 0:
		return memory.Short(p.rng.IntN(s.Bytes + 1))
	}
	return nil
}

func powerLoss(t *testing.T, seed uint64) {
	rng := rand.New(rand.NewPCG(seed, 2))
	p := &plug{rng: rng, store: memory.NewAppender()}
	l := newLedger()
	for life := range 3 {
		w := newWorld(t, p.store)
		w.rand = &lockedReader{r: rand.NewChaCha8([32]byte{byte(seed), byte(seed >> 8), byte(life)})}
		w.lim = Limits{RollEntries: 8, PublishCommits: 3, Keyframe: 4, WholeDoc: 8, Attempts: 3}
		p.left, p.seed, p.crashed = 1+rng.IntN(60), rng.Uint64(), nil
		p.store.SetHook(p.hook)
		for part := range 3 {
			live(t, w, l, p, life*10+part)
		}
		if p.crashed == nil {
			p.crashed = p.store.Crash(p.seed)
		}
		p.store = p.crashed
		l.check(t, newWorld(t, p.store), "s1")
		if t.Failed() {
			return
		}
	}
}

// live is a process that commits until something fails for good.
func live(t *testing.T, w *world, l *ledger, p *plug, life int) {
	cfg := w.config("s1")
	cfg.Go = func(job func()) { job() } // one order of events for each seed
	j, err := Open(t.Context(), cfg)
	if err != nil {
		j = Create(cfg, state.Genesis{Header: header("s1")})
	}
	for i := range 8 {
		e := say(j, fmt.Sprintf("e%d-%d", life, i), "x")
		r, err := j.Commit(t.Context(), &Step{Reason: "turn", Entries: []*Entry{e}, Edit: setState(fmt.Sprintf(`{"life":%d,"turn":%d}`, life, i))})
		if err != nil {
			if errors.Is(err, store.ErrCorrupt) {
				t.Errorf("commit %d of life %d: %v", i, life, err)
			}
			if r, serr := j.Settle(t.Context(), ""); p.crashed == nil && errors.Is(err, ErrUnknown) && serr == nil {
				l.acked[e.ID] = r.Commit.Commit
				continue
			}
			l.doubt[e.ID] = true
			return // dies without Close
		}
		if p.crashed == nil {
			l.acked[e.ID] = r.Commit.Commit
		}
	}
	if p.rng.IntN(2) == 0 {
		_ = j.Close(t.Context())
	}
}
