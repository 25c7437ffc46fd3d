package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/coppice-go/coppice/examples/session"
)

func TestScriptGivesTheCommittedFile(t *testing.T) {
	out := filepath.Join(t.TempDir(), "session.jsonl")
	if err := run("../script.txt", out); err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(out)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, session.JSONL) {
		t.Error("session.jsonl is not what script.txt gives; run go generate ./examples/session")
	}
}

type anyEntry struct {
	Type, ID, ParentID, FirstKeptEntryID, TargetID, FromID, Timestamp string

	Message struct {
		Role, ToolCallID string
		Content          []struct{ Type, ID string }
	}
}

// TestSessionIsWhole holds what the file promises to those who read it.
func TestSessionIsWhole(t *testing.T) {
	lines := strings.Split(strings.TrimSuffix(string(session.JSONL), "\n"), "\n")
	if n := len(lines) - 1; n < 300 || n > 500 {
		t.Errorf("%d entries, want 300 to 500", n)
	}
	id := regexp.MustCompile(`^[0-9a-f]{8}$`)
	parent, calls, counts, children := map[string]string{"": ""}, map[string]bool{}, map[string]int{}, map[string]int{}
	last, lastTime := "", ""
	for i, line := range lines[1:] {
		var e anyEntry
		if err := json.Unmarshal([]byte(line), &e); err != nil {
			t.Fatalf("line %d: %v", i+2, err)
		}
		if _, known := parent[e.ParentID]; !known || !id.MatchString(e.ID) {
			t.Errorf("line %d: id %q, parent %q", i+2, e.ID, e.ParentID)
		}
		if _, twice := parent[e.ID]; twice || e.Timestamp <= lastTime {
			t.Errorf("line %d: id %q again, or time %s not after %s", i+2, e.ID, e.Timestamp, lastTime)
		}
		for _, target := range []string{e.FirstKeptEntryID, e.TargetID, e.FromID} {
			if _, known := parent[target]; !known {
				t.Errorf("line %d: speaks of %q, which is not above it", i+2, target)
			}
		}
		for _, b := range e.Message.Content {
			if b.Type == "toolCall" {
				calls[b.ID] = true
			}
		}
		if e.Message.Role == "toolResult" && !calls[e.Message.ToolCallID] {
			t.Errorf("line %d: a result without its call", i+2)
		}
		delete(calls, e.Message.ToolCallID)
		parent[e.ID] = e.ParentID
		children[e.ParentID]++
		counts[e.Type]++
		counts[e.Message.Role]++
		last, lastTime = e.ID, e.Timestamp
	}
	if children[""] != 1 {
		t.Errorf("%d roots", children[""])
	}
	forks := 0
	for _, n := range children {
		if n > 1 {
			forks++
		}
	}
	if forks != 3 || counts["compaction"] != 1 || counts["branch_summary"] != 1 || counts["label"] < 5 {
		t.Errorf("%d places with more than one version, %v", forks, counts)
	}
	checkKept(t, lines, parent, last)
}

// checkKept wants the compaction on the way to the head, and what it keeps from above it.
func checkKept(t *testing.T, lines []string, parent map[string]string, head string) {
	t.Helper()
	onPath := map[string]bool{}
	for id := head; id != ""; id = parent[id] {
		onPath[id] = true
	}
	for _, line := range lines[1:] {
		var e anyEntry
		if err := json.Unmarshal([]byte(line), &e); err != nil {
			t.Fatal(err)
		}
		if e.Type == "compaction" && (!onPath[e.ID] || !onPath[e.FirstKeptEntryID]) {
			t.Errorf("compaction %s keeps from %s: not both on the way to the head", e.ID, e.FirstKeptEntryID)
		}
	}
}

func TestScriptErrorsNameTheLine(t *testing.T) {
	tests := []struct{ name, script, want string }{
		{"text first", "hello\n", "line 1: text before"},
		{"unknown direction", ".user\nhi\n.dance\n", "line 3: .dance"},
		{"unknown mark", ".at nowhere\n", "line 1: .at nowhere: no such mark"},
		{"label without mark", ".label x y\n", "no such mark"},
		{"unknown file", ".read a.go\n", "no such file"},
		{"range outside", ".file a\nx\n.read a 5-9\n", "file has 1 lines"},
		{"edit that does not fit", ".file a\nx\n.edit a\ny\n=>\nz\n", "old text is 0 times"},
		{"edit of two places", ".file a\nx\nx\n.edit a\nx\n=>\nz\n", "old text is 2 times"},
		{"bad pattern", ".grep [\n", "missing closing"},
		{"bad pause", ".pause soon\n", "invalid duration"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := Play(tt.script)
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %v, want %q", err, tt.want)
			}
		})
	}
}

func TestToolsSeeTheFilesAsTheyAre(t *testing.T) {
	out, err := Play(".file a.go\none\ntwo\n.user\ngo\n.edit a.go\ntwo\n=>\nthree\n.then\n.read a.go 2-2\n.grep ^t a\n.then\n.bash! false\n")
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for line := range strings.Lines(string(out)) {
		var e struct {
			Message struct {
				Role    string
				IsError bool
				Content []struct{ Text string }
			}
		}
		if err := json.Unmarshal([]byte(line), &e); err != nil {
			t.Fatal(err)
		}
		if e.Message.Role == "toolResult" {
			got = append(got, e.Message.Content[0].Text)
		}
	}
	want := []string{"Successfully replaced text in a.go.", "three", "a.go:2: three", "\n\nCommand exited with code 1"}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
}
