package manager_test

import (
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"
	"testing"

	coppice "github.com/coppice-go/coppice"
	"github.com/coppice-go/coppice/backend/memory"
	"github.com/coppice-go/coppice/entry"
	"github.com/coppice-go/coppice/internal/testutil"
	"github.com/coppice-go/coppice/internal/trace"
	"github.com/coppice-go/coppice/manager"
	"github.com/coppice-go/coppice/transcript"
)

// received is a line with an answer, on a day of March 2026.
func received(id, parent, response string, day, total int, more string) string {
	return fmt.Sprintf(`{"type":"message","id":%q,"parentId":%s,"timestamp":"2026-03-%02dT23:59:59.000Z",`+
		`"message":{"role":"assistant","content":"x","provider":"p","model":"m"%s%s,`+
		`"usage":{"input":%d,"output":0,"totalTokens":%d,"cost":{"total":%d}}}}`,
		id, quoted(parent), day, field("responseId", response), more, total, total, total)
}

func quoted(id string) string {
	if id == "" {
		return "null"
	}
	return `"` + id + `"`
}

func field(name, value string) string {
	if value == "" {
		return ""
	}
	return fmt.Sprintf(`,%q:%q`, name, value)
}

// head is the header line of a session file.
func head(id, parent string) string {
	return fmt.Sprintf(`{"type":"session","version":3,"id":%q,"timestamp":"2026-03-01T00:00:00.000Z","cwd":"/w"%s}`,
		id, field("parentSession", parent))
}

func drafts(lines []string) iter.Seq2[transcript.Draft, error] {
	return transcript.Drafts(lines...)
}

// take imports lines under an id.
func take(t *testing.T, st *coppice.Store, id string, lines ...string) {
	t.Helper()
	s := testutil.Must(st.Import(bg, drafts(lines), &coppice.SessionOptions{ID: id}))(t)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}

// spentIn returns "id own+inherited" of each session, by id, as a reader with the cache reports it, and checks that the
// parts add up to the whole.
func spentIn(t *testing.T, st *coppice.Store, cache *manager.UsageCache) string {
	t.Helper()
	var list []string
	r := manager.NewUsageReader(st, cache)
	for sum, err := range st.List(bg, coppice.ListOptions{}) {
		if err != nil {
			t.Fatal(err)
		}
		s := testutil.Must(st.Open(bg, sum.ID, &coppice.SessionOptions{ReadOnly: true}))(t)
		u := testutil.Must(r.Session(bg, s))(t)
		path := testutil.Must(r.Path(bg, s, s.Originals(bg)))(t)
		var grown float64
		growth := testutil.Must(r.Growth(bg, s))(t)
		for e, err := range s.Originals(bg) {
			if err != nil {
				t.Fatal(err)
			}
			grown += growth(e)
		}
		if u.Usage != path.Usage || u.Inherited != path.Inherited || grown != u.Cost {
			t.Errorf("%s: %+v, as a path %+v, grown to %g", sum.ID, u, path, grown)
		}
		for what, parts := range map[string]map[string]manager.Usage{"models": u.Models, "days": u.Days} {
			var all manager.Usage
			for _, part := range parts {
				all.Add(part)
			}
			if all != u.Usage {
				t.Errorf("%s of %s: %+v, want %+v", what, sum.ID, all, u.Usage)
			}
		}
		list = append(list, fmt.Sprintf("%s %d+%d", sum.ID, u.Total, u.Inherited.Total))
		_ = s.Close()
	}
	slices.Sort(list)
	return strings.Join(list, ", ")
}

// A response in several entries counts once, in its most complete form, whatever branches they are on.
func TestResponseCountsOnce(t *testing.T) {
	list := path(t,
		answer(`"model":"m","responseId":"r1","usage":{"input":10,"output":1}`),
		answer(`"model":"m","responseId":"r1","usage":{"input":10,"output":9}`),
		answer(`"model":"m","responseId":"r1","usage":{"input":10,"output":4}`),
		answer(`"model":"m","id":"msg_1","usage":{"input_tokens":100,"output_tokens":1}`),
		answer(`"model":"m","id":"msg_1","usage":{"input_tokens":100,"output_tokens":1}`),
		answer(`"model":"m","responseId":"r1","usage":{"input":0,"output":1000000}`), // a short id, with other input
		answer(`"model":"m","id":"own","usage":{"input":1000}`),                      // not a provider's id
		answer(`"model":"m","id":"own","usage":{"input":1000}`),
		answer(`"model":"m","origin":"codex:t:1","usage":{"input":10000}`),
		answer(`"model":"m","origin":"codex:t:1","usage":{"input":10000}`),
		answer(`"model":"m","origin":"codex:t:2","inherited":true,"usage":{"input":5}`),
	)
	claude := answer(`"model":"m","usage":{"input":100000}`)
	claude = strings.TrimSuffix(claude, "}") + `,"claudeCode":{"requestId":"req_1"}}`
	list = append(list, path(t, claude, `{"type":"label"}`, claude)...)
	u := testutil.Must(manager.SumUsage(sequence(list, nil)))(t)
	if u.Total != 1112120 || u.Answers != 7 || u.Output != 1000010 ||
		u.Models["m"] != u.Usage || u.Inherited.Total != 5 {
		t.Errorf("%+v", u)
	}
}

// An answer belongs to its own day, in UTC, and one without a time to none.
func TestUsageByDay(t *testing.T) {
	st := storeOn(t, memory.New())
	take(t, st, "s", head("s", ""), received("a", "", "", 1, 1, ""), received("b", "a", "", 2, 10, ""),
		received("c", "a", "", 1, 100, ""))
	s := testutil.Must(st.Open(bg, "s", nil))(t)
	u := testutil.Must(manager.SumUsage(s.Entries(bg)))(t)
	days := strings.Join(slices.Sorted(maps.Keys(u.Days)), " ")
	if days != "2026-03-01 2026-03-02" || u.Days["2026-03-01"].Total != 101 {
		t.Errorf("%+v", u.Days)
	}
}

// If several sessions contain a response it counts in the original, however the copy names it, and in any order of
// imports.
func TestCopiesCountOnce(t *testing.T) {
	a, b := received("a", "", "r1", 1, 1, ""), received("b", "a", "", 2, 10, "")
	c, d := received("c", "b", "r3", 3, 100, ""), received("d", "b", "r4", 4, 1000, "")
	ask := func(words string) string {
		return fmt.Sprintf(`{"type":"message","id":"q","parentId":null,"timestamp":"2026-03-01T00:00:00.000Z",`+
			`"message":{"role":"user","content":%q}}`, words)
	}
	marked := received("m", "", "r5", 1, 7, `,"inherited":true`)
	for name, tt := range map[string]struct {
		make func(st *coppice.Store)
		want string
	}{
		"a fork of a fork": {func(st *coppice.Store) {
			take(t, st, "s", head("s", ""), a, b, c)
			s := testutil.Must(st.Open(bg, "s", nil))(t)
			f := testutil.Must(s.Fork(bg, coppice.Target{Entry: "b"}, "t", nil))(t)
			testutil.Must(f.Append(bg, entry.Line([]byte(d))))(t)
			testutil.Must(f.Commit(bg, coppice.Turn{}))(t)
			testutil.Must(f.Fork(bg, coppice.Target{}, "u", nil))(t)
		}, "s 111+0, t 1000+11, u 0+1011"},
		"a session that was resumed in another file": {func(st *coppice.Store) {
			take(t, st, "resumed", head("resumed", "s"), a, b, d)
			take(t, st, "s", head("s", ""), a, b, c)
		}, "resumed 1000+11, s 111+0"},
		"a parent that is named by its file": {func(st *coppice.Store) {
			take(t, st, "t", head("t", "/home/u/.pi/agent/sessions/--w--/2026-03-01T00-00-00-000Z_s.jsonl"), a, b, d)
			take(t, st, "s", head("s", ""), a, b, c)
		}, "s 111+0, t 1000+11"},
		"one file, twice": {func(st *coppice.Store) {
			take(t, st, "again", head("s", ""), a, b, c)
			take(t, st, "s", head("s", ""), a, b, c)
		}, "again 0+111, s 111+0"},
		"forks of a session that is deleted": {func(st *coppice.Store) {
			take(t, st, "t", head("t", "s"), a, b, c)
			take(t, st, "u", head("u", "s"), a, b, d)
		}, "t 111+0, u 1000+11"},
		"copies that begin with the same words, with no link": {func(st *coppice.Store) {
			take(t, st, "other", head("other", ""), ask("chart the reef"), received("o", "q", "r9", 1, 500, ""))
			take(t, st, "s", head("s", ""), ask("chart the reef"), a, b)
			take(t, st, "t", head("t", ""), ask("chart the reef"), a, b, c)
			take(t, st, "u", head("u", ""), ask("chart the bay"), d)
		}, "other 500+0, s 11+0, t 100+11, u 1000+0"},
		"an agent that has its parent's words and date": {func(st *coppice.Store) {
			take(t, st, "agent", head("agent", "s"), ask("chart the reef"), a, b, d)
			take(t, st, "s", head("s", ""), ask("chart the reef"), a, b)
		}, "agent 1000+11, s 11+0"},
		"a copy that is more complete than the original": {func(st *coppice.Store) {
			for parent, id := range map[string]string{"": "s", "s": "t", "t": "u"} {
				total := map[string]int{"s": 1, "t": 5, "u": 7}[id]
				take(t, st, id, head(id, parent), received("a", "", "msg_01RAjf8tTZqPSBPJcYRh", 1, total, ""), b)
			}
		}, "s 11+0, t 4+11, u 2+15"},
		"parents in a circle": {func(st *coppice.Store) {
			take(t, st, "t", head("t", "u"), a, b, c)
			take(t, st, "u", head("u", "t"), a, b, d)
		}, "t 111+0, u 1000+11"},
		"a copy that is marked, without its original": {func(st *coppice.Store) {
			take(t, st, "t", head("t", "s"), marked, d)
			take(t, st, "u", head("u", "s"), marked)
		}, "t 1000+7, u 0+7"},
		"unrelated sessions with one id": {func(st *coppice.Store) {
			take(t, st, "t", head("t", ""), a)
			take(t, st, "u", head("u", "t"), received("a", "", "", 1, 1, ""))
		}, "t 1+0, u 1+0"},
		"a parent that is no id": {func(st *coppice.Store) {
			take(t, st, "t", head("t", `C:\a b\c.jsonl`), a)
		}, "t 1+0"},
	} {
		t.Run(name, func(t *testing.T) {
			st := storeOn(t, memory.New())
			tt.make(st)
			cache := &manager.UsageCache{}
			for _, c := range []*manager.UsageCache{nil, cache, cache} {
				if got := spentIn(t, st, c); got != tt.want {
					t.Errorf("%s, want %s", got, tt.want)
				}
			}
		})
	}
}

// Cached usage is never older than the sessions: neither for the session nor for those that it is compared with.
func TestUsageCacheFollows(t *testing.T) {
	st, cache := storeOn(t, memory.New()), &manager.UsageCache{}
	check := func(want string) {
		t.Helper()
		for range 2 {
			if got := spentIn(t, st, cache); got != want {
				t.Errorf("%s, want %s", got, want)
			}
		}
	}
	a, b := received("a", "", "r1", 1, 1, ""), received("b", "a", "r2", 2, 10, "")
	take(t, st, "copy", head("copy", "s"), a, b)
	check("copy 11+0")
	take(t, st, "s", head("s", ""), a)
	check("copy 10+1, s 1+0")
	s := testutil.Must(st.Open(bg, "s", nil))(t)
	more := func(line string) {
		t.Helper()
		testutil.Must(s.Append(bg, entry.Line([]byte(line))))(t)
		testutil.Must(s.Commit(bg, coppice.Turn{}))(t)
	}
	more(received("c", "a", "r3", 3, 100, ""))
	check("copy 10+1, s 101+0")
	more(b)
	check("copy 0+11, s 111+0")
	if err := st.Delete(bg, "s"); err != nil {
		t.Fatal(err)
	}
	check("copy 11+0")
}

// If a session has grown only its new entries are read; if it has not, nothing is read.
func TestUsageReadsWhatIsNew(t *testing.T) {
	b := trace.New(memory.New())
	st, cache := storeOn(t, b), &manager.UsageCache{}
	answer := func(n, total int) string {
		return received(fmt.Sprint("e", n, "-", total), "", fmt.Sprintf("response-of-many-letters-%d", n), 1, total, "")
	}
	lines := []string{head("s", "")}
	for i := range 3000 {
		lines = append(lines, answer(i, 1))
	}
	take(t, st, "s", lines...)
	read := func(want int64) int64 {
		t.Helper()
		s := testutil.Must(st.Open(bg, "s", &coppice.SessionOptions{ReadOnly: true}))(t)
		defer func() { _ = s.Close() }()
		before := b.IO()
		u := testutil.Must(manager.NewUsageReader(st, cache).Session(bg, s))(t)
		if u.Total != want {
			t.Errorf("%d tokens, want %d", u.Total, want)
		}
		return b.IO().Sub(before).BytesRead
	}
	first, same := read(3000), read(3000)
	s := testutil.Must(st.Open(bg, "s", nil))(t)
	testutil.Must(s.Append(bg, entry.Line([]byte(answer(0, 2))), entry.Line([]byte(answer(3000, 5)))))(t)
	testutil.Must(s.Commit(bg, coppice.Turn{}))(t)
	if grown := read(3006); grown > first/2 || same > first/10 {
		t.Errorf("read %d bytes first, %d again and %d after a commit", first, same, grown)
	}
}
