package manager_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	coppice "github.com/coppice-go/coppice"
	"github.com/coppice-go/coppice/backend"
	"github.com/coppice-go/coppice/backend/memory"
	"github.com/coppice-go/coppice/entry"
	"github.com/coppice-go/coppice/internal/fault"
	"github.com/coppice-go/coppice/internal/testutil"
	"github.com/coppice-go/coppice/manager"
	"github.com/coppice-go/coppice/transcript"
)

// Like createBranchedSession of pi: the path alone, with the labels of its entries at its end.
func TestABranchedSessionHoldsItsPathAndItsLabels(t *testing.T) {
	m, ids := begin(t, nil, "u1", "a1", "u2", "a2")
	from := m.Session()
	testutil.Must(from.Label(bg, ids["a1"], "kept"))(t)
	testutil.Must(from.Label(bg, ids["a2"], "dropped"))(t)
	testutil.Must(m.Rename(bg, "name"))(t)
	f := testutil.Must(m.Fork(bg, ids["u2"], ""))(t)
	same(t, "context", contextOf(t, f), "u1 a1 u2")
	same(t, "head", f.Head().Entry, ids["u2"])
	same(t, "parent", f.Info().Parent, from.ID())
	same(t, "title", f.Info().Title, "name")
	labels := testutil.Must(manager.Labels(bg, f))(t)
	if len(labels) != 1 || labels[0].Entry != ids["a1"] || labels[0].Text != "kept" || labels[0].Time.IsZero() {
		t.Errorf("labels %v", labels)
	}
	same(t, "it goes on there", m.Session().ID(), f.ID())
}

func TestForkIntoAnotherDirectory(t *testing.T) {
	m, _ := begin(t, nil, "u1", "a1")
	from := m.Session().ID()
	testutil.Must(m.Rename(bg, "old name"))(t)
	testutil.Must(m.Move(bg, "/moved"))(t) // both are entries of the copied path
	own := &coppice.SessionOptions{Title: "its own"}
	named := testutil.Must(manager.Fork(bg, m.Session(), coppice.Target{}, "", "/third", own))(t)
	same(t, "its own name and directory", named.Info().Title+named.Info().Cwd, "its own/third")
	f := testutil.Must(m.Fork(bg, "", "/other"))(t)
	same(t, "directory", f.Info().Cwd, "/other")
	same(t, "title", f.Info().Title, "old name")
	same(t, "parent", f.Info().Parent, from)
	same(t, "state", string(testutil.Must(f.At(bg, coppice.Target{}))(t).Document().State), `{"said":2}`)
	if _, err := manager.Fork(bg, f, coppice.Target{Entry: "nosuch"}, "", "/x", nil); err == nil {
		t.Error("a fork of nothing")
	}
}

// Like /branch of omp: a new session up to the entry before the message, whose text is returned.
func TestBranchFromAUserMessage(t *testing.T) {
	m, ids := begin(t, nil, "u1", "a1", "u2", "a2")
	from := m.Session().ID()
	same(t, "text", testutil.Must(m.Branch(bg, ids["u2"]))(t), "u2")
	same(t, "context", contextOf(t, m.Session()), "u1 a1")
	testutil.Must(m.Open(bg, from))(t)
	same(t, "text of the first", testutil.Must(m.Branch(bg, ids["u1"]))(t), "u1")
	say(t, m, "u1, better")
	same(t, "context", contextOf(t, m.Session()), "u1, better")
	same(t, "parent", m.Session().Info().Parent, from)
	testutil.Must(m.Open(bg, from))(t)
	if _, err := m.Branch(bg, ids["a1"]); err == nil {
		t.Error("branched from an assistant's message")
	}
}

func TestLabelsHaveTimes(t *testing.T) {
	m, ids := begin(t, nil, "u1", "a1")
	s := m.Session()
	long := strings.Repeat("long ", 40)
	testutil.Must(s.Label(bg, ids["u1"], "first"))(t)
	testutil.Must(s.Label(bg, ids["a1"], long))(t)
	testutil.Must(s.Label(bg, ids["u1"], "again"))(t)
	labels := testutil.Must(manager.Labels(bg, s))(t)
	if len(labels) != 2 || labels[0].Text != long || labels[1].Text != "again" || !labels[0].Time.Before(labels[1].Time) {
		t.Errorf("labels %v", labels)
	}
	testutil.Must(s.Label(bg, ids["u1"], ""))(t)
	same(t, "labels after clearing", len(testutil.Must(manager.Labels(bg, s))(t)), 1)
	if _, err := s.Label(bg, "nosuch", "x"); !errors.Is(err, transcript.ErrNotFound) {
		t.Errorf("label on nothing: %v", err)
	}
}

// Entries whose commit failed stay in the handle: they can be exported, committed again, or kept as a branch.
func TestAFailedCommitLosesNothing(t *testing.T) {
	base := memory.New()
	var broken atomic.Bool
	fb := fault.New(base, 1, fault.Rule{
		Count: -1, When: func(fault.Call) bool { return broken.Load() }, Outcome: backend.NotApplied, Err: errors.New("no permission"),
	})
	m := manager.New(storeOn(t, fb), nil)
	testutil.Must(m.Create(bg, "/w", ""))(t)
	say(t, m, "u1", "a1")
	s := m.Session()
	broken.Store(true)
	testutil.Must(s.Append(bg, entry.User("u2"), entry.Assistant("a2")))(t)
	if _, err := s.Commit(bg, coppice.Turn{}); err == nil {
		t.Fatal("the store is broken and a commit succeeded")
	}
	if err := m.Close(bg); err == nil || m.Session() != s {
		t.Errorf("the session was let go: %v", err)
	}
	if _, err := m.Create(bg, "/x", ""); err == nil || m.Session() != s {
		t.Errorf("the session was left for another: %v", err)
	}
	same(t, "context", contextOf(t, s), "u1 a1 u2 a2")
	var b strings.Builder
	same(t, "entries rescued", testutil.Must(manager.Rescue(bg, s, &b))(t), 4)
	lines := strings.Split(strings.TrimSpace(b.String()), "\n")
	if len(lines) != 5 || !strings.Contains(lines[0], `"type":"session"`) || !strings.Contains(lines[4], "a2") {
		t.Errorf("rescued %s", b.String())
	}
	broken.Store(false)
	testutil.Must(s.Commit(bg, coppice.Turn{}))(t)
	testutil.OK(t, m.Close(bg))
	again := testutil.Must(manager.New(storeOn(t, base), nil).Continue(bg, "/w"))(t)
	same(t, "context of a reopened one", contextOf(t, again), "u1 a1 u2 a2")
}

// If the store cannot be reached the entries of the handle are written all the same, and the error reports what is
// missing.
func TestRescueWithoutTheStore(t *testing.T) {
	base := memory.New()
	m := manager.New(storeOn(t, base), nil)
	testutil.Must(m.Create(bg, "/w", ""))(t)
	for range 20 {
		for range 20 {
			testutil.Must(m.Session().Append(bg, entry.User(strings.Repeat("long ", 3000))))(t)
		}
		testutil.Must(m.Session().Commit(bg, coppice.Turn{}))(t)
	}
	testutil.OK(t, m.Close(bg))
	var broken atomic.Bool
	gone := errors.New("no such host")
	fb := fault.New(base, 1, fault.Rule{Count: -1, When: func(fault.Call) bool { return broken.Load() }, Outcome: backend.NotApplied, Err: gone})
	m = manager.New(storeOn(t, fb), nil)
	s := testutil.Must(m.Continue(bg, "/w"))(t)
	broken.Store(true)
	testutil.Must(s.Append(bg, entry.User("the last word")))(t)
	var b strings.Builder
	n, err := manager.Rescue(bg, s, &b)
	if !errors.Is(err, gone) || n == 0 || n > 400 {
		t.Errorf("%d entries, %v", n, err)
	}
	lines := strings.Split(strings.TrimSpace(b.String()), "\n")
	if len(lines) != n+1 || !strings.Contains(lines[n], "the last word") {
		t.Errorf("%d lines, the last is %.300s", len(lines), lines[len(lines)-1])
	}
}

// Nothing is written before the first answer; that answer's commit includes all earlier entries.
func TestDeferredPersistence(t *testing.T) {
	b := memory.New()
	store := storeOn(t, b)
	m := manager.New(store, &manager.Options{Session: coppice.SessionOptions{DeferUntilAssistant: true}})
	testutil.Must(m.Create(bg, "/w", ""))(t)
	say(t, m, "u1")
	same(t, "objects", objects(t, b), 0)
	say(t, m, "a1")
	if objects(t, b) == 0 {
		t.Error("an answer was not written")
	}
	testutil.Must(m.Create(bg, "/w", ""))(t)
	say(t, m, "u alone")
	testutil.OK(t, m.Close(bg)) // without an answer the session is dropped, as in pi
	same(t, "sessions", count(t, store), 1)
}

func objects(t *testing.T, b backend.Backend) (n int) {
	t.Helper()
	for info, err := range b.List(bg, backend.ListOptions{Prefix: "checkpoint_latest/"}) {
		testutil.OK(t, err)
		if !strings.HasPrefix(info.Key, "checkpoint_latest/.") {
			n++
		}
	}
	return n
}

func TestCompact(t *testing.T) {
	var job manager.Job
	o := &manager.Options{Summarize: func(_ context.Context, j manager.Job) (manager.Summary, error) {
		job = j
		return manager.Summary{Text: fmt.Sprintf("sum %d", len(j.Entries))}, nil
	}}
	m, ids := begin(t, o, "u1", "a1", "u2", "a2", "u3", "a3")
	s := m.Session()
	r := testutil.Must(m.Compact(bg, &manager.Compaction{FirstKept: ids["u3"]}))(t)
	same(t, "kept from", r.FirstKept, ids["u3"])
	if c := contextOf(t, s); !strings.Contains(c, "sum 4") || !strings.HasSuffix(c, " u3 a3") {
		t.Errorf("context %q", c)
	}
	for _, o := range []*manager.Compaction{nil, {Keep: 1}} {
		if _, err := m.Compact(bg, o); !errors.Is(err, manager.ErrNothing) {
			t.Errorf("compacted twice: %v", err)
		}
	}
	more := say(t, m, "u4", "a4", "u5")
	r = testutil.Must(m.Compact(bg, &manager.Compaction{Keep: 1}))(t)
	same(t, "kept the newest", r.FirstKept, more["u5"])
	same(t, "the summary before is handed on", job.Previous, "sum 4")
	same(t, "what was kept then is summarised now", job.Entries[0].ID, ids["u3"])
	if c := contextOf(t, s); !strings.Contains(c, "sum 4") || !strings.HasSuffix(c, " u5") || strings.Contains(c, "u4") {
		t.Errorf("context %q", c)
	}
	if _, err := m.Compact(bg, &manager.Compaction{FirstKept: "nosuch", Summary: "x"}); err == nil {
		t.Error("kept from an entry that is not there")
	}
}

// A cut never separates a call from its result, and keeps at least the requested tokens.
func TestFindCut(t *testing.T) {
	call := entry.Assistant("", entry.Call("c1", "read", map[string]string{"path": strings.Repeat("x", 400)}))
	m, _ := begin(t, nil, "u1")
	s := m.Session()
	testutil.Must(
		s.Append(bg, call, entry.ToolResult("c1", "read", strings.Repeat("y", 400), false), entry.Assistant("a2"),
			entry.User("u2")))(t)
	path := testutil.Must(manager.Path(bg, s, ""))(t)
	for keep, want := range map[int]int{1: 4, 20: 3, 60: 3, 10_000: 0} {
		if got := manager.FindCut(path, keep); got != want {
			t.Errorf("keep %d: cut at %d, want %d", keep, got, want)
		}
	}
	same(t, "cut before a result", manager.FindCut(path[:3], 10), 1)
	image := testutil.Must(s.Append(bg, entry.User("", entry.Image("image/png", make([]byte, 90_000)))))(t)[0]
	if n := manager.Estimate(testutil.Must(s.Entry(bg, image))(t)); n < 1200 || n > 1300 {
		t.Errorf("an image counts %d tokens", n)
	}
}
