package trace_test

import (
	"context"
	"fmt"

	"github.com/coppice-go/coppice/backend"
	"github.com/coppice-go/coppice/backend/memory"
	"github.com/coppice-go/coppice/internal/trace"
)

func ExampleNew() {
	ctx := context.Background()
	b := trace.New(memory.New())
	b.Record(100)
	info, _ := b.Put(ctx, "checkpoint_latest/x", []byte("first"), backend.IfAbsent())
	_, _ = b.Put(ctx, "checkpoint_latest/x", []byte("second"), backend.IfMatch(info.Version))
	_, _ = b.Put(ctx, "checkpoint_latest/x", []byte("third"), backend.IfMatch(info.Version))
	ops, _ := b.Log()
	for _, op := range ops {
		fmt.Println(op)
	}
	fmt.Println(b.IO().Put, "puts")
	// Output:
	// put checkpoint_latest/x if-absent ok 5
	// put checkpoint_latest/x if-match ok 6
	// put checkpoint_latest/x if-match precondition failed 5
	// 3 puts
}
