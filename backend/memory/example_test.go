package memory_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/coppice-go/coppice/backend"
	"github.com/coppice-go/coppice/backend/memory"
)

// A test of a program that stores data: a write fails half-way, and then power is lost.
func ExampleBackend_Crash() {
	ctx := context.Background()
	b := memory.New()
	b.Put(ctx, "settled", []byte("yes"), backend.Cond{})
	b.SetHook(func(s memory.Step) error {
		if s.Stage == memory.Visible {
			return errors.New("the connection broke")
		}
		return nil
	})
	_, err := b.Put(ctx, "doubtful", []byte("perhaps"), backend.Cond{})
	fmt.Println("the writer must look:", backend.OutcomeOf(err) == backend.Unknown)
	other := b.Share() // as another process would see it
	_, err = other.Stat(ctx, "doubtful")
	fmt.Println("visible now:", err == nil)

	left := map[bool]int{}
	for seed := range uint64(20) { // each seed is one of the possible states after a power loss
		_, err := b.Crash(seed).Stat(ctx, "doubtful")
		left[err == nil]++
	}
	fmt.Println("may be there, may be gone:", left[true] > 0 && left[false] > 0)
	_, err = b.Crash(1).Stat(ctx, "settled")
	fmt.Println("what was acknowledged is there:", err == nil)
	// Output:
	// the writer must look: true
	// visible now: true
	// may be there, may be gone: true
	// what was acknowledged is there: true
}

// An object that is extended may be torn anywhere by a power loss.
func ExampleAppender_Crash() {
	ctx := context.Background()
	a := memory.NewAppender()
	a.Put(ctx, "log", []byte("one\n"), backend.Cond{})
	a.SetHook(func(s memory.Step) error {
		if s.Op == "append" && s.Stage == memory.Begun {
			return memory.Short(2)
		}
		return nil
	})
	a.Append(ctx, "log", 4, []byte("two\n"))
	info, err := a.Share().Stat(ctx, "log")
	fmt.Println("visible:", info.Size, err)
	after := a.Crash(1)
	p, _, _ := after.Get(ctx, "log", backend.Bytes(0, 4))
	fmt.Printf("certain: %q\n", p)
	info, _ = after.Stat(ctx, "log")
	_, err = after.Resync(ctx, "log", 0, info.Size)
	fmt.Println("settled:", err)
	// Output:
	// visible: 6 <nil>
	// certain: "one\n"
	// settled: <nil>
}
