package lifecycle_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/coppice-go/coppice"
	"github.com/coppice-go/coppice/backend"
	"github.com/coppice-go/coppice/backend/memory"
	"github.com/coppice-go/coppice/checkpoint"
	"github.com/coppice-go/coppice/entry"
	"github.com/coppice-go/coppice/internal/testutil"
	"github.com/coppice-go/coppice/transcript"
)

// lived is one session on one kind of store. Sessions with the same steps on different stores have the same entries,
// branches and commits by their numbers, under different ids.
type lived struct {
	kind  string
	b     backend.Backend
	store *coppice.Store
	s     *coppice.Session
	said  []string // ids of messages, in order of appending
	seqs  []uint64 // of turns
	names []string // branches
}

// lives returns the same session on each kind of store; the first is on a store that only replaces.
func lives(t *testing.T) []*lived {
	t.Helper()
	var all []*lived
	for _, kind := range []string{"replace", "append", "local"} {
		l := &lived{kind: kind, b: backends[kind](t), names: []string{"main"}}
		if kind == "append" {
			l.b = memory.NewAppender()
		}
		l.store = processOn(t, l.b, kind)
		l.s = create(t, l.store, "s", nil)
		all = append(all, l)
	}
	return all
}

// turn commits one message of each role.
func (l *lived) turn(t *testing.T, text string, roles ...string) {
	t.Helper()
	for _, role := range roles {
		d := map[string]transcript.Draft{
			"asked": entry.User("ask " + text), "answered": entry.Assistant("answer " + text),
			"calling": entry.Assistant("call "+text, entry.Call("c"+text, "bash", map[string]string{"command": "ls"})),
			"working": entry.ToolResult("c"+text, "bash", "result "+text, false),
		}[role]
		l.said = append(l.said, must(l.s.Append(bg, d))(t)...)
	}
	l.seqs = append(l.seqs, commit(t, l.s, state{Turns: len(l.seqs)}).Seq)
}

func (l *lived) branch(t *testing.T, at int, name string) {
	t.Helper()
	if name != "" {
		l.names = append(l.names, name)
	}
	must(l.s.Branch(bg, l.said[at], &coppice.BranchOptions{Name: name}))(t)
}

func (l *lived) edit(t *testing.T, at int, text string) {
	t.Helper()
	r := must(l.s.Edit(bg, l.said[at], entry.User("edited "+text)))(t)
	l.said = append(l.said, r.Entry)
}

// loses lets another process commit first; the losing turn is kept.
func (l *lived) loses(t *testing.T, text string) {
	t.Helper()
	winner := &lived{s: open(t, processOn(t, l.b, "winner of "+text), "s")}
	winner.turn(t, "won "+text, "asked")
	l.said = append(append(l.said, winner.said...), say(t, l.s, "u lost "+text)...)
	if _, err := l.s.Commit(bg, coppice.Turn{}); !errors.Is(err, coppice.ErrConflict) {
		t.Fatalf("commit: %v", err)
	}
	l.names = append(l.names, must(l.s.Commit(bg, coppice.Turn{KeepBoth: true}))(t).Kept)
	ok(t, l.s.Reload(bg))
}

// dies drops the handle without Close, and opens another.
func (l *lived) dies(t *testing.T, name string) {
	t.Helper()
	l.store = processOn(t, l.b, name)
	l.s = open(t, l.store, "s")
}

// losesCheckpoint removes checkpoint_latest, which only a store that appends can do without.
func (l *lived) losesCheckpoint(t *testing.T) {
	t.Helper()
	if l.kind != "replace" {
		ok(t, l.b.Delete(bg, "checkpoint_latest/s"))
	}
}

// shown returns the fields of a session in a listing.
func shown(i checkpoint.Summary) string {
	return fmt.Sprintf("%q %s, title %q, first %q, %d entries", i.Preview, i.Status, i.Title, i.First, i.Entries)
}

// agree compares the report of each handle with that of a fresh handle, and with that on the store that only replaces.
func agree(t *testing.T, after string, all []*lived) (agreed bool) {
	t.Helper()
	agreed = true
	want := shown(all[0].s.Info())
	for _, l := range all {
		fresh := must(l.store.Open(bg, "s", &coppice.SessionOptions{ReadOnly: true}))(t)
		if diff := cmp.Diff(fresh.Info(), l.s.Info()); diff != "" {
			t.Errorf("%s on %s: the handle reports (+), a fresh one (-)\n%s", after, l.kind, diff)
			agreed = false
		}
		if got := shown(fresh.Info()); got != want {
			t.Errorf("%s on %s: a fresh handle reports %s, on replace it is %s", after, l.kind, got, want)
			agreed = false
		}
		ok(t, fresh.Close())
	}
	return agreed
}

// agreeListed lets another handle of each session change something else, which stores the summary, and compares the
// results of List.
func agreeListed(t *testing.T, after string, all []*lived) {
	t.Helper()
	want := ""
	for i, l := range all {
		store := processOn(t, l.b, "lister")
		s := open(t, store, "s")
		must(s.Label(bg, l.said[0], "seen"))(t)
		ok(t, s.Close())
		list := collect(t, store.List(bg, coppice.ListOptions{}))
		if i == 0 {
			want = shown(list[0])
		}
		if got := shown(list[0]); got != want {
			t.Errorf("%s on %s: List yields %s, on replace it is %s", after, l.kind, got, want)
		}
	}
}

// "What Commit acknowledged is in the history of every later head, on every host": after a move of the head, a handle
// reports the same as a fresh handle and as List, on every kind of store: preview and status are those of the path to
// the head.
func TestInfoAfterMoves(t *testing.T) {
	testutil.SkipLong(t)
	for name, move := range map[string]func(t *testing.T, l *lived){
		"no move": func(*testing.T, *lived) {},
		"switch":  func(t *testing.T, l *lived) { must(l.s.Switch(bg, l.said[3]))(t) },
		"switch, then no more": func(t *testing.T, l *lived) {
			must(l.s.Switch(bg, l.said[3]))(t)
			must(l.s.Label(bg, l.said[0], "label"))(t)
		},
		"branch":       func(t *testing.T, l *lived) { l.branch(t, 3, "") },
		"named branch": func(t *testing.T, l *lived) { l.branch(t, 3, "third") },
		"new root":     func(t *testing.T, l *lived) { must(l.s.Branch(bg, "", nil))(t) },
		"edit":         func(t *testing.T, l *lived) { l.edit(t, 2, "it") },
		"edit, then back": func(t *testing.T, l *lived) {
			l.edit(t, 3, "it")
			must(l.s.Switch(bg, "other"))(t)
		},
		"rollback": func(t *testing.T, l *lived) { must(l.s.Rollback(bg, coppice.Target{Seq: 2}))(t) },
		"conflict branch": func(t *testing.T, l *lived) {
			must(l.s.Switch(bg, l.said[3]))(t)
			l.dies(t, "second")
			l.loses(t, "race")
		},
		"lost checkpoint": func(t *testing.T, l *lived) {
			must(l.s.Switch(bg, l.said[3]))(t)
			l.losesCheckpoint(t)
		},
		"lost checkpoint, several segments": func(t *testing.T, l *lived) {
			l.turn(t, strings.Repeat("much was said ", 25_000), "asked", "answered")
			ok(t, l.s.Close())
			l.dies(t, "second")
			must(l.s.Label(bg, l.said[0], "label"))(t)
			l.losesCheckpoint(t)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			all := lives(t)
			for _, l := range all {
				l.turn(t, "one", "asked", "answered")
				l.turn(t, "two", "asked", "calling", "working")
				l.branch(t, 1, "other")
				l.turn(t, "three", "asked")
				move(t, l)
			}
			agree(t, name, all)
			agreeListed(t, name, all)
		})
	}
}
