package api_test

import (
	"encoding/json"
	"testing"

	"github.com/coppice-go/coppice/backend/memory"
	"github.com/coppice-go/coppice/entry"
	"github.com/coppice-go/coppice/internal/api"
)

// A client that resumes sees which tool calls a crash left without a result, in the same read.
func TestResumedOpenCalls(t *testing.T) {
	s := sessionIn(t, memory.New())
	commit(t, s, nil, entry.User("list the files"), entry.Message(json.RawMessage(
		`{"role":"assistant","content":[{"type":"toolCall","id":"c1","name":"ls","arguments":{"n":1.0}}]}`)))
	out, _, err := api.Resumed(t.Context(), s)
	if err != nil {
		t.Fatal(err)
	}
	if len(out.OpenCalls) != 1 {
		t.Fatalf("%d open calls, want 1", len(out.OpenCalls))
	}
	c := out.OpenCalls[0]
	if c.ID != "c1" || c.Name != "ls" || string(c.Arguments) != `{"n":1.0}` || c.Entry != s.Head().Entry {
		t.Errorf("open call %+v", c)
	}
	commit(t, s, nil, entry.ToolResult("c1", "ls", "a.go", false))
	if out, _, err = api.Resumed(t.Context(), s); err != nil || len(out.OpenCalls) != 0 {
		t.Errorf("after the result: %d open calls, %v", len(out.OpenCalls), err)
	}
}
