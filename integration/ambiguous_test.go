package integration

import (
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/coppice-go/coppice/backend"
	"github.com/coppice-go/coppice/integration/faultproxy"
	"github.com/coppice-go/coppice/internal/journal"
	"github.com/coppice-go/coppice/internal/journal/store"
)

// faults of one conditional PUT. Whatever the answer is, the commit is stored once and is acknowledged: none of these
// fails the turn.
var faults = []faultproxy.Fault{
	{Kind: faultproxy.LoseRequest},
	{Kind: faultproxy.LoseAnswer},
	{Kind: faultproxy.CutAnswer},
	{Kind: faultproxy.DelayAnswer, Delay: 20 * time.Millisecond},
	{Kind: faultproxy.Hold},
	{Kind: faultproxy.Refuse, Status: 409, Code: "ConditionalRequestConflict"},
	{Kind: faultproxy.Refuse, Status: 429, Code: "TooManyRequests"},
	{Kind: faultproxy.Refuse, Status: 429},
	{Kind: faultproxy.Refuse, Status: 500, Code: "InternalError"},
	{Kind: faultproxy.Refuse, Status: 502},
	{Kind: faultproxy.Refuse, Status: 503, Code: "SlowDown"},
	{Kind: faultproxy.Refuse, Status: 503, Code: "ServiceUnavailable"},
	{Kind: faultproxy.ReplaceAnswer, Status: 500, Code: "InternalError"},
	{Kind: faultproxy.ReplaceAnswer, Status: 502},
	{Kind: faultproxy.ReplaceAnswer, Status: 503, Code: "ServiceUnavailable"},
	{Kind: faultproxy.ReplaceAnswer, Status: 503, Code: "SlowDown"},
	{Kind: faultproxy.ReplaceAnswer, Status: 412, Code: "PreconditionFailed"},
	{Kind: faultproxy.ReplaceAnswer, Status: 409, Code: "ConditionalRequestConflict"},
	{Kind: faultproxy.ReplaceAnswer, Status: 403},
}

// Each fault once, and twice in succession, at the commit that creates a session and at one that replaces its
// checkpoint.
func TestAmbiguousPut(t *testing.T) {
	for _, f := range faults {
		for times := 1; times <= 2; times++ {
			for _, creates := range []bool{true, false} {
				t.Run(fmt.Sprintf("%s x%d creates=%v", f, times, creates), func(t *testing.T) {
					w, l := newWorld(t), newLedger()
					j := w.create(w.faulty)
					if !creates {
						l.acked["first"] = w.turn(j, "first").Commit.Commit
					}
					for range times {
						w.proxy.Script(f)
					}
					l.acked["turn"] = w.turn(j, "turn").Commit.Commit
					if w.proxy.Waiting() == times {
						t.Errorf("no fault was met: %v", w.proxy.Log())
					}
					w.proxy.Clear() // if the first fault applied the write there was no second try
					if _, err := w.proxy.Deliver(t.Context()); err != nil {
						t.Fatal(err)
					}
					if st := w.check(l); string(st.Doc.State) != `{"last":"turn"}` {
						t.Errorf("state %s", st.Doc.State)
					}
					l.acked["next"] = w.turn(j, "next").Commit.Commit // the handle stays usable
					w.check(l)
				})
			}
		}
	}
}

// A false 412, and a false 404, that a server or a proxy returns without having applied anything: the base is still the
// head, so the same bytes are sent again.
func TestFalseRefusal(t *testing.T) {
	for _, f := range []faultproxy.Fault{
		{Kind: faultproxy.Refuse, Status: 412, Code: "PreconditionFailed"},
		{Kind: faultproxy.Refuse, Status: 404, Code: "NoSuchKey"},
	} {
		t.Run(f.String(), func(t *testing.T) {
			w, l := newWorld(t), newLedger()
			j := w.create(w.faulty)
			l.acked["first"] = w.turn(j, "first").Commit.Commit
			w.proxy.Script(f)
			l.acked["turn"] = w.turn(j, "turn").Commit.Commit
			w.check(l)
		})
	}
}

// Our commit is applied, its answer is lost, and before we can read, others commit after it: few, so that the lineage
// has it; and so many that only the log has it.
func TestAppliedThenSuperseded(t *testing.T) {
	for _, others := range []int{1, 63, 64, 70, 150} {
		t.Run(fmt.Sprint(others), func(t *testing.T) {
			w, l := newWorld(t), newLedger()
			w.limits = journal.Limits{SealEntries: 40}
			j := w.create(w.faulty)
			l.acked["first"] = w.turn(j, "first").Commit.Commit
			w.proxy.Script(faultproxy.Fault{Kind: faultproxy.LoseAnswer, Then: func() {
				other := w.open(w.direct)
				for i := range others {
					id := fmt.Sprintf("other-%d", i)
					l.acked[id] = w.turn(other, id).Commit.Commit
				}
				if err := other.Close(t.Context()); err != nil {
					t.Error(err)
				}
			}})
			l.acked["turn"] = w.turn(j, "turn").Commit.Commit
			st := w.check(l)
			if want := fmt.Sprintf(`{"last":"other-%d"}`, others-1); string(st.Doc.State) != want {
				t.Errorf("state %s, want %s", st.Doc.State, want)
			}
			// It was acknowledged, and the next commit conflicts with the others.
			late := step(j, "late")
			if _, err := j.Commit(t.Context(), late); !errors.Is(err, journal.ErrConflict) {
				t.Errorf("the next commit: %v, want a conflict", err)
			}
			res, err := keepBoth(t.Context(), j, late)
			if err != nil || res.Kept == "" {
				t.Fatalf("kept: %+v, %v", res, err)
			}
			l.acked["late"] = res.Commit.Commit
			w.check(l)
		})
	}
}

// Our request is lost, and others commit meanwhile: that is a conflict, and nothing of the request is stored until it
// is committed again to be kept as a branch.
func TestLostRequestThenConflict(t *testing.T) {
	for _, others := range []int{1, 70} {
		w, l := newWorld(t), newLedger()
		j := w.create(w.faulty)
		l.acked["first"] = w.turn(j, "first").Commit.Commit
		w.proxy.Script(faultproxy.Fault{Kind: faultproxy.LoseRequest, Then: func() {
			other := w.open(w.direct)
			for i := range others {
				id := fmt.Sprintf("other-%d", i)
				l.acked[id] = w.turn(other, id).Commit.Commit
			}
		}})
		turn := step(j, "turn")
		_, err := j.Commit(t.Context(), turn)
		var f *store.Failure
		if !errors.Is(err, journal.ErrConflict) || !errors.As(err, &f) || f.Winner == nil {
			t.Fatalf("commit: %v", err)
		}
		l.failed["turn"] = err
		w.check(l)
		res, err := keepBoth(t.Context(), j, turn)
		if err != nil || !strings.HasPrefix(res.Kept, "conflict-") {
			t.Fatalf("kept: %+v, %v", res, err)
		}
		delete(l.failed, "turn")
		l.acked["turn"] = res.Commit.Commit
		w.check(l)
	}
}

// A session that another writer created first belongs to it, whatever the outcome of our own request.
func TestCreateMeetsAnother(t *testing.T) {
	for _, f := range []faultproxy.Fault{{}, {Kind: faultproxy.LoseRequest}, {Kind: faultproxy.Refuse, Status: 409, Code: "ConditionalRequestConflict"}} {
		w, l := newWorld(t), newLedger()
		l.acked["theirs"] = w.turn(w.create(w.direct), "theirs").Commit.Commit
		j := w.create(w.faulty)
		w.proxy.Script(f)
		_, err := j.Commit(t.Context(), step(j, "ours"))
		if !errors.Is(err, fs.ErrExist) || backend.OutcomeOf(err) != backend.NotApplied {
			t.Errorf("%s: %v (%s)", f, err, backend.OutcomeOf(err))
		}
		l.failed["ours"] = err
		w.check(l)
	}
}

// dead is a store that answers nothing from the first write on: that write is applied or not.
func dead(kind faultproxy.Kind) func(*http.Request) faultproxy.Fault {
	var wrote atomic.Bool
	return func(r *http.Request) faultproxy.Fault {
		switch {
		case r.Method == http.MethodPut:
			wrote.Store(true)
			return faultproxy.Fault{Kind: kind}
		case wrote.Load():
			return faultproxy.Fault{Kind: faultproxy.LoseAnswer}
		}
		return faultproxy.Fault{}
	}
}

// No answer arrives: the outcome is unknown, the handle refuses further commits (I11) without sending them, and Settle
// determines the outcome, applied or not.
func TestUnknown(t *testing.T) {
	for _, kind := range []faultproxy.Kind{faultproxy.LoseAnswer, faultproxy.LoseRequest} {
		for _, creates := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s creates=%v", kind, creates), func(t *testing.T) {
				w, l := newWorld(t), newLedger()
				w.limits.Attempts = 3
				j := w.create(w.faulty)
				if !creates {
					l.acked["first"] = w.turn(j, "first").Commit.Commit
				}
				w.proxy.Decide(dead(kind))
				_, err := j.Commit(t.Context(), step(j, "turn"))
				if !errors.Is(err, journal.ErrUnknown) {
					t.Fatalf("commit: %v, want unknown", err)
				}
				w.proxy.Decide(nil)
				if _, err := j.Commit(t.Context(), step(j, "too-early")); !errors.Is(err, journal.ErrInDoubt) || errors.Is(err, journal.ErrUnknown) {
					t.Errorf("I11: a commit after unknown: %v", err)
				}
				res, err := j.Settle(t.Context(), "")
				if err != nil {
					t.Fatalf("settle: %v", err)
				}
				l.acked["turn"] = res.Commit.Commit
				l.acked["next"] = w.turn(j, "next").Commit.Commit
				w.check(l)
			})
		}
	}
}

// A request is delayed in the network, its sender dies, and another host continues. When the request
// arrives its condition must fail.
func TestZombieRequest(t *testing.T) {
	w, l := newWorld(t), newLedger()
	w.limits.Attempts = 2
	j := w.create(w.faulty)
	l.acked["first"] = w.turn(j, "first").Commit.Commit
	w.proxy.Decide(dead(faultproxy.Hold))
	zombie := step(j, "zombie")
	_, err := j.Commit(t.Context(), zombie)
	if !errors.Is(err, journal.ErrUnknown) || w.proxy.Held() == 0 {
		t.Fatalf("commit: %v, %d requests are held", err, w.proxy.Held())
	}
	w.proxy.Decide(nil)
	other := w.open(w.direct)
	r, err := other.Commit(t.Context(), &journal.Step{Reason: "claim", Claim: true})
	if err != nil {
		t.Fatal(err)
	}
	statuses, err := w.proxy.Deliver(t.Context())
	if err != nil || len(statuses) == 0 {
		t.Fatalf("delivered %v, %v", statuses, err)
	}
	for _, status := range statuses {
		if status != http.StatusPreconditionFailed {
			t.Errorf("the zombie was answered %d", status)
		}
	}
	l.failed["zombie"] = errors.New("held until the head had moved")
	l.acked["after"] = w.turn(other, "after").Commit.Commit
	if st := w.check(l); st.Summary.Epoch != r.Commit.Epoch {
		t.Errorf("epoch %d, the claim had %d", st.Summary.Epoch, r.Commit.Epoch)
	}
	// The old host learns that it was fenced, and can still keep its turn.
	if _, err = j.Settle(t.Context(), ""); !errors.Is(err, journal.ErrFenced) {
		t.Errorf("settle: %v", err)
	}
	kept, err := keepBoth(t.Context(), j, zombie)
	if err != nil || kept.Kept == "" {
		t.Fatalf("kept: %+v, %v", kept, err)
	}
	delete(l.failed, "zombie")
	l.acked["zombie"] = kept.Commit.Commit
	w.check(l)
}

// Without a claim in between the delayed request may still be applied: unknown is neither yes nor no.
func TestZombieComesTrue(t *testing.T) {
	w, l := newWorld(t), newLedger()
	w.limits.Attempts = 2
	j := w.create(w.faulty)
	first := w.turn(j, "first")
	l.acked["first"] = first.Commit.Commit
	w.proxy.Decide(dead(faultproxy.Hold))
	if _, err := j.Commit(t.Context(), step(j, "zombie")); !errors.Is(err, journal.ErrUnknown) {
		t.Fatalf("commit: %v", err)
	}
	w.proxy.Decide(nil)
	before := w.open(w.direct).State().Summary
	if before.Seq != first.Commit.Seq {
		t.Errorf("seq %d before the request arrived", before.Seq)
	}
	if _, err := w.proxy.Deliver(t.Context()); err != nil {
		t.Fatal(err)
	}
	l.doubt["zombie"] = errors.New("unknown")
	if st := w.check(l); st.Summary.Seq != before.Seq+1 {
		t.Errorf("seq %d after it arrived", st.Summary.Seq)
	}
	res, err := j.Settle(t.Context(), "")
	if err != nil {
		t.Fatalf("settle: %v", err)
	}
	l.acked["zombie"] = res.Commit.Commit
	w.check(l)
}

// A read that fails in transit is retried; the commit path and a resume are not affected.
func TestFaultyReads(t *testing.T) {
	reads := func(r *http.Request) bool { return r.Method == http.MethodGet }
	for _, f := range []faultproxy.Fault{
		{Kind: faultproxy.LoseRequest},
		{Kind: faultproxy.LoseAnswer},
		{Kind: faultproxy.CutAnswer},
		{Kind: faultproxy.Refuse, Status: 500, Code: "InternalError"},
		{Kind: faultproxy.Refuse, Status: 503, Code: "SlowDown"},
		{Kind: faultproxy.Refuse, Status: 429},
		{Kind: faultproxy.ReplaceAnswer, Status: 502},
	} {
		t.Run(f.String(), func(t *testing.T) {
			w, l := newWorld(t), newLedger()
			l.acked["first"] = w.turn(w.create(w.direct), "first").Commit.Commit
			f.Match = reads
			w.proxy.Script(f, f, f)
			j := w.open(w.faulty)
			if w.proxy.Waiting() != 0 {
				t.Errorf("%d faults were not met", w.proxy.Waiting())
			}
			l.acked["turn"] = w.turn(j, "turn").Commit.Commit
			w.check(l)
		})
	}
}
