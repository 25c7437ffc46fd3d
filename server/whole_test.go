package server_test

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	coppice "github.com/coppice-go/coppice"
	"github.com/coppice-go/coppice/backend"
	"github.com/coppice-go/coppice/backend/memory"
	draft "github.com/coppice-go/coppice/entry"
	"github.com/coppice-go/coppice/internal/fault"
	"github.com/coppice-go/coppice/internal/testutil"
)

// leaving is a client that is gone after the first piece of an answer.
type leaving struct{ header http.Header }

func (w *leaving) Header() http.Header { return w.header }
func (w *leaving) WriteHeader(int)     {}
func (w *leaving) Write(p []byte) (int, error) {
	return 0, errors.New("the client is gone")
}

// An answer with all entries is written while they are read, and no more is read ahead than a few segments: a client
// that takes no more than its first piece costs that, however long the session is.
func TestAllEntriesAreNotReadAhead(t *testing.T) {
	testutil.SkipLong(t)
	for kind, b := range map[string]backend.Backend{"append": memory.NewAppender(), "replace": memory.New()} {
		t.Run(kind, func(t *testing.T) {
			counted := fault.New(b, 1)
			st, err := coppice.New(counted, nil)
			if err != nil {
				t.Fatal(err)
			}
			h, err := st.Create("s", nil)
			if err != nil {
				t.Fatal(err)
			}
			for range 40 {
				_, err := h.Append(t.Context(), draft.User(strings.Repeat("word ", 120_000)))
				if err == nil {
					_, err = h.Commit(t.Context(), coppice.Turn{})
				}
				if err != nil {
					t.Fatal(err)
				}
			}
			if err := h.Close(); err != nil {
				t.Fatal(err)
			}
			var reads atomic.Int64
			counted.Add(fault.Rule{When: func(c fault.Call) bool {
				if c.Op == "get" && strings.Contains(c.Key, "/transcript/") {
					reads.Add(1)
				}
				return false
			}})
			s := siteOn(t, st)
			for _, query := range []string{"path=all&limit=all", "limit=all", "limit=all&order=desc"} {
				get := func(w http.ResponseWriter) int64 {
					reads.Store(0)
					r := httptest.NewRequest(http.MethodGet, "/v1/sessions/s/entries?"+query, http.NoBody)
					r.Host = "localhost"
					s.srv.ServeHTTP(w, r)
					return reads.Load()
				}
				whole := get(httptest.NewRecorder())
				part := get(&leaving{http.Header{}})
				if whole < 25 || part > 16 {
					t.Errorf("%s: %d reads of %d", query, part, whole)
				}
			}
		})
	}
}
