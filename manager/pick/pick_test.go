package pick_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	coppice "github.com/coppice-go/coppice"
	"github.com/coppice-go/coppice/backend/memory"
	"github.com/coppice-go/coppice/entry"
	"github.com/coppice-go/coppice/manager/pick"
)

func stored(t *testing.T, sessions ...coppice.SessionOptions) *coppice.Store {
	t.Helper()
	now := time.Date(2026, 11, 20, 10, 0, 0, 0, time.UTC)
	st, err := coppice.New(memory.New(), &coppice.Options{Now: func() time.Time {
		now = now.Add(time.Millisecond)
		return now
	}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = st.Close() })
	for i, o := range sessions {
		s, err := st.Create(fmt.Sprint("s", i), &o)
		if err == nil {
			_, err = s.Append(t.Context(), entry.User(fmt.Sprint("say ", i)))
		}
		if err == nil {
			_, err = s.Commit(t.Context(), coppice.Turn{})
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return st
}

func found(t *testing.T, st *coppice.Store, o pick.Options) string {
	t.Helper()
	var list []string
	for f, err := range pick.Sessions(context.Background(), st, o) {
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, strings.Repeat(">", f.Depth)+f.ID)
	}
	return strings.Join(list, " ")
}

func TestQueriesAndOrders(t *testing.T) {
	st := stored(t,
		coppice.SessionOptions{Title: "Tide table rework", Cwd: "/home/x/tideline"},
		coppice.SessionOptions{Cwd: "/w"},
		coppice.SessionOptions{Title: "fix #12: table of tides", Cwd: "/w", Parent: "s0"},
		coppice.SessionOptions{Title: "rework", Cwd: "/w", Parent: "s2"},
		coppice.SessionOptions{Title: "lost child", Cwd: "/w", Parent: "nosuch"},
	)
	for name, tt := range map[string]struct {
		o    pick.Options
		want string
	}{
		"all, newest first":          {pick.Options{}, "s4 s3 s2 s1 s0"},
		"of a directory":             {pick.Options{Cwd: "/w"}, "s4 s3 s2 s1"},
		"named only":                 {pick.Options{Named: true}, "s4 s3 s2 s0"},
		"limit":                      {pick.Options{Limit: 2}, "s4 s3"},
		"a word":                     {pick.Options{Query: "REWORK"}, "s3 s0"},
		"fuzzy":                      {pick.Options{Query: "tdtbl"}, "s0"},
		"all words":                  {pick.Options{Query: "table rework"}, "s0"},
		"a phrase":                   {pick.Options{Query: `"table of"`}, "s2"},
		"a phrase that is elsewhere": {pick.Options{Query: `"of table"`}, ""},
		"a pattern":                  {pick.Options{Query: `re:fix\s+#\d+`}, "s2"},
		"by id":                      {pick.Options{Query: `"s4"`}, "s4"},
		"the preview":                {pick.Options{Query: `"say 1"`}, "s1"},
		"the folder":                 {pick.Options{Query: "tideline"}, "s0"},
		"best first":                 {pick.Options{Query: "table", Sort: pick.Relevance}, "s0 s2"},
		"best first, limit":          {pick.Options{Query: "rework", Sort: pick.Relevance, Limit: 1}, "s3"},
		"threaded":                   {pick.Options{Sort: pick.Threaded}, "s4 s0 >s2 >>s3 s1"},
		"threaded, of a directory":   {pick.Options{Sort: pick.Threaded, Cwd: "/w"}, "s4 s2 >s3 s1"},
	} {
		if got := found(t, st, tt.o); got != tt.want {
			t.Errorf("%s: %s, want %s", name, got, tt.want)
		}
	}
	for _, o := range []pick.Options{{Query: "re:("}, {Sort: "size"}, {Query: strings.Repeat("x", 2000)}} {
		n := 0
		for _, err := range pick.Sessions(t.Context(), st, o) {
			if n++; err == nil {
				t.Errorf("%.40v: taken", o)
			}
		}
		if n != 1 {
			t.Errorf("%.40v: %d results", o, n)
		}
	}
}

// Parents that lead in a circle hide nobody.
func TestThreadsInACircle(t *testing.T) {
	st := stored(t, coppice.SessionOptions{Parent: "s1"}, coppice.SessionOptions{Parent: "s0"}, coppice.SessionOptions{Parent: "s2"},
		coppice.SessionOptions{Parent: "s1"})
	got := found(t, st, pick.Options{Sort: pick.Threaded})
	for i := range 4 {
		if strings.Count(got, fmt.Sprint("s", i)) != 1 {
			t.Errorf("s%d is not there once: %s", i, got)
		}
	}
}

// The first results come before the last session was looked at, and how far it is is told.
func TestProgressAndEarlyResults(t *testing.T) {
	st := stored(t, make([]coppice.SessionOptions, 5)...)
	var p pick.Progress
	o := pick.Options{Query: "say", Progress: func(now pick.Progress) {
		if now.Looked != p.Looked+1 {
			t.Errorf("from %+v to %+v", p, now)
		}
		p = now
	}}
	n := 0
	for range pick.Sessions(t.Context(), st, o) {
		if n++; p.Looked != n || p.Found != n || p.Total != 5 {
			t.Errorf("result %d after %+v", n, p)
		}
		if n == 3 {
			break
		}
	}
	if p.Looked != 3 {
		t.Errorf("it went on after the end: %+v", p)
	}
	p, o = pick.Progress{}, pick.Options{Cwd: "/nowhere", Progress: o.Progress}
	if got := found(t, st, o); got != "" || p != (pick.Progress{Looked: 5, Total: 5}) {
		t.Errorf("of a directory without sessions: %q, %+v", got, p)
	}
}

// Whole words before letters, close letters before far ones, the beginning before the end.
func TestWhatFitsBest(t *testing.T) {
	q, err := pick.Parse("abc")
	if err != nil {
		t.Fatal(err)
	}
	last := -1
	for _, text := range []string{"abc", "the abc", strings.Repeat("x", 300) + "abc", "ab-c", "a-b-c", "a\na--b--c"} {
		score, ok := q.Score(text)
		if !ok || score <= last {
			t.Errorf("%.20q: %d %v, after %d", text, score, ok, last)
		}
		last = score
	}
	for _, text := range []string{"", "acb", "ab", "a\nb\nc"} {
		if _, ok := q.Score(text); ok {
			t.Errorf("%q fits", text)
		}
	}
}

// A parent that a file of pi's names by its path is found by the id in it.
func TestThreadsByPath(t *testing.T) {
	st := stored(t, coppice.SessionOptions{}, coppice.SessionOptions{Parent: "/home/x/--a_b--/2026-01-02T03-04-05-000Z_s0.jsonl"},
		coppice.SessionOptions{Parent: `C:\a_b\2026-01-02T03-04-05-000Z_s1.jsonl`}, coppice.SessionOptions{Parent: "/home/x/gone.jsonl"})
	var got []string
	for f, err := range pick.Sessions(t.Context(), st, pick.Options{Sort: pick.Threaded}) {
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, fmt.Sprintf("%s@%d", f.ID, f.Depth))
	}
	if want := "s3@0 s0@0 s1@1 s2@2"; strings.Join(got, " ") != want {
		t.Errorf("%s, want %s", strings.Join(got, " "), want)
	}
}
