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
	st, err := coppice.New(memory.New(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = st.Close() }()
	for _, id := range []string{"a", "b", "c"} {
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
	use := func(ws *writers, id string, f func(*coppice.Session)) error {
		return ws.use(t.Context(), writerKey{st, id}, func(h *coppice.Session) error {
			f(h)
			return nil
		})
	}
	ws := newWriters(time.Hour, 2)
	var first, again *coppice.Session
	err = errors.Join(
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

	brief := newWriters(time.Millisecond, 2)
	if err := use(brief, "a", func(*coppice.Session) {}); err != nil {
		t.Error(err)
	}
	for brief.sessions() > 0 && t.Context().Err() == nil {
		runtime.Gosched() // until the handle was idle for a millisecond
	}
	brief.close()
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
