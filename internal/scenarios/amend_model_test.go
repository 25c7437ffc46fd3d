package scenarios_test

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/coppice-go/coppice"
	"github.com/coppice-go/coppice/backend"
	"github.com/coppice-go/coppice/backend/memory"
	"github.com/coppice-go/coppice/entry"
	"github.com/coppice-go/coppice/internal/testutil"
	"github.com/coppice-go/coppice/transcript"
)

// amendModel is a session according to the documented promise: a tree of texts, and the content at each commit.
type amendModel struct {
	parent  map[string]string
	said    map[string]string // as appended
	now     map[string]string // as amended; "" = hidden
	all     []string          // ids, in append order
	head    string
	commits []amendCommit
}

type amendCommit struct {
	id    string
	shown []string
}

// shown returns the texts from the root to the head.
func (m *amendModel) shown() (list []string) {
	for id := m.head; id != ""; id = m.parent[id] {
		if m.now[id] != "" {
			list = append(list, m.now[id])
		}
	}
	slices.Reverse(list)
	return list
}

func (m *amendModel) committed(r coppice.Receipt) {
	if n := len(m.commits); n == 0 || m.commits[n-1].id != r.Commit {
		m.commits = append(m.commits, amendCommit{r.Commit, m.shown()})
	}
}

// TestAmendModel appends, amends, hides, branches and reopens at random, and compares context and path of every commit
// with a model.
func TestAmendModel(t *testing.T) {
	testutil.SkipLong(t)
	for name, b := range map[string]func() backend.Backend{
		"replace": func() backend.Backend { return memory.New() },
		"append":  func() backend.Backend { return memory.NewAppender() },
	} {
		t.Run(name, func(t *testing.T) {
			rapid.Check(t, func(rt *rapid.T) { amendAtRandom(t, rt, newStore(t, b(), nil)) })
		})
	}
}

func amendAtRandom(t *testing.T, rt *rapid.T, st *coppice.Store) {
	ctx := context.Background()
	m := &amendModel{parent: map[string]string{}, said: map[string]string{}, now: map[string]string{}}
	s := create(t, st, "a", nil)
	texts := 0
	text := func(kind string) string {
		texts++
		return fmt.Sprintf("%s%d", kind, texts)
	}
	pick := func() string { return rapid.SampledFrom(m.all).Draw(rt, "entry") }
	turn := func() {
		for range rapid.IntRange(1, 3).Draw(rt, "entries") {
			said := text("u")
			id := must(s.Append(ctx, entry.User(said)))(t)[0]
			m.parent[id], m.said[id], m.now[id], m.head = m.head, said, said, id
			m.all = append(m.all, id)
		}
	}
	turn()
	m.committed(commit(t, s, nil))
	for range rapid.IntRange(5, 30).Draw(rt, "steps") {
		switch rapid.SampledFrom([]string{"turn", "amend", "hide", "show", "branch", "reopen"}).Draw(rt, "step") {
		case "turn":
			turn()
			m.committed(commit(t, s, nil))
		case "amend":
			id, said := pick(), text("n")
			m.now[id] = said
			m.committed(must(s.Amend(ctx, id, entry.User(said)))(t))
		case "hide":
			id := pick()
			if m.now[id] != "" {
				m.now[id] = ""
				m.committed(must(s.Hide(ctx, id))(t))
			}
		case "show":
			if id := pick(); m.now[id] != m.said[id] {
				m.now[id] = m.said[id]
				m.committed(must(s.Amend(ctx, id, transcript.Draft{}))(t))
			}
		case "branch":
			at := pick()
			if len(m.commits) > 0 {
				r := must(s.Branch(ctx, at, nil))(t)
				m.head = at
				m.commits = append(m.commits, amendCommit{r.Commit, m.shown()})
			}
		case "reopen":
			commit(t, s, nil)
			ok(t, s.Close())
			s = open(t, st, "a")
		}
		same(rt2{t, rt}, "context", contextTexts(t, s), m.shown())
		same(rt2{t, rt}, "path", pathTexts(t, s), m.shown())
	}
	m.committed(commit(t, s, nil))
	ok(t, s.Close())
	s = open(t, st, "a")
	same(rt2{t, rt}, "context at the end", contextTexts(t, s), m.shown())
	for _, c := range m.commits {
		view := must(s.At(ctx, coppice.Target{Commit: c.id}))(t)
		same(rt2{t, rt}, "context at "+c.id, textsOf(must(view.Context(ctx))(t)), c.shown)
		var path []string
		for e, err := range view.Path(ctx) {
			ok(t, err)
			path = append(path, entryText(e))
		}
		slices.Reverse(path)
		same(rt2{t, rt}, "path at "+c.id, path, c.shown)
	}
	ok(t, s.Close())
}

// rt2 reports to rapid, which then searches for a shorter run.
type rt2 struct {
	testing.TB
	rt *rapid.T
}

func (r rt2) Errorf(format string, args ...any) { r.rt.Fatalf(format, args...) }
