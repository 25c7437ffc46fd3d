package scenarios_test

import (
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/coppice-go/coppice"
	"github.com/coppice-go/coppice/backend"
	"github.com/coppice-go/coppice/backend/memory"
	"github.com/coppice-go/coppice/entry"
	"github.com/coppice-go/coppice/internal/testutil"
	"github.com/coppice-go/coppice/transcript"
)

// pageModel is a session as lists: the ids of its entries in append order, and the index of the parent of each, -1 = a
// root.
type pageModel struct {
	ids    []string
	parent []int
	hidden map[string]bool
	head   string
}

// path returns the ids from the root to an entry.
func (m *pageModel) path(id string) (ids []string) {
	for i := slices.Index(m.ids, id); i >= 0; i = m.parent[i] {
		ids = append(ids, m.ids[i])
	}
	slices.Reverse(ids)
	return ids
}

// page returns the ids of a page; false: it begins at an entry that is not in its order.
func (m *pageModel) page(p coppice.Page) ([]string, bool) {
	start := p.From + p.After
	list := slices.Clone(m.ids)
	switch {
	case p.All:
	case p.To != "":
		list = m.path(p.To)
	case p.Reverse && start != "":
		list = m.path(start)
	default:
		list = m.path(m.head)
	}
	if p.Reverse {
		slices.Reverse(list)
	}
	if start != "" {
		i := slices.Index(list, start)
		if i < 0 {
			return nil, false
		}
		if p.After != "" {
			i++
		}
		list = list[i:]
	}
	if !p.All { // with All they are included, with their heads only
		list = slices.DeleteFunc(list, func(id string) bool { return m.hidden[id] })
	}
	if p.Limit > 0 {
		list = list[:min(len(list), p.Limit)]
	}
	return list, true
}

// drawImport draws a pi file whose parents may come later, be missing, be the entry itself or form a cycle, and the
// model of the imported session.
func drawImport(t *rapid.T) (raw string, m *pageModel) {
	n := rapid.IntRange(0, 30).Draw(t, "imported")
	lines := []string{header}
	m = &pageModel{hidden: map[string]bool{}}
	for i := range n {
		p := i - 1
		if rapid.IntRange(0, 3).Draw(t, "elsewhere") == 0 {
			p = rapid.IntRange(-2, n-1).Draw(t, "parent")
		}
		name := "null"
		switch {
		case p >= 0:
			name = fmt.Sprintf("%04x", p)
		case p == -2:
			name = "gone"
		}
		lines = append(lines, piLine(fmt.Sprintf("%04x", i), name, fmt.Sprint("text ", i)))
		if p == i {
			p = -1
		}
		m.ids, m.parent = append(m.ids, fmt.Sprintf("%04x", i)), append(m.parent, max(p, -1))
	}
	for i := n - 1; i >= 0; i-- { // a path from the last entry is cut before it reaches an entry again
		walked := map[int]bool{}
		for j := i; j >= 0; j = m.parent[j] {
			if walked[j] = true; walked[m.parent[j]] {
				m.parent[j] = -1
			}
		}
	}
	return strings.Join(lines, "\n") + "\n", m
}

// write appends, commits and branches at random, in session and model.
func (m *pageModel) write(t *rapid.T, tb testing.TB, s *coppice.Session) {
	for range rapid.IntRange(0, 12).Draw(t, "steps") {
		switch step := rapid.IntRange(0, 6).Draw(t, "step"); {
		case step <= 2:
			id := must(s.Append(bg, entry.User("more")))(tb)[0]
			m.ids, m.parent = append(m.ids, id), append(m.parent, slices.Index(m.ids, m.head))
			m.head = id
		case step == 3:
			must(s.Commit(bg, coppice.Turn{}))(tb)
		case len(m.ids) == 0:
		case step == 4:
			m.hide(tb, s, rapid.SampledFrom(m.ids).Draw(t, "hide"))
		default:
			at := rapid.SampledFrom(append([]string{""}, m.ids...)).Draw(t, "at")
			must(s.Commit(bg, coppice.Turn{}))(tb)
			must(s.Branch(bg, at, nil))(tb)
			m.head = at
		}
		if got := s.Head().Entry; got != m.head {
			t.Fatalf("head %s, want %s", got, m.head)
		}
	}
}

// hide hides an entry: the amendment is an entry itself, and has no children.
func (m *pageModel) hide(tb testing.TB, s *coppice.Session, id string) {
	must(s.Commit(bg, coppice.Turn{}))(tb)
	if must(s.Entry(bg, id))(tb).Type != "message" || m.hidden[id] {
		return
	}
	must(s.Hide(bg, id))(tb)
	m.hidden[id] = true
	entries := collect(tb, s.Entries(bg))
	last := entries[len(entries)-1]
	m.ids, m.parent = append(m.ids, last.ID), append(m.parent, slices.Index(m.ids, last.ParentID))
}

// drawPage draws a page that is valid, or begins at an entry that is not in its order.
func (m *pageModel) drawPage(t *rapid.T) coppice.Page {
	p := coppice.Page{
		All: rapid.Bool().Draw(t, "all"), Reverse: rapid.Bool().Draw(t, "reverse"),
		Limit: max(0, rapid.IntRange(-5, len(m.ids)+2).Draw(t, "limit")),
	}
	id := func(name string) string { return rapid.SampledFrom(append([]string{""}, m.ids...)).Draw(t, name) }
	if !p.All {
		p.To = id("to")
	}
	if p.From = id("from"); p.From == "" {
		p.After = id("after")
	}
	return p
}

// Every page of every session equals that of a simple model: all orders, starts, ends and limits, on a session with an
// import, branches, hidden and pending entries, and in another handle.
func TestPageAgainstModel(t *testing.T) {
	testutil.SkipLong(t)
	for _, name := range []string{"append", "replace"} {
		t.Run(name, func(t *testing.T) {
			open := backends[name]
			rapid.Check(t, func(rt *rapid.T) {
				store := newStore(t, open(t), nil)
				raw, m := drawImport(rt)
				s := importFile(t, store, []byte(raw))
				m.head = s.Head().Entry
				m.write(rt, t, s)
				for range 20 {
					m.checkPage(rt, s, m.drawPage(rt))
				}
				must(s.Commit(bg, coppice.Turn{}))(t)
				again := must(store.Open(bg, s.ID(), small))(t)
				m.checkPage(rt, again, coppice.Page{Reverse: true, Limit: rapid.IntRange(1, 40).Draw(rt, "newest")})
				for range 5 {
					m.checkPage(rt, again, m.drawPage(rt))
				}
				v := must(again.At(bg, coppice.Target{}))(t)
				p := m.drawPage(rt)
				p.All = false
				want, found := m.page(p)
				if got, err := pageIDs(v.Page(bg, p)); found && (err != nil || !slices.Equal(got, want)) {
					rt.Fatalf("view %+v: %v %v, want %v", p, got, err, want)
				}
				ok(t, errors.Join(again.Close(), s.Close()))
			})
		})
	}
}

func pageIDs(seq iter.Seq2[transcript.Entry, error]) (got []string, err error) {
	for e, err := range seq {
		if err != nil {
			return got, err
		}
		got = append(got, e.ID)
	}
	return got, nil
}

func (m *pageModel) checkPage(t *rapid.T, s *coppice.Session, p coppice.Page) {
	want, found := m.page(p)
	got, err := pageIDs(s.Page(bg, p))
	if !found {
		if !errors.Is(err, fs.ErrNotExist) || len(got) > 0 {
			t.Fatalf("%+v: %v %v, want fs.ErrNotExist", p, got, err)
		}
		return
	}
	if err != nil || !slices.Equal(got, want) {
		t.Fatalf("%+v: %v %v, want %v; head %q of %v %v", p, got, err, want, m.head, m.ids, m.parent)
	}
}

// Contradictory pages are errors, and so are unknown ids.
func TestPageErrors(t *testing.T) {
	s := create(t, newStore(t, memory.New(), nil), "s", nil)
	id := say(t, s, "u1", "a1")
	for _, p := range []coppice.Page{
		{All: true, To: id[0]},
		{From: id[0], After: id[1]},
		{Limit: -1},
		{From: "gone"},
		{To: "gone"},
		{All: true, After: "gone"},
		{From: id[1], To: id[0]},
		{Reverse: true, From: id[1], To: id[0]},
	} {
		if got, err := pageIDs(s.Page(bg, p)); err == nil || len(got) > 0 {
			t.Errorf("%+v: %v, %v", p, got, err)
		}
	}
	commit(t, s, nil)
	v := must(s.At(bg, coppice.Target{}))(t)
	if _, err := pageIDs(v.Page(bg, coppice.Page{All: true})); err == nil {
		t.Error("a view has all entries")
	}
}

// The cost of a page depends on its results only: as many requests and bytes in a session of 7,200 entries as in one of
// 1,200, in every direction and from every entry.
func TestPageCosts(t *testing.T) {
	pages := map[string]coppice.Page{
		"newest":          {Reverse: true},
		"up":              {Reverse: true, After: "middle"},
		"down":            {After: "middle"},
		"down to a leaf":  {From: "middle", To: "last"},
		"from the root":   {},
		"all":             {All: true},
		"all, backwards":  {All: true, Reverse: true},
		"append order":    {All: true, After: "middle"},
		"append backward": {All: true, After: "middle", Reverse: true},
	}
	seen := map[string]backend.IO{}
	for _, turns := range []int{2, 12} {
		b := memory.New()
		all := sealed(t, b, turns)
		store := newHost(t, b, "reader")
		for name, p := range pages {
			s := must(store.Open(bg, "s", small))(t)
			place := map[string]string{"": "", "middle": all[len(all)/2+300], "last": all[len(all)-1]}
			p.From, p.After, p.To, p.Limit = place[p.From], place[p.After], place[p.To], 50
			must(s.Tree(bg))(t)
			before := s.IO()
			same(t, name, len(collect(t, s.Page(bg, p))), 50)
			io := s.IO().Sub(before)
			if turns == 2 {
				seen[name] = io
				same(t, name, cost(io), "1 get")
				continue
			}
			want := seen[name]
			same(t, name+" of 7,200", cost(io), cost(want))
			if io.BytesRead > want.BytesRead+want.BytesRead/10 {
				t.Errorf("%s: %d bytes of 7,200 entries, %d of 1,200", name, io.BytesRead, want.BytesRead)
			}
			ok(t, s.Close())
		}
	}
}

// The newest entries of a session are read from the end of its log, without the tree: with as many requests and bytes
// in a long session as in a short one. If an amendment may refer to them, or the path leads far back, the tree is read.
func TestNewestPageReadsNoTree(t *testing.T) {
	seen := map[int]backend.IO{}
	for _, turns := range []int{2, 12} {
		b := memory.New()
		all := sealed(t, b, turns)
		s := must(newHost(t, b, "reader").Open(bg, "s", small))(t)
		opened := s.IO()
		got := must(pageIDs(s.Page(bg, coppice.Page{Reverse: true, Limit: 50})))(t)
		seen[turns] = s.IO().Sub(opened)
		slices.Reverse(got)
		same(t, "the newest 50", strings.Join(got, " "), strings.Join(all[len(all)-50:], " "))
		opened = s.IO()
		must(s.Tree(bg))(t)
		if tree := s.IO().Sub(opened); tree.Get == 0 {
			t.Errorf("the page has read the tree: %s, and then nothing", cost(seen[turns]))
		}
		ok(t, s.Close())
	}
	same(t, "requests of 7,200 entries", cost(seen[12]), cost(seen[2]))
	if seen[12].BytesRead > seen[2].BytesRead*11/10 {
		t.Errorf("%d bytes of 7,200 entries, %d of 1,200", seen[12].BytesRead, seen[2].BytesRead)
	}
}
