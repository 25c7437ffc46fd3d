package server

import (
	"context"
	"errors"
	"sync"
	"testing"
)

// Who wants the same view at once shares one drawing; one that stops waiting, or that began it and leaves, ends
// nothing for the others.
func TestViewsAreDrawnOnce(t *testing.T) {
	v := views{most: maxViewBytes}
	drawn1, begun, goOn := &drawn{name: "v", size: 1}, make(chan struct{}), make(chan struct{})
	draws := 0
	draw := func() (*drawn, error) {
		draws++
		close(begun)
		<-goOn
		return drawn1, nil
	}
	got := make(chan *drawn, 8)
	var all sync.WaitGroup
	want := func() {
		d, err := v.get(t.Context(), writerKey{}, "v", draw)
		if err != nil {
			t.Error(err)
		}
		got <- d
	}
	all.Go(want)
	<-begun
	left, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := v.get(left, writerKey{}, "v", draw); !errors.Is(err, context.Canceled) {
		t.Errorf("a client that left: %v", err)
	}
	for range 7 {
		all.Go(want)
	}
	close(goOn)
	all.Wait()
	for range 8 {
		if d := <-got; d != drawn1 {
			t.Errorf("got %v", d)
		}
	}
	if draws != 1 || len(v.list) != 1 || v.bytes != 1 || len(v.drawing) != 0 {
		t.Errorf("%d drawings, %d kept with %d bytes, %d on their way", draws, len(v.list), v.bytes, len(v.drawing))
	}
}

// A drawing that failed is for those that waited; the next request draws again.
func TestViewsFailOnce(t *testing.T) {
	v := views{most: maxViewBytes}
	broken := errors.New("broken")
	if _, err := v.get(t.Context(), writerKey{}, "v", func() (*drawn, error) { return nil, broken }); !errors.Is(err, broken) {
		t.Errorf("%v", err)
	}
	d, err := v.get(t.Context(), writerKey{}, "v", func() (*drawn, error) { return &drawn{name: "v"}, nil })
	if err != nil || d == nil {
		t.Errorf("%v, %v", d, err)
	}
}
