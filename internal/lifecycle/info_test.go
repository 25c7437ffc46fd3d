package lifecycle_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/coppice-go/coppice"
	"github.com/coppice-go/coppice/backend"
	"github.com/coppice-go/coppice/entry"
	"github.com/coppice-go/coppice/internal/testutil"
	"github.com/coppice-go/coppice/transcript"
)

// infoOf returns title, directory and metadata of a session.
func infoOf(s *coppice.Session) string {
	i := s.Info()
	return fmt.Sprintf("%s|%s|%v", i.Title, i.Cwd, i.Meta)
}

// Title, working directory and metadata change in one commit, for every handle and for listings; the head stays, and
// time travel does not restore older values.
func TestSetInfo(t *testing.T) {
	onEach(t, func(t *testing.T, st *coppice.Store) {
		s := create(t, st, "s", &coppice.SessionOptions{
			Title: "old", Cwd: "/a", Meta: map[string]string{"team": "red", "run": "7"},
		})
		say(t, s, "u1", "a1")
		before := commit(t, s, state{Turns: 1})
		r := setInfo(t, s, coppice.InfoChange{
			Title: new("new"), Cwd: new("/b"),
			Meta: map[string]*string{"team": new("blue"), "run": nil, "none": nil, "é": nil, "status": new("")},
		})
		same(t, "one commit", r.Seq, before.Seq+1)
		same(t, "head", r.Entry, before.Entry)
		want := "new|/b|map[status: team:blue]"
		same(t, "info", infoOf(s), want)
		same(t, "context", texts(t, s), "u1 a1")
		for range 2 {
			same(t, "again", setInfo(t, s, coppice.InfoChange{Title: new("new"), Meta: map[string]*string{"run": nil}}).Seq, r.Seq)
			ok(t, s.Close())
			s = open(t, st, "s")
			same(t, "info of another handle", infoOf(s), want)
			same(t, "state", stateOf(t, s).Turns, 1)
			for meta, found := range map[string]int{"blue": 1, "red": 0} {
				o := coppice.ListOptions{Cwd: "/b", Meta: map[string]string{"team": meta}}
				same(t, meta, len(collect(t, st.List(t.Context(), o))), found)
			}
		}
		must(s.Rollback(t.Context(), coppice.Target{Seq: before.Seq}))(t)
		same(t, "after a rollback", infoOf(s), want)
		setInfo(t, s, coppice.InfoChange{Title: new(""), Meta: map[string]*string{"team": nil, "status": nil}})
		same(t, "cleared", infoOf(s), "|/b|map[]")
		ok(t, s.Close())
		same(t, "cleared, opened", infoOf(open(t, st, "s")), "|/b|map[]")
	})
}

// Two hosts that change metadata do not conflict, and each key keeps its latest value.
func TestSetInfoOfTwoWriters(t *testing.T) {
	onEach(t, func(t *testing.T, st *coppice.Store) {
		s := create(t, st, "s", &coppice.SessionOptions{Meta: map[string]string{"a": "0", "b": "0"}})
		say(t, s, "u1")
		commit(t, s, state{})
		other := open(t, st, "s")
		setInfo(t, s, coppice.InfoChange{Meta: map[string]*string{"a": new("1")}})
		setInfo(t, other, coppice.InfoChange{Meta: map[string]*string{"b": new("2")}})
		same(t, "both", infoOf(other), "||map[a:1 b:2]")
		say(t, s, "u2")
		commit(t, s, state{Turns: 2})
		same(t, "both", infoOf(s), "||map[a:1 b:2]")
	})
}

// Changed metadata is recovered from a log alone, also if it is long, and if the log has many segments.
func TestInfoWithoutACheckpoint(t *testing.T) {
	testutil.SkipLong(t)
	for _, name := range []string{"append", "local"} {
		t.Run(name, func(t *testing.T) {
			b := backends[name](t)
			st := newStore(t, b, nil)
			s := create(t, st, "s", &coppice.SessionOptions{Meta: map[string]string{"first": "1", "kept": "yes"}})
			long := strings.Repeat("l", 3000)
			setInfo(t, s, coppice.InfoChange{Title: new("T"), Meta: map[string]*string{"first": nil, "long": &long}})
			for i := range 12 { // a mebibyte each: the segment is closed
				must(s.Append(t.Context(), entry.User(fmt.Sprint(i, strings.Repeat("x", 1<<20)))))(t)
				commit(t, s, state{Turns: i})
			}
			setInfo(t, s, coppice.InfoChange{Meta: map[string]*string{"last": new("z")}})
			want := fmt.Sprintf("T||map[kept:yes last:z long:%s]", long)
			same(t, "info", infoOf(s), want)
			ok(t, s.Close())
			same(t, "opened", infoOf(open(t, st, "s")), want)
			ok(t, b.Delete(t.Context(), "checkpoint_latest/s"))
			o := coppice.ListOptions{Meta: map[string]string{"long": long, "kept": "yes"}}
			same(t, "listed", len(collect(t, st.List(t.Context(), o))), 1)
			same(t, "recovered", infoOf(open(t, st, "s")), want)
		})
	}
}

func TestSetInfoLimits(t *testing.T) {
	onEach(t, func(t *testing.T, st *coppice.Store) {
		s := create(t, st, "s", nil)
		many := map[string]*string{}
		for i := range 65 {
			many[fmt.Sprint("k", i)] = new("v")
		}
		for what, c := range map[string]coppice.InfoChange{
			"title": {Title: new(strings.Repeat("t", 4<<10+1))}, "cwd": {Cwd: new(strings.Repeat("t", 4<<10+1))},
			"meta": {Meta: map[string]*string{"k": new(strings.Repeat("v", 4<<10))}}, "keys": {Meta: many},
		} {
			if _, err := s.SetInfo(t.Context(), c); !errors.Is(err, backend.ErrTooLarge) {
				t.Errorf("%s: %v", what, err)
			}
		}
		for what, c := range map[string]coppice.InfoChange{
			"title": {Title: new("\xff")}, "cwd": {Cwd: new("")}, "key": {Meta: map[string]*string{"a b": new("")}},
			"value": {Meta: map[string]*string{"k": new("\xff")}},
		} {
			if _, err := s.SetInfo(t.Context(), c); err == nil {
				t.Errorf("%s was taken", what)
			}
		}
		same(t, "nothing was stored", s.Head().Seq, 0)
		same(t, "nothing is pending", len(collect(t, s.Entries(t.Context()))), 0)
		over := coppice.InfoChange{Meta: map[string]*string{"k64": many["k64"]}}
		delete(many, "k64")
		setInfo(t, s, coppice.InfoChange{Meta: many})
		_, err := s.SetInfo(t.Context(), over)
		isErr(t, "one key more than there may be", err, backend.ErrTooLarge)
	})
}

// The metadata of an import's options overrides that of the file's header line, also after recovery; exports contain
// the lines as they were, with later changes.
func TestImportWithMeta(t *testing.T) {
	lines := []string{
		`{"type":"session","version":3,"id":"x","timestamp":"2026-01-01T00:00:00.000Z","coppice":{"meta":{"team":"red","old":"1"}}}`,
		`{"type":"message","id":"m1","parentId":null,"timestamp":"2026-01-01T00:00:01.000Z","message":{"role":"user","content":"hi"}}`,
		`{"type":"custom","customType":"coppice.meta","id":"c1","parentId":"m1","timestamp":"2026-01-01T00:00:02.000Z","data":{"said":"in the file"}}`,
		`{"type":"custom","customType":"coppice.meta","id":"c2","parentId":"m1","timestamp":"2026-01-01T00:00:02.000Z","data":{"not a key":"x"}}`,
		`{"type":"custom","customType":"coppice.meta","id":"c3","parentId":"m1","timestamp":"2026-01-01T00:00:02.000Z","data":{"n":1}}`,
	}
	for name, openStore := range backends {
		t.Run(name, func(t *testing.T) {
			b := openStore(t)
			st := newStore(t, b, nil)
			from := func(yield func(transcript.Draft, error) bool) {
				for _, l := range lines {
					if !yield(entry.Line([]byte(l)), nil) {
						return
					}
				}
			}
			plain := must(st.Import(t.Context(), from, &coppice.SessionOptions{ID: "plain"}))(t)
			same(t, "the header's", infoOf(plain), "||map[old:1 said:in the file team:red]")
			s := must(st.Import(t.Context(), from, &coppice.SessionOptions{
				ID: "s", Meta: map[string]string{"team": "blue", "tenant": "t"},
			}))(t)
			want := "||map[said:in the file team:blue tenant:t]"
			same(t, "the options'", infoOf(s), want)
			var out strings.Builder
			ok(t, st.Export(t.Context(), "s", &out))
			same(t, "exported", strings.Split(strings.TrimSpace(out.String()), "\n"), lines)
			ok(t, s.Close())
			same(t, "opened", infoOf(open(t, st, "s")), want)
			if name != "replace" {
				ok(t, b.Delete(t.Context(), "checkpoint_latest/s"))
				same(t, "recovered", infoOf(open(t, st, "s")), want)
			}
		})
	}
}

// A session file that was exported after a change of the metadata contains the change when it is imported.
func TestExportedMeta(t *testing.T) {
	onEach(t, func(t *testing.T, st *coppice.Store) {
		s := create(t, st, "s", &coppice.SessionOptions{Meta: map[string]string{"a": "1", "b": "1"}})
		say(t, s, "u1", "a1")
		commit(t, s, state{})
		setInfo(t, s, coppice.InfoChange{Title: new("T"), Meta: map[string]*string{"a": new("2"), "b": nil}})
		var out strings.Builder
		ok(t, st.ExportPi(t.Context(), "s", &out))
		lines := slices.Values(strings.Split(strings.TrimSpace(out.String()), "\n"))
		c := must(st.Import(t.Context(), func(yield func(transcript.Draft, error) bool) {
			for l := range lines {
				if !yield(entry.Line([]byte(l)), nil) {
					return
				}
			}
		}, &coppice.SessionOptions{ID: "copy"}))(t)
		same(t, "the copy", infoOf(c), "T||map[a:2]")
	})
}

// The newest state decides whether a value is already set: of two titles the later one counts, also if the handle has
// not seen a title in between.
func TestSetInfoOnAnOldState(t *testing.T) {
	onEach(t, func(t *testing.T, st *coppice.Store) {
		x, y, k := "X", "Y", "k"
		a := create(t, st, "s", &coppice.SessionOptions{Title: x, Cwd: "/x", Meta: map[string]string{k: x}})
		must(a.Commit(t.Context(), coppice.Turn{State: 1}))(t)
		cwdX, cwdY := "/x", "/y"
		setInfo := func(s *coppice.Session, title, cwd, value *string) {
			change := coppice.InfoChange{Title: title, Cwd: cwd, Meta: map[string]*string{k: value}}
			must(s.SetInfo(t.Context(), change))(t)
		}
		setInfo(open(t, st, "s"), &y, &cwdY, &y)
		setInfo(a, &x, &cwdX, &x)
		now := open(t, st, "s").Info()
		same(t, "title, folder, metadata", []string{now.Title, now.Cwd, now.Meta[k]}, []string{x, cwdX, x})
		seq := a.Head().Seq
		setInfo(a, &x, &cwdX, &x)
		same(t, "nothing changes", a.Head().Seq, seq)
	})
}

// A handle that is behind can still change title, directory and metadata: nothing moves, and the handle stays where it
// is.
func TestSetInfoOnAMovedHead(t *testing.T) {
	onEach(t, func(t *testing.T, st *coppice.Store) {
		a := create(t, st, "s", &coppice.SessionOptions{Title: "old"})
		must(a.Commit(t.Context(), coppice.Turn{Entries: []transcript.Draft{entry.User("0")}}))(t)
		w := coppice.Turn{Entries: []transcript.Draft{entry.User("w")}}
		won := must(open(t, st, "s").Commit(t.Context(), w))(t)
		before := a.Head()
		r := must(a.SetInfo(t.Context(), coppice.InfoChange{Title: new("new")}))(t)
		same(t, "kept", r.Kept, "")
		same(t, "the handle's head", a.Head(), before)
		now := open(t, st, "s")
		same(t, "title", []string{a.Info().Title, now.Info().Title}, []string{"new", "new"})
		same(t, "head", now.Head().Entry, won.Entry)
		must(a.SetInfo(t.Context(), coppice.InfoChange{Title: new("old")}))(t)
		same(t, "back to what the handle began with", open(t, st, "s").Info().Title, "old")
	})
}
