// Package damage damages sessions and repairs them: sessions of every imported format, used in every way, on stores of
// every kind; one object, or two at once. Reading before the repair must return correct data or an error; the repair
// must restore every byte that still exists, end free of damage, and leave a usable session.
//
// The rules are the promises of doc.go, docs/design.md and the help of the command; they do not depend on the
// implementation of the repair. A violation prints its trial, which can be repeated:
//
//	COPPICE_DAMAGE='append codex closed; flip plain 0 1234' go test ./internal/proof/damage -run TestProofRepair -v
package damage

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"

	coppice "github.com/coppice-go/coppice"
	"github.com/coppice-go/coppice/backend"
	"github.com/coppice-go/coppice/backend/local"
	"github.com/coppice-go/coppice/internal/proof"
	"github.com/coppice-go/coppice/internal/testutil"
)

// pending makes findings a list in the log instead of failures, while the repair does not keep every promise.
const pending = false

// replayEnv is a trial to run alone, or a range of trials: "FROM-TO" by their numbers.
const replayEnv = "COPPICE_DAMAGE"

func diskIn(dir string) (backend.Backend, error) { return local.Open(dir, nil) }

// world has every session to be damaged, each built once.
type world map[string]map[string]*origin

// origin returns the session of a trial; that of a disk is the same as of the kind "append".
func (w world) origin(t *testing.T, c *trial) *origin {
	t.Helper()
	kind := c.kind
	if kind == "disk" {
		kind = "append"
	}
	name := kind + " " + c.source
	if w[name] == nil {
		w[name] = live(t, kind, c.source)
		other := stranger(t, kind)
		for _, o := range w[name] {
			o.other = other
			o.learn(t)
		}
	}
	if w[name][c.stage] == nil {
		c.stage = "closed" // the session has no twins
	}
	return w[name][c.stage]
}

// learn reads the session before it is damaged. It is intact, and a repair finds nothing to do.
func (o *origin) learn(t *testing.T) {
	t.Helper()
	b := testutil.Must(storeOf(o.kind, "", o.objects))(t)
	st := testutil.Must(coppice.New(b, options("judge", 5)))(t)
	o.truth = look(st, sid, scope{all: true, contexts: true})
	for _, err := range []error{o.truth.openErr, o.truth.fileErr, o.truth.readErr, o.truth.logErr, o.truth.ctxErr, o.truth.state.err} {
		testutil.OK(t, err)
	}
	o.stored = testutil.Must(linesOf(b, sid))(t)
	report := testutil.Must(st.Verify(ctx, "", true))(t)
	if bad := damaged(report); len(bad) > 0 {
		t.Fatalf("%s %s %s is damaged before it is damaged: %v", o.kind, o.source, o.stage, bad)
	}
	testutil.OK(t, st.Close())
}

// scratch returns a folder in memory if there is one: power loss is tested by the suite crash.
func scratch(t *testing.T) string {
	t.Helper()
	if dir, err := os.MkdirTemp("/dev/shm", "coppice-damage"); err == nil { //nolint:usetesting // a folder in memory
		t.Cleanup(func() { testutil.OK(t, os.RemoveAll(dir)) })
		return dir
	}
	return t.TempDir()
}

// TestProofRepair damages sessions. The count is that of damaged sessions that were repaired and judged.
func TestProofRepair(t *testing.T) {
	small(false)
	all, dir := world{}, scratch(t)
	text := os.Getenv(replayEnv)
	var seed, to uint64
	if _, err := fmt.Sscanf(text, "%d-%d", &seed, &to); err != nil && text != "" {
		c := testutil.Must(parse(text))(t)
		o := all.origin(t, &c)
		_, hit := c.apply(o)
		t.Logf("%s: damaged are %s", c, strings.Join(slices.Sorted(maps.Keys(hit)), ", "))
		bad, _, err := try(c, o, filepath.Join(dir, "0"))
		testutil.OK(t, err)
		for _, f := range bad {
			t.Errorf("%s: %s", f.rule, f.text)
		}
		return
	}
	rep := proof.Begin(t, "repair")
	from := sources
	if proof.Asked(t) == proof.Quick {
		from = []string{"codex", "pi-torn", "made"}
	}
	trials := make([]trial, proof.Pick(t, 100, 300, 50_000))
	if to > seed {
		trials, from = make([]trial, to-seed), sources
	}
	if dir := os.Getenv(filesEnv); dir != "" {
		from = realFiles(t, dir)
	}
	for i := range trials {
		trials[i] = draw(seed+uint64(i), from)
		o := all.origin(t, &trials[i])
		trials[i] = trials[i].settle(o)
	}
	found := findings{by: map[string]*tally{}, excused: map[string]int{}}
	var workers sync.WaitGroup
	next := make(chan int)
	for range runtime.GOMAXPROCS(0) {
		workers.Go(func() {
			for i := range next {
				c := trials[i]
				o := all.origin(t, &c)
				bad, excused, err := try(c, o, filepath.Join(dir, fmt.Sprint(i)))
				if err != nil {
					bad = append(bad, finding{"store", err.Error()})
				}
				if excused != nil {
					rep.Explored(1)
				}
				found.add(c, bad, excused)
			}
		})
	}
	for i := range trials {
		next <- i
	}
	close(next)
	workers.Wait()
	found.report(t, rep)
}

// findings are those of all trials, by rule.
type findings struct {
	mu      sync.Mutex
	by      map[string]*tally
	excused map[string]int
}

type tally struct {
	n     int
	kinds map[string]int // of store, damaged objects and ways
	first trial
	text  string
}

func (f *findings) add(c trial, bad []finding, excused map[string]int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for reason, n := range excused {
		f.excused[reason] += n
	}
	for _, b := range bad {
		t := f.by[b.rule]
		if t == nil {
			t = &tally{kinds: map[string]int{}, first: c, text: b.text}
			f.by[b.rule] = t
		}
		if len(c.harms) < len(t.first.harms) {
			t.first, t.text = c, b.text
		}
		t.n++
		var what []string
		for _, h := range c.harms {
			what = append(what, h.way+" "+h.class)
		}
		t.kinds[c.kind+": "+strings.Join(what, " + ")]++
	}
}

func (f *findings) report(t *testing.T, rep *proof.Report) {
	t.Helper()
	for _, reason := range slices.Sorted(maps.Keys(f.excused)) {
		t.Logf("%d times: %s", f.excused[reason], reason)
	}
	for _, rule := range slices.Sorted(maps.Keys(f.by)) {
		b := f.by[rule]
		kinds := slices.SortedFunc(maps.Keys(b.kinds), func(x, y string) int { return b.kinds[y] - b.kinds[x] })
		text := fmt.Sprintf("%s (%d trials; most of them %v)\n\t%s\n\treplay: %s='%s'", rule, b.n, kinds[:min(5, len(kinds))],
			b.text, replayEnv, b.first)
		if pending {
			t.Log(text)
		} else {
			rep.Violation("%s", text)
		}
	}
}
