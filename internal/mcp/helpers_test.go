package mcp_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	coppice "github.com/coppice-go/coppice"
	_ "github.com/coppice-go/coppice/backend/memory"
	"github.com/coppice-go/coppice/entry"
	"github.com/coppice-go/coppice/internal/mcp"
	"github.com/coppice-go/coppice/server"
)

// desk is a client of a server on a store.
type desk struct {
	testing.TB
	*mcp.Server
	st *coppice.Store
}

func newDesk(t testing.TB, write bool) *desk {
	t.Helper()
	st, err := coppice.Open(t.Context(), "mem:"+strings.ReplaceAll(t.TempDir(), "/", "."), nil)
	if err != nil {
		t.Fatal(err)
	}
	h, err := server.New(server.Options{Store: st, ReadOnly: !write})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := h.Close(); err != nil {
			t.Error(err)
		}
		if err := st.Close(); err != nil {
			t.Error(err)
		}
	})
	return &desk{t, &mcp.Server{API: h, Host: "localhost", Write: write}, st}
}

// ask sends a request and returns its result; code is that of an error, 0 = none.
func (d *desk) ask(method string, params any) (result map[string]any, code int) {
	d.Helper()
	raw, err := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": 7, "method": method, "params": params})
	if err != nil {
		d.Fatal(err)
	}
	var a struct {
		ID     int
		Result map[string]any
		Error  struct{ Code int }
	}
	if err := json.Unmarshal(d.Answer(d.Context(), raw), &a); err != nil || a.ID != 7 {
		d.Fatalf("%s: %+v, %v", method, a, err)
	}
	return a.Result, a.Error.Code
}

// use calls a tool and returns the texts of its result; failed = it is an error, for the model.
func (d *desk) use(name string, args map[string]any) (texts []string, failed bool) {
	d.Helper()
	result, code := d.ask("tools/call", map[string]any{"name": name, "arguments": args})
	if code != 0 {
		d.Fatalf("%s: error %d", name, code)
	}
	for _, piece := range result["content"].([]any) {
		text := piece.(map[string]any)["text"].(string)
		if len(text) > mcp.MaxResult {
			d.Errorf("%s: a text of %d bytes", name, len(text))
		}
		texts = append(texts, text)
	}
	return texts, result["isError"] == true
}

// doc calls a tool whose result is one document.
func (d *desk) doc(name string, args map[string]any) map[string]any {
	d.Helper()
	texts, failed := d.use(name, args)
	var doc map[string]any
	if err := json.Unmarshal([]byte(texts[0]), &doc); err != nil || failed || len(texts) > 1 {
		d.Fatalf("%s %v: %q, %v", name, args, texts, err)
	}
	return doc
}

// get returns the document of the HTTP service at a path.
func (d *desk) get(path string) string {
	d.Helper()
	w := httptest.NewRecorder()
	d.API.ServeHTTP(w, httptest.NewRequestWithContext(d.Context(), http.MethodGet, "http://localhost"+path, nil))
	if w.Code != http.StatusOK {
		d.Fatalf("%s: %d %s", path, w.Code, w.Body)
	}
	return strings.TrimSpace(w.Body.String())
}

// session makes a session of turns, each a question and an answer.
func (d *desk) session(id string, turns int) *coppice.Session {
	d.Helper()
	s, err := d.st.OpenOrCreate(d.Context(), id, nil)
	if err != nil {
		d.Fatal(err)
	}
	for i := range turns {
		d.turn(s, map[string]any{"turn": i}, fmt.Sprintf("question %d", i), fmt.Sprintf("answer %d", i))
	}
	return s
}

// turn commits a turn, and returns the ids of the question and the answer.
func (d *desk) turn(s *coppice.Session, state any, question, answer string) []string {
	d.Helper()
	ids, err := s.Append(d.Context(), entry.User(question), entry.Assistant(answer))
	if err != nil {
		d.Fatal(err)
	}
	if _, err := s.Commit(d.Context(), coppice.Turn{State: state}); err != nil {
		d.Fatal(err)
	}
	return ids
}
