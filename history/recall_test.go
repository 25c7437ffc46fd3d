package history

import (
	"fmt"
	"strings"
	"testing"

	coppice "github.com/coppice-go/coppice"
)

// Prompts come newest first, the same one after the other once, each with how often it was typed.
func TestRecall(t *testing.T) {
	t.Parallel()
	st, x := store(t, coppice.Hooks{}), index(t)
	a := create(t, st, "a", "/a", "> run the tests", "done", "> run the tests", "done", "> fix it")
	create(t, st, "b", "/b", "> Run them", "> deploy 部署")
	say(t, a, "> run the tests", "assistant says run")
	update(t, x, st)
	recall := func(query string, o *RecallOptions) string {
		list, more, err := x.Recall(t.Context(), query, o)
		ok(t, err)
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
