package fault_test

import (
	"context"
	"fmt"

	"github.com/coppice-go/coppice/backend"
	"github.com/coppice-go/coppice/backend/memory"
	"github.com/coppice-go/coppice/internal/fault"
)

// The answer to the second write is lost: it was applied, and its caller cannot know.
func ExampleNew() {
	ctx := context.Background()
	b := fault.New(memory.New(), 1, fault.Rule{When: fault.On("put", "log/"), Skip: 1, Kind: fault.After})
	for i := range 2 {
		_, err := b.Put(ctx, fmt.Sprint("log/", i), nil, backend.IfAbsent())
		fmt.Println(backend.OutcomeOf(err), err)
	}
	_, err := b.Stat(ctx, "log/1")
	fmt.Println("it is there:", err == nil)
	// Output:
	// applied <nil>
	// outcome unknown put log/1: injected fault (outcome unknown)
	// it is there: true
}
