package server_test

import (
	"context"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	coppice "github.com/coppice-go/coppice"
	"github.com/coppice-go/coppice/backend"
	"github.com/coppice-go/coppice/backend/memory"
	"github.com/coppice-go/coppice/server"
)

// slowReads is a backend that holds reads while it is armed, until they are cancelled or go on.
type slowReads struct {
	backend.Backend
	armed atomic.Pointer[chan struct{}]
	held  chan struct{} // receives one for each read that is held
}

func (b *slowReads) hold() (release func()) {
	goOn := make(chan struct{})
	b.armed.Store(&goOn)
	return func() {
		b.armed.Store(nil)
		close(goOn)
	}
}

func (b *slowReads) Get(ctx context.Context, key string, r backend.Range) ([]byte, backend.Info, error) {
	if goOn := b.armed.Load(); goOn != nil {
		b.held <- struct{}{}
		select {
		case <-ctx.Done():
			return nil, backend.Info{}, context.Cause(ctx)
		case <-*goOn:
		}
	}
	return b.Backend.Get(ctx, key, r)
}

// A search does not wait for an index that takes long to be brought up to date: it finds what is indexed, and returns
// how much that is. The index is brought up to date all the same, also if no client waits, and ends with the server.
func TestSearchWhileIndexing(t *testing.T) {
	b := &slowReads{Backend: memory.New(), held: make(chan struct{}, 1000)}
	st, err := coppice.New(b, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = st.Close() })
	s := siteOn(t, st)
	found := func(query string) (matches int, indexing any) {
		t.Helper()
		doc := s.do("GET", "/v1/search?q="+query, "").want(t, 200)
		return len(doc["matches"].([]any)), doc["indexing"]
	}
	s.create("s")
	s.do("POST", commits, hello("harbour"), "If-Match: *").want(t, 200)
	if n, indexing := found("harbour"); n != 1 || indexing != nil {
		t.Errorf("%d matches, indexing %v", n, indexing)
	}
	s.do("POST", commits, hello("harbour lights"), "If-Match: *").want(t, 200)
	server.SetIndexed(s.srv, time.Millisecond)
	release := b.hold()
	n, indexing := found("harbour")
	if part, ok := indexing.(float64); n != 1 || !ok || part < 0 || part >= 1 {
		t.Errorf("while it is indexed: %d matches, indexing %v", n, indexing)
	}
	if prompts := s.do("GET", "/v1/prompts?session=s", "").want(t, 200); prompts["indexing"] == nil {
		t.Errorf("the list of prompts: %v", prompts)
	}
	<-b.held // by an update that no request waits for
	release()
	server.SetIndexed(s.srv, time.Minute)
	if n, indexing := found("harbour"); n != 2 || indexing != nil {
		t.Errorf("then: %d matches, indexing %v", n, indexing)
	}

	s.do("POST", commits, hello("more"), "If-Match: *").want(t, 200)
	for len(b.held) > 0 {
		<-b.held
	}
	defer b.hold()()
	waiting := make(chan int)
	go func() {
		r, err := s.try(context.Background(), "GET", "/v1/search?q=more", "")
		if err != nil {
			r.Response = &http.Response{}
		}
		waiting <- r.StatusCode
	}()
	<-b.held
	if err := s.srv.Close(); err != nil {
		t.Error(err)
	}
	if status := <-waiting; status != http.StatusServiceUnavailable {
		t.Errorf("a search that waits when the server closes: %d", status)
	}
}
