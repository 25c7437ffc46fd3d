package coppice_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log"
	"os"
	"strings"

	"github.com/coppice-go/coppice"
	_ "github.com/coppice-go/coppice/backend/local"
	"github.com/coppice-go/coppice/backend/memory"
	"github.com/coppice-go/coppice/entry"
	"github.com/coppice-go/coppice/transcript"
)

// The six lines of the README. They leave out what a program does with errors.
func Example() {
	ctx := context.Background()
	dir, err := os.MkdirTemp("", "coppice-example")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	sixLines(ctx, dir)
	// Output:
	// asked 1, the other line is "main"
}

func sixLines(ctx context.Context, dir string) {
	store, err := coppice.Open(ctx, dir, nil) // a folder; s3://bucket/prefix and mem: open alike
	if err != nil {
		log.Fatal(err)
	}
	defer store.Close()
	s, _ := store.OpenOrCreate(ctx, "harbour", nil) // resume: one read, whatever the length of the history
	ask, _ := s.Append(ctx, entry.User("When is high water?"), entry.Assistant("At 11:42."))
	s.Commit(ctx, coppice.Turn{State: map[string]any{"asked": 1}}) // messages and state, durable together
	s.Edit(ctx, ask[0], entry.User("When is low water?"))          // branch: a second version, the first one stays
	back, _ := s.Rollback(ctx, coppice.Target{Seq: 1})             // time travel: context, head and state of that turn

	var state struct{ Asked int }
	s.State(&state)
	fmt.Printf("asked %d, the other line is %q\n", state.Asked, back.Kept)
}

// Two versions of a message: the tree counts them as siblings.
func ExampleSession_Edit() {
	ctx := context.Background()
	store, err := coppice.New(memory.New(), nil)
	if err != nil {
		panic(err)
	}
	defer store.Close()
	s, _ := store.OpenOrCreate(ctx, "harbour", nil)
	ask, _ := s.Append(ctx, entry.User("When is high water?"), entry.Assistant("At 11:42."))
	s.Commit(ctx, coppice.Turn{State: map[string]any{"asked": 1}})

	s.Edit(ctx, ask[0], entry.User("When is low water?"))
	s.Append(ctx, entry.Assistant("At 17:55."))
	r, _ := s.Commit(ctx, coppice.Turn{State: map[string]any{"asked": 2}})

	tree, _ := s.Tree(ctx)
	for first := range tree.Path(r.Entry) {
		versions, at := tree.Siblings(first.ID)
		fmt.Printf("version %d of %d\n", at+1, len(versions))
		break
	}
	// Output:
	// version 2 of 2
}

// A chat page: the newest messages first, then those before them, then down again.
func ExampleSession_Page() {
	ctx := context.Background()
	store, err := coppice.New(memory.New(), nil)
	if err != nil {
		panic(err)
	}
	defer store.Close()
	s, _ := store.OpenOrCreate(ctx, "harbour", nil)
	for i := range 5 {
		s.Append(ctx, entry.User(fmt.Sprint("question ", i)))
	}
	var seen string
	show := func(p coppice.Page) {
		var texts []string
		for e, err := range s.Page(ctx, p) {
			if err != nil {
				panic(err)
			}
			m, _ := e.Message()
			texts, seen = append(texts, m.Text()), e.ID
		}
		fmt.Println(strings.Join(texts, ", "))
	}
	show(coppice.Page{Reverse: true, Limit: 2})
	show(coppice.Page{Reverse: true, Limit: 2, After: seen})
	show(coppice.Page{Limit: 10, After: seen})
	// Output:
	// question 4, question 3
	// question 2, question 1
	// question 2, question 3, question 4
}

// A branch gets another name, or none; its entries stay.
func ExampleSession_RenameBranch() {
	ctx := context.Background()
	store, err := coppice.New(memory.New(), nil)
	if err != nil {
		panic(err)
	}
	defer store.Close()
	s, err := store.Create("harbour", nil)
	if err != nil {
		panic(err)
	}
	s.Append(ctx, entry.User("When is high water?"))
	s.Commit(ctx, coppice.Turn{})
	s.Rollback(ctx, coppice.Target{Seq: 1}) // on a branch with a name of its own
	s.RenameBranch(ctx, "rollback-1", "again")
	s.RenameBranch(ctx, "main", "")
	fmt.Println(s.Head().Branch, s.Info().Entries)
	// Output: again 1
}

// Two callers share one handle. Each names itself and the commit that it saw; a turn can begin at an earlier entry.
func ExampleTurn_from() {
	ctx := context.Background()
	store, err := coppice.New(memory.New(), nil)
	if err != nil {
		panic(err)
	}
	defer store.Close()
	s, err := store.Create("quay", nil)
	if err != nil {
		panic(err)
	}
	first, err := s.Commit(ctx, coppice.Turn{Entries: []transcript.Draft{entry.User("When is high water?")}})
	if err != nil {
		panic(err)
	}
	s.Claim(ctx, coppice.WithWriter("anna"))
	root := ""
	_, err = s.Commit(ctx, coppice.Turn{
		Writer: "ben", Base: first.Commit, From: &root, Entries: []transcript.Draft{entry.User("When is low water?")},
	})
	fmt.Println(errors.Is(err, coppice.ErrFenced)) // anna has claimed the session since
	r, err := s.Edit(ctx, first.Entry, entry.User("When is low water?"),
		coppice.WithWriter("anna"), coppice.WithBase(first.Commit))
	fmt.Println(r.Seq, err)
	// Output:
	// true
	// 3 <nil>
}

// An answer is shown while it is streamed, and a turn holds it in the end.
func ExampleSession_Partial() {
	ctx := context.Background()
	store, err := coppice.New(memory.New(), nil)
	if err != nil {
		panic(err)
	}
	defer store.Close()
	s, err := store.Create("harbour", nil)
	if err != nil {
		panic(err)
	}
	s.Append(ctx, entry.User("When is high water?"))
	s.Commit(ctx, coppice.Turn{}) // the question survives, whatever becomes of the answer
	s.Partial(ctx, json.RawMessage(`{"role":"assistant","content":"At 11"}`))
	for c, err := range s.WatchPartial(ctx, s.Head().Seq) {
		if err != nil {
			panic(err)
		}
		if c.Commit.Commit == "" && c.Partial == nil {
			fmt.Println("no longer streamed")
			break
		}
		if c.Commit.Commit == "" {
			fmt.Printf("so far: %s\n", c.Partial)
			s.Append(ctx, entry.Assistant("At 11:42."))
			s.Commit(ctx, coppice.Turn{})
			continue
		}
		fmt.Printf("committed: %d entry\n", len(c.Entries))
	}
	// Output:
	// so far: {"role":"assistant","content":"At 11"}
	// committed: 1 entry
	// no longer streamed
}

// The content of an entry is replaced, and its line stays.
func ExampleSession_Amend() {
	ctx := context.Background()
	store, err := coppice.New(memory.New(), nil)
	if err != nil {
		panic(err)
	}
	defer store.Close()
	s, _ := store.OpenOrCreate(ctx, "harbour", nil)
	ids, _ := s.Append(ctx, entry.User("The key is 4711."), entry.User("When is high water?"))
	s.Commit(ctx, coppice.Turn{})

	s.Amend(ctx, ids[0], entry.User("The key is secret."))
	s.Hide(ctx, ids[1])
	c, _ := s.Context(ctx)
	for _, m := range c.Messages {
		fmt.Println(m.Text())
	}
	for e := range s.Originals(ctx, ids[0]) {
		m, _ := e.Message()
		fmt.Println("was:", m.Text())
	}
	// Output:
	// The key is secret.
	// was: The key is 4711.
}

// The history of a value of the state, newest first: the log is read once, whatever its length.
func ExampleSession_States() {
	ctx := context.Background()
	store, s := exampleStore(ctx)
	defer store.Close()
	for at, err := range s.States(ctx, coppice.Target{}) {
		if err != nil {
			panic(err)
		}
		fmt.Printf("%d %s\n", at.Commit.Seq, at.Document.State)
	}
	// Output:
	// 2 {"asked":2}
	// 1 {"asked":1}
	// 0
}

// A program that follows a session is told what changed in the agent's state.
func ExampleChange_StatePatch() {
	ctx := context.Background()
	store, s := exampleStore(ctx)
	defer store.Close()
	for c, err := range s.Watch(ctx, 1) {
		if err != nil {
			panic(err)
		}
		patch, err := c.StatePatch(ctx)
		if err != nil {
			panic(err)
		}
		fmt.Printf("%d %s\n", c.Commit.Seq, patch)
		break
	}
	// Output:
	// 2 [{"op":"replace","path":"/asked","value":2}]
}
