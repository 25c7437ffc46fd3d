package provider_test

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/coppice-go/coppice"
	"github.com/coppice-go/coppice/backend/memory"
	"github.com/coppice-go/coppice/entry"
	"github.com/coppice-go/coppice/provider"
	"github.com/coppice-go/coppice/transcript"
)

// A turn with a provider: the context becomes a request, the response becomes entries.
func Example() {
	ctx := context.Background()
	store, err := coppice.New(memory.New(), nil)
	if err != nil {
		panic(err)
	}
	s, err := store.Create("s", nil)
	if err != nil {
		panic(err)
	}
	drafts := []transcript.Draft{
		entry.Compaction("They planned a trip to Brest.", "", 90_000), // the context is now one message that no API knows
		entry.User("When is high water?"),
	}
	if _, err := s.Append(ctx, drafts...); err != nil {
		panic(err)
	}
	w, err := s.Context(ctx)
	if err != nil {
		panic(err)
	}
	req, err := provider.Convert(ctx, w, provider.Anthropic, nil)
	if err != nil {
		panic(err)
	}
	for _, m := range req.Messages {
		fmt.Printf("send %s\n", m)
	}

	// ... send it; this came back:
	response := json.RawMessage(`{"id":"msg_1","type":"message","role":"assistant","model":"claude-x","content":[
		{"type":"tool_use","id":"toolu_1","name":"tide","input":{"harbour":"Brest"}}],
		"stop_reason":"tool_use","usage":{"input_tokens":90,"output_tokens":12}}`)
	reply, err := provider.ReadReply(provider.Anthropic, "", response)
	if err != nil {
		panic(err)
	}
	for _, m := range reply.Messages {
		if _, err := s.Append(ctx, entry.Message(m)); err != nil {
			panic(err)
		}
	}
	fmt.Println(reply.Stop, reply.Usage.Input, reply.Usage.Output)
	for _, c := range reply.Calls {
		fmt.Println(c.ID, c.Name, string(c.Arguments))
	}

	// The host died before the tool ran. The conversation continues elsewhere, with another provider.
	if w, err = s.Context(ctx); err != nil {
		panic(err)
	}
	req, err = provider.Convert(ctx, w, provider.OpenAIResponses, &provider.Options{Interrupted: "interrupted"})
	if err != nil {
		panic(err)
	}
	for _, m := range req.Messages[2:] {
		fmt.Printf("send %s\n", m)
	}
	for _, l := range req.Lost {
		fmt.Println(l.Kind, l.Detail)
	}
	// Output:
	// send {"role":"user","content":[{"type":"text","text":"The conversation history before this point was compacted into the following summary:\n\n\u003csummary\u003e\nThey planned a trip to Brest.\n\u003c/summary\u003e"}]}
	// send {"role":"user","content":"When is high water?"}
	// toolUse 90 12
	// toolu_1 tide {"harbour":"Brest"}
	// send {"type":"function_call","call_id":"toolu_1","name":"tide","arguments":"{\"harbour\":\"Brest\"}"}
	// send {"type":"function_call_output","call_id":"toolu_1","output":"interrupted"}
	// open-call call "toolu_1" of "tide" has no result: answered with an error
}

// What messages of any of the APIs cost and why they ended, for a status line.
func ExampleUsageOf() {
	for _, m := range []string{
		`{"type":"message","role":"assistant","content":[],"stop_reason":"max_tokens","usage":{"input_tokens":90,"output_tokens":12}}`,
		`{"role":"assistant","content":[],"stopReason":"toolUse","usage":{"input":40,"output":8}}`,
	} {
		u, ok := provider.UsageOf(json.RawMessage(m))
		reason, raw := provider.StopOf(json.RawMessage(m))
		fmt.Printf("%d %d %v %s %q\n", u.Input, u.Output, ok, reason, raw)
	}
	// Output:
	// 90 12 true length "max_tokens"
	// 40 8 true toolUse ""
}

// One context as the body of a request to each API.
func ExampleRequest_Body() {
	c := transcript.Context{Messages: []transcript.Message{{Role: "user", Raw: json.RawMessage(`{"role":"user","content":"hi"}`)}}}
	for _, api := range provider.APIs() {
		req, err := provider.Convert(context.Background(), c, api, nil)
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Printf("%s: %s\n", api, req.Body())
	}
	// Output:
	// anthropic: {"messages":[{"role":"user","content":"hi"}]}
	// openai-chat: {"messages":[{"role":"user","content":"hi"}]}
	// openai-responses: {"input":[{"role":"user","content":"hi"}]}
	// gemini: {"contents":[{"role":"user","parts":[{"text":"hi"}]}]}
}
