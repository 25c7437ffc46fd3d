package manager_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	coppice "github.com/coppice-go/coppice"
	"github.com/coppice-go/coppice/backend/memory"
	"github.com/coppice-go/coppice/entry"
	"github.com/coppice-go/coppice/manager"
	"github.com/coppice-go/coppice/transcript"
)

var noon = time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC)

// exampleManager returns a conversation of three questions about tides; each message has about 10 tokens.
func exampleManager(ctx context.Context, o *manager.Options) (*coppice.Store, *manager.Manager, *coppice.Session) {
	store, err := coppice.New(memory.New(), nil)
	if err != nil {
		panic(err)
	}
	m := manager.New(store, o)
	s, err := m.Create(ctx, "/home/x/tides", "")
	if err != nil {
		panic(err)
	}
	for _, place := range []string{"Dover", "Brest", "Cadiz"} {
		_, err := s.Append(ctx, entry.User("When is high water at "+place+"?"), entry.Assistant("At noon, at "+place+"."))
		if err == nil {
			_, err = s.Commit(ctx, coppice.Turn{})
		}
		if err != nil {
			panic(err)
		}
	}
	return store, m, s
}

// The beginning of a long conversation becomes a summary.
func ExampleManager_Compact() {
	ctx := context.Background()
	store, m, s := exampleManager(ctx, &manager.Options{
		Summarize: func(_ context.Context, j manager.Job) (manager.Summary, error) { // a model's work
			return manager.Summary{Text: fmt.Sprintf("%d messages about tides", len(j.Entries))}, nil
		},
	})
	defer store.Close()
	path, err := manager.Path(ctx, s, "") // root first
	if err != nil {
		panic(err)
	}
	tokens := manager.Estimate(path[4]) + manager.Estimate(path[5])
	fmt.Println("kept from entry", manager.FindCut(path, tokens), "of", len(path))
	if _, err := m.Compact(ctx, &manager.Compaction{Keep: tokens}); err != nil {
		panic(err)
	}
	c, err := s.Context(ctx)
	if err != nil {
		panic(err)
	}
	for _, message := range c.Messages {
		fmt.Println(message.Role, message.Text())
	}
	// Output:
	// kept from entry 4 of 6
	// compactionSummary 4 messages about tides
	// user When is high water at Cadiz?
	// assistant At noon, at Cadiz.
}

// A session that the program holds itself is compacted with a summary of its own.
func ExampleCompact() {
	ctx := context.Background()
	store, _, s := exampleManager(ctx, nil)
	defer store.Close()
	c, err := manager.Compact(ctx, s, &manager.Compaction{Summary: "Noon, at Dover and at Brest.", Keep: 20})
	if err != nil {
		panic(err)
	}
	fmt.Println(c.Replaced, "entries are summed up")
	// Output: 4 entries are summed up
}

// Common operations on sessions: rename, move, go back to edit, start again.
func ExampleManager() {
	ctx := context.Background()
	store, m, s := exampleManager(ctx, nil)
	defer store.Close()
	if _, err := m.Rename(ctx, "High water"); err != nil {
		panic(err)
	}
	if _, err := m.Move(ctx, "/home/x/harbours"); err != nil {
		panic(err)
	}
	fmt.Println(s.Info().Name(), s.Info().Cwd)

	path, err := manager.Path(ctx, s, "")
	if err != nil {
		panic(err)
	}
	last := path[4] // the third question
	if text, ok := manager.Prompt(last); ok {
		fmt.Println("can be edited:", text)
	}
	question, text, err := manager.Before(ctx, s, last.ID) // reads, and moves nothing
	fmt.Println(text, question.ParentID == path[3].ID, err)
	moved, err := m.BranchForEdit(ctx, last.ID, nil)
	fmt.Println(moved.Text, err)
	if _, err := m.Reset(ctx); err != nil { // before the first message; all entries stay in the tree
		panic(err)
	}
	c, _ := s.Context(ctx)
	fmt.Println("messages:", len(c.Messages), "of", s.Info().Entries, "entries")
	// Output:
	// High water /home/x/harbours
	// can be edited: When is high water at Cadiz?
	// When is high water at Cadiz? true <nil>
	// When is high water at Cadiz? <nil>
	// messages: 0 of 8 entries
}

// The picker of a user interface.
func ExamplePick() {
	ctx := context.Background()
	store, m, s := exampleManager(ctx, nil)
	defer store.Close()
	if _, err := m.Rename(ctx, "High water"); err != nil {
		panic(err)
	}
	for found, err := range manager.Pick(ctx, store, manager.PickOptions{Query: "hiwa"}) {
		fmt.Println(found.Name(), err)
	}
	q, err := manager.ParseQuery(`"high water" tides`)
	if err != nil {
		panic(err)
	}
	_, fits := q.Score("High water: a table of tides")
	fmt.Println("fits:", fits)

	if _, err := s.Label(ctx, s.Head().Entry, "to check"); err != nil {
		panic(err)
	}
	labels, err := manager.Labels(ctx, s)
	fmt.Println(labels[0].Text, err)
	summary, err := manager.NewestSummary(ctx, store, s.ID()) // agents of atomic write them
	fmt.Printf("%q %v\n", summary, err)
	// Output:
	// High water <nil>
	// fits: true
	// to check <nil>
	// "" <nil>
}

// A session is copied with all branches, or along one path, into another directory.
func ExampleCopy() {
	ctx := context.Background()
	store, _, s := exampleManager(ctx, nil)
	defer store.Close()
	all, err := manager.Copy(ctx, store, s.ID(), "/home/x/other", &coppice.SessionOptions{ID: "copy"})
	if err != nil {
		panic(err)
	}
	first, err := manager.Fork(ctx, s, coppice.Target{Seq: 1}, "fork", "/home/x/other", nil)
	if err != nil {
		panic(err)
	}
	for _, c := range []*coppice.Session{all, first} {
		fmt.Println(c.ID(), c.Info().Cwd, c.Info().Parent == s.ID())
	}
	// Output:
	// copy /home/x/other true
	// fork /home/x/other true
}

// The cost of answers, and the models that answered.
func ExampleSumUsage() {
	ctx := context.Background()
	store, _, s := exampleManager(ctx, nil)
	defer store.Close()
	answer := json.RawMessage(`{"role":"assistant","content":"Noon.","usage":{"input":90,"output":10,"totalTokens":100}}`)
	if _, err := s.Append(ctx, entry.Model("anthropic", "claude-x"), entry.Message(answer)); err != nil {
		panic(err)
	}
	path, err := manager.Path(ctx, s, "")
	if err != nil {
		panic(err)
	}
	var total manager.Usage
	for _, e := range path {
		if u, ok := manager.UsageOf(e); ok {
			total.Add(u)
		}
	}
	fmt.Println("tokens of the path:", total.Total)
	all, err := manager.SumUsage(s.Entries(ctx)) // of every branch
	fmt.Println("of the session:", all.Total, err)
	fmt.Println(manager.SettingsInForce(path, transcript.Coppice).Models["default"])
	// Output:
	// tokens of the path: 100
	// of the session: 100 <nil>
	// anthropic/claude-x
}

// The cost of a fork: an answer counts in the session that received it.
func ExampleUsageReader() {
	ctx := context.Background()
	store, _, s := exampleManager(ctx, nil)
	defer store.Close()
	answer := `{"role":"assistant","content":"Noon.","usage":{"input":90,"output":10,"totalTokens":100}}`
	if _, err := s.Append(ctx, entry.Message(json.RawMessage(answer))); err != nil {
		panic(err)
	}
	if _, err := s.Commit(ctx, coppice.Turn{}); err != nil {
		panic(err)
	}
	fork, err := s.Fork(ctx, coppice.Target{}, "fork", nil)
	if err != nil {
		panic(err)
	}
	var cache manager.UsageCache // shared by the readers of a program that asks often
	defer cache.Forget(store)
	reader := manager.NewUsageReader(store, &cache)
	used, err := reader.Session(ctx, fork)
	fmt.Println("own:", used.Total, "copied:", used.Inherited.Total, err)
	path, err := reader.Path(ctx, fork, fork.Path(ctx, ""))
	fmt.Println("of its path:", path.Total, "copied:", path.Inherited.Total, err)
	growth, err := reader.Growth(ctx, s)
	if err != nil {
		panic(err)
	}
	var sum manager.UsageSum
	var cost float64
	for e, err := range s.Entries(ctx) {
		if err != nil {
			panic(err)
		}
		sum.Add(e)
		cost += growth(e)
	}
	fmt.Println("of the original:", sum.Totals().Total, "cost:", cost)
	// Output:
	// own: 0 copied: 100 <nil>
	// of its path: 0 copied: 100 <nil>
	// of the original: 100 cost: 0
}

// When the store cannot be reached, the content of the handle can still be written to a file.
func ExampleRescue() {
	ctx := context.Background()
	store, _, s := exampleManager(ctx, nil)
	defer store.Close()
	if _, err := s.Append(ctx, entry.User("not committed yet")); err != nil {
		panic(err)
	}
	var file strings.Builder
	entries, err := manager.Rescue(ctx, s, &file)
	fmt.Println(entries, err, strings.Contains(file.String(), "not committed yet"))
	// Output:
	// 7 <nil> true
}

// What a program keeps outside the store: the trash, pins, and the last session of each terminal.
func ExampleTrash() {
	ctx := context.Background()
	store, _, s := exampleManager(ctx, nil)
	defer store.Close()
	dir, err := os.MkdirTemp("", "coppice-example")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	now := func() time.Time { return noon }

	pins := &manager.Pins{Path: filepath.Join(dir, "pins.json"), Now: now}
	fmt.Println("pinned:", pins.Add("mem:", s.ID()), len(pins.List("mem:")))
	removed, err := pins.Remove("mem:", s.ID())
	fmt.Println("no longer:", removed, err)

	crumbs := &manager.Crumbs{Path: filepath.Join(dir, "crumbs"), Now: now}
	terminal := manager.TerminalID(func(name string) string { return map[string]string{"TMUX_PANE": "%3"}[name] })
	if err := crumbs.Put(terminal, manager.Crumb{Session: s.ID(), Cwd: "/home/x/tides"}); err != nil {
		panic(err)
	}
	crumb, err := crumbs.Get(terminal)
	fmt.Println("the terminal was in it:", crumb.Session == s.ID(), err)
	anyStore := func(string) bool { return true }
	n, err := crumbs.ForgetSession(s.ID(), anyStore)
	fmt.Println("terminals that were in it:", n, err)

	trash := &manager.Trash{Path: filepath.Join(dir, "trash"), Now: now}
	if _, err := trash.Put(ctx, store, s.ID(), "mem:"); err != nil {
		panic(err)
	}
	item, err := trash.Find(s.ID())
	if err != nil {
		panic(err)
	}
	back, err := trash.Restore(ctx, store, item.Name)
	if err != nil {
		panic(err)
	}
	fmt.Println("restored:", back.Info().Entries, "entries")
	items, err := trash.Having(ctx, back, []string{back.Head().Entry}, &coppice.EraseOptions{})
	if err != nil {
		panic(err)
	}
	fmt.Println("items that still have its last entry:", len(items))
	if err := trash.Remove(items...); err != nil { // as after an erasure of that entry
		panic(err)
	}
	copies, items, err := trash.Copies(ctx, store, back.ID())
	fmt.Println("what else has entries of it:", len(copies), len(items), err)
	purged, err := trash.Purge(s.ID(), anyStore)
	fmt.Println("items of it that were left:", len(purged), err)
	// To the trash again, unless another writer has committed to it since it was looked at.
	if _, err := trash.PutAt(ctx, store, back.ID(), back.Head().Commit, "mem:"); err != nil {
		panic(err)
	}
	gone, err := trash.Empty(noon.Add(24 * time.Hour)) // what was deleted before then
	fmt.Println("emptied:", len(gone), err)
	// Output:
	// pinned: <nil> 1
	// no longer: true <nil>
	// the terminal was in it: true <nil>
	// terminals that were in it: 1 <nil>
	// restored: 6 entries
	// items that still have its last entry: 0
	// what else has entries of it: 0 0 <nil>
	// items of it that were left: 0 <nil>
	// emptied: 1 <nil>
}
