package mcp_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/coppice-go/coppice/internal/mcp"
)

// Messages that are no requests, or none that can be answered, change nothing for those that follow.
func TestMessages(t *testing.T) {
	t.Parallel()
	d := newDesk(t, false)
	for _, c := range []struct{ message, want string }{
		{`{"jsonrpc":"2.0","id":1,"method":"ping"}`, `{"jsonrpc":"2.0","id":1,"result":{}}`},
		{`{"jsonrpc":"2.0","id":"a","method":"ping","params":{}}`, `{"jsonrpc":"2.0","id":"a","result":{}}`},
		{`{"jsonrpc":"2.0","method":"notifications/initialized"}`, ``},
		{`{"jsonrpc":"2.0","method":"tools/call","params":{"name":"search_history"}}`, ``},
		{`{"jsonrpc":"2.0","id":5,"result":{}}`, ``},
		{`{`, `-32700`},
		{``, `-32700`},
		{`[]`, `-32600`},
		{`[{"jsonrpc":"2.0","id":1,"method":"ping"}]`, `-32600`},
		{`7`, `-32600`},
		{`{"jsonrpc":"1.0","id":1,"method":"ping"}`, `-32600`},
		{`{"jsonrpc":"2.0","id":null,"method":"ping"}`, `-32600`},
		{`{"jsonrpc":"2.0","id":{},"method":"ping"}`, `-32600`},
		{`{"jsonrpc":"2.0","id":1,"method":7}`, `-32600`},
		{`{"jsonrpc":"2.0","id":1,"method":"prompts/list"}`, `-32601`},
		{`{"jsonrpc":"2.0","id":1,"method":"server/discover"}`, `-32601`},
		{`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"rm"}}`, `-32602`},
		{`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":[]}`, `-32602`},
		{`{"jsonrpc":"2.0","id":1,"method":"resources/list","params":{"cursor":"!"}}`, `-32602`},
	} {
		got := string(d.Answer(t.Context(), []byte(c.message)))
		if got != c.want && (c.want == "" || c.want[0] != '-' || !strings.Contains(got, `"code":`+c.want)) {
			t.Errorf("%s: %s, want %s", c.message, got, c.want)
		}
	}
	for asked, want := range map[string]string{
		"2024-11-05": "2024-11-05", "2025-11-25": "2025-11-25", "2099-01-01": "2025-11-25", "": "2025-11-25",
	} {
		result, _ := d.ask("initialize", map[string]any{"protocolVersion": asked, "capabilities": map[string]any{}})
		if result["protocolVersion"] != want {
			t.Errorf("version %q: %v", asked, result["protocolVersion"])
		}
	}
}

// Lines are answered until the end of the input, whatever came before; the answers to all of them are written.
func TestServe(t *testing.T) {
	t.Parallel()
	d := newDesk(t, false)
	d.session("one", 1)
	in := "\n" + strings.Repeat("x", 3*mcp.MaxMessage) + "\n  \r\n" +
		`{"jsonrpc":"2.0","id":1,"method":"ping"}` + "\r\n" +
		`{"jsonrpc":"2.0","method":"notifications/initialized"}` + "\n{\n" +
		`{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"get_state","arguments":{"session":"one"}}}`
	var out strings.Builder
	if err := d.Serve(t.Context(), strings.NewReader(in), &out); err != nil {
		t.Fatal(err)
	}
	var ids []string
	for line := range strings.Lines(out.String()) {
		var a struct{ ID any }
		if err := json.Unmarshal([]byte(line), &a); err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		raw, _ := json.Marshal(a.ID)
		ids = append(ids, string(raw))
	}
	if slices.Sort(ids); !slices.Equal(ids, []string{"1", "2", "null", "null"}) {
		t.Errorf("answers to %q", ids)
	}
}

// held is a service whose requests wait until their contexts end.
type held chan struct{}

func (h held) ServeHTTP(_ http.ResponseWriter, r *http.Request) {
	h <- struct{}{}
	<-r.Context().Done()
}

const search = `,"method":"tools/call","params":{"name":"search_history","arguments":{"query":"x"}}}` + "\n"

// A request that its client cancels ends, and has no answer; others are answered meanwhile.
func TestCancelled(t *testing.T) {
	t.Parallel()
	h := make(held)
	s := &mcp.Server{API: h, Host: "localhost"}
	in, client := io.Pipe()
	server, out := io.Pipe()
	done := make(chan error, 1)
	go func() {
		done <- s.Serve(t.Context(), in, out)
		_ = out.Close()
	}()
	send := func(line string) {
		if _, err := io.WriteString(client, line); err != nil {
			t.Error(err)
		}
	}
	answers := bufio.NewScanner(server)
	send(`{"jsonrpc":"2.0","id":1` + search)
	<-h
	send(`{"jsonrpc":"2.0","id":2,"method":"ping"}` + "\n")
	if answers.Scan(); answers.Text() != `{"jsonrpc":"2.0","id":2,"result":{}}` {
		t.Errorf("%q", answers.Text())
	}
	send(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":9}}` + "\n")
	send(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}` + "\n")
	_ = client.Close()
	if err := <-done; err != nil { // it waits for all requests: the one that was cancelled has ended
		t.Error(err)
	}
	if answers.Scan() {
		t.Errorf("%q", answers.Text())
	}
}

// The end of the context ends what is under way, although the client sends nothing and leaves its stream open.
func TestServeEnds(t *testing.T) {
	t.Parallel()
	h := make(held)
	s := &mcp.Server{API: h, Host: "localhost"}
	ctx, cancel := context.WithCancel(t.Context())
	in, client := io.Pipe()
	defer client.Close()
	done := make(chan error, 1)
	go func() { done <- s.Serve(ctx, in, io.Discard) }()
	if _, err := io.WriteString(client, `{"jsonrpc":"2.0","id":1`+search); err != nil {
		t.Fatal(err)
	}
	<-h
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
}

// broken is a stream that fails.
type broken struct{}

var errBroken = errors.New("broken")

func (broken) Read([]byte) (int, error)  { return 0, errBroken }
func (broken) Write([]byte) (int, error) { return 0, errBroken }

// A stream that fails is the error.
func TestServeFails(t *testing.T) {
	t.Parallel()
	d := newDesk(t, false)
	if err := d.Serve(t.Context(), broken{}, io.Discard); !errors.Is(err, errBroken) {
		t.Errorf("reading: %v", err)
	}
	ping := strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"ping"}`)
	if err := d.Serve(t.Context(), ping, broken{}); !errors.Is(err, errBroken) {
		t.Errorf("writing: %v", err)
	}
}

// No message makes the server fail, and the answer to each is one line of JSON.
func FuzzAnswer(f *testing.F) {
	d := newDesk(f, true)
	d.session("one", 1)
	for _, seed := range []string{
		`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25"}}`,
		`{"jsonrpc":"2.0","id":1` + search,
		`{"jsonrpc":"2.0","id":"a","method":"tools/call","params":{"name":"get_state","arguments":{"offset":3}}}`,
		`{"jsonrpc":"2.0","id":1,"method":"resources/read","params":{"uri":"coppice://sessions/one/entries/x"}}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, message []byte) {
		answer := d.Answer(t.Context(), message)
		if answer != nil && (!json.Valid(answer) || strings.Contains(string(answer), "\n")) {
			t.Errorf("%q", answer)
		}
	})
}
