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
	info, _ := b.Put(ctx, "checkpoint_latest/x", []byte("first"), backend.IfAbsent())
	_, _ = b.Put(ctx, "checkpoint_latest/x", []byte("second"), backend.IfMatch(info.Version))
	_, _ = b.Put(ctx, "checkpoint_latest/x", []byte("third"), backend.IfMatch(info.Version))
	io := b.IO()
	fmt.Println(io.Put, "puts of", io.BytesWritten, "bytes")
	// Output: 3 puts of 16 bytes
}
