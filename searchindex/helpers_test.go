package searchindex

import (
	"context"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"testing"
	"time"

	coppice "github.com/coppice-go/coppice"
	"github.com/coppice-go/coppice/backend"
	"github.com/coppice-go/coppice/backend/memory"
	"github.com/coppice-go/coppice/entry"
	"github.com/coppice-go/coppice/internal/testutil"
	"github.com/coppice-go/coppice/transcript"
)

// clock moves on by a second with each call.
func clock() func() time.Time {
	return testutil.Clock(time.Date(2026, 3, 2, 10, 0, 0, 0, time.UTC), time.Second)
}

// store is one whose listing lags behind, as on disk: the worse case.
func store(t testing.TB) *coppice.Store {
	t.Helper()
	return storeOn(t, memory.NewAppender())
}

func storeOn(t testing.TB, b backend.Backend) *coppice.Store {
	t.Helper()
	st := testutil.Must(
		coppice.New(b,
			&coppice.Options{Now: clock(), Rand: rand.NewChaCha8([32]byte{7}), Writer: "test"}))(t)
	t.Cleanup(func() { _ = st.Close() })
	return st
}

// Texts with the prefix "> " are the user's, the others the assistant's.
func say(t testing.TB, s *coppice.Session, texts ...string) []string {
	t.Helper()
	var d []transcript.Draft
	for _, text := range texts {
		if user, ok := strings.CutPrefix(text, "> "); ok {
			d = append(d, entry.User(user))
		} else {
			d = append(d, entry.Assistant(text))
		}
	}
	ids := testutil.Must(s.Append(t.Context(), d...))(t)
	testutil.Must(s.Commit(t.Context(), coppice.Turn{}))(t)
	return ids
}

func create(t testing.TB, st *coppice.Store, id, cwd string, texts ...string) *coppice.Session {
	t.Helper()
	s := testutil.Must(st.Create(id, &coppice.SessionOptions{Title: "about " + id, Cwd: cwd}))(t)
	say(t, s, texts...)
	return s
}

func index(t testing.TB) *Index {
	t.Helper()
	return reopen(t, filepath.Join(t.TempDir(), "sub", "history.db"))
}

func reopen(t testing.TB, path string) *Index {
	t.Helper()
	x := testutil.Must(Open(t.Context(), path))(t)
	t.Cleanup(func() { _ = x.Close() })
	return x
}

func update(t testing.TB, x *Index, st *coppice.Store) Report {
	t.Helper()
	r := testutil.Must(x.Update(t.Context(), st, nil))(t)
	for _, err := range r.Problems {
		t.Error(err)
	}
	return r
}

// find searches and returns the hits.
func find(t testing.TB, x *Index, query string, o *SearchOptions) []Hit {
	t.Helper()
	hits, _, err := x.Search(t.Context(), testutil.Must(Parse(query))(t), o)
	testutil.OK(t, err)
	return hits
}

func snippets(hits []Hit) string {
	var out []string
	for _, h := range hits {
		out = append(out, h.Snippet)
	}
	return strings.Join(out, " | ")
}

func same(t testing.TB, what string, got, want any) {
	t.Helper()
	if g, w := fmt.Sprint(got), fmt.Sprint(want); g != w {
		t.Errorf("%s:\n got %s\nwant %s", what, g, w)
	}
}

// dump returns the content of an index in a stable order.
func dump(t testing.TB, x *Index) string {
	t.Helper()
	var b strings.Builder
	rows := func(query string) {
		testutil.OK(t, eachRow(context.Background(), x.db, func(scan func(...any) error) error {
			var line string
			err := scan(&line)
			b.WriteString(line + "\n")
			return err
		}, query))
	}
	rows(`SELECT id||'|'||title||'|'||cwd||'|'||bytes||'|'||"commit"||'|'||seq||'|'||next||'|'||last||'|'||tail||'|'||head FROM session ORDER BY id`)
	rows(`SELECT s.id||'|'||e.ordinal||'|'||e.time||'|'||e.id||'|'||e.type||'|'||e.role||'|'||e.text||'|'||(SELECT count(*) FROM prompt p WHERE p.n=e.n)
		FROM entry e JOIN session s ON s.n=e.session ORDER BY s.id, e.ordinal`)
	rows(`SELECT s.id||'|'||r.first||'|'||r.parent FROM run r JOIN session s ON s.n=r.session ORDER BY s.id, r.first`)
	rows(`SELECT s.id||'|'||r.name||'|'||r.head FROM branch r JOIN session s ON s.n=r.session ORDER BY s.id, r.name`)
	rows(`SELECT 'words '||count(*) FROM words`)
	return b.String()
}

func texts(t testing.TB, x *Index) string {
	t.Helper()
	var out []string
	for _, p := range must2(x.Recall(t.Context(), "", nil))(t) {
		out = append(out, p.Text)
	}
	return strings.Join(out, "|")
}
