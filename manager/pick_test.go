package manager_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"testing"
	"time"

	coppice "github.com/coppice-go/coppice"
	"github.com/coppice-go/coppice/backend/memory"
	"github.com/coppice-go/coppice/entry"
	"github.com/coppice-go/coppice/internal/testutil"
	"github.com/coppice-go/coppice/manager"
	"github.com/coppice-go/coppice/transcript"
)

func stored(t *testing.T, sessions ...coppice.SessionOptions) *coppice.Store {
	t.Helper()
	now := testutil.Clock(time.Date(2026, 11, 20, 10, 0, 0, 0, time.UTC), time.Millisecond)
	st, err := coppice.New(memory.New(), &coppice.Options{Now: now})
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

func found(t *testing.T, st *coppice.Store, o manager.PickOptions) string {
	t.Helper()
	var list []string
	for f, err := range manager.Pick(context.Background(), st, o) {
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
		o    manager.PickOptions
		want string
	}{
		"all, newest first":          {manager.PickOptions{}, "s4 s3 s2 s1 s0"},
		"of a directory":             {manager.PickOptions{Cwd: "/w"}, "s4 s3 s2 s1"},
		"named only":                 {manager.PickOptions{Named: true}, "s4 s3 s2 s0"},
		"limit":                      {manager.PickOptions{Limit: 2}, "s4 s3"},
		"a word":                     {manager.PickOptions{Query: "REWORK"}, "s3 s0"},
		"fuzzy":                      {manager.PickOptions{Query: "tdtbl"}, "s0"},
		"all words":                  {manager.PickOptions{Query: "table rework"}, "s0"},
		"a phrase":                   {manager.PickOptions{Query: `"table of"`}, "s2"},
		"a phrase that is elsewhere": {manager.PickOptions{Query: `"of table"`}, ""},
		"a pattern":                  {manager.PickOptions{Query: `re:fix\s+#\d+`}, "s2"},
		"by id":                      {manager.PickOptions{Query: `"s4"`}, "s4"},
		"the preview":                {manager.PickOptions{Query: `"say 1"`}, "s1"},
		"the folder":                 {manager.PickOptions{Query: "tideline"}, "s0"},
		"best first":                 {manager.PickOptions{Query: "table", Sort: manager.SortRelevance}, "s0 s2"},
		"best first, limit":          {manager.PickOptions{Query: "rework", Sort: manager.SortRelevance, Limit: 1}, "s3"},
		"threaded":                   {manager.PickOptions{Sort: manager.SortThreaded}, "s4 s0 >s2 >>s3 s1"},
		"threaded, of a directory":   {manager.PickOptions{Sort: manager.SortThreaded, Cwd: "/w"}, "s4 s2 >s3 s1"},
	} {
		if got := found(t, st, tt.o); got != tt.want {
			t.Errorf("%s: %s, want %s", name, got, tt.want)
		}
	}
	for _, o := range []manager.PickOptions{{Query: "re:("}, {Sort: "size"}, {Query: strings.Repeat("x", 2000)}} {
		n := 0
		for _, err := range manager.Pick(t.Context(), st, o) {
			if n++; err == nil {
				t.Errorf("%.40v: taken", o)
			}
		}
		if n != 1 {
			t.Errorf("%.40v: %d results", o, n)
		}
	}
}

// A cycle of parents hides no session.
func TestThreadsInACircle(t *testing.T) {
	st := stored(t, coppice.SessionOptions{Parent: "s1"}, coppice.SessionOptions{Parent: "s0"}, coppice.SessionOptions{Parent: "s2"},
		coppice.SessionOptions{Parent: "s1"})
	got := found(t, st, manager.PickOptions{Sort: manager.SortThreaded})
	for i := range 4 {
		if strings.Count(got, fmt.Sprint("s", i)) != 1 {
			t.Errorf("s%d is not there once: %s", i, got)
		}
	}
}

// The first results are yielded before the last session is examined, and progress is reported.
func TestProgressAndEarlyResults(t *testing.T) {
	st := stored(t, make([]coppice.SessionOptions, 5)...)
	var p manager.PickProgress
	o := manager.PickOptions{Query: "say", Progress: func(now manager.PickProgress) {
		if now.Looked != p.Looked+1 {
			t.Errorf("from %+v to %+v", p, now)
		}
		p = now
	}}
	n := 0
	for range manager.Pick(t.Context(), st, o) {
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
	p, o = manager.PickProgress{}, manager.PickOptions{Cwd: "/nowhere", Progress: o.Progress}
	if got := found(t, st, o); got != "" || p != (manager.PickProgress{Looked: 5, Total: 5}) {
		t.Errorf("of a directory without sessions: %q, %+v", got, p)
	}
}

// Whole words before letters, close letters before distant ones, the beginning before the end.
func TestWhatFitsBest(t *testing.T) {
	q, err := manager.ParseQuery("abc")
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

// A parent that is the path of a pi file is found by the id in it.
func TestThreadsByPath(t *testing.T) {
	st := stored(t, coppice.SessionOptions{}, coppice.SessionOptions{Parent: "/home/x/--a_b--/2026-01-02T03-04-05-000Z_s0.jsonl"},
		coppice.SessionOptions{Parent: `C:\a_b\2026-01-02T03-04-05-000Z_s1.jsonl`}, coppice.SessionOptions{Parent: "/home/x/gone.jsonl"})
	var got []string
	for f, err := range manager.Pick(t.Context(), st, manager.PickOptions{Sort: manager.SortThreaded}) {
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, fmt.Sprintf("%s@%d", f.ID, f.Depth))
	}
	if want := "s3@0 s0@0 s1@1 s2@2"; strings.Join(got, " ") != want {
		t.Errorf("%s, want %s", strings.Join(got, " "), want)
	}
}

// Internal sessions of agents are hidden unless they are requested or pinned; a session is found by its first prompt.
func TestInternalSessions(t *testing.T) {
	st := stored(t, coppice.SessionOptions{Cwd: "/w"}, coppice.SessionOptions{Cwd: "/w"})
	header := entry.Line([]byte(`{"type":"session","version":3,"id":"x","cwd":"/w","internal":true,"workflow":{}}`))
	s, err := st.Import(t.Context(), func(yield func(transcript.Draft, error) bool) {
		_ = yield(header, nil) && yield(entry.User("collect the shells"), nil) && yield(entry.Assistant("done"), nil)
	}, &coppice.SessionOptions{ID: "own"})
	if err != nil {
		t.Fatal(err)
	}
	if info := s.Info(); !info.Internal || info.Name() != "collect the shells" {
		t.Errorf("%+v", info)
	}
	for want, o := range map[string]manager.PickOptions{
		"s1 s0":     {},
		"own s1 s0": {Internal: true},
		"own":       {Internal: true, Query: "shells"},
		"own s0":    {Pinned: []string{"own"}, Cwd: "/w", Query: "re:s0|own"},
	} {
		if got := found(t, st, o); got != want {
			t.Errorf("%+v: %s, want %s", o, got, want)
		}
	}
}

// Pinned sessions come first in every order, if they match, and once.
func TestPinnedComeFirst(t *testing.T) {
	st := stored(t,
		coppice.SessionOptions{Title: "table", Cwd: "/w"}, coppice.SessionOptions{Cwd: "/w"}, coppice.SessionOptions{Title: "the table"},
		coppice.SessionOptions{Title: "lost", Parent: "s0"}, coppice.SessionOptions{Cwd: "/w"},
	)
	pinned := []string{"s0", "gone", "s2", "s0"}
	for name, tt := range map[string]struct {
		o    manager.PickOptions
		want string
	}{
		"newest first":      {manager.PickOptions{}, "s2 s0 s4 s3 s1"},
		"a limit":           {manager.PickOptions{Limit: 3}, "s2 s0 s4"},
		"a smaller limit":   {manager.PickOptions{Limit: 1}, "s2"},
		"of a directory":    {manager.PickOptions{Cwd: "/w"}, "s0 s4 s1"},
		"a query":           {manager.PickOptions{Query: "say"}, "s2 s0 s4 s3 s1"},
		"one of them fits":  {manager.PickOptions{Query: `"the table"`}, "s2"},
		"best first":        {manager.PickOptions{Query: "table", Sort: manager.SortRelevance}, "s0 s2"},
		"best first of all": {manager.PickOptions{Query: "s", Sort: manager.SortRelevance, Limit: 3}, "s0 s2 s4"},
		"threaded":          {manager.PickOptions{Sort: manager.SortThreaded}, "s2 s0 >s3 s4 s1"},
	} {
		tt.o.Pinned = pinned
		if got := found(t, st, tt.o); got != tt.want {
			t.Errorf("%s: %s, want %s", name, got, tt.want)
		}
	}
	var p manager.PickProgress
	for f, err := range manager.Pick(t.Context(), st, manager.PickOptions{Pinned: pinned, Progress: func(now manager.PickProgress) { p = now }}) {
		if err != nil || f.Pinned != (f.ID == "s0" || f.ID == "s2") || f.ID == "s2" && p.Looked > 0 {
			t.Errorf("%s: pinned %v after %+v, %v", f.ID, f.Pinned, p, err)
		}
	}
	if p != (manager.PickProgress{Looked: 5, Found: 5, Total: 5}) {
		t.Errorf("%+v", p)
	}
}

// Sessions that match by their conversation follow those that match by title.
func TestWhatWasSaid(t *testing.T) {
	st := stored(t, make([]coppice.SessionOptions, 5)...)
	asked := ""
	o := manager.PickOptions{Query: `"say 1"`}
	o.Matches = func(_ context.Context, query string) (map[string]string, error) {
		asked = query
		return map[string]string{"s4": "… say 1 …", "s1": "say 1", "s0": "say 1 too", "gone": "x"}, nil
	}
	for sort, want := range map[manager.Sort]string{"": "s1 s4 s0", manager.SortRelevance: "s1 s4 s0", manager.SortThreaded: "s1 s4 s0"} {
		o.Sort = sort
		if got := found(t, st, o); got != want || asked != o.Query {
			t.Errorf("%q: %s, want %s; asked for %s", sort, got, want, asked)
		}
	}
	for f, err := range manager.Pick(t.Context(), st, o) {
		if want := map[string]string{"s4": "… say 1 …", "s0": "say 1 too"}[f.ID]; err != nil || f.MatchLine != want {
			t.Errorf("%s: %q, want %q, %v", f.ID, f.MatchLine, want, err)
		}
	}
	o.Limit = 2
	if got := found(t, st, o); got != "s1 s4" {
		t.Errorf("limit: %s", got)
	}
	lost := errors.New("no index")
	o.Matches = func(context.Context, string) (map[string]string, error) { return nil, lost }
	var got []string
	for f, err := range manager.Pick(t.Context(), st, o) {
		got = append(got, fmt.Sprint(f.ID, err))
	}
	if strings.Join(got, " ") != "s1<nil> no index" {
		t.Errorf("without an answer: %v", got)
	}
	asked, o.Query = "", ""
	if found(t, st, o); asked != "" {
		t.Error("it was asked for nothing")
	}
}

// The newest summary on the path to the head is returned; one that is far back, or on another branch, is not.
func TestSummarized(t *testing.T) {
	st := stored(t, coppice.SessionOptions{}, coppice.SessionOptions{})
	s, err := st.Open(t.Context(), "s0", nil)
	if err != nil {
		t.Fatal(err)
	}
	root := s.Head().Entry
	says := func(want string, drafts ...transcript.Draft) {
		t.Helper()
		_, err := s.Append(t.Context(), drafts...)
		if err == nil {
			_, err = s.Commit(t.Context(), coppice.Turn{})
		}
		if err != nil {
			t.Fatal(err)
		}
		if got, err := manager.NewestSummary(t.Context(), st, "s0"); got != want || err != nil {
			t.Errorf("%q, want %q, %v", got, want, err)
		}
	}
	summary := func(body string) transcript.Draft {
		return transcript.Draft{Type: "session_summary", Body: []byte(body)}
	}
	says("", entry.Assistant("yes"))
	says("old", summary(`{"summary":"old"}`))
	says("new", summary(`{"summary":"new","summarizedThroughId":"x"}`), summary(`{"summary":7}`), entry.User("more"))
	far := make([]transcript.Draft, 70)
	for i := range far {
		far[i] = entry.User("more")
	}
	says("", far...)
	says("newest", summary(`{"summary":"newest"}`))
	if _, err := s.Branch(t.Context(), root, nil); err != nil {
		t.Fatal(err)
	}
	says("")
	if _, err := s.Branch(t.Context(), "", nil); err != nil {
		t.Fatal(err)
	}
	if got, err := manager.NewestSummary(t.Context(), st, "s0"); got != "" || err != nil {
		t.Errorf("before every root: %q, %v", got, err)
	}
	if _, err := manager.NewestSummary(t.Context(), st, "nosuch"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("of nothing: %v", err)
	}
}
