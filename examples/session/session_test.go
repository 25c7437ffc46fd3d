package session_test

import (
	"encoding/json"
	"regexp"
	"strings"
	"testing"

	"github.com/coppice-go/coppice/examples/session"
)

type anyEntry struct {
	Type, ID, ParentID, FirstKeptEntryID, TargetID, FromID, Timestamp string

	Message struct {
		Role, ToolCallID string
		Content          []struct{ Type, ID string }
	}
}

// TestSessionIsWhole checks what the file promises its readers.
func TestSessionIsWhole(t *testing.T) {
	lines := strings.Split(strings.TrimSuffix(string(session.JSONL()), "\n"), "\n")
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

// checkKept expects the compaction on the path to the head, with the entries that it keeps.
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
