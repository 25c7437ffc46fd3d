package manager_test

import (
	"context"
	"fmt"

	coppice "github.com/coppice-go/coppice"
	"github.com/coppice-go/coppice/entry"
	"github.com/coppice-go/coppice/manager"
)

// The token has the form of one, and opens nothing.
func ExampleSecrets() {
	ctx := context.Background()
	store, _, s := exampleManager(ctx, nil)
	defer store.Close()
	turn := coppice.Turn{State: map[string]string{"token": "gh" + "p_x7Kq2mZp9RtV4wYb8NcL3sDf6GhJ5kQaE1uT"}}
	if _, err := s.Append(ctx, entry.User("go on")); err != nil {
		panic(err)
	}
	if _, err := s.Commit(ctx, turn); err != nil {
		panic(err)
	}
	for found, err := range manager.Secrets(ctx, store, s.ID()) {
		if err != nil {
			panic(err)
		}
		fmt.Println(found.In, found.Path, found.Rule, found.Preview)
	}
	// Output: state /token github-pat ghp_… (40 bytes)
}
