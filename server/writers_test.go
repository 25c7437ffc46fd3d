package server

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"testing"
	"time"

	coppice "github.com/coppice-go/coppice"
	"github.com/coppice-go/coppice/backend/memory"
	"github.com/coppice-go/coppice/internal/testutil"
)

// sessions returns how many sessions are open.
func (ws *writers) sessions() int {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	return len(ws.open)
}

// A session has one handle, which is closed when it was idle for long enough. Where as many as may be are open, one that
// no one uses makes room; if all are in use, the next session is refused.
func TestWritersAreBounded(t *testing.T) {
	st := newStore(t, "a", "b", "c")
	use := func(ws *writers, id string, f func(*coppice.Session)) error {
		return ws.use(t.Context(), writerKey{st, id}, func(h *coppice.Session) error {
			f(h)
			return nil
		})
	}
	ws := newWriters(time.Hour, 2, 2)
	var first, again *coppice.Session
	err := errors.Join(
		use(ws, "a", func(h *coppice.Session) { first = h }),
		use(ws, "a", func(h *coppice.Session) {
			if h != first {
				t.Error("a session has two handles")
			}
		}),
		use(ws, "b", func(*coppice.Session) {
			if err := use(ws, "c", func(*coppice.Session) { // a goes
				if err := use(ws, "a", func(*coppice.Session) { t.Error("a third session is open") }); !errors.Is(err, errBusy) {
					t.Errorf("a session too many: %v", err)
				}
			}); err != nil {
				t.Error(err)
			}
		}),
		use(ws, "a", func(h *coppice.Session) { again = h }),
	)
	if err != nil || first == again || ws.sessions() != 2 {
		t.Errorf("%v; a was closed: %v; %d sessions are open", err, first != again, ws.sessions())
	}
	ws.close()
	if _, err := first.Commit(context.Background(), coppice.Turn{}); err == nil {
		t.Error("the handle that made room is still open")
	}

	brief := newWriters(time.Millisecond, 2, 2)
	if err := use(brief, "a", func(*coppice.Session) {}); err != nil {
		t.Error(err)
	}
	for brief.sessions() > 0 && t.Context().Err() == nil {
		runtime.Gosched() // until the handle was idle for a millisecond
	}
	brief.close()
}

// A tenant has its part of the sessions that are open for writing, whatever it does. One that wants more closes an idle
// one of its own before one of another tenant.
func TestWritersOfTenants(t *testing.T) {
	ws := newWriters(time.Hour, 3, 2)
	defer ws.close()
	key := func(store *coppice.Store, id string) writerKey { return writerKey{store, id} }
	acme, other := newStore(t, "a", "b", "c"), newStore(t, "a", "b")
	within := func(key writerKey, f func(*coppice.Session) error) error { return ws.use(t.Context(), key, f) }
	idle := func(*coppice.Session) error { return nil }
	err := within(key(acme, "a"), func(*coppice.Session) error {
		return within(key(acme, "b"), func(*coppice.Session) error {
			if err := within(key(acme, "c"), idle); !errors.Is(err, errBusy) {
				t.Errorf("more than its part: %v", err)
			}
			return within(key(other, "a"), idle)
		})
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, k := range []writerKey{key(other, "b"), key(acme, "c")} {
		if err := within(k, idle); err != nil {
			t.Errorf("%s: %v", k.id, err)
		}
	}
	open := map[*coppice.Store]int{}
	for k := range ws.open {
		open[k.store]++
	}
	if open[acme] != 2 || open[other] != 1 || ws.open[key(other, "b")] == nil {
		t.Errorf("acme has %d open, the other one %d", open[acme], open[other])
	}
}

// newStore returns a store with sessions of one commit.
func newStore(t *testing.T, ids ...string) *coppice.Store {
	t.Helper()
	st, err := coppice.New(memory.New(), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = st.Close() })
	for _, id := range ids {
		h, err := st.Create(id, nil)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := h.Commit(t.Context(), coppice.Turn{}); err != nil {
			t.Fatal(err)
		}
		if err := h.Close(); err != nil {
			t.Fatal(err)
		}
	}
	return st
}

// A session that has stored a large body is closed before the next large body comes: what its handle does in the
// background takes as much memory.
func TestLargeBodiesRetireTheirHandle(t *testing.T) {
	testutil.SkipLong(t)
	st, err := coppice.New(memory.New(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = st.Close() }()
	s, err := New(Options{Store: st})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = s.Close() }()
	text := strings.Repeat("x", 3<<20)
	for _, c := range []struct{ texts, open int }{{1, 0}, {1, 1}, {3, 0}, {1, 1}} {
		entry := `{"role":"user","content":"` + text + `"}`
		body := `{"create":{},"entries":[` + strings.Repeat(entry+",", c.texts-1) + entry + `]}`
		r := httptest.NewRequest(http.MethodPost, "http://localhost/v1/sessions/s/commits", strings.NewReader(body))
		r.Header.Set("If-Match", "*")
		w := httptest.NewRecorder()
		s.ServeHTTP(w, r)
		if n := s.writers.sessions(); w.Code != 200 || n != c.open {
			t.Errorf("%d bytes: status %d, %d sessions are open, want %d", len(body), w.Code, n, c.open)
		}
	}
	s.writers.ending.Wait()
	if n := s.bodies.taken(); n != 0 {
		t.Errorf("%v bytes are under way", n)
	}
}
