package claudecode

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"strings"
	"testing"

	"github.com/coppice-go/coppice/checkpoint"
	"github.com/coppice-go/coppice/internal/testutil"
	"github.com/coppice-go/coppice/interop"
	"github.com/coppice-go/coppice/interop/internal/readtest"
	"github.com/coppice-go/coppice/transcript"
)

// mebibyte is the content of long outputs; a shorter text replaces it while they are decoded.
var mebibyte = strings.Repeat("x", 1<<20)

const stands = "[a mebibyte of x]"

// outputsOf returns the tool outputs that a session contains, by file name, and the IDs of their entries.
func outputsOf(t *testing.T, s session) (files map[string]string, ids map[string]bool) {
	t.Helper()
	files, ids = map[string]string{}, map[string]bool{}
	for _, e := range s.Entries {
		var v struct {
			CustomType string
			Data       struct {
				File, Text, Base64 string
				Bytes              int
			}
		}
		// What is long is the same letter again and again, which encoding/json goes through thrice, one by one.
		if err := json.Unmarshal(bytes.ReplaceAll(e.Raw, []byte(mebibyte), []byte(stands)), &v); err != nil {
			t.Fatal(err)
		}
		v.Data.Text = strings.ReplaceAll(v.Data.Text, stands, mebibyte)
		if v.CustomType != toolOutputType {
			continue
		}
		if v.Data.Base64 != "" {
			data, err := base64.StdEncoding.DecodeString(v.Data.Base64)
			if err != nil {
				t.Fatal(err)
			}
			v.Data.Text = string(data)
		}
		if v.Data.Bytes != len(v.Data.Text) {
			t.Errorf("%s: %d bytes, said to be %d", v.Data.File, len(v.Data.Text), v.Data.Bytes)
		}
		files[v.Data.File], ids[e.ID] = v.Data.Text, true
	}
	return files, ids
}

// kept is a case: the files of a session, how many of them are kept, and the note about the others.
type kept struct {
	files map[string]string
	want  int
	note  string
}

// TestOutputs: tool outputs in files of their own are imported, whatever their content, outside of the conversation;
// those over the bounds are named.
func TestOutputs(t *testing.T) {
	for name, c := range map[string]kept{
		"text":               {map[string]string{"s1/tool-results/c1.txt": "begin and \"end\"\n\x00é"}, 1, ""},
		"no text":            {map[string]string{"s1/tool-results/c1.bin": "\xff\x00\xfe"}, 1, ""},
		"nothing in it":      {map[string]string{"s1/tool-results/c1.txt": ""}, 1, ""},
		"by the file's name": {map[string]string{"11/tool-results/b.json": "{}", "s1/tool-results/c1.txt": "x"}, 2, ""},
		"elsewhere":          {map[string]string{"tool-results/c1.txt": "x", "s2/tool-results/c1.txt": "x", "s1/tool-results/deep/c1.txt": "x"}, 0, ""},
	} {
		t.Run(name, func(t *testing.T) { checkOutputs(t, c) })
	}
}

// TestSizeOutputs: files over the bounds are named, and the others are imported.
func TestSizeOutputs(t *testing.T) {
	testutil.SkipLong(t)
	long := strings.Repeat(mebibyte, 4)
	many := map[string]string{}
	for i := range 30 {
		many[fmt.Sprintf("s1/tool-results/%02d.txt", i)] = long[:3<<20]
	}
	for name, c := range map[string]kept{
		"one that is too long": {map[string]string{"s1/tool-results/a.txt": "x", "s1/tool-results/b.txt": long + "x"}, 1, "1 files stay in s1/tool-results, over the limit of 4194304 bytes each and 67108864 together: s1/tool-results/b.txt"},
		"too long as an entry": {map[string]string{"s1/tool-results/b.txt": long}, 0, "1 files stay"},
		"too many":             {many, 21, "9 files stay"},
	} {
		t.Run(name, func(t *testing.T) { checkOutputs(t, c) })
	}
}

func checkOutputs(t *testing.T, c kept) {
	t.Helper()
	const text = "<persisted-output>\\nOutput too large (60KB). Full output saved to: /home/u/.claude/projects/p/s1/tool-results/c1.txt\\n\\nPreview (first 2KB):\\nbegin"
	main := file(node{id: "u1", typ: "user"}, node{id: "a1", parent: "u1", typ: "assistant", content: call("c1")},
		node{id: "r1", parent: "a1", typ: "user", content: `[{"type":"tool_result","tool_use_id":"c1","content":"` + text + `"}]`})
	files := map[string]string{"/home/11.jsonl": main}
	maps.Copy(files, c.files)
	s, r := readFile(t, "/home/11.jsonl", files)
	got, ids := outputsOf(t, s)
	if len(got) != c.want {
		t.Errorf("%d files are kept, want %d", len(got), c.want)
	}
	for name, text := range got {
		if text != c.files[name] {
			t.Errorf("%s is another: %.100q", name, text)
		}
	}
	for _, e := range s.Path(t, "") {
		if ids[e.ID] {
			t.Errorf("%s is part of the conversation", e.ID)
		}
	}
	if !strings.HasPrefix(s.Talk(t, ""), "u:u1 a:+c1 r:<persisted-output>") {
		t.Error(s.Talk(t, ""))
	}
	if d := r.Diagnostics(); (len(d) > 0) != (c.note != "") || len(d) > 0 && !strings.Contains(d[0].Detail, c.note) {
		t.Error(d)
	}
	var out bytes.Buffer
	losses, err := Write(&out, s.Header, drafts(&s))
	if n := losses["outputs of tools that lie in files of their own, beside the session"]; err != nil || n != c.want || len(losses) > 1 {
		t.Errorf("losses %v, %v", losses, err)
	}
	again, _ := read(t, out.String())
	if a, b := again.Talk(t, ""), s.Talk(t, ""); a != b {
		t.Errorf("written again: %s", a)
	}
}

// TestOutputsFail: an unreadable file is named and hides nothing; the reader opens nothing outside of the session's
// folder; and the transcript of an agent does not import its session's outputs.
func TestOutputsFail(t *testing.T) {
	files := map[string]string{"11.jsonl": file(node{id: "u1", typ: "user"}), "s1/tool-results/b.txt": "x"}
	src := source("11.jsonl", files)
	src.List = func(dir string) ([]string, error) {
		if dir != "s1/tool-results" {
			return nil, nil
		}
		return []string{"/etc/x", "../x", "s1/tool-results/../../x", `s1/tool-results/a\..\x`, "s1/tool-results", "s1/tool-results/..", "s1/tool-results/a.txt", "s1/tool-results/b.txt"}, nil
	}
	r := NewReader(src, options())
	h, err := r.Header()
	if err != nil {
		t.Fatal(err)
	}
	s := readtest.Collect(t, h, r.Next)
	if got, _ := outputsOf(t, s); len(got) != 1 || got["s1/tool-results/b.txt"] != "x" || s.Talk(t, "") != "u:u1" {
		t.Errorf("%v %s", got, s.Talk(t, ""))
	}
	if d := r.Diagnostics(); len(d) != 1 || !strings.Contains(d[0].Detail, "s1/tool-results/a.txt") {
		t.Error(d)
	}
	files = map[string]string{"s1.jsonl": agentText("s1", "a"), "s1/tool-results/b.txt": "x"}
	if s, _ := readFile(t, "s1.jsonl", files); len(s.Entries) == 0 {
		t.Error("no entries")
	} else if got, _ := outputsOf(t, s); len(got) != 0 {
		t.Error(got)
	}
}

// TestInternal: the headers of sidechains and agents name their session, so that users are not offered to continue
// them; a user's session has no such field.
func TestInternal(t *testing.T) {
	of := func(h interop.Header) string {
		var v struct {
			Internal      bool
			Agent         string
			ParentSession string
		}
		if err := json.Unmarshal(h.Raw, &v); err != nil {
			t.Fatal(err)
		}
		if v.Internal != (v.Agent != "") || v.ParentSession != h.Parent {
			t.Errorf("%s", h.Raw)
		}
		return v.Agent
	}
	main := file(node{id: "u1", typ: "user"}, node{id: "x1", typ: "user", extra: `,"isSidechain":true`}, node{id: "y1", typ: "user", extra: `,"isSidechain":true,"agentId":"7f"`})
	silent := strings.ReplaceAll(agentText("s1", "b"), `,"agentId":"b"`, "")
	plain := strings.ReplaceAll(silent, `"isSidechain":true`, `"isSidechain":false`)
	files := map[string]string{"11.jsonl": main, "s1/subagents/agent-a.jsonl": agentText("s1", "a"), "s1/subagents/agent-b.jsonl": plain}
	s, r := readFile(t, "11.jsonl", files)
	if got := of(s.Header); got != "" || bytes.Contains(s.Header.Raw, []byte("internal")) {
		t.Errorf("the session is %q's", got)
	}
	var got []string
	for _, k := range children(t, r) {
		got = append(got, of(k.Header))
	}
	if want := "sidechain 7f a b"; strings.Join(got, " ") != want {
		t.Errorf("children of %q, want %s", got, want)
	}
	for text, want := range map[string]string{agentText("s1", "a"): "a", silent: "sidechain"} {
		s, _ := read(t, text)
		if got := of(s.Header); got != want || s.Header.Parent != "s1" {
			t.Errorf("a transcript by itself is %q's, want %s: %s", got, want, s.Header.Raw)
		}
	}
}

// TestResumed: a file that begins with lines of another session is a fork of that one.
func TestResumed(t *testing.T) {
	first := file(node{id: "u1", typ: "user"}, node{id: "a1", parent: "u1", typ: "assistant"})
	second := file(node{id: "u2", parent: "a1", typ: "user"})
	second = strings.ReplaceAll(second, `"sessionId":"s1"`, `"sessionId":"s2"`)
	for text, want := range map[string]string{first + second: "s2 s1 fork", first: "s1  "} {
		s, _ := read(t, text)
		relation, _ := checkpoint.HeaderRelation(s.Header.Raw)
		if got := s.Header.ID + " " + s.Header.Parent + " " + relation; got != want {
			t.Errorf("%s, want %s: %s", got, want, s.Header.Raw)
		}
	}
}

// TestWriteLeftOut: an export counts the lines of sidechains and the stubs of an import. Appended to the original's
// bytes they are no loss.
func TestWriteLeftOut(t *testing.T) {
	testutil.SkipLong(t)
	const side = `,"isSidechain":true`
	const sides = "lines of sidechains: they are in sessions of their own"
	const stubs = "entries that were over the limit when they were imported: a stub of each, the rest is only in the file that they came from"
	long := strings.Repeat("x", 5<<20)
	s, _ := read(t, file(node{id: "u1", typ: "user"}, node{id: "x1", typ: "user", extra: side}, node{id: "x2", parent: "x1", typ: "assistant", extra: side},
		node{id: "p1", parent: "u1", typ: "progress", extra: `,"data":"` + long + `"`},
		node{id: "u2", parent: "p1", typ: "user", content: `"` + long + `"`}, node{id: "u3", parent: "u2", typ: "user"}))
	var out bytes.Buffer
	losses, err := Write(&out, s.Header, drafts(&s))
	if err != nil || losses[sides] != 2 || losses[stubs] != 2 || len(losses) != 2 {
		t.Errorf("%v %v", losses, err)
	}
	known := len(s.Entries)
	l := collectOne(t, []byte(`{"type":"message","id":"new","parentId":"u3","timestamp":"2026-01-01T00:00:00.000Z","message":{"role":"user","content":"more"}}`))
	s.Entries = append(s.Entries, l.Entry(uint64(known)))
	if losses, err := Append(io.Discard, s.Header, known, drafts(&s), "new"); err != nil || len(losses) > 0 {
		t.Errorf("%v %v", losses, err)
	}
	cut := transcript.Draft{Raw: []byte(`{"type":"custom","id":"c","parentId":null,"timestamp":"2026-01-01T00:00:00.000Z","customType":"claude-code.user","data":{"stub":{"bytes":70000000,"limit":67108864}}}`)}
	losses, err = Write(io.Discard, s.Header, func(yield func(transcript.Draft, error) bool) { yield(cut, nil) })
	if err != nil || losses[stubs] != 1 || len(losses) != 1 {
		t.Errorf("%v %v", losses, err)
	}
}
