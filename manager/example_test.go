package manager_test

import (
	"context"
	"fmt"

	coppice "github.com/coppice-go/coppice"
	"github.com/coppice-go/coppice/backend/memory"
	"github.com/coppice-go/coppice/entry"
	"github.com/coppice-go/coppice/manager"
)

// A user goes back to a message, edits it, and sends it again.
func ExampleManager_Navigate() {
	ctx := context.Background()
	store, err := coppice.New(memory.New(), nil)
	if err != nil {
		panic(err)
	}
	defer store.Close()
	m := manager.New(store, nil)
	s, err := m.Continue(ctx, "/home/x/project") // there is none yet: a new one
	if err != nil {
		panic(err)
	}
	ids, err := s.Append(ctx, entry.User("write it in C"), entry.Assistant("done"))
	if err == nil {
		_, err = s.Commit(ctx, coppice.Turn{})
	}
	if err != nil {
		panic(err)
	}
	moved, err := m.Navigate(ctx, ids[0], nil)
	if err != nil {
		panic(err)
	}
	fmt.Println("to edit:", moved.Text)
	_, err = s.Append(ctx, entry.User("write it in Go"))
	if err == nil {
		err = m.Close(ctx) // commits what is pending
	}
	if err != nil {
		panic(err)
	}
	s, err = m.Continue(ctx, "/home/x/project")
	if err != nil {
		panic(err)
	}
	t, err := s.Tree(ctx)
	if err != nil {
		panic(err)
	}
	versions, at := t.Siblings(s.Head().Entry)
	fmt.Printf("%d of %d: %s\n", at+1, len(versions), versions[at].Preview)
	used, err := manager.SumUsage(s.Entries(ctx))
	fmt.Println("answers:", used.Answers, err)
	// Output:
	// to edit: write it in C
	// 2 of 2: write it in Go
	// answers: 1 <nil>
}
