package scenarios_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/coppice-go/coppice"
	"github.com/coppice-go/coppice/backend/memory"
	"github.com/coppice-go/coppice/checkpoint"
	"github.com/coppice-go/coppice/internal/testutil"
	"github.com/coppice-go/coppice/transcript"
)

// An imported session has the dates of its file: old sessions do not sort as new ones. Later entries have new dates.
func TestImportKeepsItsDates(t *testing.T) {
	testutil.SkipLong(t)
	const stamp = "2006-01-02T15:04:05.000Z"
	begun := time.Date(2024, 3, 1, 10, 0, 0, 0, time.UTC)
	file := func(bulk int, times ...time.Time) []byte {
		var b bytes.Buffer
		fmt.Fprintf(&b, `{"type":"session","version":3,"id":"old","timestamp":%q,"cwd":"/w"}`+"\n", begun.Format(stamp))
		for i, at := range times {
			fmt.Fprintf(&b, `{"type":"message","id":"e%d","parentId":null,"timestamp":%q,"message":{"role":"user","content":"%d%s"}}`+"\n",
				i, at.Format(stamp), i, strings.Repeat("x", bulk))
		}
		return b.Bytes()
	}
	day := func(n int) time.Time { return begun.AddDate(0, 0, n) }
	for name, c := range map[string]struct {
		raw  []byte
		last time.Time
	}{
		"in one commit":              {file(0, day(1), day(3), day(2)), day(3)},
		"in several":                 {file(600<<10, day(1), day(9), day(2), day(3), day(4), day(5), day(6), day(7), day(8)), day(9)},
		"without entries":            {file(0), begun},
		"older than its header":      {file(0, day(-5)), begun},
		"with a time that is coming": {file(0, day(1), time.Date(2999, 1, 1, 0, 0, 0, 0, time.UTC)), day(1)},
	} {
		t.Run(name, func(t *testing.T) {
			onEach(t, func(t *testing.T, store *coppice.Store) {
				s := importFile(t, store, c.raw)
				check := func(when string, sum checkpoint.Summary, last time.Time) {
					t.Helper()
					if !sum.Created.Equal(begun) || !sum.Updated.Equal(last) {
						t.Errorf("%s: from %v to %v, want %v to %v", when, sum.Created, sum.Updated, begun, last)
					}
				}
				check("imported", s.Info(), c.last)
				check("listed", collect(t, store.List(bg, coppice.ListOptions{}))[0], c.last)
				ok(t, s.Close())
				s = open(t, store, s.ID())
				check("opened", s.Info(), c.last)
				must(s.Append(bg, transcript.Draft{Raw: []byte(`{"type":"message","id":"new","parentId":null,"timestamp":"2024-01-01T00:00:00.000Z","message":{"role":"user","content":"new"}}`)}))(t)
				commit(t, s, nil)
				if sum := s.Info(); sum.Updated.Before(day(100)) || !sum.Created.Equal(begun) {
					t.Errorf("gone on: from %v to %v", sum.Created, sum.Updated)
				}
			})
		})
	}
}

// A clock that is set back by an hour does not date a commit before its predecessor, so that a time names the newest
// commit at that time, and the session keeps its place in lists. A date of 2031 disappears when the clock is right.
func TestAClockThatRunsBack(t *testing.T) {
	noon := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	for _, c := range []struct{ first, then, want time.Time }{
		{noon, noon.Add(-time.Hour), noon},
		{noon, noon.Add(time.Hour), noon.Add(time.Hour)},
		{noon.AddDate(5, 0, 0), noon, noon},
	} {
		now := c.first
		store := must(coppice.New(memory.New(), &coppice.Options{Now: func() time.Time { return now }}))(t)
		s := create(t, store, "s", nil)
		say(t, s, "one")
		commit(t, s, nil)
		now = c.then
		say(t, s, "two")
		commit(t, s, nil)
		same(t, "dated", s.Info().Updated, c.want)
		same(t, "listed", collect(t, store.List(bg, coppice.ListOptions{}))[0].Updated, c.want)
		if _, err := s.At(bg, coppice.Target{Time: c.want.Add(-time.Minute)}); err == nil && c.want.Equal(c.first) {
			t.Errorf("%v: a commit a minute before the first one", c.then)
		}
		ok(t, s.Close())
	}
}

// A session that an agent created for itself is marked as internal in every listing, also when its checkpoint was
// rebuilt; a fork of it is not internal.
func TestInternalSessions(t *testing.T) {
	for header, want := range map[string]bool{
		`"internal":true,"workflow":{"runId":"r"}`: true,
		`"internal":true,"agent":"a1"`:             true,
		`"internal":true`:                          false,
		`"internal":false,"agent":"a1"`:            false,
		`"agent":"a1"`:                             false,
	} {
		onEach(t, func(t *testing.T, store *coppice.Store) {
			s := importFile(t, store, []byte(`{"type":"session","version":3,"id":"x","timestamp":"2024-01-01T00:00:00.000Z","cwd":"/w",`+header+"}\n"+
				`{"type":"message","id":"u","parentId":null,"timestamp":"2024-01-01T00:00:00.000Z","message":{"role":"user","content":"do"}}`+"\n"))
			same(t, header, s.Info().Internal, want)
			same(t, header+" listed", collect(t, store.List(bg, coppice.ListOptions{}))[0].Internal, want)
			ok(t, s.Close())
			s = open(t, store, s.ID())
			same(t, header+" opened", s.Info().Internal, want)
			fork := must(s.Fork(bg, coppice.Target{}, "", nil))(t)
			same(t, header+" forked", fork.Info().Internal, false)
		})
	}
}
