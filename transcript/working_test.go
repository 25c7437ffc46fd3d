package transcript

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/coppice-go/coppice/internal/testutil"
)

// drawPath makes a random path: turns, calls answered at once, late or never, compactions that keep from
// anywhere or nowhere, settings, edits, summaries and entries that add nothing.
func drawPath(t *rapid.T, n int) []Entry {
	path := make([]Entry, 0, n)
	var calls []string
	pick := func(label string) string { // an id on the path, ahead, or nowhere
		i := rapid.IntRange(-1, n).Draw(t, label)
		if i < 0 || i == n {
			return "nowhere"
		}
		return fmt.Sprintf("e%d", i)
	}
	for i := range n {
		e := map[string]any{"id": fmt.Sprintf("e%d", i), "timestamp": "2026-01-01T00:00:00.000Z", "parentId": nil}
		if i > 0 {
			e["parentId"] = path[i-1].ID
		}
		pad := strings.Repeat("x", rapid.IntRange(0, 60).Draw(t, "pad"))
		e["type"] = "message"
		switch rapid.IntRange(0, 19).Draw(t, "kind") {
		case 0, 1, 2, 3:
			e["message"] = map[string]any{"role": "user", "content": fmt.Sprint("u", i, pad)}
		case 4, 5, 6, 7:
			m := map[string]any{"role": "assistant", "provider": "p", "model": fmt.Sprint("m", i), "stopReason": rapid.SampledFrom([]string{"stop", "toolUse", "error", "aborted"}).Draw(t, "stop")}
			blocks := []any{map[string]any{"type": "text", "text": fmt.Sprint("a", i, pad)}}
			for k := range rapid.IntRange(0, 2).Draw(t, "calls") {
				id := fmt.Sprintf("k%d-%d", i, k)
				calls = append(calls, id)
				blocks = append(blocks, map[string]any{"type": "toolCall", "id": id, "name": "n", "arguments": map[string]any{}})
			}
			m["content"] = blocks
			e["message"] = m
		case 8, 9, 10:
			id := "none"
			if len(calls) > 0 {
				j := rapid.IntRange(max(0, len(calls)-3), len(calls)-1).Draw(t, "answer")
				id = calls[j]
				calls = append(calls[:j:j], calls[j+1:]...)
			}
			e["message"] = map[string]any{"role": "toolResult", "toolCallId": id, "content": fmt.Sprint("r", i, pad)}
		case 11:
			e["type"], e["summary"], e["tokensBefore"] = "compaction", fmt.Sprint("c", i, pad), i
			switch rapid.IntRange(0, 3).Draw(t, "keep") {
			case 0:
			case 1:
				e["firstKeptEntryId"] = pick("kept")
			default:
				e["firstKeptEntryId"] = fmt.Sprintf("e%d", max(0, i-rapid.IntRange(0, 8).Draw(t, "back")))
			}
			if rapid.Bool().Draw(t, "verbatim") {
				e["details"] = map[string]any{"strategy": "verbatim-lines"}
			}
		case 12:
			e["type"], e["summary"], e["fromId"] = "branch_summary", rapid.SampledFrom([]string{"", "b" + pad}).Draw(t, "summary"), "x"
		case 13:
			e["type"], e["content"], e["customType"], e["display"] = "custom_message", "n"+pad, "k", true
		case 14:
			e["type"], e["provider"], e["modelId"], e["model"] = "model_change", "q", fmt.Sprint("m", i), fmt.Sprint("q/m", i)
			if rapid.Bool().Draw(t, "role") {
				e["role"] = rapid.SampledFrom([]string{"default", "small"}).Draw(t, "which")
			}
		case 15:
			e["type"], e["thinkingLevel"] = "thinking_level_change", rapid.SampledFrom([]any{"high", "low", nil}).Draw(t, "level")
		case 16:
			e["type"], e["mode"] = "mode_change", fmt.Sprint("mode", i)
		case 17:
			e["type"], e["data"] = "custom", strings.Repeat("silent", 20)
		case 18:
			e["type"], e["targetId"], e["replacement"] = "context_edit", fmt.Sprintf("e%d", rapid.IntRange(0, i).Draw(t, "edited")), nil
			if rapid.Bool().Draw(t, "replace") {
				e["replacement"] = map[string]any{"content": "edited" + pad}
			}
		case 19:
			e["type"] = "reset_boundary"
		}
		raw, _ := json.Marshal(e)
		l, err := ParseLine(raw)
		if err != nil {
			t.Fatal(err)
		}
		path = append(path,
			Entry{Ordinal: uint64(i), ID: l.ID, ParentID: l.ParentID, Type: l.Type, Time: l.Time, Raw: raw})
	}
	return path
}

// diff is cmp.Diff, at once if there is none.
func diff(want, got any) string {
	if reflect.DeepEqual(want, got) {
		return ""
	}
	return cmp.Diff(want, got)
}

func drawProfile(t *rapid.T) Profile {
	return rapid.SampledFrom([]Profile{Coppice, Pi, OMP, Atomic, Operator}).Draw(t, "profile")
}

// saved is what a checkpoint keeps of a window, and takes it from.
func saved(w *WorkingContext, p Profile, bound int) *WorkingContext {
	entries := append([]Entry(nil), w.Entries()...)
	return RestoreWorkingContext(p, bound, w.Base(), w.Omitted(), entries)
}

// TestWindowEqualsBuildContext: entry by entry, saved and restored at random, rewound at random, an
// unbounded window shows what the whole path shows.
func TestWindowEqualsBuildContext(t *testing.T) {
	testutil.SkipLong(t)
	rapid.Check(t, func(t *rapid.T) {
		p := drawProfile(t)
		path := drawPath(t, rapid.IntRange(1, 30).Draw(t, "n"))
		w := NewWorkingContext(p, -1)
		rewinds := 0
		for i := 0; i < len(path); i++ {
			if !w.Push(path[i]) {
				w = RestoreWorkingContext(p, -1, Settings{}, 0, path[:i+1])
			}
			switch rapid.IntRange(0, 9).Draw(t, "then") {
			case 0, 1:
				w = saved(w, p, -1)
			case 2:
				c := w.Clone()
				c.Rewind(path[0].Ordinal)
				c.Push(Entry{Ordinal: 99, ID: "other", ParentID: path[0].ID, Type: "message", Raw: []byte(`{"message":{"role":"user"}}`)})
			case 3:
				if rewinds++; rewinds > 3 {
					break
				}
				back := rapid.IntRange(0, i).Draw(t, "back")
				before := w.Clone()
				if w.Rewind(uint64(back)) {
					i = back
				} else if d := diff(before.Context(), w.Context()); d != "" {
					t.Fatalf("a refused rewind changed the window:\n%s", d)
				}
			}
			want := BuildContext(path[:i+1], p)
			if d := diff(want, w.Context()); d != "" {
				t.Fatalf("after entry %d (-path +window):\n%s", i, d)
			}
			if leaf, ok := w.Leaf(); !ok || leaf.ID != path[i].ID {
				t.Fatalf("leaf %q, want %q", leaf.ID, path[i].ID)
			}
			if d := diff(want, saved(w, p, -1).Context()); d != "" {
				t.Fatalf("restored after entry %d (-path +window):\n%s", i, d)
			}
			checkBytes(t, w)
		}
	})
}

func checkBytes(t interface{ Fatalf(string, ...any) }, w *WorkingContext) {
	n := 0
	for _, e := range w.Entries() {
		n += len(e.Raw)
	}
	if n != w.Bytes() {
		t.Fatalf("Bytes %d, the lines have %d", w.Bytes(), n)
	}
}

// TestBoundedWindow: whatever the bound cuts, groups stay whole, summaries stay, the newest part stays, and
// the window reports what is missing.
func TestBoundedWindow(t *testing.T) {
	testutil.SkipLong(t)
	rapid.Check(t, func(t *rapid.T) {
		p := rapid.SampledFrom([]Profile{Coppice, Pi, Operator}).Draw(t, "profile")
		bound := rapid.IntRange(300, 4000).Draw(t, "bound")
		path := drawPath(t, rapid.IntRange(1, 40).Draw(t, "n"))
		w := NewWorkingContext(p, bound)
		for i, e := range path {
			if !w.Push(e) {
				w = RestoreWorkingContext(p, bound, Settings{}, 0, path[:i+1])
			}
			if rapid.IntRange(0, 9).Draw(t, "save") == 0 {
				w = saved(w, p, bound)
			}
			checkBytes(t, w)
			full, cut := BuildContext(path[:i+1], p), w.Context()
			checkCut(t, full, cut, w)
			back := w.Clone()
			if to := uint64(rapid.IntRange(0, i).Draw(t, "to")); back.Rewind(to) && to < uint64(i) {
				if d := diff(BuildContext(path[:to+1], p), back.Context()); d != "" {
					t.Fatalf("rewound from %d to %d (-rebuilt +rewound):\n%s", i, to, d)
				}
			}
		}
	})
}

func checkCut(t *rapid.T, full, cut Context, w *WorkingContext) {
	if cut.Settings != full.Settings || cut.Leaf != full.Leaf {
		t.Fatalf("settings and leaf %+v %q, want %+v %q", cut.Settings, cut.Leaf, full.Settings, full.Leaf)
	}
	if cut.Window.Complete != (w.Omitted() == 0) || cut.Window.Complete != (cut.Window.OmittedEntries == 0) {
		t.Fatalf("window %+v, omitted %d", cut.Window, w.Omitted())
	}
	if cut.Window.Complete {
		if d := diff(full, cut); d != "" {
			t.Fatalf("complete, and yet (-path +window):\n%s", d)
		}
		return
	}
	// What is there is a subsequence of what should be, with every summary and the last message.
	j := 0
	calls := map[string]bool{}
	for _, m := range full.Messages {
		summary := m.Role == "compactionSummary" || m.Role == "branchSummary"
		if j < len(cut.Messages) && string(cut.Messages[j].Raw) == string(m.Raw) && cut.Messages[j].Entry == m.Entry {
			j++
			for _, c := range Inspect(m.Raw).Calls {
				calls[c.ID] = true
			}
			continue
		}
		if summary {
			t.Fatalf("the summary %s is missing", m.Raw)
		}
	}
	if j != len(cut.Messages) {
		t.Fatalf("message %d of the window is not where it should be in the path's context", j)
	}
	for _, m := range cut.Messages {
		for _, r := range Inspect(m.Raw).Results {
			if !calls[r] {
				t.Fatalf("a result for %s without its call", r)
			}
		}
	}
	if n := len(full.Messages); n > 0 {
		last := full.Messages[n-1]
		lateResult := last.Role == "toolResult" // its call may have been cut off long ago
		if last.Entry == full.Leaf && !lateResult && (len(cut.Messages) == 0 || string(cut.Messages[len(cut.Messages)-1].Raw) != string(last.Raw)) {
			t.Fatalf("the newest message %s is missing", last.Raw)
		}
	}
}

// TestWindowStaysInItsBound pushes a long ordinary conversation: never over the bound, never under 3/8 of
// it once full, cut at a user's turn.
func TestWindowStaysInItsBound(t *testing.T) {
	testutil.SkipLong(t)
	const bound = 64 << 10
	path := longPath(4000)
	w := NewWorkingContext(Coppice, bound)
	cuts := 0
	for i, e := range path {
		before := w.Omitted()
		if !w.Push(e) {
			t.Fatalf("push %d refused", i)
		}
		if w.Omitted() != before {
			cuts++
			if c := w.Context(); c.Messages[0].Role != "user" {
				t.Fatalf("cut at a message of %s", c.Messages[0].Role)
			}
		}
		if w.Bytes() > bound || w.Omitted() > 0 && w.Bytes() < bound/8*3 {
			t.Fatalf("after %d entries: %d bytes", i+1, w.Bytes())
		}
	}
	if got := len(w.Context().Messages) + w.Omitted(); got != len(path) {
		t.Errorf("%d messages accounted for, want %d", got, len(path))
	}
	if cuts == 0 || cuts > len(path)/20 {
		t.Errorf("%d cuts", cuts)
	}
	restored := saved(w, Coppice, bound)
	if d := diff(w.Context(), restored.Context()); d != "" {
		t.Errorf("restored (-before +after):\n%s", d)
	}
	if w.Rewind(path[len(path)-2].Ordinal) {
		t.Error("rewound past a cut: more would fit there")
	}
	if !w.Rewind(path[len(path)-1].Ordinal) {
		t.Error("the leaf itself is no rewind")
	}
}

// TestWindowHoldsAGiantGroup: one group larger than the bound is kept whole while it is the newest.
func TestWindowHoldsAGiantGroup(t *testing.T) {
	var lines []string
	lines = append(lines, `{"type":"message","id":"u","parentId":%P,"message":{"role":"user","content":"go"}}`,
		`{"type":"message","id":"a","parentId":%P,"message":{"role":"assistant","content":[{"type":"toolCall","id":"k0","name":"n"},{"type":"toolCall","id":"k1","name":"n"}]}}`)
	for i := range 2 {
		lines = append(lines, fmt.Sprintf(`{"type":"message","id":"r%d","parentId":%%P,"message":{"role":"toolResult","toolCallId":"k%d","content":"%s"}}`, i, i, strings.Repeat("x", 2000)))
	}
	lines = append(lines, `{"type":"message","id":"z","parentId":%P,"message":{"role":"assistant","content":[]}}`)
	path := chainOf(t, lines...)
	w := NewWorkingContext(Coppice, 1000)
	var got []string
	for _, e := range path {
		if !w.Push(e) {
			t.Fatal("refused")
		}
		got = append(got, fmt.Sprint(len(w.Entries()), "/", w.Omitted()))
	}
	if want := "1/0 2/0 2/1 3/1 1/4"; strings.Join(got, " ") != want {
		t.Errorf("held/omitted %v, want %s", got, want)
	}
}

// TestWindowOfSilentEntries: heads of entries that add nothing do not gather without end.
func TestWindowOfSilentEntries(t *testing.T) {
	w := NewWorkingContext(Coppice, 10_000)
	parent := ""
	for i := range 5000 {
		e := Entry{Ordinal: uint64(i), ID: fmt.Sprint("e", i), ParentID: parent, Type: "custom"}
		e.Raw = fmt.Appendf(nil, `{"type":"custom","id":"e%d","parentId":"%s","customType":"state","data":"%s"}`, i, parent, strings.Repeat("d", 500))
		if i == 0 {
			e.Type, e.Raw = "message", []byte(`{"type":"message","id":"e0","message":{"role":"user","content":"hello"}}`)
		}
		if !w.Push(e) {
			t.Fatalf("push %d refused", i)
		}
		if w.Bytes() > 10_000 {
			t.Fatalf("after %d: %d bytes", i, w.Bytes())
		}
		parent = e.ID
	}
	if c := w.Context(); len(c.Messages) != 1 || !c.Window.Complete || c.Leaf != "e4999" {
		t.Errorf("context %v", c)
	}
	if w.Push(chainAfter(w, `{"type":"compaction","id":"c","summary":"S","firstKeptEntryId":"e7"}`)) {
		t.Error("a compaction that keeps from a head that was let go cannot be told")
	}
	if !w.Push(chainAfter(w, `{"type":"compaction","id":"c","summary":"S"}`)) {
		t.Error("a compaction that keeps nothing was refused")
	}
}

func chainAfter(w *WorkingContext, line string) Entry {
	leaf, _ := w.Leaf()
	l, _ := ParseLine([]byte(line))
	return Entry{Ordinal: leaf.Ordinal + 1, ID: l.ID, ParentID: leaf.ID, Type: l.Type, Raw: l.Raw}
}

// TestWindowAsksForTheWholePath: a window reports what it cannot know.
func TestWindowAsksForTheWholePath(t *testing.T) {
	user := func(id string) string {
		return `{"type":"message","id":"` + id + `","parentId":%P,"message":{"role":"user","content":"` + id + `"}}`
	}
	path := chainOf(t, user("a"), user("b"), `{"type":"compaction","id":"c","parentId":%P,"summary":"S","firstKeptEntryId":"b"}`, user("d"),
		`{"type":"compaction","id":"e","parentId":%P,"summary":"T","firstKeptEntryId":"a"}`, user("f"))
	w := NewWorkingContext(Pi, 0)
	for _, e := range path[:4] {
		if !w.Push(e) {
			t.Fatalf("%s refused", e.ID)
		}
	}
	if got := len(w.Entries()); got != 3 {
		t.Errorf("%d entries held, want b, c, d", got)
	}
	if w.Rewind(0) || w.Rewind(1) || !w.Clone().Rewind(2) {
		t.Error("only what the compaction did not let go can be gone back to")
	}
	if w.Push(path[5]) {
		t.Error("an entry with another parent was taken")
	}
	if w.Push(path[4]) {
		t.Error("a compaction that keeps from before the window was taken")
	}
	w = RestoreWorkingContext(Pi, 0, Settings{}, 0, path[:5])
	if !w.Push(path[5]) {
		t.Error("refused after rebuilding")
	}
	if d := diff(BuildContext(path, Pi), w.Context()); d != "" {
		t.Errorf("(-path +window):\n%s", d)
	}
	if got := w.Context().Messages; len(got) != 5 {
		t.Errorf("messages %v", got)
	}
}

// TestWindowFollowsLeafEntries: an entry that moves the head moves the window's leaf, or is refused.
func TestWindowFollowsLeafEntries(t *testing.T) {
	user := func(id string) string {
		return `{"type":"message","id":"` + id + `","parentId":%P,"message":{"role":"user","content":"` + id + `"}}`
	}
	path := chainOf(t, user("a"), user("b"), `{"type":"leaf","id":"l","parentId":%P,"targetId":"a"}`)
	for _, p := range []Profile{Coppice, Operator, Pi} {
		w := NewWorkingContext(p, 0)
		for _, e := range path {
			if !w.Push(e) {
				t.Fatal("refused")
			}
		}
		if d := diff(BuildContext(path, p), w.Context()); d != "" {
			t.Errorf("%q (-path +window):\n%s", p, d)
		}
		if d := diff(BuildContext(path, p), RestoreWorkingContext(p, 0, Settings{}, 0, path).Context()); d != "" {
			t.Errorf("%q restored (-path +window):\n%s", p, d)
		}
	}
	w := RestoreWorkingContext(Coppice, 0, Settings{}, 0, path)
	if leaf, _ := w.Leaf(); leaf.ID != "a" {
		t.Errorf("leaf %q", leaf.ID)
	}
	if !w.Push(chainAfter(w, `{"type":"leaf","id":"m","targetId":null}`)) || len(w.Entries()) != 0 {
		t.Error("moved before the first entry, the window is empty")
	}
	cut := chainOf(t, user("a"), `{"type":"compaction","id":"c","parentId":%P,"summary":"S"}`)
	w = RestoreWorkingContext(Coppice, 0, Settings{}, 0, cut)
	if w.Push(chainAfter(w, `{"type":"leaf","id":"m","targetId":"a"}`)) {
		t.Error("moved to where the window does not reach")
	}
}

// TestWindowOmitsResultsOfOmittedCalls: a result whose call the bound cut off is left out, in any provider's shape.
func TestWindowOmitsResultsOfOmittedCalls(t *testing.T) {
	for name, result := range map[string]string{
		"pi":        `{"role":"toolResult","toolCallId":"k","content":[{"type":"text","text":"x"}]}`,
		"anthropic": `{"role":"user","content":[{"type":"tool_result","tool_use_id":"k","content":"x"}]}`,
		"chat":      `{"role":"tool","tool_call_id":"k","content":"x"}`,
		"responses": `{"type":"function_call_output","call_id":"k","output":"x"}`,
		"gemini":    `{"role":"user","parts":[{"functionResponse":{"id":"k","name":"n","response":{"output":"x"}}}]}`,
	} {
		path := chainOf(t, `{"type":"message","id":"r","parentId":%P,"message":`+result+`}`,
			`{"type":"message","id":"u","parentId":%P,"message":{"role":"user","content":"go"}}`)
		c := RestoreWorkingContext(Coppice, -1, Settings{}, 2, path).Context()
		if len(c.Messages) != 1 || c.Messages[0].Entry != "u" || c.Window.OmittedEntries != 3 {
			t.Errorf("%s: %d messages, %d omitted, want 1 and 3", name, len(c.Messages), c.Window.OmittedEntries)
		}
	}
}
