package integration

import (
	"encoding/json"
	"fmt"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/coppice-go/coppice"
	"github.com/coppice-go/coppice/backend"
	_ "github.com/coppice-go/coppice/backend/local"
	"github.com/coppice-go/coppice/entry"
)

// The official client, in each version of the protocol, uses the server over HTTP and over the streams of a process.
func TestMCPClient(t *testing.T) {
	dir := t.TempDir()
	want := remembered(t, dir)
	b := must(backend.Open(t.Context(), dir))(t)
	url := served(t, b)
	for _, version := range []string{"", "2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"} {
		for name, transport := range map[string]mcp.Transport{
			"http": &mcp.StreamableClientTransport{Endpoint: url + "/mcp", MaxRetries: -1},
			"stdio": &mcp.CommandTransport{
				Command: exec.CommandContext(t.Context(), "coppice", "mcp", "--store", dir),
			},
		} {
			t.Run(name+version, func(t *testing.T) {
				client := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, nil)
				o := &mcp.ClientSessionOptions{ProtocolVersion: version}
				s := must(client.Connect(t.Context(), transport, o))(t)
				use(t, s, want)
				if got := s.InitializeResult().ProtocolVersion; version != "" && got != version {
					t.Errorf("version %s, want %s", got, version)
				}
				if err := s.Close(); err != nil {
					t.Error(err)
				}
			})
		}
	}
}

// remembered makes a store with a session, and returns its texts in order.
func remembered(t *testing.T, dir string) (texts []string) {
	t.Helper()
	st := must(coppice.Open(t.Context(), dir, nil))(t)
	s := must(st.OpenOrCreate(t.Context(), "trip", nil))(t)
	for i := range 40 {
		texts = append(texts, fmt.Sprintf("question %d", i), fmt.Sprintf("answer %d", i))
		must(s.Append(t.Context(), entry.User(texts[2*i]), entry.Assistant(texts[2*i+1])))(t)
		must(s.Commit(t.Context(), coppice.Turn{State: map[string]any{"turn": i}}))(t)
	}
	if err := st.Close(); err != nil {
		t.Fatal(err)
	}
	return texts
}

// use calls what a server offers.
func use(t *testing.T, s *mcp.ClientSession, want []string) {
	t.Helper()
	if err := s.Ping(t.Context(), nil); err != nil {
		t.Error(err)
	}
	tools := must(s.ListTools(t.Context(), nil))(t).Tools
	if len(tools) != 9 {
		t.Errorf("%d tools", len(tools))
	}
	var found struct {
		Matches []struct{ Session, Entry string }
	}
	call(t, s, "search_history", map[string]any{"query": "\"question 39\""}, &found)
	if len(found.Matches) != 1 || found.Matches[0].Session != "trip" {
		t.Errorf("%+v", found)
	}
	var texts []string
	for args := (map[string]any{"session": "trip"}); ; {
		var page struct {
			Entries []struct{ Text string }
			Next    string
		}
		call(t, s, "read_session", args, &page)
		for _, e := range slices.Backward(page.Entries) {
			texts = append(texts, e.Text)
		}
		if args["from"] = page.Next; page.Next == "" {
			break
		}
	}
	if slices.Reverse(texts); !slices.Equal(texts, want) {
		t.Errorf("%q", texts)
	}
	var n int
	for r, err := range s.Resources(t.Context(), nil) {
		if err != nil {
			t.Fatal(err)
		}
		n++
		read := must(s.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: r.URI}))(t)
		if len(read.Contents) != 1 || !strings.Contains(read.Contents[0].Text, "answer 39") {
			t.Errorf("%+v", read)
		}
	}
	if n != 1 {
		t.Errorf("%d resources", n)
	}
	if r, err := s.CallTool(t.Context(), &mcp.CallToolParams{Name: "begin_branch"}); err == nil {
		t.Errorf("a tool that writes: %+v", r)
	}
}

// call calls a tool, and decodes its result.
func call(t *testing.T, s *mcp.ClientSession, tool string, args map[string]any, into any) {
	t.Helper()
	r := must(s.CallTool(t.Context(), &mcp.CallToolParams{Name: tool, Arguments: args}))(t)
	text, ok := r.Content[0].(*mcp.TextContent)
	if !ok || r.IsError {
		t.Fatalf("%s: %+v", tool, r)
	}
	if err := json.Unmarshal([]byte(text.Text), into); err != nil {
		t.Fatal(err)
	}
}
