// Agent is a coding agent that may lose its host at any moment: it resumes with one read, makes each intention durable
// before its side effects, and commits messages and state together.
//
//	go run ./examples/agent [STORE]
//
// The model is a fake that requests one tool call and then answers.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log"
	"os"

	"github.com/coppice-go/coppice"
	_ "github.com/coppice-go/coppice/backend/local"
	_ "github.com/coppice-go/coppice/backend/memory"
	"github.com/coppice-go/coppice/entry"
	"github.com/coppice-go/coppice/transcript"
)

// State is the agent's own state. It is stored with the messages, so that each prompt is asked once and answered once,
// wherever a host stopped.
type State struct {
	Asked int `json:"asked"` // prompts in the conversation
	Turns int `json:"turns"` // answered prompts
	Tools int `json:"tools"`
}

// agent holds what differs between agents: the model and the tools.
type agent struct {
	model func(messages []transcript.Message) (reply json.RawMessage, calls []transcript.ToolCall)
	tool  func(key string, c transcript.ToolCall) (out string, failed bool)
}

func main() {
	url := "mem:"
	if len(os.Args) > 1 {
		url = os.Args[1]
	}
	ctx := context.Background()
	store, err := coppice.Open(ctx, url, nil)
	if err != nil {
		log.Fatal(err)
	}
	if err := (agent{model, tool}).work(ctx, store, "agent-1", []string{"list the files", "and again"}); err != nil {
		log.Fatal(err)
	}
	if err := store.Close(); err != nil {
		log.Fatal(err)
	}
}

var errDone = errors.New("every prompt is answered")

// work answers the prompts that no earlier host has answered.
func (a agent) work(ctx context.Context, store *coppice.Store, id string, prompts []string) error {
	for {
		st, err := a.turn(ctx, store, id, prompts)
		if errors.Is(err, errDone) {
			return nil
		}
		if err != nil {
			return err
		}
		fmt.Printf("%d turns, %d tool calls\n", st.Turns, st.Tools)
	}
}

// turn is one turn on any host: 1 GET to resume, 1 PUT that fences an older host, 1 PUT at the end.
func (a agent) turn(ctx context.Context, store *coppice.Store, id string, prompts []string) (st State, err error) {
	// persistence: begin
	_, err = store.Run(ctx, id, &st, func(ctx context.Context, s *coppice.Session) error {
		if st.Turns == len(prompts) {
			return errDone
		}
		calls, err := a.ask(ctx, s, st.next(prompts))
		for err == nil && len(calls) > 0 {
			r, failed := s.Commit(ctx, coppice.Turn{State: st, Reason: "intent"}) // durable before side effects
			if failed != nil {
				return failed
			}
			calls, err = a.ask(ctx, s, a.run(&st, r.Commit, calls))
		}
		st.Turns++
		return err
	}, &coppice.RunOptions{Claim: true})
	// persistence: end
	return st, err
}

// next returns the next prompt; none if a host stopped after it had asked.
func (st *State) next(prompts []string) []transcript.Draft {
	if st.Asked > st.Turns {
		return nil
	}
	st.Asked++
	return []transcript.Draft{entry.User(prompts[st.Turns])}
}

// ask appends messages and the model's reply to them, in memory, and returns the tool calls of the reply.
func (a agent) ask(
	ctx context.Context, s *coppice.Session, messages []transcript.Draft,
) ([]transcript.ToolCall, error) {
	if _, err := s.Append(ctx, messages...); err != nil {
		return nil, err
	}
	c, err := s.Context(ctx)
	if err != nil {
		return nil, err
	}
	if !c.Window.Complete { // compact before the model misses messages
		log.Printf("%d entries are not in the context", c.Window.OmittedEntries)
	}
	reply, calls := a.model(c.Messages)
	_, err = s.Append(ctx, entry.Message(reply)) // the provider's own JSON
	return calls, err
}

// run runs tools, and returns their results.
func (a agent) run(st *State, commit string, calls []transcript.ToolCall) (results []transcript.Draft) {
	for _, call := range calls {
		out, failed := a.tool(commit+"/"+call.ID, call) // an idempotency key for free
		results = append(results, entry.ToolResult(call.ID, call.Name, out, failed))
		st.Tools++
	}
	return results
}

// model is a fake provider: a user message makes it call a tool, a result makes it answer.
func model(messages []transcript.Message) (reply json.RawMessage, calls []transcript.ToolCall) {
	if last := messages[len(messages)-1]; last.Role == "toolResult" {
		return json.RawMessage(`{"role":"assistant","content":[{"type":"text","text":"There are two files."}]}`), nil
	}
	id := fmt.Sprintf("call-%d", len(messages))
	reply = json.RawMessage(fmt.Sprintf(
		`{"role":"assistant","content":[{"type":"toolCall","id":%q,"name":"bash","arguments":{"command":"ls"}}]}`, id))
	return reply, transcript.Inspect(reply).Calls
}

func tool(string, transcript.ToolCall) (out string, failed bool) {
	return "go.mod\nmain.go", false
}
