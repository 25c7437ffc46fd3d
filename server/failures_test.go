package server_test

import (
	"fmt"
	"testing"

	coppice "github.com/coppice-go/coppice"
	"github.com/coppice-go/coppice/backend/memory"
	pi "github.com/coppice-go/coppice/entry"
	"github.com/coppice-go/coppice/transcript"
)

// Calls and answers that failed are known wherever a session is shown: in rows, in the map with the commit that stored
// them, and in the usage of the session and of the list.
func TestFailures(t *testing.T) {
	st, err := coppice.New(memory.New(), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = st.Close() })
	s := siteOn(t, st)
	s.create("s")
	h, err := st.Open(t.Context(), "s", nil)
	if err != nil {
		t.Fatal(err)
	}
	aborted := transcript.Draft{
		Type: "message", ID: "aborted",
		Body: []byte(`{"message":{"role":"assistant","content":[],"stopReason":"aborted"}}`),
	}
	named := func(d transcript.Draft, id string) transcript.Draft { d.ID = id; return d }
	for i, turn := range [][]transcript.Draft{
		{named(pi.User("the word error is in it"), "asked")},
		{
			named(pi.ToolResult("1", "bash", "exit 2", true), "failed"),
			named(pi.ToolResult("2", "bash", "ok", false), "well"),
		},
		{aborted},
	} {
		if _, err := h.Commit(t.Context(), coppice.Turn{Entries: turn}); err != nil {
			t.Fatal(i, err)
		}
	}
	if err := h.Close(); err != nil {
		t.Fatal(err)
	}
	doc := s.do("GET", "/v1/sessions/s/map?buckets=2&failures=true", "").want(t, 200)
	var list []string
	for _, f := range doc["failures"].([]any) {
		list = append(list, fmt.Sprint(f.(map[string]any)["entry"], " ", f.(map[string]any)["seq"]))
	}
	if got, want := fmt.Sprint(list), "[failed 2 aborted 3]"; got != want {
		t.Errorf("failures %s, want %s", got, want)
	}
	n := 0.0
	for _, b := range doc["buckets"].([]any) {
		if in, ok := b.(map[string]any)["failed"]; ok {
			n += in.(float64)
		}
	}
	if n != 2 {
		t.Errorf("%v failures in the buckets, want 2", n)
	}
	if _, ok := s.do("GET", "/v1/sessions/s/map", "").want(t, 200)["failures"]; ok {
		t.Error("failures are listed without being asked for")
	}
	var red []string
	for _, r := range s.do("GET", "/v1/sessions/s/rows?filter=all", "").want(t, 200)["rows"].([]any) {
		if r.(map[string]any)["failed"] == true {
			red = append(red, r.(map[string]any)["id"].(string))
		}
	}
	if got, want := fmt.Sprint(red), "[failed aborted]"; got != want {
		t.Errorf("rows %s, want %s", got, want)
	}
	if got := s.do("GET", "/v1/sessions/s/usage", "").want(t, 200)["failed"]; got != 2.0 {
		t.Errorf("the usage has %v failures, want 2", got)
	}
	sessions := s.do("GET", "/v1/usage", "").want(t, 200)["sessions"].([]any)
	if got := sessions[0].(map[string]any)["failed"]; got != 2.0 {
		t.Errorf("the list has %v failures, want 2", got)
	}
}
