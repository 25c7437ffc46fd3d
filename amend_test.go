package coppice_test

import (
	"context"
	"slices"
	"testing"

	"github.com/coppice-go/coppice"
	"github.com/coppice-go/coppice/entry"
	"github.com/coppice-go/coppice/transcript"
)

// textsOf returns what a context says, in order.
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
		list = append(list, entryText(e))
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

// wantEverywhere holds every reader of a session against texts; ids are those of all entries, of which the hidden ones
// have the text "".
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
		along = append(along, entryText(e))
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
		ok(t, s.Close())

		s = open(t, st, "a")
		wantTexts(t, "context after Open", contextTexts(t, s), "newest1", "u3")
		if io := s.IO(); io.Get > 2 || io.List > 0 {
			t.Errorf("the resume cost %+v", io)
		}
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
