package scenarios_test

import (
	"encoding/json"
	"testing"

	"github.com/coppice-go/coppice"
	"github.com/coppice-go/coppice/entry"
)

// The summary has the first prompt and the state of the conversation, on every branch of the tree.
func TestSummaryTellsHowFar(t *testing.T) {
	onEach(t, func(t *testing.T, store *coppice.Store) {
		s := create(t, store, "s", nil)
		message := func(raw string) string {
			id := must(s.Append(bg, entry.Message(json.RawMessage(raw))))(t)[0]
			commit(t, s, nil)
			return id
		}
		for _, c := range []struct {
			raw    string
			status string
		}{
			{`{"role":"user","content":"what is it?"}`, "asked"},
			{`{"role":"assistant","content":"hello"}`, "answered"},
			{`{"role":"assistant","content":[{"type":"toolCall","id":"c","name":"ls","arguments":{}}]}`, "calling"},
			{`{"role":"toolResult","toolCallId":"c","content":"files"}`, "working"},
			{`{"role":"bashExecution","command":"ls","output":"files"}`, "working"},
			{`{"role":"assistant","content":[],"stopReason":"error","errorMessage":"overloaded"}`, "failed"},
			{`{"role":"assistant","content":[{"type":"text","text":"it"}],"stopReason":"aborted"}`, "aborted"},
			{`{"role":"user","content":[{"type":"tool_result","tool_use_id":"x","content":"y"}]}`, "working"},
			{`{"role":"assistant","content":[{"type":"text","text":"done"}],"stopReason":"stop"}`, "answered"},
		} {
			message(c.raw)
			same(t, c.raw, s.Info().Status, c.status)
		}
		same(t, "first", s.Info().First, "what is it?")
		asked := message(`{"role":"user","content":"and then?"}`)
		message(`{"role":"assistant","content":"nothing"}`)
		must(s.Branch(bg, asked, nil))(t)
		same(t, "moved back", s.Info().Status, "asked")
		same(t, "first, later", s.Info().First, "what is it?")
		ok(t, s.Close())
		sum := collect(t, store.List(bg, coppice.ListOptions{}))[0]
		same(t, "listed", sum.First+" "+sum.Status, "what is it? asked")
		fork := must(open(t, store, "s").Fork(bg, coppice.Target{}, "", nil))(t)
		same(t, "forked", fork.Info().First+" "+fork.Info().Status, "what is it? asked")
	})
}
