package journal

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"
	"testing"

	"github.com/coppice-go/coppice/backend"
	"github.com/coppice-go/coppice/backend/memory"
	"github.com/coppice-go/coppice/internal/fault"
	"github.com/coppice-go/coppice/internal/testutil"
)

// life is one scripted life of a session on which every kind of call is made. It continues after each failure, as a
// program would, and records the answers.
type life struct {
	w   *world
	l   *ledger
	ctx context.Context
}

// commit makes a turn. If it fails it asks for its outcome, and keeps it as a branch where it lost.
func (v *life) commit(j *Journal, id string, step *Step) {
	e := say(j, id, "text of "+id)
	step.Reason, step.Entries, step.Edit = "turn", []*Entry{e}, setState(fmt.Sprintf(`{"at":%q}`, id))
	r, err := j.Commit(v.ctx, step)
	if errors.Is(err, ErrInDoubt) { // of something before it: this turn was not sent, and is dropped
		v.l.failed[id] = true
		_, _ = j.Settle(v.ctx, "")
		return
	}
	for range 3 {
		switch {
		case errors.Is(err, ErrUnknown):
			r, err = j.Settle(v.ctx, "")
		case errors.Is(err, ErrConflict), errors.Is(err, ErrFenced):
			step.KeepBoth, step.KeepFenced = true, true
			r, err = j.Commit(v.ctx, step)
		case err != nil && backend.OutcomeOf(err) == backend.NotApplied:
			v.l.failed[id] = true
			return
		}
	}
	if err != nil {
		v.l.doubt[id] = true
		_ = j.Reload(v.ctx)
		return
	}
	v.l.acked[id] = r.Commit.Commit
	if r.Kept != "" {
		_ = j.Reload(v.ctx)
	}
}

// open opens a handle; what fails for once is asked again.
func (v *life) open() *Journal {
	for range 3 {
		if j, err := Open(v.ctx, v.w.config("s1")); err == nil {
			return j
		}
	}
	return nil
}

func (v *life) run(settle bool) {
	first := v.w.create("s1")
	v.commit(first, "a", &Step{})
	j := v.open()
	if j == nil {
		return // its creation failed
	}
	for i := range 14 { // seals, folds, rolls, checkpoints
		v.commit(j, fmt.Sprintf("b%d", i), &Step{})
	}
	v.commit(first, "kept", &Step{KeepBoth: true})
	v.commit(j, "rebased", &Step{})
	sum, err := j.PutBlob(v.ctx, []byte("an image"))
	if err == nil {
		_, _ = j.GetBlob(v.ctx, j.State(), sum)
	}
	if sum, err = j.PutOriginal(v.ctx, strings.NewReader("an original")); err == nil {
		_ = j.WriteOriginal(v.ctx, sum, io.Discard)
	}
	if info, err := j.Snapshot(v.ctx, j.State(), "tag"); err == nil {
		for range j.Snapshots(v.ctx) {
		}
		_, _ = j.ReadSnapshot(v.ctx, info.ID)
		_ = j.DropSnapshot(v.ctx, info.ID)
	}
	v.read(j)
	if settle {
		_ = j.Tidy(v.ctx)
	}
	_, _ = first.Commit(v.ctx, &Step{Reason: "claim", Claim: true})
	v.commit(j, "fenced", &Step{})
	_ = first.Close(v.ctx)
	_ = j.Close(v.ctx)
	if again := v.open(); again != nil {
		v.commit(again, "last", &Step{})
		_ = again.Close(v.ctx)
	}
}

// read asks for all that can be asked for.
func (v *life) read(j *Journal) {
	st := j.State()
	for range j.Lines(v.ctx, st, nil) {
	}
	for range j.Skeletons(v.ctx, st, 0) {
	}
	for range j.Log(v.ctx, st, st.Summary.Seq) {
	}
	for range j.Since(v.ctx, st, -1, nil) {
	}
	_, _ = j.At(v.ctx, st, 1)
	_, _ = j.At(v.ctx, st, st.Summary.Seq)
	_, _ = j.Latest(v.ctx)
	_, _ = j.Changed(v.ctx, st)
}

// Every call that a whole life makes fails once, in every way: nothing acknowledged is lost, nothing that
// was reported as failed is there (I1, I2), and the session opens.
func TestEveryCallFails(t *testing.T) {
	testutil.SkipLong(t)
	step := 1
	if testing.Short() {
		step = 11
	}
	for _, kind := range []string{"replace", "append"} {
		for _, way := range []fault.Rule{
			{Kind: fault.Before, Outcome: backend.NotApplied},
			{Kind: fault.Before},
			{Kind: fault.After},
			{Kind: fault.Before, Outcome: backend.NotApplied, Count: 3, Err: backend.ErrBusy},
			{Kind: fault.Before, Outcome: backend.NotApplied, Count: 40},
		} {
			t.Run(fmt.Sprintf("%s/%v/%v/%d", kind, way.Kind, way.Outcome, way.Count), func(t *testing.T) {
				for at := 0; ; at += step {
					if calls := failAt(t, kind, way, at); at >= calls {
						t.Logf("%d calls", calls)
						break
					}
					if t.Failed() {
						t.Fatalf("call %d", at)
					}
				}
			})
		}
	}
}

// failAt lives one life in which the call with this number fails, and returns how many calls there were.
func failAt(t *testing.T, kind string, way fault.Rule, at int) (calls int) {
	var inner backend.Backend = memory.New()
	if kind == "append" {
		inner = memory.NewAppender()
	}
	w := newWorld(t, inner)
	w.inline = true
	w.lim = Limits{SealEntries: 4, RollEntries: 6, PublishCommits: 3, Keyframe: 4, WholeDoc: 8, Attempts: 4}
	way.Skip = at
	counts := fault.Rule{Count: -1, When: func(fault.Call) bool { calls++; return false }}
	faulty := *w
	faulty.b = fault.New(inner, 1, counts, way)
	v := &life{w: &faulty, l: newLedger(), ctx: t.Context()}
	v.run(at%2 == 0)
	v.l.check(t, w, "s1")
	if n := len(v.l.acked); at >= calls && n < 17 {
		t.Errorf("a life in which nothing fails has %d turns", n)
	}
	j, err := Open(t.Context(), w.config("s1"))
	switch {
	case errors.Is(err, fs.ErrNotExist) && len(v.l.acked) == 0:
	case err != nil:
		t.Errorf("call %d: reopen: %v", at, err)
	default:
		w.turn(j, "after", `1`)
		_ = j.Close(t.Context())
	}
	_ = Delete(t.Context(), faulty.config("s1"))
	return calls
}
