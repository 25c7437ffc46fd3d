// Package handle runs small programs of several goroutines on one handle of a session, and on several handles, through
// package coppice alone, and chooses the outcome of each of their requests: done, refused, lost before or after it took
// effect, late, torn, given up by a cancelled caller, cut off by the death of the process. The answers of all calls are
// compared with the promises of doc.go.
//
// The scheduler is testing/synctest: once all goroutines are blocked, it chooses the next event. So a schedule is a
// program and a list of small numbers, and a violation prints both. To repeat it, or to search one program alone:
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

// replayEnv is a schedule to play alone, with a log of its events, or a program to search alone.
const replayEnv = "COPPICE_HANDLE"

// TestProofHandle plays schedules: of small programs all, or those that deviate least from the default order; then
// random ones. A schedule counts once, however often it occurs.
func TestProofHandle(t *testing.T) {
	text := os.Getenv(replayEnv)
	if strings.Contains(text, ";") {
		replayOne(t, text)
		return
	}
	rep := proof.Begin(t, "handle")
	f := &findings{
		seen: map[uint64]struct{}{}, counts: map[string]int{}, found: map[string]violation{},
		target: proof.Pick(t, 2000, 14_000, 1_000_000),
	}
	list, seeds := f.tasks(), uint64(4*f.target)
	if text != "" {
		list, seeds = []task{{Program: text, Limit: f.target}}, 0
	}
	var seed uint64
	pool(t.Context(), runtime.GOMAXPROCS(0), func() (task, bool) {
		if len(list) > 0 {
			job := list[0]
			list = list[1:]
			return job, true
		}
		seed += 100
		return task{First: seed - 100, Last: seed}, len(f.seen) < f.target && seed < seeds
	}, f.take, func(job task, err error) {
		rep.Violation("a worker died: %v\n\treplay: %s='%s'", err, replayEnv, lastOf(t, job))
	})
	rep.Explored(len(f.seen))
	t.Logf("%d programs searched, %d of them to the end; %d seeds", f.programs, f.complete, seed)
	f.report(t, rep)
}

// Schedules in which this search once found violations stay free of them.
func TestReplays(t *testing.T) {
	w, err := startWorker(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ what, recipe string }{
		{"Settle had no step, after a retry that could not end its doubt", "append f2 d1 | 1:K,Q; 4 0 3"},
		{"a move with nothing to do on a handle that is behind named the winner's commit", "append | 1:C | 2:C,T; "},
		{
			"Settle failed where another writer committed while it confirmed what it had read",
			"append eager f2 d1 | 1:M,V | 2:T!,C,R; 0 0 0 0 0 0 0 13 0",
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

// lastOf returns the schedule at which a worker dies, or hangs, during a task.
func lastOf(t *testing.T, job task) string {
	t.Helper()
	w, err := startWorker(t.Context())
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

// findings are those of all workers.
type findings struct {
	target             int
	seen               map[uint64]struct{}
	counts             map[string]int
	found              map[string]violation
	programs, complete int
}

// tasks returns the programs that are searched before random ones are drawn.
func (f *findings) tasks() (list []task) {
	for _, text := range deep {
		limit := f.target / 5 / len(deep)
		if strings.Contains(text, " big ") { // five times as slow
			limit /= 5
		}
		list = append(list, task{Program: text, Limit: limit})
	}
	two := pairs()
	for _, text := range two {
		list = append(list, task{Program: text, Limit: f.target / 2 / len(two)})
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

// report prints the smallest violation of each rule.
func (f *findings) report(t *testing.T, rep *proof.Report) {
	t.Helper()
	var rules []string
	for rule := range f.found {
		rules = append(rules, rule)
	}
	slices.Sort(rules)
	for _, rule := range rules {
		v := f.found[rule]
		text := fmt.Sprintf("%s (%d schedules)\n\t%s\n\treplay: %s='%s'",
			rule, f.counts[rule], v.Text, replayEnv, recipe(v.Program, v.Choices))
		for _, step := range v.Story {
			text += "\n\t   " + step
		}
		rep.Violation("%s", text)
	}
}

// replayOne plays one schedule and prints its log.
func replayOne(t *testing.T, text string) {
	p, choices, err := parseRecipe(text)
	if err != nil {
		t.Fatal(err)
	}
	synctest.Test(t, func(t *testing.T) {
		s, err := newSearcher()
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

// The judge detects a store that breaks its contract: the answers of the engine are then not true.
func TestJudgeNotices(t *testing.T) {
	w, err := startWorker(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ program, rule string }{
		{"append l1 | 1:A,C", "unreadable"},
		{"replace l1 | 1:C", "acknowledged and lost"},
		{"append f1 l2 | 1:A,C", "refused turn stored"},
		{"replace f1 l2 | 1:C", "refused turn stored"},
		{"replace l3 | 1:A,C | 2:A,C", "acknowledged and lost"},
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
