package searchindex

import (
	"fmt"
	"strings"
	"testing"
	"time"

	coppice "github.com/coppice-go/coppice"
	"github.com/coppice-go/coppice/internal/testutil"
	"github.com/coppice-go/coppice/transcript"
)

// Prompts come newest first, equal adjacent ones once, each with the number of its uses.
func TestRecall(t *testing.T) {
	t.Parallel()
	st, x := store(t), index(t)
	a := create(t, st, "a", "/a", "> run the tests", "done", "> run the tests", "done", "> fix it")
	create(t, st, "b", "/b", "> Run them", "> deploy 部署")
	say(t, a, "> run the tests", "assistant says run")
	update(t, x, st)
	recall := func(query string, o *RecallOptions) string {
		list, more, err := x.Recall(t.Context(), query, o)
		testutil.OK(t, err)
		var out []string
		for _, p := range list {
			out = append(out, fmt.Sprintf("%s %s×%d", p.Session, p.Text, p.Uses))
		}
		if more {
			out = append(out, "more")
		}
		return strings.Join(out, ", ")
	}
	for _, c := range []struct {
		query string
		o     RecallOptions
		want  string
	}{
		{"", RecallOptions{}, "a run the tests×3, b deploy 部署×1, b Run them×1, a fix it×1, a run the tests×3"},
		{"", RecallOptions{Limit: 2}, "a run the tests×3, b deploy 部署×1, more"},
		{"", RecallOptions{Limit: 2, Offset: 3}, "a fix it×1, a run the tests×3"},
		{"", RecallOptions{Cwd: "/a"}, "a run the tests×3, a fix it×1, a run the tests×3"},
		{"", RecallOptions{Session: "b"}, "b deploy 部署×1, b Run them×1"},
		{"run", RecallOptions{}, "a run the tests×3, b Run them×1, a run the tests×3"},
		{"run tests", RecallOptions{}, "a run the tests×3"}, // what lies between does not match
		{"RUN  the T", RecallOptions{Prefix: true}, "a run the tests×3"},
		{"RUN  the", RecallOptions{Prefix: true, Session: "b"}, "b Run them×1"},
		{"the", RecallOptions{Prefix: true}, ""},
		{"r", RecallOptions{Prefix: true, Limit: 1}, "a run the tests×3, more"},
		{"部署", RecallOptions{}, "b deploy 部署×1"},
		{"re:^(fix|deploy)", RecallOptions{}, "b deploy 部署×1, a fix it×1"},
		{`"`, RecallOptions{Limit: 1}, "a run the tests×3, more"},
		{`"them`, RecallOptions{Prefix: true}, ""},
	} {
		same(t, c.query, recall(c.query, &c.o), c.want)
	}
	if _, _, err := x.Recall(t.Context(), "re:(", nil); err == nil {
		t.Error("a broken expression is no error")
	}
}

// Prompts copied by a fork count once.
func TestForksAreNotTypedAgain(t *testing.T) {
	t.Parallel()
	st, x := store(t), index(t)
	s := create(t, st, "s", "/a", "> run the tests", "done", "> and again", "done", "> run the tests")
	_ = testutil.Must(s.Fork(t.Context(), coppice.Target{}, "f", nil))(t)
	update(t, x, st)
	list := must2(x.Recall(t.Context(), "", nil))(t)
	same(t, "prompts", len(list), 3)
	same(t, "uses", []int{list[0].Uses, list[1].Uses}, []int{2, 1})
}

// Messages of an agent in a session that it began are no prompts, but can be searched.
func TestAgentsTypeNothing(t *testing.T) {
	t.Parallel()
	x := index(t)
	st := store(t)
	lines := transcript.Drafts(
		`{"type":"session","version":3,"id":"x","timestamp":"2026-03-02T09:00:00.000Z","cwd":"/in","internal":true,"agent":"explore"}`,
		`{"type":"message","id":"i1","parentId":null,"timestamp":"2026-03-02T09:00:00.000Z","message":{"role":"user","content":"look around"}}`,
	)
	_ = testutil.Must(st.Import(t.Context(), lines, nil))(t)
	create(t, st, "s", "/a", "> typed")
	update(t, x, st)
	same(t, "prompts", texts(t, x), "typed")
	same(t, "found", snippets(find(t, x, "look around", nil)), "look around")
}

// A skill of omp that a user called is what the user typed, in prompts and as the session's first words.
func TestSkillsAreTyped(t *testing.T) {
	t.Parallel()
	st, x := store(t), index(t)
	lines := transcript.Drafts(
		`{"type":"session","version":3,"id":"x","timestamp":"2026-03-02T09:00:00.000Z","cwd":"/in"}`,
		`{"type":"custom_message","id":"m1","parentId":null,"timestamp":"2026-03-02T09:00:00.000Z",`+
			`"customType":"skill-prompt","content":"Write as follows.","display":true,`+
			`"details":{"prompt":"/skill:report notes"},"attribution":"user"}`,
	)
	s := testutil.Must(st.Import(t.Context(), lines, nil))(t)
	update(t, x, st)
	same(t, "prompts", texts(t, x), "/skill:report notes")
	same(t, "first", s.Info().First, "/skill:report notes")
}

// Entries dated more than a day ahead, by a wrong clock, come last in prompts and in hits.
func TestWrongClocks(t *testing.T) {
	t.Parallel()
	st, x := store(t), index(t)
	create(t, st, "s", "/a", "> a1", "> a2", "> a3", "> a4")
	update(t, x, st)
	times := map[string]time.Time{}
	order := func() string {
		var out []string
		for offset := range 4 {
			list, _, err := x.Recall(t.Context(), "", &RecallOptions{Limit: 1, Offset: offset})
			testutil.OK(t, err)
			times[list[0].Text] = list[0].Time
			out = append(out, list[0].Text)
		}
		return strings.Join(out, " ")
	}
	same(t, "by time", order(), "a4 a3 a2 a1")
	x.now = func() time.Time { return times["a2"].Add(-24 * time.Hour) }
	same(t, "prompts", order(), "a2 a1 a4 a3")
	same(t, "found by a short word", snippets(find(t, x, "a", nil)), "a2 | a1 | a4 | a3")
}
