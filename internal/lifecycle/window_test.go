package lifecycle_test

import (
	"fmt"
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

// windowLife is a session whose context is longer than its bound, and the checkpoints that it had.
type windowLife struct {
	t     *rapid.T
	b     backend.Backend
	store *coppice.Store
	s     *coppice.Session
	ids   []string
	old   [][]byte // checkpoint_latest, where a log continues it
	keys  int
}

func (l *windowLife) must(err error) {
	l.t.Helper()
	if err != nil {
		l.t.Fatal(err)
	}
}

func (l *windowLife) pick(label string) string {
	if len(l.ids) == 0 {
		return ""
	}
	return rapid.SampledFrom(l.ids).Draw(l.t, label)
}

// drafts draws entries: turns, calls with late results or none, compactions and settings.
func (l *windowLife) drafts() (list []transcript.Draft) {
	for range rapid.IntRange(1, 4).Draw(l.t, "entries") {
		text := strings.Repeat("x", rapid.IntRange(1, 120).Draw(l.t, "long"))
		call := fmt.Sprint("call", rapid.IntRange(0, 2).Draw(l.t, "call"))
		var d transcript.Draft
		switch rapid.IntRange(0, 9).Draw(l.t, "entry") {
		case 0, 1, 2:
			d = entry.User(text)
		case 3, 4:
			d = entry.Assistant(text)
		case 5:
			d = entry.Assistant(text, entry.Call(call, "read", map[string]int{"n": 1}))
		case 6, 7:
			d = entry.ToolResult(call, "read", text, false)
		case 8:
			d = entry.Model("maker", text[:1])
		case 9:
			d = entry.Compaction("summary", l.pick("kept"), 1)
			if rapid.IntRange(0, 3).Draw(l.t, "compact") > 0 {
				d = entry.Title(text)
			}
		}
		list = append(list, d)
	}
	return list
}

// step does one thing to the session. What the API refuses changes nothing.
func (l *windowLife) step() {
	var err error
	switch rapid.IntRange(0, 14).Draw(l.t, "step") {
	case 0, 1, 2, 3, 4:
		_, err = l.s.Append(bg, l.drafts()...)
		l.must(err)
		_, err = l.s.Commit(bg, coppice.Turn{})
	case 5:
		_, err = l.s.Commit(bg, coppice.Turn{Entries: l.drafts(), Base: coppice.Newest})
	case 6:
		_, err = l.s.Hide(bg, l.pick("hidden"))
	case 7:
		text := strings.Repeat("y", rapid.IntRange(1, 200).Draw(l.t, "long"))
		_, err = l.s.Amend(bg, l.pick("amended"), entry.User(text))
	case 8:
		_, err = l.s.Branch(bg, l.pick("to"), nil)
	case 9:
		_, err = l.s.Edit(bg, l.pick("edited"), entry.User("instead"))
	case 10:
		d := entry.User("known")
		if d.ID = l.pick("known"); d.ID != "" {
			d.OnKnownID = transcript.KnownAmend
		}
		_, err = l.s.Commit(bg, coppice.Turn{Entries: append([]transcript.Draft{d}, l.drafts()...)})
	case 11:
		items := []transcript.Item{{Entry: l.pick("item")}}
		if rapid.Bool().Draw(l.t, "derived") {
			items = nil
		}
		if l.s.SetContext(bg, items...) == nil {
			_, err = l.s.Commit(bg, coppice.Turn{State: map[string]int{"n": l.keys}})
		}
	case 12:
		from := l.pick("from")
		_, err = l.s.Commit(bg, coppice.Turn{Entries: l.drafts(), From: &from})
	case 13: // a checkpoint is written when a handle that committed is closed
		l.must(l.s.Close())
		l.s, err = l.store.Open(bg, "s", nil)
		l.must(err)
	case 14:
		if _, err = l.store.Erase(bg, "s", []string{l.pick("erased")}, nil); err == nil {
			err = l.s.Reload(bg)
		}
	}
	if err != nil { // as for an entry that cannot be amended, or has the body already
		l.must(l.s.Reload(bg))
	}
	l.keys++
	l.ids = l.ids[:0]
	tree, err := l.s.Tree(bg)
	l.must(err)
	for n := range tree.Nodes(transcript.FilterAll) {
		l.ids = append(l.ids, n.ID)
	}
}

func (l *windowLife) shows(s *coppice.Session) string {
	return fmt.Sprintf("preview %q\n%s", s.Info().Preview, l.context(s))
}

func (l *windowLife) context(s *coppice.Session) string {
	c, err := s.Context(bg)
	l.must(err)
	var b strings.Builder
	fmt.Fprintf(&b, "%+v %+v leaf %s explicit %v open %v\n", c.Window, c.Settings, c.Leaf, c.Explicit, c.OpenCalls)
	for _, m := range c.Messages {
		fmt.Fprintf(&b, "%s %s\n", m.Entry, m.Raw)
	}
	return b.String()
}

// fresh returns what a handle shows that opens the store as it is, after its backend was changed.
func (l *windowLife) fresh(b backend.Backend) string {
	store, err := coppice.New(b, nil)
	l.must(err)
	s, err := store.Open(bg, "s", &coppice.SessionOptions{ReadOnly: true})
	l.must(err)
	defer s.Close()
	return l.shows(s)
}

// check compares the handle with a fresh one, and with ones that start at each older checkpoint and at none.
func (l *windowLife) check() {
	own := l.shows(l.s)
	same := func(who, got string) {
		if own != got {
			l.t.Fatalf("the handle:\n%s\n%s:\n%s", own, who, got)
		}
	}
	same("a fresh handle", l.fresh(l.b))
	if _, appends := l.b.(backend.Appender); !appends {
		return
	}
	now, _, err := l.b.Get(bg, "checkpoint_latest/s", backend.Range{})
	if err == nil && (len(l.old) == 0 || string(l.old[len(l.old)-1]) != string(now)) {
		l.old = append(l.old, now)
	}
	put := func(body []byte) {
		_, err := l.b.Put(bg, "checkpoint_latest/s", body, backend.Cond{})
		l.must(err)
	}
	for i, body := range l.old {
		put(body)
		same(fmt.Sprint("a handle opened at checkpoint ", i), l.fresh(l.b))
	}
	l.must(l.b.Delete(bg, "checkpoint_latest/s"))
	same("a handle opened without a checkpoint", l.fresh(l.b))
	if err == nil {
		put(now)
	}
}

// I16: a context above its bound begins at the same place, whichever handle computed its window, and from what.
func TestWindowOfEveryHandle(t *testing.T) {
	testutil.SkipLong(t)
	for name, open := range map[string]func() backend.Backend{
		"replace": func() backend.Backend { return memory.New() },
		"append":  func() backend.Backend { return memory.NewAppender() },
	} {
		t.Run(name, func(t *testing.T) {
			rapid.Check(t, func(rt *rapid.T) {
				l := &windowLife{t: rt, b: open()}
				var err error
				l.store, err = coppice.New(l.b, nil)
				l.must(err)
				bound := rapid.IntRange(600, 3000).Draw(rt, "bound")
				l.s, err = l.store.Create("s", &coppice.SessionOptions{ContextBytes: bound})
				l.must(err)
				defer func() { _ = l.s.Close() }()
				_, err = l.s.Append(bg, entry.User("begin"))
				l.must(err)
				_, err = l.s.Commit(bg, coppice.Turn{})
				l.must(err)
				for range rapid.IntRange(1, 30).Draw(rt, "steps") {
					l.step()
					l.check()
				}
				own := l.context(l.s)
				_, err = l.s.Branch(bg, l.s.Head().Entry, nil) // its window is made of the path
				l.must(err)
				if got := l.context(l.s); got != own {
					rt.Fatalf("the handle:\n%s\nmade of the whole path:\n%s", own, got)
				}
			})
		})
	}
}

// Resume stays one read after an annotation above the bound, and after an erasure: the step that stores it brings the
// window along.
func TestAmendmentBringsItsWindow(t *testing.T) {
	b := memory.New()
	store := newStore(t, b, nil)
	s := create(t, store, "s", &coppice.SessionOptions{ContextBytes: 2000})
	var ids []string
	for range 30 {
		ids = append(ids, say(t, s, "u", "a")...)
		commit(t, s, nil)
	}
	resume := func(what, want string) {
		t.Helper()
		again := open(t, store, "s")
		c := must(again.Context(bg))(t)
		same(t, "reads after "+what, cost(again.IO()), "1 get")
		same(t, "omitted after "+what, c.Window.OmittedEntries > 0, true)
		if len(c.Messages)+c.Window.OmittedEntries != 60 && what != "hiding" {
			t.Errorf("after %s: %d messages, %d omitted", what, len(c.Messages), c.Window.OmittedEntries)
		}
		same(t, what, strings.Contains(texts(t, again), want), true)
	}
	resume("commits", "u")
	must(s.Amend(bg, ids[58], entry.User("amended")))(t)
	resume("an amendment", "amended")
	must(s.Amend(bg, ids[2], entry.User("cut off")))(t)
	resume("an amendment of what is cut off", "amended")
	must(store.Erase(bg, "s", ids[57:58], nil))(t)
	resume("an erasure", "[erased]")
	must(store.Erase(bg, "s", ids[4:5], nil))(t)
	resume("an erasure of what is cut off", "[erased]")
	ok(t, s.Reload(bg))
	d := entry.User("again")
	d.ID, d.OnKnownID = ids[58], transcript.KnownAmend
	must(s.Commit(bg, coppice.Turn{Entries: []transcript.Draft{d}}))(t)
	resume("a turn with an amendment", "again")
	must(s.Hide(bg, ids[56]))(t)
	resume("hiding", "again")
}
