package scenarios_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"iter"
	"slices"
	"strings"
	"testing"

	"github.com/coppice-go/coppice"
	"github.com/coppice-go/coppice/backend"
	"github.com/coppice-go/coppice/backend/memory"
	"github.com/coppice-go/coppice/entry"
	"github.com/coppice-go/coppice/export"
	"github.com/coppice-go/coppice/interop"
	"github.com/coppice-go/coppice/interop/formats"
	"github.com/coppice-go/coppice/transcript"
)

// textsOf returns the texts of a context, in order.
func textsOf(c transcript.Context) (list []string) {
	for _, m := range c.Messages {
		list = append(list, m.Text())
	}
	return list
}

func contextTexts(t testing.TB, s *coppice.Session) []string {
	t.Helper()
	return textsOf(must(s.Context(context.Background()))(t))
}

func entryText(e transcript.Entry) string {
	m, _ := e.Message()
	return m.Text()
}

// pathTexts returns the texts from the root to the head.
func pathTexts(t testing.TB, s *coppice.Session) (list []string) {
	t.Helper()
	for e, err := range s.Path(context.Background(), "") {
		ok(t, err)
		if e.Type == "message" {
			list = append(list, entryText(e))
		}
	}
	slices.Reverse(list)
	return list
}

func wantTexts(t testing.TB, what string, have []string, want ...string) {
	t.Helper()
	if !slices.Equal(have, want) {
		t.Errorf("%s: have %q, want %q", what, have, want)
	}
}

// wantEverywhere compares every way of reading a session with texts; ids are those of all entries, of which the hidden
// ones have the text "".
func wantEverywhere(t testing.TB, s *coppice.Session, ids []string, want ...string) {
	t.Helper()
	ctx := context.Background()
	shown := slices.DeleteFunc(slices.Clone(want), func(text string) bool { return text == "" })
	wantTexts(t, "context", contextTexts(t, s), shown...)
	wantTexts(t, "path", pathTexts(t, s), shown...)
	view := must(s.At(ctx, coppice.Target{}))(t)
	wantTexts(t, "context of the head's view", textsOf(must(view.Context(ctx))(t)), shown...)
	var along []string
	for e, err := range view.Path(ctx) {
		ok(t, err)
		if e.Type == "message" {
			along = append(along, entryText(e))
		}
	}
	slices.Reverse(along)
	wantTexts(t, "path of the head's view", along, shown...)
	tree := must(s.Tree(ctx))(t)
	said := map[string]string{}
	for e, err := range s.Entries(ctx) {
		ok(t, err)
		said[e.ID] = entryText(e)
	}
	for i, id := range ids {
		e := must(s.Entry(ctx, id))(t)
		if e.ID != id || e.Type != "message" || entryText(e) != want[i] || e.Hidden != (want[i] == "") || said[id] != want[i] {
			t.Errorf("entry %s: %s (%v), want %q", id, e.Raw, e.Hidden, want[i])
		}
		n, _ := tree.Node(id)
		if n.Preview != want[i] || n.AmendedBy != e.AmendedBy || n.Hidden != e.Hidden {
			t.Errorf("node of %s: %+v, want preview %q", id, n, want[i])
		}
	}
	var nodes []string
	for n := range tree.Nodes(transcript.FilterDefault) {
		nodes = append(nodes, n.Preview)
	}
	wantTexts(t, "tree", nodes, shown...)
}

func TestAmendReplacesWhatAnEntrySays(t *testing.T) {
	ctx := context.Background()
	onEach(t, func(t *testing.T, st *coppice.Store) {
		s := create(t, st, "a", nil)
		ids := say(t, s, "u1", "a2", "u3")
		commit(t, s, nil)
		before := s.Head()
		was := must(s.Entry(ctx, ids[0]))(t)

		r := must(s.Amend(ctx, ids[0], entry.User("new1")))(t)
		if r.Head.Entry != ids[2] || r.Entries != 1 || r.Seq != before.Seq+1 {
			t.Errorf("receipt %+v, want one entry, and the head where it was", r)
		}
		wantEverywhere(t, s, ids, "new1", "a2", "u3")
		is := must(s.Entry(ctx, ids[0]))(t)
		if is.AmendedBy == "" || is.ParentID != was.ParentID || !is.Time.Equal(was.Time) || is.Ordinal != was.Ordinal {
			t.Errorf("amended entry %+v, before %+v", is, was)
		}
		for e, err := range s.Originals(ctx, ids[0]) {
			ok(t, err)
			if string(e.Raw) != string(was.Raw) || e.AmendedBy != "" {
				t.Errorf("original %s, want %s", e.Raw, was.Raw)
			}
		}
		wantTexts(t, "context of before", textsOf(must(must(s.At(ctx, coppice.Target{Commit: before.Commit}))(t).
			Context(ctx))(t)), "u1", "a2", "u3")

		must(s.Hide(ctx, ids[1]))(t)
		wantEverywhere(t, s, ids, "new1", "", "u3")
		must(s.Amend(ctx, ids[0], entry.User("newest1")))(t)
		wantEverywhere(t, s, ids, "newest1", "", "u3")
		must(s.Amend(ctx, ids[2], entry.User("new3")))(t)
		if i := s.Info(); i.First != "newest1" || i.Preview != "new3" {
			t.Errorf("summary: first %q, preview %q", i.First, i.Preview)
		}
		must(s.Amend(ctx, ids[2], entry.User("u3")))(t)
		ok(t, s.Close())

		s = open(t, st, "a")
		wantTexts(t, "context after Open", contextTexts(t, s), "newest1", "u3")
		sameResume(t, st, s.IO())
		wantEverywhere(t, s, ids, "newest1", "", "u3")
		must(s.Amend(ctx, ids[1], transcript.Draft{}))(t)
		wantEverywhere(t, s, ids, "newest1", "a2", "u3")
		must(s.Amend(ctx, ids[0], transcript.Draft{}))(t)
		wantEverywhere(t, s, ids, "u1", "a2", "u3")
		say(t, s, "a4")
		commit(t, s, nil)
		ok(t, s.Close())
		s = open(t, st, "a")
		wantTexts(t, "context after all was taken back", contextTexts(t, s), "u1", "a2", "u3", "a4")
		ok(t, s.Close())
		if rep := must(st.Verify(ctx, "a", true))(t); len(rep.Problems) > 0 {
			t.Errorf("verify: %+v", rep.Problems)
		}
	})
}

func TestAmendAppliesOnEveryBranch(t *testing.T) {
	ctx := context.Background()
	onEach(t, func(t *testing.T, st *coppice.Store) {
		s := create(t, st, "a", nil)
		ids := say(t, s, "u1", "a2", "u3")
		begin := commit(t, s, nil).Commit
		must(s.Branch(ctx, ids[1], &coppice.BranchOptions{Name: "other"}))(t)
		other := say(t, s, "u4")
		commit(t, s, nil)
		earlier := s.Head().Seq
		must(s.Amend(ctx, ids[0], entry.User("new1")))(t)
		must(s.Amend(ctx, ids[2], entry.User("new3")))(t) // of the other branch
		wantTexts(t, "branch other", contextTexts(t, s), "new1", "a2", "u4")
		must(s.Switch(ctx, "main"))(t)
		wantTexts(t, "branch main", contextTexts(t, s), "new1", "a2", "new3")
		ok(t, s.Close())
		s = open(t, st, "a")
		wantTexts(t, "branch main after Open", contextTexts(t, s), "new1", "a2", "new3")

		must(s.Rollback(ctx, coppice.Target{Seq: earlier}))(t)
		wantTexts(t, "after Rollback", contextTexts(t, s), "new1", "a2", "u4")
		view := must(s.At(ctx, coppice.Target{Seq: earlier}))(t)
		wantTexts(t, "view of before", textsOf(must(view.Context(ctx))(t)), "u1", "a2", "u4")
		for e, err := range view.Path(ctx) {
			ok(t, err)
			if e.AmendedBy != "" || strings.HasPrefix(entryText(e), "new") {
				t.Errorf("path of the view of before has %s", e.Raw)
			}
		}
		// The view of an entry has the amendments of the commit whose document is in force there.
		wantTexts(t, "view of the other line's end",
			textsOf(must(must(s.At(ctx, coppice.Target{Entry: other[0]}))(t).Context(ctx))(t)), "new1", "a2", "u4")
		d := must(must(s.At(ctx, coppice.Target{Commit: begin}))(t).Diff(ctx, must(s.At(ctx, coppice.Target{}))(t)))(t)
		if len(d.OnlyA) != 1 || entryText(d.OnlyA[0]) != "u3" || len(d.OnlyB) != 1 || entryText(d.OnlyB[0]) != "u4" {
			t.Errorf("diff: %+v", d)
		}

		f := must(s.Fork(ctx, coppice.Target{Entry: ids[1]}, "fork", nil))(t)
		wantTexts(t, "fork", contextTexts(t, f), "new1", "a2")
		for e, err := range f.Originals(ctx, ids[0]) {
			ok(t, err)
			if entryText(e) != "u1" {
				t.Errorf("original in the fork: %s", e.Raw)
			}
		}
		ok(t, errors.Join(f.Close(), s.Close()))
	})
}

func TestAmendRefused(t *testing.T) {
	ctx := context.Background()
	onEach(t, func(t *testing.T, st *coppice.Store) {
		s := create(t, st, "a", nil)
		first := say(t, s, "u1")
		if _, err := s.Amend(ctx, first[0], entry.User("new1")); !errors.Is(err, coppice.ErrUncommitted) {
			t.Errorf("an entry that is not committed: %v, want ErrUncommitted", err)
		}
		commit(t, s, nil)
		r := must(s.Amend(ctx, first[0], entry.User("new1")))(t)
		same(t, "entries", r.Entries, 1)
		r = must(s.Amend(ctx, first[0], entry.User("new1")))(t)
		if r.Entries != 0 || r.Seq != s.Head().Seq {
			t.Errorf("an amendment that changes nothing: %+v", r)
		}
		refused := func(what, id string, d transcript.Draft) {
			t.Helper()
			if _, err := s.Amend(ctx, id, d); !errors.Is(err, transcript.ErrNotAmendable) {
				t.Errorf("%s: %v", what, err)
			}
		}
		list := must(s.Append(ctx,
			transcript.Draft{Type: "model_change", Body: json.RawMessage(`{"provider":"p","modelId":"m"}`)},
			entry.Title("t"), entry.Move("/x"),
			transcript.Draft{Type: "compaction", Body: json.RawMessage(`{"summary":"s","firstKeptEntryId":"` + first[0] + `"}`)},
		))(t)
		commit(t, s, nil)
		refused("settings", list[0], transcript.Draft{Type: "model_change", Body: json.RawMessage(`{"modelId":"n"}`)})
		refused("a title", list[1], entry.Title("u"))
		refused("a move", list[2], entry.Move("/y"))
		refused("another type", first[0], transcript.Draft{Type: "custom", Body: json.RawMessage(`{"customType":"x"}`)})
		refused("what a compaction keeps", list[3],
			transcript.Draft{Type: "compaction", Body: json.RawMessage(`{"summary":"s"}`)})
		if _, err := s.Hide(ctx, list[3]); !errors.Is(err, transcript.ErrNotAmendable) {
			t.Errorf("hiding a compaction: %v", err)
		}
		must(s.Amend(ctx, list[3], transcript.Draft{
			Type: "compaction", Body: json.RawMessage(`{"summary":"short","firstKeptEntryId":"` + first[0] + `"}`),
		}))(t)
		c := must(s.Context(ctx))(t)
		if len(c.Messages) != 2 || !strings.Contains(string(c.Messages[0].Raw), "short") || c.Messages[1].Text() != "new1" {
			t.Errorf("context after a compaction was amended: %s", c.Messages)
		}
		tree := must(s.Tree(ctx))(t)
		for n := range tree.Nodes(transcript.FilterAll) {
			if strings.Contains(n.Preview, "new1") && n.Type == "custom" {
				refused("an amendment", n.ID, transcript.Draft{Type: "custom", Body: json.RawMessage(`{"customType":"x"}`)})
			}
		}
		if _, err := s.Amend(ctx, "nothing", entry.User("x")); err == nil {
			t.Error("an entry that is not there was amended")
		}
		ok(t, s.Close())
	})
}

func TestAmendAndOtherWriters(t *testing.T) {
	ctx := context.Background()
	onEach(t, func(t *testing.T, st *coppice.Store) {
		a := create(t, st, "a", nil)
		ids := say(t, a, "u1", "a2")
		commit(t, a, nil)
		b := open(t, st, "a")
		must(b.Amend(ctx, ids[0], entry.User("b1")))(t)
		// An amendment moves nothing: a's turn is committed after it, and shows it.
		say(t, a, "u3")
		commit(t, a, nil)
		wantTexts(t, "the other writer", contextTexts(t, a), "b1", "a2", "u3")
		// Both amend the same entry: the newest commit counts, and both are in the history.
		must(a.Amend(ctx, ids[0], entry.User("a1")))(t)
		must(b.Amend(ctx, ids[0], entry.User("bb1")))(t) // on a head that moved
		wantTexts(t, "a handle that is behind", contextTexts(t, b), "bb1", "a2")
		must(a.Hide(ctx, ids[1]))(t)
		must(b.Amend(ctx, ids[1], transcript.Draft{}))(t) // an entry that the handle has not seen
		ok(t, errors.Join(a.Close(), b.Close()))
		s := open(t, st, "a")
		wantTexts(t, "after two amendments", contextTexts(t, s), "bb1", "a2", "u3")
		ok(t, s.Close())

		// A move whose window was read before another writer's amendment.
		a = open(t, st, "a")
		must(a.Branch(ctx, ids[1], &coppice.BranchOptions{Name: "x"}))(t)
		b = open(t, st, "a")
		must(b.Amend(ctx, ids[1], entry.Assistant("a-2")))(t)
		must(a.Switch(ctx, "main"))(t)
		ok(t, errors.Join(a.Close(), b.Close()))
		s = open(t, st, "a")
		wantTexts(t, "after a move", contextTexts(t, s), "bb1", "a-2", "u3")
		ok(t, s.Close())
	})
}

func TestAmendKeptBeside(t *testing.T) {
	ctx := context.Background()
	onEach(t, func(t *testing.T, st *coppice.Store) {
		o := &coppice.SessionOptions{KeepBoth: true}
		a := create(t, st, "a", nil)
		ids := say(t, a, "u1", "a2")
		commit(t, a, nil)
		b := must(st.Open(ctx, "a", o))(t)
		say(t, b, "u-b")
		say(t, a, "u3")
		commit(t, a, nil)
		r := must(b.Amend(ctx, ids[0], entry.User("new1")))(t) // it conflicts with nothing, and ignores the buffer
		same(t, "kept", r.Kept, "")
		wantTexts(t, "the handle's line", contextTexts(t, b), "new1", "a2", "u-b")
		r = commit(t, b, nil)
		same(t, "kept", r.Kept != "", true)
		ok(t, errors.Join(a.Close(), b.Close()))
		s := open(t, st, "a")
		wantTexts(t, "after Open", contextTexts(t, s), "new1", "a2", "u3")
		must(s.Switch(ctx, r.Kept))(t)
		wantTexts(t, "the kept line", contextTexts(t, s), "new1", "a2", "u-b")
		ok(t, s.Close())
	})
}

func TestAmendInExplicitContexts(t *testing.T) {
	ctx := context.Background()
	onEach(t, func(t *testing.T, st *coppice.Store) {
		s := create(t, st, "a", nil)
		ids := say(t, s, "u1", "a2", "u3")
		commit(t, s, nil)
		must(s.Branch(ctx, "", nil))(t) // later entries have none of them in their window
		say(t, s, "u4")
		commit(t, s, nil)
		ok(t, s.SetContext(ctx, itemFor(ids[0]), itemFor(ids[1]), itemOf(`{"role":"user","content":"inline"}`)))
		commit(t, s, nil)
		seq := s.Head().Seq
		must(s.Amend(ctx, ids[0], entry.User("new1")))(t)
		wantTexts(t, "explicit context", contextTexts(t, s), "new1", "a2", "inline")
		ok(t, s.Close())
		s = open(t, st, "a")
		wantTexts(t, "after Open", contextTexts(t, s), "new1", "a2", "inline")
		sameResume(t, st, s.IO())
		must(s.Hide(ctx, ids[1]))(t)
		wantTexts(t, "one item hidden", contextTexts(t, s), "new1", "inline")
		must(s.Switch(ctx, "main"))(t)
		wantTexts(t, "view of before", textsOf(must(must(s.At(ctx, coppice.Target{Seq: seq}))(t).Context(ctx))(t)),
			"u1", "a2", "inline")
		must(s.Rollback(ctx, coppice.Target{Seq: seq}))(t)
		wantTexts(t, "after Rollback", contextTexts(t, s), "new1", "inline")
		ok(t, s.Close())
		s = open(t, st, "a")
		wantTexts(t, "after Rollback and Open", contextTexts(t, s), "new1", "inline")
		ok(t, s.Close())
	})
}

// exactLines returns the lines of a pi v3 file.
func exactLines(file []byte) iter.Seq2[transcript.Draft, error] {
	return func(yield func(transcript.Draft, error) bool) {
		for line := range bytes.Lines(file) {
			if !yield(entry.Line(line), nil) {
				return
			}
		}
	}
}

func TestAmendInExports(t *testing.T) {
	ctx := context.Background()
	onEach(t, func(t *testing.T, st *coppice.Store) {
		s := create(t, st, "a", nil)
		ids := say(t, s, "u-one", "a-two", "u-three", "a-four")
		commit(t, s, nil)
		must(s.Amend(ctx, ids[0], entry.User("u-newest")))(t)
		must(s.Hide(ctx, ids[1]))(t)
		var md, page, file bytes.Buffer
		ok(t, export.Markdown(ctx, s, &md, nil))
		ok(t, export.HTML(ctx, s, &page, nil))
		files := map[string]string{"markdown": md.String(), "html": page.String()}
		ok(t, st.ExportPi(ctx, "a", &file))
		lines := exactLines(file.Bytes())
		headless := func(yield func(transcript.Draft, error) bool) {
			first := true
			for d, err := range lines {
				if !first && !yield(d, err) {
					return
				}
				first = false
			}
		}
		for _, f := range []interop.Format{
			interop.Pi, interop.Omp, interop.Atomic, interop.Operator, interop.ClaudeCode, interop.Codex,
		} {
			var out bytes.Buffer
			h := interop.Header{ID: "a", Cwd: "/x", Raw: json.RawMessage(`{"type":"session","version":3,"id":"a"}`)}
			if _, err := formats.Write(&out, f, h, headless, ids[3]); err != nil {
				t.Errorf("%s: %v", f, err)
			}
			files[string(f)] = out.String()
		}
		for f, text := range files {
			for _, gone := range []string{"u-one", "a-two", transcript.AmendKind} {
				if strings.Contains(text, gone) {
					t.Errorf("%s has %q:\n%s", f, gone, text)
				}
			}
			if !strings.Contains(text, "u-newest") || !strings.Contains(text, "u-three") || !strings.Contains(text, "a-four") {
				t.Errorf("%s lacks a text:\n%s", f, text)
			}
			if f == string(interop.Pi) && !strings.Contains(text, `"parentId":"`+ids[0]+`"`) {
				t.Errorf("the child of a hidden entry does not hang on its parent:\n%s", text)
			}
		}
		back := must(st.Import(ctx, lines, &coppice.SessionOptions{ID: "back"}))(t)
		wantEverywhere(t, back, ids, "u-newest", "", "u-three", "a-four")
		for e, err := range back.Originals(ctx, ids[1]) {
			ok(t, err)
			if entryText(e) != "a-two" {
				t.Errorf("original after an import: %s", e.Raw)
			}
		}
		ok(t, errors.Join(s.Close(), back.Close()))
	})
}

func TestAmendStaysWhenAnImportGrows(t *testing.T) {
	ctx := context.Background()
	onEach(t, func(t *testing.T, st *coppice.Store) {
		src := create(t, st, "src", nil)
		ids := say(t, src, "u1", "a2")
		commit(t, src, nil)
		var short, long bytes.Buffer
		ok(t, st.ExportPi(ctx, "src", &short))
		say(t, src, "u3")
		commit(t, src, nil)
		ok(t, st.ExportPi(ctx, "src", &long))
		ok(t, src.Close())
		o := &coppice.SessionOptions{ID: "in"}
		s := must(st.Import(ctx, exactLines(short.Bytes()), o))(t)
		must(s.Amend(ctx, ids[0], entry.User("new1")))(t)
		ok(t, s.Close())
		grown, n, err := st.Grow(ctx, exactLines(long.Bytes()), o)
		ok(t, err)
		same(t, "lines added", n, 1)
		wantTexts(t, "grown", contextTexts(t, grown), "new1", "a2", "u3")
		var out bytes.Buffer
		ok(t, grown.Close())
		ok(t, st.Export(ctx, "in", &out))
		same(t, "the original", out.String(), long.String())
	})
}

// withoutCheckpoint removes the checkpoint of a session, as a fault would.
func withoutCheckpoint(t *testing.T, b backend.Backend, id string) {
	t.Helper()
	ok(t, b.Delete(context.Background(), "checkpoint_latest/"+id))
}

func TestAmendSurvivesTheLossOfTheCheckpoint(t *testing.T) {
	ctx := context.Background()
	b := memory.NewAppender()
	st := newStore(t, b, nil)
	s := create(t, st, "a", nil)
	ids := say(t, s, "u1", "a2", "u3")
	commit(t, s, nil)
	must(s.Amend(ctx, ids[0], entry.User("new1")))(t)
	must(s.Hide(ctx, ids[1]))(t)
	ok(t, s.Close())
	withoutCheckpoint(t, b, "a")
	s = open(t, st, "a")
	wantEverywhere(t, s, ids, "new1", "", "u3")
	ok(t, s.Close())
	must(st.Repair(ctx, "a", false))(t)
	s = open(t, st, "a")
	wantEverywhere(t, s, ids, "new1", "", "u3")
	must(s.Snapshot(ctx, "tag"))(t)
	must(s.Amend(ctx, ids[1], transcript.Draft{}))(t)
	view := must(s.At(ctx, coppice.Target{Tag: "tag"}))(t)
	wantTexts(t, "context of the snapshot", textsOf(must(view.Context(ctx))(t)), "new1", "u3")
	var path []string
	for e, err := range view.Path(ctx) {
		ok(t, err)
		path = append(path, entryText(e))
	}
	wantTexts(t, "path of the snapshot", path, "u3", "new1")
	ok(t, s.Close())
}

func TestKnownAmend(t *testing.T) {
	ctx := context.Background()
	onEach(t, func(t *testing.T, st *coppice.Store) {
		s := create(t, st, "a", nil)
		named := func(id, text string) transcript.Draft {
			d := entry.User(text)
			d.ID = id
			return d
		}
		send := func(texts ...string) coppice.Receipt {
			t.Helper()
			turn := coppice.Turn{}
			for i, text := range texts {
				turn.Entries = append(turn.Entries, named("m"+string(rune('1'+i)), text))
				known(transcript.KnownAmend, turn.Entries...)
			}
			return must(s.Commit(ctx, turn))(t)
		}
		r := send("u1", "u2")
		same(t, "ids", r.IDs, []string{"m1", "m2"})
		seq := r.Seq
		r = send("u1", "new2", "u3") // one unchanged, one amended, one new
		same(t, "ids", r.IDs, []string{"m1", "m2", "m3"})
		same(t, "entries", r.Entries, 2)
		wantEverywhere(t, s, []string{"m1", "m2", "m3"}, "u1", "new2", "u3")
		if r = send("u1", "new2", "u3"); !r.Repeated || r.Entries != 0 || r.Seq != seq+1 {
			t.Errorf("the same turn again: %+v", r)
		}
		ok(t, s.Close())
		s = open(t, st, "a")
		send("newest1", "new2")
		wantEverywhere(t, s, []string{"m1", "m2", "m3"}, "newest1", "new2", "u3")
		title := entry.Title("t")
		title.ID = "m1"
		_, err := s.Commit(ctx, coppice.Turn{Entries: known(transcript.KnownAmend, []transcript.Draft{title}...)})
		if !errors.Is(err, transcript.ErrNotAmendable) {
			t.Errorf("a draft of another type: %v", err)
		}
		wantTexts(t, "context", contextTexts(t, s), "newest1", "new2", "u3")
		ok(t, s.Close())
	})
}

// sameResume checks that a resume cost as many requests as that of a session without amendments.
func sameResume(t *testing.T, st *coppice.Store, got backend.IO) {
	t.Helper()
	plain := must(st.OpenOrCreate(bg, "plain", nil))(t)
	say(t, plain, "u1")
	commit(t, plain, nil)
	ok(t, plain.Close())
	plain = open(t, st, "plain")
	must(plain.Context(bg))(t)
	want := plain.IO()
	ok(t, plain.Close())
	want.BytesRead, got.BytesRead = 0, 0
	same(t, "requests of the resume", got, want)
}

// An image that an amendment added is in a fork too.
func TestAmendedImageInAFork(t *testing.T) {
	onEach(t, func(t *testing.T, st *coppice.Store) {
		s := create(t, st, "s", nil)
		ids := say(t, s, "u1")
		commit(t, s, nil)
		picture := bytes.Repeat([]byte("abcdefg2"), 10_000)
		must(s.Amend(bg, ids[0], entry.User("see", entry.Image("image/png", picture))))(t)
		want := must(s.Entry(bg, ids[0]))(t).Raw
		ok(t, must(s.Fork(bg, coppice.Target{}, "f", nil))(t).Close())
		got := must(open(t, st, "f").Entry(bg, ids[0]))(t).Raw
		if !bytes.Equal(got, want) || !bytes.Contains(got, []byte(base64.StdEncoding.EncodeToString(picture))) {
			t.Errorf("%d bytes, want %d: %.300s", len(got), len(want), got)
		}
	})
}

// Amended or hidden text is in no listing, also after the head moved and the writer died: another process, which reads
// the log, does not have the window with the entry.
func TestListingsHaveTheAmendment(t *testing.T) {
	for _, redact := range []string{"amend", "hide"} {
		t.Run(redact, func(t *testing.T) {
			onEach(t, func(t *testing.T, st *coppice.Store) {
				s := create(t, st, "s", nil)
				must(s.Commit(t.Context(), coppice.Turn{Entries: []transcript.Draft{
					entry.User("first"), entry.Assistant("answer"), entry.User("the password is 4711"),
				}}))(t)
				must(s.Edit(t.Context(), s.Head().Entry, entry.User("wrong way")))(t)
				must(s.Rollback(t.Context(), coppice.Target{Seq: 1}))(t)
				if redact == "amend" {
					must(s.Amend(t.Context(), s.Head().Entry, entry.User("redacted")))(t)
				} else {
					must(s.Hide(t.Context(), s.Head().Entry))(t)
				}
				f := open(t, st, "s") // the first process has died: it is not closed
				same(t, "preview", f.Info().Preview, s.Info().Preview)
				must(f.Commit(t.Context(), coppice.Turn{State: 1}))(t)
				ok(t, f.Close())
				for sum, err := range st.List(t.Context(), coppice.ListOptions{}) {
					ok(t, err)
					same(t, "listed", sum.Preview, s.Info().Preview)
				}
			})
		})
	}
}
