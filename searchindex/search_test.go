package searchindex

import (
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	coppice "github.com/coppice-go/coppice"
	"github.com/coppice-go/coppice/entry"
	"github.com/coppice-go/coppice/internal/testutil"
	"github.com/coppice-go/coppice/transcript"
)

// What queries find, whatever is typed.
func TestQueries(t *testing.T) {
	t.Parallel()
	const jamo = "\u1112\u1161\u11a8\u110c\u1165\u11b7\u110b\u1175\u11ab\u110c\u1165\u11bc \uff26\uff55ll"
	const hangul = "\ud559\uc810\uc778\uc815"
	st, x := store(t), index(t)
	create(
		t, st, "s", "/srv/a",
		"> Where is the flaky timezone test?",
		"It is in clock_test.go:\n\nthe   timezone\tis read from the host.",
		"> 修复时区测试。日本語のテスト",
		"100% sure, a_b is not axb. \\o/",
		"> \x1b]0;title\x07 ESCAPED, degrees \u212a and \u0130stanbul",
		"go on",
		"\"quoted\" AND (NEAR x) * ^y col:z -w",
		"Straße ÉCOLE me\u017f\u017fage",
		jamo,
		hangul,
	)
	update(t, x, st)
	for _, c := range []struct{ query, want string }{
		{"timezone", "Where is the flaky timezone test? | It is in clock_test.go: the timezone is read from the host."},
		{"TimeZone FLAKY", "Where is the flaky timezone test?"},
		{`"the timezone"`, "It is in clock_test.go: the timezone is read from the host."},
		{`"the   timezone is`, "It is in clock_test.go: the timezone is read from the host."}, // a quote that is not closed
		{`"flaky test"`, ""},
		{"zone lock_te", "It is in clock_test.go: the timezone is read from the host."},
		{"时区", "修复时区测试。日本語のテスト"},
		{"日本語のテスト", "修复时区测试。日本語のテスト"},
		{"测 テ", "修复时区测试。日本語のテスト"},
		{"go", "go on | It is in clock_test.go: the timezone is read from the host."},
		{"0%", `100% sure, a_b is not axb. \o/`},
		{"a_", `100% sure, a_b is not axb. \o/`},
		{`\o`, `100% sure, a_b is not axb. \o/`},
		{"k", "]0;title ESCAPED, degrees \u212a and \u0130stanbul | It is in clock_test.go: the timezone is read from the host. | Where is the flaky timezone test?"},
		{"k\u00a0 \u0130st", "]0;title ESCAPED, degrees \u212a and \u0130stanbul"},
		{"istanbul", "]0;title ESCAPED, degrees \u212a and \u0130stanbul"},
		{"école STRASSE", "Straße ÉCOLE me\u017f\u017fage"},
		{"e\u0301cole", "Straße ÉCOLE me\u017f\u017fage"},
		{"ecole", "Straße ÉCOLE me\u017f\u017fage"},
		{"ss \u00e9c", "Straße ÉCOLE me\u017f\u017fage"},
		{hangul, hangul + " | " + jamo},
		{"\u1112\u1161\u11a8", hangul + " | " + jamo},
		{"\ud558", ""},
		{"\u30c6\u30b9\uff84", "修复时区测试。日本語のテスト"},
		{"\u30c7", ""},
		{"full", jamo},
		{"éc straße", "Straße ÉCOLE me\u017f\u017fage"},
		{"re:message", "Straße ÉCOLE me\u017f\u017fage"}, // as Unicode folds
		{"(NEAR", `"quoted" AND (NEAR x) * ^y col:z -w`},
		{"AND NEAR* OR", ""},
		{"col:z ^y * -w", `"quoted" AND (NEAR x) * ^y col:z -w`},
		{"escaped\x1b\x00", "]0;title ESCAPED, degrees \u212a and \u0130stanbul"},
		{"re:clock_\\w+\\.go", "It is in clock_test.go: the timezone is read from the host."},
		{"re:^where .* test\\?$", "Where is the flaky timezone test?"},
		{"re:(?m)^the\\s+timezone", "It is in clock_test.go: the timezone is read from the host."},
		{"re:a.b is", `100% sure, a_b is not axb. \o/`},
		{"re:", ""},
		{"", ""},
		{`""`, ""},
		{"  \t", ""},
		{`"`, ""},
		{strings.Repeat("x", 70), ""},
		{strings.Repeat("many words ", 2000), ""},
		{"\xff\xfe", ""},
	} {
		same(t, c.query, snippets(find(t, x, c.query, nil)), c.want)
	}
	for _, bad := range []string{"re:(", "re:" + strings.Repeat("a", 2000), "re:a{1001}"} {
		if _, err := Parse(bad); err == nil {
			t.Errorf("%.20s is no error", bad)
		}
	}
}

// Hits are ranked: more matches in fewer words first; equal ones, newest first.
func TestRanking(t *testing.T) {
	t.Parallel()
	st, x := store(t), index(t)
	filler := strings.Repeat("something else entirely. ", 40)
	create(t, st, "s", "/a", filler+"harbour", "harbour harbour harbour", "> the harbour", "nothing", "> the harbour")
	update(t, x, st)
	hits := find(t, x, "harbour", nil)
	if len(hits) != 4 || hits[0].Ordinal > hits[1].Ordinal || hits[1].Snippet != "the harbour" || hits[2].Snippet != "the harbour" {
		t.Fatalf("%+v", hits)
	}
	if !hits[1].Time.After(hits[2].Time) && hits[1].Ordinal < hits[2].Ordinal {
		t.Errorf("of two equal ones the older comes first")
	}
	last := hits[3].Snippet
	if !strings.HasPrefix(last, "…") || !strings.HasSuffix(last, "harbour") {
		t.Errorf("the snippet is %q", last)
	}
	for _, h := range hits {
		same(t, "mark", h.Snippet[h.Mark[0]:h.Mark[1]], "harbour")
	}
	first, more, err := x.Search(t.Context(), Words("harbour"), &SearchOptions{Limit: 3})
	testutil.OK(t, err)
	rest, none, err := x.Search(t.Context(), Words("harbour"), &SearchOptions{Limit: 3, Offset: 3})
	testutil.OK(t, err)
	if !more || none || len(first) != 3 || len(rest) != 1 || rest[0].Entry != hits[3].Entry {
		t.Errorf("pages: %v %v %d %d", more, none, len(first), len(rest))
	}
}

// What else than messages is found, and by what.
func TestWhatIsFound(t *testing.T) {
	t.Parallel()
	st, x := store(t), index(t)
	s := testutil.Must(st.Create("s", nil))(t)
	ids := testutil.Must(s.Append(
		t.Context(), entry.User("the question"), entry.Assistant("", entry.Call("c1", "bash", map[string]any{"command": "grep -rn needle .", "n": 41523, "deep": []any{"arrow"}})),
		entry.ToolResult("c1", "bash", "haystack: found", false),
		entry.CustomMessage("note", "an injected remark", true),
		entry.Custom("mine", map[string]string{"secret": "internal"}),
		entry.Message(map[string]any{"role": "assistant", "tool_calls": []any{map[string]any{"id": "x", "type": "function", "function": map[string]any{"name": "fetch", "arguments": `{"url":"gopher-hole"}`}}}}),
	))(t)
	testutil.Must(s.Commit(t.Context(), coppice.Turn{}))(t)
	testutil.Must(s.Label(t.Context(), ids[0], "marker stone"))(t)
	testutil.Must(
		s.Append(t.Context(), entry.Compaction("a summary of ruins", ids[0], 10), entry.Title("newly named")))(t)
	testutil.Must(s.Commit(t.Context(), coppice.Turn{}))(t)
	update(t, x, st)
	for query, want := range map[string]string{
		"needle": "assistant", "41523": "assistant", "arrow": "assistant", "bash": "assistant", "haystack": "toolResult", "injected": "custom_message",
		"internal": "", "gopher-hole": "assistant", "marker": "label", "ruins": "compaction", "newly": "session_info",
	} {
		got := ""
		for _, h := range find(t, x, query, nil) {
			if got = h.Role; got == "" {
				got = h.Type
			}
		}
		same(t, query, got, want)
	}
	prompts, _, err := x.Recall(t.Context(), "", nil)
	testutil.OK(t, err)
	if len(prompts) != 1 || prompts[0].Text != "the question" {
		t.Errorf("prompts: %+v", prompts)
	}
	same(t, "title", find(t, x, "needle", nil)[0].Title, "newly named")
}

// A search finds entries of all branches, and each hit names the branches that contain it.
func TestBranches(t *testing.T) {
	t.Parallel()
	st, x := store(t), index(t)
	s := create(t, st, "s", "/a", "> common root", "answer trunk")
	ids := say(t, s, "> left turn", "left leaf")
	testutil.Must(s.Label(t.Context(), ids[0], "left label"))(t)
	say(t, s, "> left further")
	update(t, x, st) // what comes now is read by itself
	testutil.Must(s.Branch(t.Context(), find(t, x, "trunk", nil)[0].Entry, &coppice.BranchOptions{Name: "right"}))(t)
	say(t, s, "> right turn", "right leaf")
	update(t, x, st)
	reach := func(x *Index) (out string) {
		for _, q := range []string{"common", "trunk", `"left turn"`, `"left leaf"`, `"left label"`, "further", `"right turn"`, `"right leaf"`} {
			hits := find(t, x, q, nil)
			if len(hits) != 1 {
				t.Fatalf("%s: %+v", q, hits)
			}
			out += strings.Join(hits[0].Branches, "+")
			if hits[0].OnHead {
				out += "*"
			}
			out += " "
		}
		return out
	}
	want := "main+right* main+right* main main main main right* right* "
	same(t, "step by step", reach(x), want)
	fresh := index(t)
	update(t, fresh, st)
	same(t, "at once", reach(fresh), want)
	prompts, _, err := x.Recall(t.Context(), "", nil)
	same(t, "err", err, nil)
	out := ""
	for _, p := range prompts {
		out += fmt.Sprintf("%s: %s %v; ", p.Text, strings.Join(p.Branches, "+"), p.OnHead)
	}
	same(t, "prompts", out, "right turn: right true; left further: main false; left turn: main false; common root: main+right true; ")
	tree := testutil.Must(s.Tree(t.Context()))(t)
	lines := NewLines(tree)
	for n := range tree.Nodes(transcript.FilterAll) {
		_, on := lines.Reach(n.Ordinal)
		if n.Type != "label" && on != n.OnPath {
			t.Errorf("%s is on the path: %v", n.ID, n.OnPath)
		}
	}
}

// Of one entry the first MaxText bytes are found, cut between runes; what is beyond is not, and harms nothing.
func TestLongText(t *testing.T) {
	t.Parallel()
	st, x := store(t), index(t)
	create(t, st, "s", "/a", "> head "+strings.Repeat("語", MaxText/3)+" tail", "> short")
	update(t, x, st)
	for q, want := range map[string]int{"head": 1, "語語": 1, "tail": 0, "short": 1} {
		same(t, q, len(find(t, x, q, nil)), want)
	}
	list, _, err := x.Recall(t.Context(), "head", nil)
	testutil.OK(t, err)
	if len(list) != 1 || len(list[0].Text) > MaxText || !utf8.ValidString(list[0].Text) {
		t.Errorf("%d prompts", len(list))
	}
}

// Filters limit the hits.
func TestFilters(t *testing.T) {
	t.Parallel()
	st, x := store(t), index(t)
	create(t, st, "one", "/a", "> stone here")
	create(t, st, "two", "/b", "> stone there")
	update(t, x, st)
	for _, o := range []SearchOptions{{Session: "two"}, {Cwd: "/b"}, {Session: "two", Cwd: "/b"}} {
		for _, q := range []string{"stone", "re:st.ne", "st"} {
			same(t, q, snippets(find(t, x, q, &o)), "stone there")
		}
	}
	if _, _, err := x.Search(t.Context(), Words("x"), &SearchOptions{Limit: -1}); err == nil {
		t.Error("a negative limit is no error")
	}
}
