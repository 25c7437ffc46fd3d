// Package handle runs small programs of several goroutines on one handle of a session, and on several handles,
// through package coppice alone, and decides what becomes of every request that they make: done, refused, lost
// before or after it took effect, late, torn, given up by a cancelled caller, cut off by the death of the
// process. What every call said is held against the promises of doc.go.
//
// The scheduler is testing/synctest: once all goroutines are blocked, it chooses what happens next. So a
// schedule is a program and a list of small numbers, and a violation prints both. To see it again, or to search
// one program alone:
//
//	COPPICE_HANDLE='append f1 | 1:A,C | 1:A,C!; 0 2 1' go test ./internal/proof/handle -run TestProofHandle -v
//	COPPICE_HANDLE='append f1 | 1:A,C | 1:A,C!' go test ./internal/proof/handle -run TestProofHandle -v
package handle

import (
	"fmt"
	"os"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/coppice-go/coppice/internal/proof"
)

// replayEnv is a schedule to play alone, with the story of what happens, or a program to search alone.
const replayEnv = "COPPICE_HANDLE"

// TestProofHandle plays schedules: of small programs all, or those that deviate least from the usual order; then
// random ones. A schedule counts once, however often it is met.
func TestProofHandle(t *testing.T) {
	text := os.Getenv(replayEnv)
	if strings.Contains(text, ";") {
		replayOne(t, text)
		return
	}
	rep := proof.Begin(t, "handle")
	e := probe(t)
	t.Logf("calls %s; the second of these waits for a mutex while the first waits for the store: %v", e.Supported, e.Blocks)
	f := &findings{seen: map[uint64]struct{}{}, counts: map[string]int{}, found: map[string]violation{}, target: proof.Pick(t, quick, 24_000, 1_000_000)}
	list, seeds := f.tasks(e), uint64(4*f.target)
	if text != "" {
		list, seeds = []task{{Program: text, Limit: f.target}}, 0
	}
	var seed uint64
	pool(t.Context(), e, runtime.GOMAXPROCS(0), func() (task, bool) {
		if len(list) > 0 {
			job := list[0]
			list = list[1:]
			return job, true
		}
		seed += 100
		return task{First: seed - 100, Last: seed}, len(f.seen) < f.target && seed < seeds
	}, f.take, func(job task, err error) {
		rep.Violation("a worker died: %v\n\treplay: %s='%s'", err, replayEnv, lastOf(t, e, job))
	})
	rep.Explored(len(f.seen))
	t.Logf("%d programs searched, %d of them to the end; %d seeds", f.programs, f.complete, seed)
	f.report(t, rep, e)
}

// Schedules that this search has found violations in stay free of them.
func TestReplays(t *testing.T) {
	w, err := startWorker(t.Context(), probe(t))
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ what, recipe string }{
		{"an entry was stored twice: Rebase looked before a late PUT had landed", "replace f1 | 1:P,K,R; 5 0 0 1"},
		{"Rebase failed for good: an entry was appended after a turn in doubt", "append f1 | 1:Q,A; 4"},
		{"Rebase left the handle in doubt: nothing but a lost move was to be settled", "append f1 | 1:S | 1:W; 0 4"},
		{"a repeated turn's entries stayed in the handle", "append f1 | 1:Q | 2:Q,N; 0 0 6"},
		{"Rebase failed for good: what an entry grew from was dropped with a repeated turn", "append f1 | 1:Q | 2:Q,A; 0 0 6"},
		{"the same, beside what was appended before the turn", "replace f1 | 1:Q | 2:N,Q,L; 0 0 4"},
		{
			"Rebase failed for good: a navigation had lost in a Claim in doubt",
			"replace eager f2 c2 | 1:A,B,W,A | 1:A,K,M | 1:T,C!; 0 0 0 0 2 2 7 0 0 0 0 5",
		},
		{"a commit that joined its twin returned nil without what was appended before it", "append | 1:K | 1:A,K; 0 1 1"},
		{"a repeated turn did not count entries in doubt as pending", "replace both f1 | 1:K | 2:A,K; 0 0 0 5"},
		{"a turn in the queue replaced another writer's, when the one before it was kept", "append both | 1:W,C | 1:C; 0 0 0 0 0 1"},
		{"the same, when the one before it carried its entries", "replace both | 1:E | 2:C | 1:C; 1 0 0 1"},
		{"a navigation that was never sent was reported as in doubt", "append f1 | 1:C | 1:S; 0 1 3"},
		{"a turn with the key of one in doubt and other content was reported as in doubt", "append f1 | 1:C | 1:Q | 1:K; 0 2 1 0 2"},
		{"a kept line that was the newest had the session's document", "append both d1 | 1:B | 1:J; 1 0 6"},
		{"a Switch with nothing to do named a commit that power loss took", "append power f1 | 1:S,D,S; 2"},
		{"Rebase failed until Reload: two contents with one key were kept", "replace | 1:W,K | 1:S | 1:J; 0 1 0 2 1"},
		{
			"a turn joined a request that was given up, and got its caller's error",
			"replace new reads c1 | 1:K | 1:K!; 1 2 1",
		},
		{
			"a repeated turn did not name the branch that keeps what was appended before it",
			"append both d1 | 1:K | 2:A,K; 0 3",
		},
		{
			"the judge took a stored turn for one that a request carried",
			"replace f1 c1 | 1:A,R! | 1:J,K; 1 0 0 0 4 0 0 1 2",
		},
	} {
		r, _, err := w.do(task{Replay: c.recipe})
		if err != nil {
			t.Fatalf("%s: %v", c.what, err)
		}
		for _, v := range r.Found {
			t.Errorf("%s: %s: %s\n\treplay: %s='%s'", c.what, v.Rule, v.Text, replayEnv, c.recipe)
		}
	}
	if err := w.stop(); err != nil {
		t.Error(err)
	}
}

// lastOf is the schedule at which a worker dies, or hangs, that does a task.
func lastOf(t *testing.T, e engine, job task) string {
	t.Helper()
	w, err := startWorker(t.Context(), e)
	if err != nil {
		return err.Error()
	}
	job.Verbose = true
	_, last, err := w.do(job)
	if err == nil {
		_ = w.stop()
		return "not seen again"
	}
	return last
}

// findings are what all workers found.
type findings struct {
	target             int
	seen               map[uint64]struct{}
	counts             map[string]int
	found              map[string]violation
	programs, complete int
}

// tasks are the programs that are searched before random ones are drawn.
func (f *findings) tasks(e engine) (list []task) {
	pairs, few := parseAll(e, pairs()), parseAll(e, deep)
	for _, p := range few {
		limit := f.target / 5 / len(few)
		if p.big { // five times as slow
			limit /= 5
		}
		list = append(list, task{Program: p.String(), Limit: limit})
	}
	for _, p := range pairs {
		list = append(list, task{Program: p.String(), Limit: f.target / 2 / len(pairs)})
	}
	return list
}

func (f *findings) take(job task, r result) {
	for _, h := range r.Hashes {
		f.seen[h] = struct{}{}
	}
	for rule, n := range r.Counts {
		f.counts[rule] += n
	}
	for _, v := range r.Found {
		if old, ok := f.found[v.Rule]; !ok || v.size() < old.size() {
			f.found[v.Rule] = v
		}
	}
	if job.Program != "" {
		f.programs++
		if r.Complete {
			f.complete++
		}
	}
}

// shown is how many violations a report prints itself.
const shown = 10

// report makes each violation as small as it can and prints it, one for each rule.
func (f *findings) report(t *testing.T, rep *proof.Report, e engine) {
	t.Helper()
	var rules []string
	for rule := range f.found {
		rules = append(rules, rule)
	}
	slices.Sort(rules)
	left := rules
	pool(t.Context(), e, runtime.GOMAXPROCS(0), func() (task, bool) {
		if len(left) == 0 {
			return task{}, false
		}
		job := task{Minimise: []violation{f.found[left[0]]}}
		left = left[1:]
		return job, true
	}, func(_ task, r result) {
		for _, v := range r.Found {
			f.found[v.Rule] = v
		}
	}, func(job task, err error) {
		t.Logf("a worker died while it made %q smaller: %v", job.Minimise[0].Rule, err)
	})
	for i, rule := range rules {
		v := f.found[rule]
		text := fmt.Sprintf("%s (%d schedules)\n\t%s\n\treplay: %s='%s'", rule, f.counts[rule], v.Text, replayEnv, recipe(v.Program, v.Choices))
		for _, step := range v.Story {
			text += "\n\t   " + step
		}
		if i >= shown {
			t.Log(text)
		}
		rep.Violation("%s", text)
	}
}

// replayOne plays one schedule and prints its story.
func replayOne(t *testing.T, text string) {
	p, choices, err := parseRecipe(text)
	if err != nil {
		t.Fatal(err)
	}
	e := probe(t)
	synctest.Test(t, func(t *testing.T) {
		s, err := newSearcher(e)
		if err != nil {
			t.Fatal(err)
		}
		r := s.replay(p, choices)
		for _, step := range r.story {
			t.Log(step)
		}
		for _, c := range r.records {
			t.Logf("%s: moments %d to %d, receipt %+v, ids %v", c, c.begin, c.end, c.receipt, c.ids)
		}
		for _, v := range r.bad {
			t.Errorf("%s: %s", v.Rule, v.Text)
		}
	})
}

// The judge notices a store that breaks its contract: what the engine then says is not true.
func TestJudgeNotices(t *testing.T) {
	w, err := startWorker(t.Context(), engine{Supported: allOps})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ program, rule string }{
		{"append l1 | 1:A,C", "acknowledged entry missing"},
		{"replace l1 | 1:C", "receipt"},
		{"append f1 l2 | 1:A,C", "refused document stored"},
		{"replace f1 l2 | 1:C", "refused document stored"},
		{"replace l3 | 1:A,C | 2:A,C", "receipt"},
		{"append power l4 | 1:A,C", "power loss"},
	} {
		r, _, err := w.do(task{Program: c.program, Limit: 200})
		if err != nil {
			t.Fatal(err)
		}
		var rules []string
		for _, v := range r.Found {
			rules = append(rules, v.Rule)
		}
		if !slices.Contains(rules, c.rule) {
			t.Errorf("%s: found %q, want %q", c.program, rules, c.rule)
		}
	}
	if err := w.stop(); err != nil {
		t.Error(err)
	}
}
