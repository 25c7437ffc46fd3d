package parallel

import (
	"context"
	"errors"
	"io"
	"runtime"
	"slices"
	"sync/atomic"
	"testing"
)

// Results come in the order of the source, whatever each takes, with a bounded number under way.
func TestPipeKeepsTheOrder(t *testing.T) {
	const n, lanes = 1000, 3
	var under, most, taken atomic.Int64
	at := 0
	gate := make(chan struct{}, n)
	p := NewPipe(lanes, func() (int, error) {
		if at == n {
			return 0, io.EOF
		}
		at++
		taken.Add(1)
		return at - 1, nil
	}, func(i int) int {
		if u := under.Add(1); u > most.Load() {
			most.Store(u)
		}
		if i%2 == 0 {
			gate <- struct{}{}
			<-gate
			runtime.Gosched()
		}
		under.Add(-1)
		return i * i
	})
	defer p.Close()
	for i := range n {
		got, err := p.Next()
		if err != nil || got != i*i {
			t.Fatalf("%d: got %d, %v", i, got, err)
		}
		if ahead := taken.Load() - int64(i); ahead > 2*lanes+2 {
			t.Fatalf("%d pieces ahead at %d", ahead, i)
		}
	}
	for range 2 {
		if _, err := p.Next(); !errors.Is(err, io.EOF) {
			t.Errorf("at the end: %v", err)
		}
	}
	if most.Load() > lanes {
		t.Errorf("%d at once", most.Load())
	}
}

// A source's error comes after all before it; a pipe that is closed early leaves nothing behind.
func TestPipeEnds(t *testing.T) {
	broken := errors.New("broken")
	for _, read := range []int{0, 1, 5, 10, 11} {
		at := 0
		var working atomic.Int64
		p := NewPipe(2, func() (int, error) {
			if at == 10 {
				return 0, broken
			}
			at++
			return at, nil
		}, func(i int) int {
			working.Add(1)
			defer working.Add(-1)
			return i
		})
		for i := range read {
			got, err := p.Next()
			if i == 10 {
				if !errors.Is(err, broken) {
					t.Errorf("got %v, want the source's error", err)
				}
			} else if err != nil || got != i+1 {
				t.Errorf("%d: got %d, %v", i, got, err)
			}
		}
		p.Close()
		p.Close()
		if working.Load() != 0 {
			t.Errorf("work goes on after Close, %d read", read)
		}
	}
}

func TestEach(t *testing.T) {
	var under, most atomic.Int64
	done := make([]bool, 200)
	if err := Each(t.Context(), len(done), func(i int) error {
		if u := under.Add(1); u > most.Load() {
			most.Store(u)
		}
		runtime.Gosched()
		done[i] = true
		under.Add(-1)
		return nil
	}); err != nil || slices.Contains(done, false) || most.Load() > atOnce {
		t.Errorf("%v, all done: %v, %d at once", err, !slices.Contains(done, false), most.Load())
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := Each(ctx, 3, func(int) error { return nil }); !errors.Is(err, context.Canceled) {
		t.Errorf("after the end: %v", err)
	}
	broken := errors.New("broken")
	if err := Each(t.Context(), 5, func(i int) error {
		if i == 3 {
			return broken
		}
		return nil
	}); !errors.Is(err, broken) {
		t.Errorf("got %v", err)
	}
}
