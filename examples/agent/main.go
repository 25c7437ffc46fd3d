// Agent is a coding agent that may lose its host at any moment: it resumes with one read, makes each
// intention durable before its side effects, and commits messages and state together.
//
//	go run ./examples/agent [STORE]
//
// The model is a stand-in, which asks for one tool call and then answers.
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

// State is what the agent keeps beside the conversation.
type State struct {
	Turns int `json:"turns"`
	Tools int `json:"tools"`
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
	for _, prompt := range []string{"list the files", "and again"} {
		st, err := run(ctx, store, "agent-1", prompt)
		if err != nil {
			log.Fatal(err)
		}
		fmt.Printf("%d turns, %d tool calls\n", st.Turns, st.Tools)
	}
	if err := store.Close(); err != nil {
		log.Fatal(err)
	}
}

// run is one turn, on any host.
func run(ctx context.Context, store *coppice.Store, id, prompt string) (st State, err error) {
	s, err := store.OpenOrCreate(ctx, id, nil) // 1 GET
	if err != nil {
		return st, err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	if _, err := s.Claim(ctx); err != nil { // 1 PUT: any older writer is fenced from here on
		return st, err
	}
	if err := s.State(&st); err != nil { // untouched in a new session
		return st, err
	}
	w, err := s.Context(ctx)
	if err != nil {
		return st, err
	}
	for _, c := range w.OpenCalls { // the last host died in mid-tool
		d := entry.ToolResult(c.ID, c.Name, "interrupted; check before repeating", true)
		if _, err := s.Append(ctx, d); err != nil {
			return st, err
		}
	}
	if _, err := s.Append(ctx, entry.User(prompt)); err != nil { // memory only
		return st, err
	}
	if err := loop(ctx, s, &st); err != nil {
		return st, err
	}
	st.Turns++
	_, err = s.Commit(ctx, coppice.Turn{State: st}) // 1 PUT: messages and state together
	return st, keep(ctx, s, err)
}

func loop(ctx context.Context, s *coppice.Session, st *State) error {
	for {
		w, err := s.Context(ctx)
		if err != nil {
			return err
		}
		reply, calls := model(w.Messages)
		if _, err := s.Append(ctx, entry.Message(reply)); err != nil { // the provider's own JSON
			return err
		}
		if len(calls) == 0 {
			return nil
		}
		r, err := s.Commit(ctx, coppice.Turn{State: st, Reason: "intent"}) // durable before the first side effect
		if err != nil {
			return keep(ctx, s, err)
		}
		for _, c := range calls {
			out, failed := runTool(r.Commit+"/"+c.ID, c) // an idempotency key for free
			if _, err := s.Append(ctx, entry.ToolResult(c.ID, c.Name, out, failed)); err != nil {
				return err
			}
			st.Tools++
		}
	}
}

// keep keeps the work of a turn whose commit lost or is in doubt: as branch r.Kept if another was first.
func keep(ctx context.Context, s *coppice.Session, err error) error {
	if errors.Is(err, coppice.ErrConflict) || errors.Is(err, coppice.ErrFenced) ||
		errors.Is(err, coppice.ErrCommitUnknown) {
		r, rerr := s.Rebase(ctx)
		log.Printf("seq %d, turn kept as %q", r.Seq, r.Kept)
		return errors.Join(err, rerr)
	}
	return err
}

// model replaces a provider: a user's message makes it call a tool, a result makes it answer.
func model(messages []transcript.Message) (reply json.RawMessage, calls []transcript.ToolCall) {
	if last := messages[len(messages)-1]; last.Role == "toolResult" {
		return json.RawMessage(`{"role":"assistant","content":[{"type":"text","text":"There are two files."}]}`), nil
	}
	id := fmt.Sprintf("call-%d", len(messages))
	reply = json.RawMessage(fmt.Sprintf(
		`{"role":"assistant","content":[{"type":"toolCall","id":%q,"name":"bash","arguments":{"command":"ls"}}]}`, id))
	return reply, transcript.Inspect(reply).Calls
}

func runTool(_ string, _ transcript.ToolCall) (out string, failed bool) {
	return "go.mod\nmain.go", false
}
