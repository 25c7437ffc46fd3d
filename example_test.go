package coppice_test

import (
	"context"
	"fmt"
	"log"
	"os"

	"github.com/coppice-go/coppice"
	_ "github.com/coppice-go/coppice/backend/local"
	"github.com/coppice-go/coppice/entry"
)

// The program of the README. Errors are left out where it goes on all the same.
func Example() {
	dir, err := os.MkdirTemp("", "coppice-example")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	readme(dir)
	// Output:
	// version 2 of 2, asked 1, the other line is "main"
}

func readme(dir string) {
	ctx := context.Background()
	store, err := coppice.Open(ctx, dir, nil) // a folder; s3://bucket/prefix and mem: open alike
	if err != nil {
		log.Fatal(err)
	}
	defer store.Close()
	s, _ := store.OpenOrCreate(ctx, "harbour", nil) // one read, whatever the length of the history

	ask, _ := s.Append(ctx, entry.User("When is high water?"), entry.Assistant("At 11:42."))
	s.Commit(ctx, coppice.Turn{State: map[string]any{"asked": 1}}) // messages and state, durable together

	s.Edit(ctx, ask[0], entry.User("When is low water?")) // a sibling: the first version stays
	s.Append(ctx, entry.Assistant("At 17:55."))
	r, _ := s.Commit(ctx, coppice.Turn{State: map[string]any{"asked": 2}})

	tree, _ := s.Tree(ctx)
	versions, at := tree.Siblings(tree.Path(r.Entry)[0].ID)
	back, _ := s.Rollback(ctx, coppice.Target{Seq: 1}) // that turn again: context, head and state
	var state struct{ Asked int }
	s.State(&state)
	fmt.Printf("version %d of %d, asked %d, the other line is %q\n", at+1, len(versions), state.Asked, back.Kept)
}
