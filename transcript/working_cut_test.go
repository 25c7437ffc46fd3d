package transcript

import (
	"fmt"
	"testing"

	"pgregory.net/rapid"
)

// I16: where a bounded window begins depends on its path alone. Entry by entry, in batches, saved and restored, made of
// the whole path or of its end, a window shows the same.
func TestWindowDependsOnItsPathAlone(t *testing.T) {
	ends := 0
	rapid.Check(t, func(rt *rapid.T) {
		p := drawProfile(rt)
		bound := rapid.IntRange(300, 3000).Draw(rt, "bound")
		n := rapid.IntRange(1, 60).Draw(rt, "n")
		path := drawPath(rt, n)
		if rapid.Bool().Draw(rt, "pairs") {
			path = drawnPath(rt, n)
		}
		one, batch := NewWorkingContext(p, bound), NewWorkingContext(p, bound)
		from := 0
		for i, e := range path {
			whole := RestoreWorkingContext(p, bound, Settings{}, 0, path[:i+1])
			if !one.Push(e) {
				one = whole.Clone()
			}
			if rapid.IntRange(0, 4).Draw(rt, "save") == 0 {
				one = saved(one, p, bound)
			}
			sameWindow(rt, fmt.Sprintf("after entry %d", i), whole, one)
			if rapid.IntRange(0, 3).Draw(rt, "take") == 0 {
				if c := batch.Clone(); c.PushAll(path[from : i+1]) {
					batch = c
				} else {
					batch = whole.Clone()
				}
				from = i + 1
				sameWindow(rt, fmt.Sprintf("in a batch to entry %d", i), whole, batch)
			}
			cut := rapid.IntRange(0, i+1).Draw(rt, "cut")
			if end, ok := endOf(p, bound, path[:i+1], cut); ok {
				ends++
				sameWindow(rt, fmt.Sprintf("of the end from %d to %d", cut, i), whole, end)
			}
		}
	})
	if ends == 0 {
		t.Error("no window was made of the end of a path")
	}
}

func sameWindow(t *rapid.T, when string, want, got *WorkingContext) {
	if d := diff(want.Context(), got.Context()); d != "" {
		t.Fatalf("%s (-whole path +window):\n%s", when, d)
	}
	if want.Omitted() != got.Omitted() {
		t.Fatalf("%s: %d omitted, want %d", when, got.Omitted(), want.Omitted())
	}
}

// endOf is the window of a path of which the entries from cut on are given, and what stays of those before.
func endOf(p Profile, bound int, path []Entry, cut int) (*WorkingContext, bool) {
	if p == OMP || p == Atomic {
		return nil, false
	}
	sel := rulesOf(p).choose(path)
	from := max(0, sel.kept)
	if sel.boundary < 0 {
		from = 0
	}
	var stay []Entry
	omitted := 0
	for i, e := range path {
		switch {
		case e.Type == "context_edit":
			return nil, false
		case i < from || i >= cut:
		case i == sel.boundary, e.Type == "branch_summary":
			stay = append(stay, e)
		case e.Type == "message", e.Type == "custom_message":
			omitted++
		}
	}
	if from > cut {
		return nil, false
	}
	return RestoreEnd(p, bound, BuildContext(path[:cut], p).Settings, omitted, stay, path[cut:])
}

// A window that has its whole path is amended in place. Another one reports that it has to be made of the path again.
func TestWindowAmended(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		p := drawProfile(rt)
		bound := rapid.IntRange(300, 3000).Draw(rt, "bound")
		path := drawPath(rt, rapid.IntRange(1, 40).Draw(rt, "n"))
		w := RestoreWorkingContext(p, bound, Settings{}, 0, path)
		for range 3 {
			i := rapid.IntRange(0, len(path)-1).Draw(rt, "target")
			long := rapid.IntRange(1, 300).Draw(rt, "long")
			body := fmt.Appendf(nil, `{"message":{"role":"user","content":"%0*d"}}`, long, i)
			if rapid.Bool().Draw(rt, "hide") {
				body = nil
			}
			d, err := path[i].Amend(body, false)
			if err != nil {
				continue
			}
			l, err := d.Parsed(fmt.Sprint("am", i, len(body)), "", path[i].Time)
			if err != nil {
				rt.Fatal(err)
			}
			a, _ := l.Entry(0).Amendment()
			path = append([]Entry(nil), path...)
			path[i] = path[i].Amended(a)
			if _, ok := w.Amend(a); !ok {
				w = RestoreWorkingContext(p, bound, Settings{}, 0, path)
			}
			sameWindow(rt, "amended", RestoreWorkingContext(p, bound, Settings{}, 0, path), w)
			checkBytes(rt, w)
		}
	})
}

// What a push costs above the bound does not grow with the window: entries are read again where the front moves only.
func TestWindowReadsAnEntryAFewTimes(t *testing.T) {
	const bound = 64 << 10
	w := NewWorkingContext(Coppice, bound)
	pushed, read := 0, 0
	for i, e := range longPath(20_000) {
		before := w.Omitted()
		if !w.Push(e) {
			t.Fatalf("push %d refused", i)
		}
		pushed += len(e.Raw)
		if w.Omitted() != before { // all that it held was read
			read += bound
		}
	}
	if most := 8 * pushed; read > most || read == 0 {
		t.Errorf("%d bytes were read to cut a path of %d, want at most %d", read, pushed, most)
	}
}

// A turn of the user ends what came before it: a late or repeated result holds nothing together. The window stays in
// its bound, and the result of a call that was cut off is left out.
func TestLateResultsHoldNothing(t *testing.T) {
	const bound = 16 << 10
	var lines []string
	add := func(id, message string) {
		lines = append(lines, `{"type":"message","id":"`+id+`","parentId":%P,"message":`+message+`}`)
	}
	add("u", `{"role":"user","content":"go"}`)
	add("a", `{"role":"assistant","content":[{"type":"toolCall","id":"call1","name":"n"}]}`)
	for i := range 400 {
		add(fmt.Sprint("u", i), fmt.Sprintf(`{"role":"user","content":"%0100d"}`, i))
	}
	add("r", `{"role":"toolResult","toolCallId":"call1","content":"late"}`)
	add("z", `{"role":"user","content":"and now"}`)
	path := chainOf(t, lines...)
	for _, path := range [][]Entry{path[:len(path)-1], path} {
		w := RestoreWorkingContext(Coppice, bound, Settings{}, 0, path)
		if w.Bytes() > bound || w.Bytes() < bound/4 {
			t.Errorf("%d bytes held of %d entries, the bound is %d", w.Bytes(), len(path), bound)
		}
		c := w.Context()
		for _, m := range c.Messages {
			if m.Entry == "r" {
				t.Error("the result is there without its call")
			}
		}
		if len(c.Messages)+c.Window.OmittedEntries != len(path) {
			t.Errorf("%d messages and %d omitted of %d", len(c.Messages), c.Window.OmittedEntries, len(path))
		}
	}
}

// drawnPath draws a path of turns with calls, some without a result, results without a call, and summaries.
func drawnPath(t *rapid.T, n int) (path []Entry) {
	for i := range n {
		e := Entry{Ordinal: uint64(i), ID: fmt.Sprint("e", i), Type: "message"}
		if i > 0 {
			e.ParentID = path[i-1].ID
		}
		body := ""
		call := rapid.IntRange(0, 5).Draw(t, "call")
		switch kind := rapid.IntRange(0, 19).Draw(t, "kind"); {
		case kind < 7:
			body = fmt.Sprintf(`"message":{"role":"user","content":"question %d"}`, i)
		case kind < 11:
			body = fmt.Sprintf(`"message":{"role":"assistant","content":[{"type":"text","text":"%060d"}],`+
				`"model":"m"}`, i)
		case kind < 14:
			body = fmt.Sprintf(`"message":{"role":"assistant","content":[{"type":"toolCall","id":"c%d","name":"n",`+
				`"arguments":{}}],"model":"m"}`, call)
		case kind < 17:
			body = fmt.Sprintf(`"message":{"role":"toolResult","toolCallId":"c%d","content":[]}`, call)
		case kind < 18:
			e.Type, body = "branch_summary", fmt.Sprintf(`"summary":"left %d","fromId":"x"`, i)
		case kind < 19:
			e.Type, body = "custom", `"customType":"x"`
		default:
			e.Type = "compaction"
			body = fmt.Sprintf(`"summary":"so far","firstKeptEntryId":"e%d","tokensBefore":1`, max(0, i-call*5))
		}
		e.Raw = fmt.Appendf(nil, `{"type":%q,"id":%q,"parentId":%q,%s}`, e.Type, e.ID, e.ParentID, body)
		path = append(path, e)
	}
	return path
}
