package coppice_test

import (
	"encoding/json"
	"testing"

	"github.com/coppice-go/coppice"
	"github.com/coppice-go/coppice/checkpoint"
	"github.com/coppice-go/coppice/entry"
)

// The summary tells what was asked first and how far the conversation is, on every line of the tree.
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
			status checkpoint.Status
		}{
			{`{"role":"assistant","content":"hello"}`, checkpoint.Answered},
			{`{"role":"user","content":"what is it?"}`, checkpoint.Asked},
			{`{"role":"assistant","content":[{"type":"toolCall","id":"c","name":"ls","arguments":{}}]}`, checkpoint.Calling},
			{`{"role":"toolResult","toolCallId":"c","content":"files"}`, checkpoint.Working},
			{`{"role":"bashExecution","command":"ls","output":"files"}`, checkpoint.Working},
			{`{"role":"assistant","content":[],"stopReason":"error","errorMessage":"overloaded"}`, checkpoint.Failed},
			{`{"role":"assistant","content":[{"type":"text","text":"it"}],"stopReason":"aborted"}`, checkpoint.Aborted},
			{`{"role":"user","content":[{"type":"tool_result","tool_use_id":"x","content":"y"}]}`, checkpoint.Working},
			{`{"role":"assistant","content":[{"type":"text","text":"done"}],"stopReason":"stop"}`, checkpoint.Answered},
		} {
			message(c.raw)
			if c.raw == `{"role":"bashExecution","command":"ls","output":"files"}` {
				continue // it says nothing of how far the agent is
			}
			same(t, c.raw, s.Info().Status, c.status)
		}
		same(t, "first", s.Info().First, "what is it?")
		asked := message(`{"role":"user","content":"and then?"}`)
		message(`{"role":"assistant","content":"nothing"}`)
		must(s.Branch(bg, asked, nil))(t)
		same(t, "moved back", s.Info().Status, checkpoint.Asked)
		same(t, "first, later", s.Info().First, "what is it?")
		ok(t, s.Close())
		sum := collect(t, store.List(bg, coppice.ListOptions{}))[0]
		same(t, "listed", sum.First+" "+string(sum.Status), "what is it? asked")
		fork := must(open(t, store, "s").Fork(bg, coppice.Target{}, "", nil))(t)
		same(t, "forked", fork.Info().First+" "+string(fork.Info().Status), "what is it? asked")
	})
}
