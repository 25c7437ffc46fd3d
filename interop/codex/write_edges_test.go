package codex

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestWriteKept: the entries that a compaction keeps follow its summary, with the time of the compaction: without the
// program's own messages, and with text in place of a result whose call is not kept.
func TestWriteKept(t *testing.T) {
	s := talk{Header: begun}
	s.message("u1", "", ask("one"))
	s.message("a1", "u1", replied(call("k", "n", "{}")))
	s.message("s1", "a1", `{"role":"system","content":"rules",`+at+`}`)
	s.message("r1", "s1", gave("k", "given"))
	s.message("a2", "r1", replied(text("two")))
	s.add("c", "a2", "compaction", `"summary":"short","firstKeptEntryId":"s1"`)
	s.message("u2", "c", ask("three"))
	file, losses := s.write(t, "u2")
	same(t, &s, "u2", file)
	if diff := cmp.Diff([]string{"s:short", "s:given", "a:two", "s:three"}, heard(t, rebuilt(valid(t, file)))); diff != "" || losses[lostResult] != 1 {
		t.Errorf("%v\n%s", losses, diff)
	}
	if !strings.Contains(file, `{"timestamp":"2026-01-01T00:00:05.000Z","type":"compacted"`) {
		t.Errorf("the compaction has another's time\n%s", file)
	}
}

// TestWriteIDs: each call has an id of its own, and its result the same one.
func TestWriteIDs(t *testing.T) {
	s := talk{Header: begun}
	s.message("u", "", ask("q"))
	parent := "u"
	for _, id := range []string{"1", "2", "3"} {
		s.message("a"+id, parent, replied(call("same", "n", `{"n":`+id+`}`)+","+call(strings.Repeat("long", 20), "n", "{}")))
		s.message("r"+id, "a"+id, gave("same", id))
		s.message("l"+id, "r"+id, gave(strings.Repeat("long", 20), "l"+id))
		parent = "l" + id
	}
	file, losses := s.write(t, parent)
	same(t, &s, parent, file)
	if losses[lostCallID] != 5 || losses[lostResult] > 0 || losses[lostAborted] > 0 {
		t.Errorf("%v\n%s", losses, file)
	}
}

// TestWriteApart: a reader separates answers without a count; images are the user's; thinking that only looks like
// Codex's is not written.
func TestWriteApart(t *testing.T) {
	uncounted := func(s string) string { return `{"role":"assistant","content":"` + s + `"}` }
	s := talk{Header: begun}
	s.message("u", "", ask("q"))
	s.message("a1", "u", uncounted("1"))
	s.message("a2", "a1", uncounted("2"))
	s.add("m", "a2", "custom_message", `"customType":"x","content":[`+text("look")+`,{"type":"image","data":"AAAA","mimeType":"image/png"}],"display":true`)
	s.message("cx-9", "m", replied(`{"type":"thinking","thinking":"hm","thinkingSignature":`+quoted(`{"type":"reasoning","summary":"none"}`)+`},`+text("3")))
	file, losses := s.write(t, "cx-9")
	same(t, &s, "cx-9", file)
	back, _ := taken(t, file)
	if n := strings.Count(strings.Join(back.lines, ""), `"role":"assistant"`); n != 3 {
		t.Errorf("%d answers\n%s", n, file)
	}
	if strings.Contains(file, `"role":"developer"`) || losses[lostThinking] != 1 {
		t.Errorf("%v\n%s", losses, file)
	}
}

// TestWriteForward: an entry before its parent begins the path, and is a loss.
func TestWriteForward(t *testing.T) {
	s := talk{Header: begun}
	s.message("b", "a", ask("child"))
	s.message("a", "", ask("parent"))
	s.message("c", "b", ask("grandchild"))
	file, losses := s.write(t, "c")
	got := heard(t, rebuilt(valid(t, file)))
	if !slices.Equal(got, []string{"s:child", "s:grandchild"}) || losses[lostOrphan] != 1 {
		t.Errorf("%v, %v", got, losses)
	}
}

// TestContinueTorn: an incomplete last line is ended before the first line that is appended.
func TestContinueTorn(t *testing.T) {
	s, tip := taken(t, threeTurns)
	known := len(s.lines)
	s.message("n1", tip, ask("more"))
	torn := threeTurns + `{"timestamp":`
	for original, want := range map[string]string{threeTurns: "{", torn: "\n{", strings.TrimSuffix(threeTurns, "\n"): "\n{"} {
		if file, _ := s.goOn(t, original, known, "n1"); !strings.HasPrefix(file, original+want) {
			t.Errorf("behind %q: %q", original[len(original)-10:], file[len(original):][:10])
		}
	}
}

// TestContinueOwed: a call that stays while its result is rolled back gets an output.
func TestContinueOwed(t *testing.T) {
	original := metaOf + user("one") + calls("c1") + user("two") + user("three") + output("c1", "late")
	for at, want := range map[string]string{
		`"text":"two"`: "thread_rolled_back-1 function_call_output task_started message user_message", `"type":"toolCall"`: "thread_rolled_back-2 function_call_output",
	} {
		s, _ := taken(t, original)
		known, head := len(s.lines), s.at(t, at)
		if strings.Contains(want, "message") {
			s.message("n1", head, ask("more"))
			head = "n1"
		}
		file, losses := s.goOn(t, original, known, head)
		paired(t, rebuilt(valid(t, file)))
		if got := kindsOf(t, strings.TrimPrefix(file, original)); got != want || losses[lostAborted] != 1 {
			t.Errorf("%s, want %s: %v", got, want, losses)
		}
	}
}

// TestContinueTwoOutputs: where a rollout has two calls with one id, a compaction keeps one output for it, and the
// other one as text.
func TestContinueTwoOutputs(t *testing.T) {
	original := metaOf + user("one") + calls("k") + calls("k") + output("k", "first") + output("k", "second")
	s, tip := taken(t, original)
	known := len(s.lines)
	s.add("c", tip, "compaction", `"summary":"short","firstKeptEntryId":`+quoted(s.at(t, `"text":"one"`)))
	s.message("u", "c", ask("more"))
	file, losses := s.goOn(t, original, known, "u")
	got := heard(t, rebuilt(valid(t, file)))
	ls := `c:shell{"command":["ls"]}`
	want := []string{"s:short", "s:one", ls, ls, "r:first", "s:second", "s:more"}
	if diff := cmp.Diff(want, got); diff != "" || losses[lostResult] != 1 {
		t.Errorf("%v\n%s", losses, diff)
	}
}

// BenchmarkWrite measures the writing of 20,000 turns of 2 KiB.
func BenchmarkWrite(b *testing.B) {
	s := talk{Header: begun}
	parent, size := "", 0
	for i := range 20_000 {
		id := fmt.Sprint(i)
		s.message("u"+id, parent, ask(strings.Repeat("word ", 100)))
		s.message("a"+id, "u"+id, replied(text(strings.Repeat("word ", 100))+","+call("k"+id, "read", `{"path":"x"}`)))
		s.message("r"+id, "a"+id, gave("k"+id, strings.Repeat("word ", 200)))
		parent = "r" + id
	}
	for _, l := range s.lines {
		size += len(l)
	}
	b.SetBytes(int64(size))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Write(io.Discard, s.Header, s.all(), parent); err != nil {
			b.Fatal(err)
		}
	}
}

// TestWriteLate: a result after a compaction that dropped its call is text. A compaction that keeps the call again
// keeps it as the call's result.
func TestWriteLate(t *testing.T) {
	for _, c := range []struct{ kept, want string }{{"a1", "s:short c:n{} s:wait r:late"}, {"u1", "s:short s:wait s:late"}} {
		s := talk{Header: begun}
		s.message("a1", "", replied(call("k", "n", "{}")))
		s.message("u1", "a1", ask("wait"))
		s.add("c1", "u1", "compaction", `"summary":"first","firstKeptEntryId":null`)
		s.message("r1", "c1", gave("k", "late"))
		s.add("c2", "r1", "compaction", `"summary":"short","firstKeptEntryId":`+quoted(c.kept))
		file, losses := s.write(t, "c2")
		same(t, &s, "c2", file)
		if got := strings.Join(heard(t, rebuilt(valid(t, file))), " "); got != c.want || losses[lostResult] == 0 {
			t.Errorf("kept from %s: %s: want %s, %v\n%s", c.kept, got, c.want, losses, file)
		}
	}
}
