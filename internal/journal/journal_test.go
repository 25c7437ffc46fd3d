package journal

import (
	"errors"
	"fmt"
	"io/fs"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/coppice-go/coppice/backend"
	"github.com/coppice-go/coppice/internal/journal/state"
	"github.com/coppice-go/coppice/internal/journal/store"
	"github.com/coppice-go/coppice/internal/segment"
	"github.com/coppice-go/coppice/internal/testutil"
)

func TestSessionComesBackAsItWasLeft(t *testing.T) {
	backends(t, func(t *testing.T, b backend.Backend) {
		w := newWorld(t, b)
		j := w.create("s1")
		w.turn(j, "a", `{"n":1}`)
		w.turn(j, "b", `{"n":2}`)
		if got := j.State().Summary.Seq; got != 2 {
			t.Errorf("seq %d, want 2: commit 0 creates", got)
		}
		again := w.open("s1")
		st := again.State()
		if st.Summary.Entry != "b" || string(st.Doc.State) != `{"n":2}` || st.Summary.Entries != 2 || st.Summary.Title != "t" {
			t.Errorf("resumed as %+v with state %s", st.Summary, st.Doc.State)
		}
		if diff := cmp.Diff([]string{"a", "b"}, w.ids(again)); diff != "" {
			t.Error(diff)
		}
		if got := len(st.Window.Entries()); got != 2 {
			t.Errorf("window of %d entries, want 2", got)
		}
		w.turn(again, "c", `{"n":3}`)
		if e := again.State().Summary.Epoch; e != 2 {
			t.Errorf("epoch %d, want 2: a new handle is a new writer", e)
		}
	})
}

func TestMissingSession(t *testing.T) {
	backends(t, func(t *testing.T, b backend.Backend) {
		w := newWorld(t, b)
		if _, err := Open(t.Context(), w.config("nope")); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("got %v", err)
		}
	})
}

func TestTakenIDFailsTheFirstCommit(t *testing.T) {
	backends(t, func(t *testing.T, b backend.Backend) {
		w := newWorld(t, b)
		w.turn(w.create("s1"), "a", `1`)
		second := w.create("s1")
		_, err := second.Commit(t.Context(), &Step{Reason: "turn", Entries: []*Entry{say(second, "x", "x")}})
		if !errors.Is(err, fs.ErrExist) || backend.OutcomeOf(err) != backend.NotApplied {
			t.Errorf("got %v", err)
		}
		if diff := cmp.Diff([]string{"a"}, w.ids(w.open("s1"))); diff != "" {
			t.Error(diff)
		}
	})
}

func TestSecondWriterIsTold(t *testing.T) {
	backends(t, func(t *testing.T, b backend.Backend) {
		w := newWorld(t, b)
		w.turn(w.create("s1"), "a", `1`)
		j1, j2 := w.open("s1"), w.open("s1")
		w.turn(j1, "b", `2`)
		lost := &Step{Reason: "turn", Entries: []*Entry{say(j2, "c", "c")}, Edit: setState(`3`)}
		_, err := j2.Commit(t.Context(), lost)
		var f *store.Failure
		if !errors.As(err, &f) || !errors.Is(err, ErrConflict) || f.Winner == nil || f.Winner.Entry != "b" {
			t.Fatalf("got %v", err)
		}
		lost.KeepBoth = true
		res := w.commit(j2, lost)
		if got := string(j2.State().Doc.State); got != "1" || !j2.Behind() || res.Kept == "" {
			t.Errorf("kept on %q, the view moved to state %s, behind %t", res.Kept, got, j2.Behind())
		}
		st := j2.Tip()
		if st.Summary.Entry != "b" || string(st.Doc.State) != "2" || st.Summary.Branch != "main" {
			t.Errorf("the head is %+v with state %s, want the winner's", st.Summary.Head, st.Doc.State)
		}
		kept, ok := st.Branch(res.Kept)
		if !ok || kept.Head != "c" {
			t.Fatalf("kept branch %q: %+v", res.Kept, kept)
		}
		m, err := j2.At(t.Context(), st, res.Commit.Seq)
		if err != nil || string(m.Doc.State) != "3" {
			t.Errorf("the loser's document is %s: %v", m.Doc.State, err)
		}
		lines := parentsOf(t, j2)
		if lines["c"] != "a" || lines["b"] != "a" {
			t.Errorf("parents %v: the turns are siblings", lines)
		}
		w.turn(j1, "d", `4`) // j1 folds in what moved neither head nor document
		if diff := cmp.Diff([]string{"a", "b", "c", "d"}, w.ids(j1)); diff != "" {
			t.Error(diff)
		}
	})
}

// parentsOf reads every entry's parent by ordinal.
func parentsOf(t *testing.T, j *Journal) map[string]string {
	t.Helper()
	st, err := j.Latest(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	byOrd, out := map[int64]string{-1: ""}, map[string]string{}
	for l, err := range j.Lines(t.Context(), st, nil) {
		if err != nil {
			t.Fatal(err)
		}
		e, err := segment.Entry(l.Ord, l.Raw)
		if err != nil {
			t.Fatal(err)
		}
		byOrd[int64(l.Ord)] = e.ID
		if !l.Commit {
			out[e.ID] = byOrd[l.Parent]
		}
	}
	return out
}

func TestKeepBothWithinCommit(t *testing.T) {
	backends(t, func(t *testing.T, b backend.Backend) {
		w := newWorld(t, b)
		w.turn(w.create("s1"), "a", `1`)
		j1, j2 := w.open("s1"), w.open("s1")
		w.turn(j1, "b", `2`)
		r := w.commit(j2, &Step{Entries: []*Entry{say(j2, "c", "c")}, Edit: setState(`3`), KeepBoth: true})
		if r.Kept == "" || j2.State().Summary.Entry != "a" || j2.Tip().Summary.Entry != "b" {
			t.Errorf("%+v at %+v, the newest is %+v", r, j2.State().Summary.Head, j2.Tip().Summary.Head)
		}
		fresh := w.open("s1")
		if diff := cmp.Diff(map[string]string{"a": "", "b": "a", "c": "a"}, parentsOf(t, fresh)); diff != "" {
			t.Error(diff)
		}
		if fresh.State().Window == nil || state.LeafOf(fresh.State().Window) != fresh.State().HeadOrd {
			t.Error("the window is not the winner's")
		}
	})
}

func TestClaimFencesOlderWriters(t *testing.T) {
	backends(t, func(t *testing.T, b backend.Backend) {
		w := newWorld(t, b)
		w.turn(w.create("s1"), "a", `1`)
		old, host := w.open("s1"), w.open("s1")
		w.commit(host, &Step{Reason: "claim", Claim: true})
		lost := &Step{Reason: "turn", Entries: []*Entry{say(old, "z", "z")}, KeepBoth: true}
		if _, err := old.Commit(t.Context(), lost); !errors.Is(err, ErrFenced) {
			t.Fatalf("got %v", err)
		}
		if _, err := old.Commit(t.Context(), &Step{Reason: "turn"}); !errors.Is(err, ErrFenced) {
			t.Errorf("a fenced handle took a commit: %v", err)
		}
		w.turn(host, "b", `2`)
		lost.KeepFenced = true
		if res := w.commit(old, lost); res.Kept == "" {
			t.Fatalf("%+v", res)
		}
		w.turn(host, "c", `3`) // not fenced by what was kept
		if diff := cmp.Diff(map[string]string{"a": "", "b": "a", "z": "a", "c": "b"}, parentsOf(t, host)); diff != "" {
			t.Error(diff)
		}
	})
}

func TestReloadDropsTheTurn(t *testing.T) {
	backends(t, func(t *testing.T, b backend.Backend) {
		w := newWorld(t, b)
		w.turn(w.create("s1"), "a", `1`)
		j1, j2 := w.open("s1"), w.open("s1")
		w.turn(j1, "b", `2`)
		if _, err := j2.Commit(t.Context(), &Step{Reason: "turn", Entries: []*Entry{say(j2, "c", "c")}}); !errors.Is(err, ErrConflict) {
			t.Fatal(err)
		}
		if err := j2.Reload(t.Context()); err != nil {
			t.Fatal(err)
		}
		w.turn(j2, "d", `3`)
		if diff := cmp.Diff(map[string]string{"a": "", "b": "a", "d": "b"}, parentsOf(t, j2)); diff != "" {
			t.Error(diff)
		}
	})
}

func TestIdempotencyKey(t *testing.T) {
	backends(t, func(t *testing.T, b backend.Backend) {
		w := newWorld(t, b)
		j := w.create("s1")
		first := w.commit(j, &Step{Key: "job-1", Entries: []*Entry{say(j, "a", "a")}, Edit: setState(`1`)})
		other := w.open("s1")
		again := w.commit(other, &Step{Key: "job-1", Entries: []*Entry{say(other, "a2", "a")}, Edit: setState(`9`)})
		if !again.Repeated || again.Commit.Commit != first.Commit.Commit {
			t.Errorf("%+v", again)
		}
		if diff := cmp.Diff([]string{"a"}, w.ids(other)); diff != "" {
			t.Error(diff)
		}
	})
}

// Every segment that the thresholds make is read back, and every state can be restored.
func TestManyCommitsAcrossSegments(t *testing.T) {
	testutil.SkipLong(t)
	backends(t, func(t *testing.T, b backend.Backend) {
		w := newWorld(t, b)
		w.inline = true
		w.lim = Limits{SealEntries: 8, RollEntries: 8, PublishCommits: 4, Keyframe: 5, WholeDoc: 16}
		j := w.create("s1")
		const n = 300 // four commits a segment: 64 references fold once
		want := make([]string, 0, n)
		doc := func(i int) string {
			return fmt.Sprintf(`{"turn":%d,"big":9007199254740993,"list":[%d,null,{"":"é"}]}`, i, i%7)
		}
		for i := range n {
			id := fmt.Sprintf("e%04d", i)
			w.turn(j, id, doc(i))
			want = append(want, id)
			if i%97 == 0 {
				if err := j.Close(t.Context()); err != nil {
					t.Fatal(err)
				}
				j = w.open("s1")
			}
		}
		if err := j.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		j = w.open("s1")
		if diff := cmp.Diff(want, w.ids(j)); diff != "" {
			t.Fatal(diff)
		}
		st := j.State()
		seen := 0
		last := st.Summary.Seq + 1
		for c, err := range j.Log(t.Context(), st, st.Summary.Seq) {
			if err != nil {
				t.Fatal(err)
			}
			if c.Seq != last-1 {
				t.Fatalf("commit %d after %d", c.Seq, last)
			}
			last = c.Seq
			m, err := j.At(t.Context(), st, c.Seq)
			if err != nil {
				t.Fatal(err)
			}
			if c.Reason == "turn" {
				seen++
				if got, want := string(m.Doc.State), doc(n-seen); got != want {
					t.Fatalf("commit %d restored %s, want %s", c.Seq, got, want)
				}
			}
		}
		if seen != n || last != 0 {
			t.Errorf("the log shows %d turns down to commit %d", seen, last)
		}
		if len(st.Segments.Levels) < 2 {
			t.Errorf("nothing was folded: %d levels", len(st.Segments.Levels))
		}
		rows := uint64(0)
		for sk, err := range j.Skeletons(t.Context(), st, 0) {
			if err != nil {
				t.Fatal(err)
			}
			if sk.First() != rows {
				t.Fatalf("skeleton at %d, want %d", sk.First(), rows)
			}
			rows += uint64(sk.Len())
		}
		if rows != st.Next {
			t.Errorf("skeletons of %d lines, want %d", rows, st.Next)
		}
	})
}
