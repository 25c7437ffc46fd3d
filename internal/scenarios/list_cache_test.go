package scenarios_test

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/coppice-go/coppice"
	"github.com/coppice-go/coppice/backend"
	"github.com/coppice-go/coppice/backend/local"
	"github.com/coppice-go/coppice/entry"
	"github.com/coppice-go/coppice/internal/fault"
	"github.com/coppice-go/coppice/internal/journal"
	"github.com/coppice-go/coppice/internal/seam"
	"github.com/coppice-go/coppice/internal/vfs"
	"github.com/coppice-go/coppice/internal/vfs/vfstest"
	"github.com/coppice-go/coppice/transcript"
)

// later is long after the files of a test were written: recent changes are not cached.
func later() time.Time { return time.Date(2200, 1, 1, 0, 0, 0, 0, time.UTC) }

// diskOf returns a store on a folder, and the log of its calls of the file system.
func diskOf(t *testing.T, dir, cache string) (*coppice.Store, *vfstest.FaultFS) {
	t.Helper()
	calls := vfstest.NewFaultFS(vfs.OS(dir))
	b := must(local.Open("", &local.Options{FS: calls}))(t)
	s := newStore(t, b, &coppice.Options{Now: later, ListCache: cache})
	t.Cleanup(func() { _, _ = s.Close(), b.Close() })
	return s, calls
}

// callsFor lists sessions, and returns the file system calls for each of ids.
func callsFor(t *testing.T, s *coppice.Store, calls *vfstest.FaultFS, o coppice.ListOptions, ids []string) (
	shown []string, of map[string][]string,
) {
	t.Helper()
	before := len(calls.Calls())
	for _, sum := range collect(t, s.List(bg, o)) {
		shown = append(shown, sum.ID)
	}
	of = map[string][]string{}
	for _, c := range calls.Calls()[before:] {
		for _, id := range ids {
			if strings.Contains(c.Name, id) {
				op, _, _ := strings.Cut(c.Name, " ")
				of[id] = append(of[id], op)
			}
		}
	}
	return shown, of
}

// Listing a session on a disk that is filtered out costs one read of a folder, and no file. A known one costs two
// lookups, also in the next program, and with a filter.
func TestListCostsTwoLooks(t *testing.T) {
	dir, cache := t.TempDir(), filepath.Join(t.TempDir(), "lists", "here")
	s, calls := diskOf(t, dir, cache)
	var ids []string
	for i := range 9 {
		id := fmt.Sprintf("s-%02d", i)
		h := create(t, s, id, &coppice.SessionOptions{Cwd: fmt.Sprint("/", i%2)})
		say(t, h, "hello")
		commit(t, h, nil)
		ok(t, h.Close())
		ids = append(ids, id)
	}
	two := coppice.ListOptions{Limit: 2}
	shown, of := callsFor(t, s, calls, two, ids)
	same(t, "shown", shown, []string{"s-08", "s-07"})
	for _, id := range ids[:7] {
		ops := strings.Join(of[id], " ")
		if strings.Count(ops, "opendir") != 1 || strings.Contains(ops, "open ") || strings.Contains(ops, "read ") {
			t.Errorf("cold, %s: %s", id, ops)
		}
	}
	warm := func(s *coppice.Store, calls *vfstest.FaultFS, o coppice.ListOptions, not []string) {
		t.Helper()
		_, of := callsFor(t, s, calls, o, ids)
		for _, id := range not {
			same(t, "warm, "+id, of[id], []string{"lstat", "lstat"})
		}
	}
	warm(s, calls, two, ids[:7])
	mine := coppice.ListOptions{Cwd: "/1", Limit: 3}
	callsFor(t, s, calls, mine, ids) // reads folders of all
	warm(s, calls, mine, ids)
	ok(t, s.Close())
	next, calls := diskOf(t, dir, cache)
	warm(next, calls, two, ids)
	warm(next, calls, coppice.ListOptions{Cwd: "/1"}, ids)
	ok(t, next.Delete(bg, "s-03"))
	for _, f := range must(os.ReadDir(cache))(t) {
		name := filepath.Join(cache, f.Name())
		if p := must(os.ReadFile(name))(t); bytes.Contains(p, []byte("s-03")) {
			t.Errorf("what is known of a deleted session stays in %s", f.Name())
		}
		ok(t, os.WriteFile(name, []byte("rubbish"), 0o600))
	}
	third, _ := diskOf(t, dir, cache)
	same(t, "with a damaged file", len(collect(t, third.List(bg, coppice.ListOptions{}))), 8)
}

// A cached listing is never outdated: whatever others did to the sessions, a store that listed before yields the same
// as a new one.
func TestListRemembersNothingOld(t *testing.T) {
	for seed := range uint64(6) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			r := rand.New(rand.NewPCG(seed, 1))
			dir, cache := t.TempDir(), filepath.Join(t.TempDir(), "lists")
			w := &others{t: t, r: r, dir: dir, now: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)}
			w.restart()
			old, _ := diskOf(t, dir, cache)
			for step := range 60 {
				w.act()
				if r.IntN(8) == 0 { // the next program
					ok(t, old.Close())
					old, _ = diskOf(t, dir, cache)
				}
				fresh, _ := diskOf(t, dir, "")
				for _, o := range []coppice.ListOptions{
					{}, {Limit: 2}, {Cwd: "/1"}, {Order: coppice.ByID, Limit: 3}, {Order: coppice.ByCreated},
				} {
					got := collect(t, old.List(bg, o))
					same(t, fmt.Sprintf("step %d, %+v", step, o), got, collect(t, fresh.List(bg, o)))
				}
				ok(t, fresh.Close())
				if t.Failed() {
					return
				}
			}
		})
	}
}

// A session that begins under the id of a deleted one is listed from its first segment on, before it has a checkpoint;
// an import too, whose writer checked the tombstone long before.
func TestListFindsWhatFollowsATombstone(t *testing.T) {
	dir := t.TempDir()
	old, _ := diskOf(t, dir, "")
	h := create(t, old, "x", nil)
	commit(t, h, nil)
	ok(t, h.Close())
	ok(t, old.Delete(bg, "x"))
	listed := func() int { return len(collect(t, old.List(bg, coppice.ListOptions{}))) }
	first, found := false, -1
	b := fault.New(must(local.Open(dir, nil))(t), 1, fault.Rule{When: func(c fault.Call) bool {
		switch {
		case c.Op == "put" && strings.HasPrefix(c.Key, "sessions/x/transcript/"):
			first = true
		case first && found < 0 && c.Op == "put" && c.Key == "checkpoint_latest/x":
			found = listed()
		}
		return false
	}})
	t.Cleanup(func() { b.Close() })
	past := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	lines := func(yield func(transcript.Draft, error) bool) {
		// The clock of the file system may be coarse.
		ok(t, os.Chtimes(filepath.Join(dir, "checkpoint_latest", "x"), past, past))
		same(t, "deleted", listed(), 0)
		yield(entry.User("hello"), nil)
	}
	h = must(newStore(t, b, nil).Import(bg, lines, &coppice.SessionOptions{ID: "x", Again: true}))(t)
	same(t, "begun", found, 1)
	ok(t, h.Close())
}

// others are two stores of one folder with open handles, which change its sessions; each may end without closing them.
type others struct {
	t      *testing.T
	r      *rand.Rand
	dir    string
	stores [2]*coppice.Store
	open   [2]map[string]*coppice.Session
	now    time.Time
}

func (w *others) restart() {
	for i := range w.stores {
		b := must(local.Open(w.dir, nil))(w.t)
		w.stores[i] = newStore(w.t, b, &coppice.Options{Now: func() time.Time {
			w.now = w.now.Add(time.Millisecond)
			return w.now
		}})
		cfg := seam.Config(w.stores[i])
		cfg.Go = func(job func()) { job() }
		cfg.Limits = journal.Limits{RollEntries: 6, PublishCommits: 3}
		w.open[i] = map[string]*coppice.Session{}
	}
}

// act makes one change to one session.
func (w *others) act() {
	w.t.Helper()
	i, id := w.r.IntN(2), fmt.Sprintf("s-%d", w.r.IntN(7))
	s := w.open[i][id]
	if s == nil {
		o := &coppice.SessionOptions{Cwd: fmt.Sprint("/", w.r.IntN(3)), Again: true, KeepBoth: true}
		var err error
		if s, err = w.stores[i].OpenOrCreate(bg, id, o); err != nil {
			w.t.Fatal(err)
		}
		w.open[i][id] = s
	}
	var err error
	switch w.r.IntN(10) {
	case 0:
		err = w.stores[i].Delete(bg, id)
		delete(w.open[0], id)
		delete(w.open[1], id)
	case 1:
		delete(w.open[i], id)
		err = s.Close()
	case 2: // a process that dies
		w.restart()
	case 3:
		title := fmt.Sprint("title ", w.r.IntN(100))
		_, err = s.SetInfo(bg, coppice.InfoChange{Title: &title})
	default:
		for range 1 + w.r.IntN(3) {
			turn := coppice.Turn{Entries: []transcript.Draft{entry.User(fmt.Sprint(w.r.IntN(1000)))}}
			if _, err = s.Commit(bg, turn); err != nil {
				break
			}
		}
	}
	if err != nil && !errors.Is(err, coppice.ErrDeleted) && !errors.Is(err, coppice.ErrConflict) &&
		!errors.Is(err, fs.ErrNotExist) && !errors.Is(err, backend.ErrBusy) {
		w.t.Fatalf("%s: %v", id, err)
	}
	if err != nil {
		delete(w.open[i], id)
	}
}
