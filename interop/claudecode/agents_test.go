package claudecode

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"strings"
	"testing"

	"github.com/coppice-go/coppice/internal/testutil"
	"github.com/coppice-go/coppice/interop"
)

// agentText is the transcript of an agent that a session started.
func agentText(session, id string) string {
	extra := fmt.Sprintf(`,"isSidechain":true,"agentId":%q`, id)
	text := file(node{id: "x1", typ: "user", extra: extra}, node{id: "x2", parent: "x1", typ: "assistant", extra: extra})
	return strings.ReplaceAll(text, `"sessionId":"s1"`, fmt.Sprintf(`"sessionId":%q`, session))
}

// TestAgentsThatNothingNames: a file in a session's folder (or next to its file, in older versions) that names the
// session is a child of it exactly once, whether the session's file names it or not.
func TestAgentsThatNothingNames(t *testing.T) {
	plain := file(node{id: "u1", typ: "user"})
	named := func(ids ...string) string {
		text := plain
		for i, id := range ids {
			text += file(node{id: fmt.Sprint("p", i), typ: "progress", extra: fmt.Sprintf(`,"data":{"agentId":%q}`, id)})
		}
		return text
	}
	for name, c := range map[string]struct {
		main  string
		files map[string]string
		want  string // the children
		notes int
	}{
		"side folder by the session's id": {plain, map[string]string{"s1/subagents/agent-a.jsonl": "a", "s1/subagents/other.jsonl": "b"}, "agent-a agent-b", 0},
		"side folder by the file's name":  {plain, map[string]string{"11/subagents/agent-a.jsonl": "a"}, "agent-a", 0},
		"beside the file":                 {plain, map[string]string{"agent-b.jsonl": "b", "agent-a.jsonl": "a", "a.jsonl": "c"}, "agent-a agent-b", 0},
		"both layouts":                    {plain, map[string]string{"s1/subagents/agent-b.jsonl": "b", "agent-a.jsonl": "a"}, "agent-b agent-a", 0},
		"one agent in both":               {plain, map[string]string{"11/subagents/agent-a.jsonl": "a", "s1/subagents/agent-a.jsonl": "a", "agent-a.jsonl": "a"}, "agent-a", 0},
		"named ones first, and once":      {named("b", "agent-b"), map[string]string{"s1/subagents/agent-b.jsonl": "b", "s1/subagents/agent-a.jsonl": "a", "agent-b.jsonl": "b"}, "agent-b agent-a", 0},
		"of another session":              {plain, map[string]string{"agent-a.jsonl": "s2:a", "s1/subagents/agent-b.jsonl": "s2:b"}, "", 1},
		"by the name of the file":         {plain, map[string]string{"agent-a.jsonl": "11:a"}, "agent-a", 0},
		"one that is damaged":             {plain, map[string]string{"s1/subagents/agent-a.jsonl": "?", "s1/subagents/agent-b.jsonl": "b", "agent-c.jsonl": "?"}, "agent-b", 1},
		"other kinds of files":            {plain, map[string]string{"s1/subagents/agent-a.json": "a", "s1/subagents/deep/agent-b.jsonl": "b", "s1/subagents/.jsonl": "c", "s1/subagents/a b.jsonl": "d"}, "", 0},
		"an agent's own transcript":       {agentText("s1", "self"), map[string]string{"s1/subagents/agent-a.jsonl": "a", "agent-b.jsonl": "b"}, "", 0},
	} {
		t.Run(name, func(t *testing.T) {
			files := map[string]string{"/home/11.jsonl": c.main}
			for name, what := range c.files {
				session, id, ok := strings.Cut(what, ":")
				if !ok {
					session, id = "s1", what
				}
				if files[name] = agentText(session, id); what == "?" {
					files[name] = "no JSON\n"
				}
			}
			_, r := readFile(t, "/home/11.jsonl", files)
			var ids []string
			for _, k := range children(t, r) {
				ids = append(ids, k.Header.ID)
				if k.Header.Parent != r.header.ID || k.Talk(t, "") != "u:x1 a:x2" {
					t.Errorf("%+v: %s", k.Header, k.Talk(t, ""))
				}
			}
			if got := strings.Join(ids, " "); got != c.want || len(r.Diagnostics()) != c.notes {
				t.Errorf("children %q, want %q; %v", got, c.want, r.Diagnostics())
			}
		})
	}
}

// TestListedNames: the reader opens nothing outside of the folders that it listed, whatever the list contains. A list
// that fails is reported and hides nothing.
func TestListedNames(t *testing.T) {
	broken := errors.New("broken")
	var asked []string
	src := source("11.jsonl", map[string]string{"11.jsonl": file(node{id: "u1", typ: "user"}), "agent-a.jsonl": agentText("s1", "a")})
	beside := src.Beside
	src.Beside = func(name string) (io.ReadCloser, error) {
		asked = append(asked, name)
		return beside(name)
	}
	src.List = func(dir string) ([]string, error) {
		switch dir {
		case "11/subagents":
			return []string{"../agent-x.jsonl", "/etc/agent-x.jsonl", "11/subagents/../../agent-x.jsonl", "agent-x.jsonl", `11/subagents\agent-x.jsonl`, ".jsonl", ""}, fs.ErrNotExist
		case "s1/subagents":
			return nil, broken
		case "11/workflows":
			return []string{"11/workflows/..json", "11/workflows/a b.json", "11/workflows/wf.js", "wf.json", "11/workflows/w/f.json"}, nil
		case "s1/workflows":
			return nil, fs.ErrNotExist
		case ".":
			return []string{"11.jsonl", "./agent-a.jsonl", "agent-a.jsonl", "agent-a.jsonl"}, nil
		}
		t.Errorf("%q is listed", dir)
		return nil, nil
	}
	r := NewReader(src, options())
	if kids := children(t, r); len(kids) != 1 || kids[0].Header.ID != "agent-a" {
		t.Errorf("%d children", len(kids))
	}
	if a := "agent-a.jsonl"; !slices.Equal(asked, []string{a, a, a}) { // for session, index and lines
		t.Errorf("opened %q", asked)
	}
	if d := r.Diagnostics(); len(d) != 1 || !strings.Contains(d[0].Detail, "broken") {
		t.Error(d)
	}
}

// counted is a file of another session, with a first line that does not end soon.
type counted struct {
	io.Reader
	read *int64
}

func (c counted) Read(p []byte) (int, error) {
	n, err := c.Reader.Read(p)
	*c.read += int64(n)
	return n, err
}

func (c counted) Close() error { return nil }

// TestManyStrangers: the number of names examined is bounded, and of another session's file only the beginning is read.
func TestManyStrangers(t *testing.T) {
	testutil.SkipLong(t)
	const names = maxListedFiles + 500
	opened, read := 0, int64(0)
	src := source("11.jsonl", map[string]string{"11.jsonl": file(node{id: "u1", typ: "user"})})
	long := strings.Repeat("x", 8<<20)
	src.Beside = func(string) (io.ReadCloser, error) {
		begin, end := `{"sessionId":"other"}`+"\n", ""
		if opened++; opened == 1 {
			begin, end = `{"long":"`, `","sessionId":"s1"}`
		}
		return counted{io.MultiReader(strings.NewReader(begin), strings.NewReader(long), strings.NewReader(end)), &read}, nil
	}
	src.List = func(dir string) (list []string, err error) {
		if dir != "." {
			return nil, nil
		}
		for i := range names {
			list = append(list, fmt.Sprintf("agent-%05d.jsonl", i))
		}
		return list, nil
	}
	r := NewReader(interop.Source{Name: src.Name, Open: src.Open, Beside: src.Beside, List: src.List}, options())
	if kids := children(t, r); len(kids) != 0 || opened != maxListedFiles {
		t.Errorf("%d children, %d opened", len(kids), opened)
	}
	if most := int64(maxOwnerHead + maxListedFiles*minOwnerHead); read > most {
		t.Errorf("%d MiB were read of %d files, want at most %d", read>>20, opened, most>>20)
	}
	if d := r.Diagnostics(); len(d) != 1 || !strings.Contains(d[0].Detail, "500 names are not looked at") {
		t.Error(d)
	}
}
