package integration

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/coppice-go/coppice/internal/check"
	"github.com/coppice-go/coppice/internal/erase"
	"github.com/coppice-go/coppice/internal/fault"
	"github.com/coppice-go/coppice/internal/journal"
	"github.com/coppice-go/coppice/internal/proof"
)

// A process that erases an entry dies at each of its changes, before it or before its answer. Another writer stores
// turns, and the next call completes the erasure: no object has the text, and all other entries are there.
func TestEraseOnS3(t *testing.T) {
	w := newWorld(t)
	w.limits = journal.Limits{SealEntries: 3, Attempts: 20}
	w.background = func(job func()) { job() } // what it uploads during an erasure stays until a collection
	l := newLedger()
	live := w.create(w.direct)
	turn := func(id string) {
		t.Helper()
		l.acked[id] = w.turn(live, id).Commit.Commit
	}
	turn("first")
	if _, err := live.Snapshot(t.Context(), live.State(), "kept"); err != nil {
		t.Fatal(err)
	}
	tried := 0
	for _, how := range []fault.Kind{fault.Before, fault.After} {
		for n := 1; ; n++ {
			id, text := fmt.Sprintf("%v-%d", how, n), fmt.Sprintf("zorbalonquist%d%v", n, how)
			s := step(live, id)
			s.Entries[0].Raw = bytes.Replace(s.Entries[0].Raw, []byte("text of "+id), []byte(text), 1)
			r, err := live.Commit(t.Context(), s)
			if err != nil {
				t.Fatal(err)
			}
			l.acked[id] = r.Commit.Commit
			for i := range 4 { // so that a sealed segment has it
				turn(fmt.Sprintf("%s-%d", id, i))
			}
			rules, changes := proof.DeadFrom(n, how)
			run := func(cfg journal.Config) error {
				_, err := erase.Run(t.Context(), cfg, erase.Target{Entries: []string{id}}, "", erase.Calls{})
				return err
			}
			_ = run(w.config(fault.New(w.direct, 1, rules...)))
			_, err = live.Commit(t.Context(), step(live, id+"-live"))
			if err != nil {
				err = live.Reload(t.Context())
			}
			if err == nil {
				turn(id + "-next")
				err = run(w.config(w.direct))
			}
			if err != nil {
				t.Fatalf("%s: %v", id, err)
			}
			if p, err := erase.Prove(t.Context(), w.direct, text); err != nil || len(p.Found) > 0 {
				t.Errorf("%s: the text is in %v, %v", id, p.Found, err)
			}
			if *changes < n {
				break
			}
			tried++
		}
	}
	if tried < 12 {
		t.Errorf("an erasure makes %d changes", tried)
	}
	l.deaths = true // what the live writer tried meanwhile may be there
	w.check(l)
	rep, err := check.Verify(t.Context(), w.config(w.direct), true)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range rep.Problems {
		if p.Kind.Damage() {
			t.Errorf("verify: %v", p)
		}
	}
}
