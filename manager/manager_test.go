package manager_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	coppice "github.com/coppice-go/coppice"
	"github.com/coppice-go/coppice/backend/memory"
	"github.com/coppice-go/coppice/entry"
	"github.com/coppice-go/coppice/internal/testutil"
	"github.com/coppice-go/coppice/manager"
	"github.com/coppice-go/coppice/transcript"
)

func TestContinueFindsTheSessionOfTheDirectory(t *testing.T) {
	store := storeOn(t, memory.New())
	m := manager.New(store, nil)
	for _, cwd := range []string{"/a", "/b", "/a"} {
		testutil.Must(m.Create(bg, cwd, ""))(t)
		say(t, m, "u "+cwd)
	}
	newest := m.Session().ID()
	testutil.OK(t, m.Close(bg))
	m = manager.New(store, nil)
	same(t, "session", testutil.Must(m.Continue(bg, "/a"))(t).ID(), newest)
	same(t, "directory", testutil.Must(m.Continue(bg, "/b"))(t).Info().Cwd, "/b")
	fresh := testutil.Must(m.Continue(bg, "/none"))(t)
	same(t, "commits of a new one", fresh.Info().Commit, "")
	say(t, m, "u")
	same(t, "its directory", m.Session().Info().Cwd, "/none")
}

func TestATerminalGoesOnWithItsOwnSession(t *testing.T) {
	store := storeOn(t, memory.New())
	crumbs := &manager.Crumbs{Path: t.TempDir(), Now: clock()}
	at := func(id string) *manager.Manager {
		return manager.New(store, &manager.Options{Crumbs: crumbs, Terminal: id})
	}
	one, two := at("one"), at("two")
	testutil.Must(one.Create(bg, "/w", ""))(t)
	say(t, one, "u1")
	mine := one.Session().ID()
	testutil.Must(two.Create(bg, "/w", ""))(t)
	say(t, two, "u2")
	theirs := two.Session().ID()
	same(t, "terminal one", testutil.Must(at("one").Continue(bg, "/w"))(t).ID(), mine)
	same(t, "terminal three", testutil.Must(at("three").Continue(bg, "/w"))(t).ID(), theirs)
	other := testutil.Must(at("one").Continue(bg, "/x"))(t)
	if other.ID() == mine {
		t.Error("the crumb of another directory counted")
	}
	// A session that does not exist is skipped; if the terminal's session was new and is empty, another new one is
	// created.
	testutil.OK(t, one.Close(bg))
	testutil.OK(t, two.Close(bg))
	testutil.Must(at("two").Continue(bg, "/w"))(t)
	testutil.OK(t, store.Delete(bg, theirs))
	same(t, "after a deletion", testutil.Must(at("two").Continue(bg, "/w"))(t).ID(), mine)
	begun := at("one")
	id := testutil.Must(begun.Create(bg, "/w", ""))(t).ID()
	testutil.OK(t, begun.Close(bg))
	if s := testutil.Must(at("one").Continue(bg, "/w"))(t); s.ID() == mine || s.ID() == id {
		t.Error("a terminal with a fresh session went back to an old one")
	}
}

func TestNavigateTree(t *testing.T) {
	m, ids := begin(t, nil, "u1", "a1", "u2", "a2")
	s := m.Session()
	custom := testutil.Must(s.Append(bg, entry.CustomMessage("note", "look here", true)))(t)[0]
	testutil.Must(s.Commit(bg, coppice.Turn{}))(t)

	r := testutil.Must(m.Navigate(bg, custom, nil))(t)
	same(t, "the head itself: nothing", r.Already, true)
	r = testutil.Must(m.Navigate(bg, ids["u2"], nil))(t)
	same(t, "text of a user's message", r.Text, "u2")
	same(t, "head: its parent", s.Head().Entry, ids["a1"])
	same(t, "context", contextOf(t, s), "u1 a1")
	r = testutil.Must(m.Navigate(bg, custom, nil))(t)
	same(t, "text of a custom message", r.Text, "look here")
	same(t, "head: its parent", s.Head().Entry, ids["a2"])
	r = testutil.Must(m.Navigate(bg, ids["a1"], nil))(t)
	same(t, "text of an assistant's", r.Text, "")
	same(t, "head: the entry", s.Head().Entry, ids["a1"])
	r = testutil.Must(m.Navigate(bg, ids["u1"], nil))(t)
	same(t, "before the first message", s.Head().Entry, "")
	same(t, "its text", r.Text, "u1")
	if _, err := m.Navigate(bg, "nosuch", nil); !errors.Is(err, transcript.ErrNotFound) {
		t.Errorf("no such entry: %v", err)
	}
}

func TestNavigateLeavesASummary(t *testing.T) {
	var jobs []manager.Job
	o := &manager.Options{Summarize: func(_ context.Context, j manager.Job) (manager.Summary, error) {
		jobs = append(jobs, j)
		return manager.Summary{Text: "it failed"}, nil
	}}
	m, ids := begin(t, o, "u1", "a1", "u2", "a2")
	s := m.Session()
	r := testutil.Must(
		m.Navigate(bg, ids["u2"], &manager.Navigation{Summarize: true, Instructions: "short", Label: "gave up"}))(t)
	if len(jobs) != 1 || len(jobs[0].Entries) != 1 || jobs[0].Entries[0].ID != ids["a2"] || jobs[0].Instructions != "short" {
		t.Fatalf("jobs %+v", jobs)
	}
	e := testutil.Must(s.Entry(bg, r.Summary))(t)
	same(t, "the summary hangs on", e.ParentID, ids["a1"])
	same(t, "the head", s.Head().Entry, r.Summary)
	if c := contextOf(t, s); !strings.HasPrefix(c, "u1 a1 ") || !strings.Contains(c, "it failed") {
		t.Errorf("context %q", c)
	}
	n, _ := testutil.Must(s.Tree(bg))(t).Node(r.Summary)
	same(t, "label of the summary", n.Label, "gave up")
	testutil.Must(m.Navigate(bg, ids["a1"], &manager.Navigation{Label: "here"}))(t)
	n, _ = testutil.Must(s.Tree(bg))(t).Node(ids["a1"])
	same(t, "label without a summary", n.Label, "here")
}

func TestASummaryThatCannotBeMadeMovesNothing(t *testing.T) {
	m, ids := begin(t, nil, "u1", "a1", "u2", "a2")
	before := m.Session().Head()
	_, err := m.Navigate(bg, ids["u1"], &manager.Navigation{Summarize: true})
	same(t, "no summarizer", errors.Is(err, manager.ErrNoSummary), true)
	same(t, "head", m.Session().Head(), before)
	if _, err = m.Compact(bg, nil); err == nil {
		t.Error("compacted without a summary")
	}
	same(t, "head", m.Session().Head(), before)
}

func TestHooksMayCancelOrSupply(t *testing.T) {
	var seen []string
	deny := map[string]bool{}
	ask := func(what string) error {
		seen = append(seen, what)
		if deny[what] {
			return manager.ErrCanceled
		}
		return nil
	}
	h := manager.Hooks{
		Start:        func(_ context.Context, _ *coppice.Session, reason string) { _ = ask("start " + reason) },
		Shutdown:     func(context.Context, *coppice.Session) { _ = ask("shutdown") },
		BeforeSwitch: func(context.Context, *coppice.Session, string, string) error { return ask("before_switch") },
		BeforeTree: func(_ context.Context, p *manager.Plan) error {
			p.Summary, p.Label = &manager.Summary{Text: "hooked", Details: []byte(`{"n":1}`)}, "by hook"
			return ask("before_tree")
		},
		Tree:         func(_ context.Context, r manager.Moved) { _ = ask("tree") },
		BeforeBranch: func(context.Context, *coppice.Session, string) error { return ask("before_branch") },
		Branch:       func(context.Context, *coppice.Session, string) { _ = ask("branch") },
		BeforeFork:   func(context.Context, *coppice.Session, string) error { return ask("before_fork") },
		BeforeCompact: func(_ context.Context, c *manager.Cut) error {
			c.Summary = &manager.Summary{Text: "compacted by hook"}
			return ask("before_compact")
		},
		Compact: func(context.Context, manager.Compacted) { _ = ask("compact") },
	}
	store := storeOn(t, memory.New())
	m := manager.New(store, &manager.Options{Hooks: h})
	testutil.Must(m.Create(bg, "/w", ""))(t)
	ids := say(t, m, "u1", "a1", "u2", "a2")
	for what, do := range map[string]func() error{
		"before_tree":    func() error { _, err := m.Navigate(bg, ids["u1"], nil); return err },
		"before_branch":  func() error { _, err := m.Branch(bg, ids["u2"]); return err },
		"before_fork":    func() error { _, err := m.Fork(bg, "", "/x"); return err },
		"before_compact": func() error { _, err := m.Compact(bg, &manager.Compaction{Keep: 1}); return err },
		"before_switch":  func() error { _, err := m.Fork(bg, "", "/x"); return err },
	} {
		deny[what] = true
		before, s, stored := m.Session().Head(), m.Session(), count(t, store)
		same(t, what, errors.Is(do(), manager.ErrCanceled), true)
		same(t, what+" moved", m.Session().Head(), before)
		same(t, what+" switched", m.Session(), s)
		same(t, what+" left a session behind", count(t, store), stored)
		deny[what] = false
	}
	seen = nil
	before := m.Session().Head().Seq
	r := testutil.Must(m.Navigate(bg, ids["u2"], &manager.Navigation{Summarize: true}))(t)
	same(t, "commits: the move with the hook's summary, and its label", r.Seq-before, uint64(2))
	var e struct {
		Summary  string         `json:"summary"`
		Details  map[string]int `json:"details"`
		FromHook bool           `json:"fromHook"`
		From     string         `json:"fromId"`
	}
	testutil.OK(t, testutil.Must(m.Session().Entry(bg, r.Summary))(t).Decode(&e))
	if e.Summary != "hooked" || e.Details["n"] != 1 || !e.FromHook || e.From != ids["a1"] || !r.FromHook {
		t.Errorf("summary %+v", e)
	}
	testutil.Must(m.Navigate(bg, ids["a2"], nil))(t) // no summary is wanted: the hook's is not used
	same(t, "head", m.Session().Head().Entry, ids["a2"])
	c := testutil.Must(m.Compact(bg, &manager.Compaction{Keep: 1}))(t)
	same(t, "compaction", c.Summary, "compacted by hook")
	testutil.Must(m.Branch(bg, ids["u2"]))(t)
	testutil.OK(t, m.Close(bg))
	same(t, "hooks", strings.Join(seen, " "), "before_tree tree before_tree tree before_compact compact "+
		"before_branch before_fork before_switch shutdown start branch branch shutdown")
}

func TestBranchForEdit(t *testing.T) {
	m, ids := begin(t, nil, "u1", "a1", "u2")
	s := m.Session()
	r := testutil.Must(m.BranchForEdit(bg, ids["u2"], nil))(t)
	same(t, "text, of the head itself", r.Text, "u2")
	same(t, "head", s.Head().Entry, ids["a1"])
	say(t, m, "u2, better")
	versions, at := testutil.Must(s.Tree(bg))(t).Siblings(s.Head().Entry)
	same(t, "versions", len(versions), 2)
	same(t, "place", at, 1)
	if _, err := m.BranchForEdit(bg, ids["a1"], nil); err == nil {
		t.Error("an assistant's message was taken for a prompt")
	}
}

func TestRenameMoveReset(t *testing.T) {
	m, _ := begin(t, nil, "u1", "a1")
	s := m.Session()
	testutil.Must(m.Rename(bg, "the bug"))(t)
	same(t, "title", s.Info().Title, "the bug")
	testutil.Must(m.Rename(bg, ""))(t)
	same(t, "title cleared", s.Info().Title, "")
	testutil.Must(m.Reset(bg))(t)
	same(t, "context after a reset", contextOf(t, s), "")
	say(t, m, "u9")
	same(t, "a new root", contextOf(t, s), "u9")
	same(t, "roots", len(testutil.Must(s.Tree(bg))(t).Children("")), 2)
	r := testutil.Must(m.Move(bg, "/elsewhere"))(t)
	same(t, "context after a move", contextOf(t, s), "u9")
	e := testutil.Must(s.Entry(bg, r.Entry))(t)
	if !strings.Contains(string(e.Raw), `"customType":"coppice.move","data":{"cwd":"/elsewhere"}`) {
		t.Errorf("entry %s", e.Raw)
	}
	same(t, "directory", s.Info().Cwd, "/elsewhere")
	testutil.OK(t, m.Close(bg))
	same(t, "found where it is now", testutil.Must(m.Continue(bg, "/elsewhere"))(t).ID(), s.ID())
}

// A tool result is no prompt, whatever role its provider assigns to it; text of the user in the same message is.
func TestPrompt(t *testing.T) {
	for _, c := range [][2]string{
		{`{"role":"user","content":"words"}`, "words"},
		{`{"role":"user","content":[{"type":"tool_result","tool_use_id":"t","content":"files"}]}`, "-"},
		{`{"role":"user","content":[{"type":"tool_result","tool_use_id":"t","content":[{"type":"text","text":"files"}]}]}`, "-"},
		{`{"role":"user","parts":[{"functionResponse":{"name":"ls","response":{"output":"files"}}}]}`, "-"},
		{`{"role":"user","content":[{"type":"tool_result","tool_use_id":"t","content":"files"},{"type":"text","text":"and now stop"}]}`, "stop"},
		{`{"role":"toolResult","toolCallId":"t","content":[{"type":"text","text":"files"}]}`, "-"},
		{`{"role":"assistant","content":"words"}`, "-"},
	} {
		raw, want := c[0], c[1]
		m, _ := begin(t, nil, "u1", "a1")
		testutil.Must(m.Session().Append(bg, entry.Message(json.RawMessage(raw))))(t)
		testutil.Must(m.Session().Commit(bg, coppice.Turn{}))(t)
		e := testutil.Must(m.Session().Entry(bg, m.Session().Head().Entry))(t)
		text, ok := manager.Prompt(e)
		if ok != (want != "-") || ok && !strings.Contains(text, want) {
			t.Errorf("%s: %q, %v", raw, text, ok)
		}
		say(t, m, "u2")
		r := testutil.Must(m.Navigate(bg, e.ID, nil))(t)
		if head := m.Session().Head().Entry; (head == e.ID) != (want == "-") || (r.Text != "") != (want != "-") {
			t.Errorf("%s: the head is at %s, text %q", raw, head, r.Text)
		}
	}
}
