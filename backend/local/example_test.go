package local_test

import (
	"context"
	"fmt"
	"os"

	"github.com/coppice-go/coppice/backend"
	"github.com/coppice-go/coppice/backend/local"
)

// A folder is a store whose objects can be extended. An append names the expected end of the object, so that one of two
// writers is refused.
func ExampleOpen() {
	dir, err := os.MkdirTemp("", "coppice-example")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	b, err := local.Open(dir, &local.Options{MaxOpen: 8}) // a URL cannot contain options
	if err != nil {
		panic(err)
	}
	defer b.Close()
	ctx := context.Background()
	if _, err := b.Put(ctx, "log", []byte("one\n"), backend.IfAbsent()); err != nil {
		panic(err)
	}
	if _, err := b.Append(ctx, "log", 4, []byte("two\n")); err != nil {
		panic(err)
	}
	_, err = b.Append(ctx, "log", 4, []byte("three\n"))
	fmt.Println("a second writer:", backend.OutcomeOf(err))
	info, err := b.Resync(ctx, "log", 0, 8) // after a restart: makes existing bytes durable
	fmt.Println(info.Size, err)
	// Output:
	// a second writer: not applied
	// 8 <nil>
}
