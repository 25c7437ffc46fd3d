package genkit_test

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/firebase/genkit/go/core/x/session"

	"github.com/coppice-go/coppice"
	"github.com/coppice-go/coppice/adapters/genkit"
	"github.com/coppice-go/coppice/backend/memory"
)

// taste is the state of a session.
type taste struct {
	Theme string
	Big   json.Number
}

var _ session.Store[taste] = genkit.Store[taste]{}

// A session is loaded by another process, on another host.
func Example() {
	ctx := context.Background()
	store, err := coppice.New(memory.New(), nil) // or coppice.Open with a folder or s3://bucket/prefix
	if err != nil {
		panic(err)
	}
	defer store.Close()
	s, err := session.New(ctx, session.WithID[taste]("ann/1"), session.WithStore[taste](genkit.New[taste](store)))
	if err != nil {
		panic(err)
	}
	if err := s.UpdateState(ctx, taste{"dark", "9007199254740993"}); err != nil {
		panic(err)
	}
	again, err := session.Load(ctx, genkit.New[taste](store), "ann/1")
	if err != nil {
		panic(err)
	}
	fmt.Println(again.State())
	// Output:
	// {dark 9007199254740993}
}
