package coppice_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/coppice-go/coppice"
)

// A text is erased on request, and is then in no object of the store.
func ExampleStore_Erase() {
	ctx := context.Background()
	store, s := exampleStore(ctx)
	defer store.Close()
	tree, err := s.Tree(ctx)
	if err != nil {
		panic(err)
	}
	first := tree.Children("")[0].ID
	before, err := store.Prove(ctx, "high water")
	if err != nil {
		panic(err)
	}
	done, err := store.Erase(ctx, "harbour", []string{first}, &coppice.EraseOptions{Reason: "on request"})
	if err != nil {
		panic(err)
	}
	after, err := store.Prove(ctx, "high water")
	if err != nil {
		panic(err)
	}
	fmt.Println(len(before.Found), len(after.Found), len(done.Entries))
	s, err = store.Open(ctx, "harbour", nil)
	if err != nil {
		panic(err)
	}
	for e, err := range s.Entries(ctx) {
		if err != nil {
			panic(err)
		}
		if stub, erased := e.Erased(); erased {
			m, _ := e.Message()
			fmt.Printf("%s: %s (%s)\n", m.Role, m.Text(), stub.Reason)
		}
		if r, ok := e.Erasure(); ok {
			fmt.Println("recorded:", len(r.Entries), r.Reason)
		}
	}
	// Output:
	// 1 0 1
	// user: [erased] (on request)
	// recorded: 1 on request
}

// Nothing removes a session that is held.
func ExampleSession_Hold() {
	ctx := context.Background()
	store, s := exampleStore(ctx)
	defer store.Close()
	if _, err := s.Hold(ctx, "case 7"); err != nil {
		panic(err)
	}
	fmt.Println(s.Info().Held(), errors.Is(store.Delete(ctx, "harbour"), coppice.ErrHeld))
	if _, err := s.Hold(ctx, ""); err != nil { // ends it
		panic(err)
	}
	fmt.Println(s.Info().Held(), store.Delete(ctx, "harbour"))
	// Output:
	// true true
	// false <nil>
}

// Before a session is deleted, what keeps copies of its entries is found.
func ExampleStore_Copies() {
	ctx := context.Background()
	store, s := exampleStore(ctx)
	defer store.Close()
	fork, err := s.Fork(ctx, coppice.Target{Seq: s.Head().Seq}, "quay", nil)
	if err != nil {
		panic(err)
	}
	copies, err := store.Copies(ctx, s.ID())
	if err != nil {
		panic(err)
	}
	fmt.Println(copies, fork.Close())
	// Output: [quay] <nil>
}
