package server_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// fileLines returns the lines of a session file of another program.
func fileLines(t *testing.T, path string) (lines []string) {
	t.Helper()
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return strings.Split(strings.TrimSuffix(string(raw), "\n"), "\n")
}

// messages returns the messages of the context of a session.
func (s *site) messages(id string) (list []string) {
	s.t.Helper()
	var doc struct{ Context []json.RawMessage }
	r := s.do("GET", "/v1/sessions/"+id+"/resume", "")
	r.want(s.t, 200)
	decodeInto(s.t, r.body, &doc)
	for _, m := range doc.Context {
		list = append(list, string(m))
	}
	return list
}

// Lines of a program become the messages that an import makes of them, in every split into commits after a whole turn,
// and their bytes are kept.
func TestCommitOfLines(t *testing.T) {
	for format, pattern := range map[string]string{
		"claude-code": "../interop/claudecode/testdata/*.jsonl", "codex": "../interop/codex/testdata/*.jsonl",
	} {
		files, err := filepath.Glob(pattern)
		if err != nil || len(files) == 0 {
			t.Fatal(files, err)
		}
		for _, file := range files {
			if strings.Contains(file, "oddities") { // damaged lines are refused
				continue
			}
			t.Run(format+" "+filepath.Base(file), func(t *testing.T) {
				lines := fileLines(t, file)
				body := strings.Join(lines, "\n") + "\n"
				s := newSite(t, "mem:")
				s.do("POST", "/v1/import?session=imported&format="+format, body).want(t, 200)
				want := s.messages("imported")
				s.do("PUT", "/v1/sessions/lines", `{}`, "If-None-Match: *").want(t, 201)
				r := s.do("POST", "/v1/sessions/lines/commits?format="+format, body, "If-Match: *",
					"Content-Type: application/x-ndjson")
				r.want(t, 200)
				wantTexts(t, "messages of lines", s.messages("lines"), want...)
				s.do("POST", "/v1/sessions/json/commits?format="+format,
					`{"create":{"title":"T"},"entries":[`+strings.Join(lines, ",")+`]}`, "If-Match: *").want(t, 200)
				wantTexts(t, "messages of JSON", s.messages("json"), want...)
				for _, id := range []string{"lines", "json"} {
					if got := string(s.do("GET", "/v1/sessions/"+id+"/original", "").body); got != body {
						t.Errorf("%s: the original is\n%s\nwant\n%s", id, got, body)
					}
				}
			})
		}
	}
}

// Lines that come one by one are in one tree: results name their tools, lines that come again are passed over, and a
// repeat with a key is the first receipt.
func TestLinesInManyCommits(t *testing.T) {
	onEach(t, func(t *testing.T, url string) {
		lines := fileLines(t, "../interop/claudecode/testdata/parallel.jsonl")
		s := newSite(t, url)
		send := func(status int, key string, lines ...string) map[string]any {
			t.Helper()
			body := `{"create":{},"entries":[` + strings.Join(lines, ",") + `]}`
			return s.do("POST", commits+"?format=claude-code", body, "If-Match: *", "Idempotency-Key: "+key).
				want(t, status)
		}
		var last map[string]any
		for i, line := range lines {
			last = send(200, fmt.Sprint(i), line)
		}
		n := len(lines) - 1
		if again := send(200, fmt.Sprint(n), lines[n]); again["repeated"] != true || again["seq"] != last["seq"] {
			t.Errorf("repeat: %v, was %v", again, last)
		}
		send(422, fmt.Sprint(n), lines[1])
		var named []string // lines without a name are stored again under another key
		for _, line := range lines {
			if strings.Contains(line, `"uuid"`) {
				named = append(named, line)
			}
		}
		if again := send(200, "all", named...); again["seq"].(float64) != last["seq"].(float64)+1 {
			t.Errorf("lines that are known: %v", again)
		}
		original := string(s.do("GET", "/v1/sessions/s/original", "").body)
		if want := strings.Join(lines, "\n") + "\n"; original != want {
			t.Errorf("the original is\n%s\nwant\n%s", original, want)
		}
		whole := strings.Join(s.messages("s"), "\n")
		if strings.Contains(whole, `"toolName":""`) || strings.Count(whole, `"toolName":"Bash"`) != 2 {
			t.Errorf("results without a tool: %s", whole)
		}
		branches := s.do("GET", "/v1/sessions/s/branches", "").want(t, 200)["branches"].([]any)
		if len(branches) != 1 {
			t.Errorf("branches %v", branches)
		}
	})
}

// What a program committed as its lines is found and counted like an import.
func TestLinesAreVisible(t *testing.T) {
	s := newSite(t, "mem:")
	body, err := os.ReadFile("../interop/claudecode/testdata/branches.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	s.do("POST", "/v1/import?session=imported&format=claude-code", string(body)).want(t, 200)
	s.create("s")
	s.do("POST", commits+"?format=claude-code", string(body), "If-Match: *", "Content-Type: application/x-ndjson").
		want(t, 200)
	look := func(id string) string {
		var hits []string
		for _, q := range []string{"poem", "violets", "oaks"} {
			found := s.do("GET", "/v1/search?q="+q+"&session="+id, "").want(t, 200)["matches"].([]any)
			hits = append(hits, fmt.Sprint(q, len(found)))
		}
		info := s.do("GET", "/v1/sessions/"+id, "").want(t, 200)
		usage := s.do("GET", "/v1/sessions/"+id+"/usage", "").want(t, 200)
		var both float64
		for _, name := range []string{"usage", "inherited"} { // the same answers in two sessions count once
			if tokens, ok := usage[name].(map[string]any); ok {
				both += tokens["total"].(float64)
			}
		}
		rows := s.do("GET", "/v1/sessions/"+id+"/rows", "").want(t, 200)["total"]
		return fmt.Sprint(hits, info["first"], info["preview"], info["title"], both, rows)
	}
	if got, want := look("s"), look("imported"); got != want {
		t.Errorf("lines: %s\nimport: %s", got, want)
	}
}

// A line that names an earlier one, or none, begins a branch, and a repeat of its commit is equal.
func TestLinesBranch(t *testing.T) {
	s := newSite(t, "mem:")
	line := func(uuid, parent, role string) string {
		if parent != "null" {
			parent = `"` + parent + `"`
		}
		return `{"type":"` + role + `","uuid":"` + uuid + `","parentUuid":` + parent + `,"message":{"role":"` + role +
			`","content":"` + uuid + `"}}`
	}
	send := func(uuid, parent, role string) {
		t.Helper()
		for i := range 2 {
			body := `{"create":{},"entries":[` + line(uuid, parent, role) + `]}`
			r := s.do("POST", commits+"?format=claude-code", body, "If-Match: *", "Idempotency-Key: "+uuid)
			if doc := r.want(t, 200); (doc["repeated"] == true) != (i == 1) {
				t.Errorf("%s, %d: %s", uuid, i, r.body)
			}
		}
	}
	send("u1", "null", "user")
	send("a1", "u1", "assistant")
	send("u2", "a1", "user")
	send("u3", "a1", "user")
	path := func() []string { return s.do("GET", "/v1/sessions/s/entries", "").ids(t, "entries", "id") }
	wantTexts(t, "from an earlier line", path(), "u1", "a1", "u3")
	send("u4", "null", "user")
	wantTexts(t, "from none", path(), "u4")
	send("u5", "never seen", "user")
	wantTexts(t, "from one that is not there", path(), "u4", "u5")
}

// What is no line of the program, or cannot be read, is refused as a whole.
func TestLinesAreRefused(t *testing.T) {
	s := newSite(t, "mem:")
	s.create("s")
	lines := "Content-Type: application/x-ndjson"
	for _, c := range []struct {
		query, body, kind string
		status            int
	}{
		{"?format=claude-code", "{\"type\":\"user\"\n", lines, 400},
		{"?format=claude-code", "[1]\n", lines, 400},
		{"?format=claude-code", "{\"n\":1}\n", lines, 400},
		{"?format=claude-code", "{\"type\":\"x\",\"n\":\"\xff\"}\n", lines, 400},
		{"?format=claude-code", "{\"type\":\"mode\"} {}\n", lines, 400},
		{"?format=claude-code", `{"entries":[1]}`, "Content-Type: application/json", 400},
		{"?format=claude-code", `{"entries":[]}`, "Content-Type: text/plain", 415},
		{"?format=pi", `{}`, "Content-Type: application/json", 400},
		{"", "{}\n", lines, 415},
	} {
		r := s.do("POST", commits+c.query, c.body, "If-Match: *", c.kind)
		if r.StatusCode != c.status {
			t.Errorf("%s %q: status %d, want %d: %s", c.query, c.body, r.StatusCode, c.status, r.body)
		}
	}
	// A type that no reader knows is kept.
	odd := `{"type":"x","uuid":"odd/uuid with spaces é","n":1e21,"nul":null}` + "\n"
	s.do("POST", commits+"?format=claude-code", odd, "If-Match: *", lines).want(t, 200)
	spaced := `{ "type": "y",  "uuid": "two" }` + "\n"
	s.do("POST", commits+"?format=claude-code", "\n"+spaced+"\n", "If-Match: *", lines).want(t, 200)
	if got := string(s.do("GET", "/v1/sessions/s/original", "").body); got != odd+spaced {
		t.Errorf("kept %q", got)
	}
}
