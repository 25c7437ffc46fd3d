package codex

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"

	"github.com/coppice-go/coppice/interop"
)

// TestHeader: the header from a session's first line, with any of its fields missing.
func TestHeader(t *testing.T) {
	session := func(payload string) string {
		return `{"timestamp":"2026-01-01T00:00:05.000Z","type":"session_meta","payload":` + payload + "}\n"
	}
	const old = `{"id":"s1","timestamp":"2025-06-01T00:00:00.000Z","git":{}}` + "\n"
	const begun = `{"type":"session","version":3,"id":"s1","timestamp":"2026-01-01T00:00:05.000Z","cwd":""`
	bad := strings.Repeat("{}\n", maxRefused-1)
	tests := []struct{ name, text, want string }{
		{"all of it", session(`{"id":"s1","timestamp":"2026-01-01T00:00:00.000Z","cwd":"/w"}`), `{"type":"session","version":3,"id":"s1","timestamp":"2026-01-01T00:00:00.000Z","cwd":"/w"}`},
		{"a fork", session(`{"id":"s1","forked_from_id":"f","source":"cli","thread_source":"user","agent_nickname":"x"}`), begun + `,"parentSession":"f","coppice":{"relation":"fork"}}`},
		{"of an agent's", session(`{"id":"s1","parent_thread_id":"p"}`), begun + `,"parentSession":"p","internal":true,"agent":"s1"}`},
		{"of an agent's, with what was said before", session(`{"id":"s1","forked_from_id":"p","parent_thread_id":"p"}`), begun + `,"parentSession":"p","internal":true,"agent":"s1"}`},
		{"by its nickname", session(`{"id":"s1","thread_source":"subagent","agent_nickname":"Ada","agent_role":"explorer"}`), begun + `,"internal":true,"agent":"Ada"}`},
		{"by its role", session(`{"id":"s1","thread_source":"subagent","agent_nickname":null,"agent_role":"explorer"}`), begun + `,"internal":true,"agent":"explorer"}`},
		{"as its source says", session(`{"id":"s1","source":{"subagent":{"thread_spawn":{"parent_thread_id":"p","depth":1,"agent_nickname":"Ada"}}}}`), begun + `,"parentSession":"p","internal":true,"agent":"Ada"}`},
		{"as its source said of old", session(`{"id":"s1","source":{"subagent":{"thread_spawn":{"parent_thread_id":"p","depth":1,"agent_nickname":null,"agent_type":"worker"}}}}`), begun + `,"parentSession":"p","internal":true,"agent":"worker"}`},
		{"a review", session(`{"id":"s1","source":{"subagent":"review"}}`), begun + `,"internal":true,"agent":"review"}`},
		{"a guard", session(`{"id":"s1","source":{"subagent":{"other":"guardian"}}}`), begun + `,"internal":true,"agent":"guardian"}`},
		{"a thread of Codex's own", session(`{"id":"s1","source":{"internal":"memory_consolidation"}}`), begun + `,"internal":true,"agent":"memory_consolidation"}`},
		{"an agent of unknown kind", session(`{"id":"s1","source":"subAgentReview"}`), begun + `,"internal":true,"agent":"s1"}`},
		{"of a program", session(`{"id":"s1","source":{"custom":"subagent"}}`), begun + "}"},
		{"of an editor", session(`{"id":"s1","source":"vscode","thread_source":"automation"}`), begun + "}"},
		{"as it was", old, `{"type":"session","version":3,"id":"s1","timestamp":"2025-06-01T00:00:00.000Z","cwd":""}`},
		{"behind much else", bad + old, `{"type":"session","version":3,"id":"s1","timestamp":"2025-06-01T00:00:00.000Z","cwd":""}`},
		{"without an id", session(`{}`), `{"type":"session","version":3,"id":"019b76da-bb88-7000-9bf2-cdb8cad05b13","timestamp":"2026-01-01T00:00:05.000Z","cwd":""}`},
		{"none", user("q"), `{"type":"session","version":3,"id":"019b76da-abe8-7000-af55-70f5a1810b7a","timestamp":"2026-01-01T00:00:01.000Z","cwd":""}`},
		{"none, and no time", `{"type":"message","role":"user","content":"q"}` + "\n", `{"type":"session","version":3,"id":"00000000-0000-7000-af55-70f5a1810b7a","timestamp":"2026-03-01T12:00:00.000Z","cwd":""}`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r := reader(tt.text + user("q") + said("a"))
			s := collect(t, r)
			made := strings.HasPrefix(tt.name, "none")
			told := strings.Contains(kinds(r.Diagnostics()), "no-header")
			if string(s.Header.Raw) != tt.want || s.Header.Made != made || told != made || s.Header.Version != 1 {
				t.Errorf("made %v, told %v\n got %s\nwant %s", s.Header.Made, told, s.Header.Raw, tt.want)
			}
			if !strings.HasSuffix(s.Talk(t, ""), "u:q a:a") {
				t.Error(s.Talk(t, ""))
			}
		})
	}
	if _, err := reader(bad + "{}\n" + old).Header(); !errors.Is(err, interop.ErrNotSession) {
		t.Errorf("behind more lines than are looked at: %v", err)
	}
}

// TestProvider: messages have the provider that the session names; the default is openai.
func TestProvider(t *testing.T) {
	for provider, payload := range map[string]string{"oss": `{"id":"s","model_provider":"oss"}`, "openai": `{"id":"s"}`} {
		s := collect(t, reader(wrap("session_meta", payload)+wrap("turn_context", `{"model":"m"}`)+user("q")+said("a")))
		for _, e := range s.Entries {
			if has := strings.Contains(string(e.Raw), `"provider":"`+provider+`"`); has != (e.ID == "cx-2.1" || e.ID == "cx-4") {
				t.Errorf("%s: %s", provider, e.Raw)
			}
		}
	}
}

// TestWindow: a compressed file with a window over the bound is refused before memory is allocated for it.
func TestWindow(t *testing.T) {
	for size, want := range map[int]error{maxBack: io.EOF, 2 * maxBack: zstd.ErrWindowSizeExceeded} {
		var b bytes.Buffer
		z, err := zstd.NewWriter(&b, zstd.WithWindowSize(size))
		if err != nil {
			t.Fatal(err)
		}
		for _, part := range []string{meta, user("q")} {
			if _, err := z.Write([]byte(part)); err != nil || z.Flush() != nil {
				t.Fatal(err)
			}
		}
		if err := z.Close(); err != nil {
			t.Fatal(err)
		}
		r := reader(b.String())
		for err = nil; err == nil; {
			_, err = r.Next()
		}
		if !errors.Is(err, want) {
			t.Errorf("%d bytes back: %v, want %v", size, err, want)
		}
	}
}

const maxBack = 32 << 20
