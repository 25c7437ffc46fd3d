package scenarios_test

import (
	"bytes"
	"encoding/base64"
	"strings"
	"testing"

	"github.com/coppice-go/coppice"
	"github.com/coppice-go/coppice/entry"
	"github.com/coppice-go/coppice/snapshot"
)

// What calls cost: requests counted, not timed.
func TestCost(t *testing.T) {
	quiet := &coppice.SessionOptions{Snapshots: snapshot.Policy{Every: -1}}
	for kind, write := range map[string]string{"replace": "1 put", "append": "1 append", "local": "1 append"} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			store := newStore(t, backends[kind](t), nil)
			first, rs := grown(t, store, "s", 10, quiet)
			ok(t, first.Close())
			s := must(store.Open(bg, "s", quiet))(t)
			opened := "1 get"
			if kind != "replace" {
				opened = cost(s.IO())
				if io := s.IO(); io.Get > 2 || io.Put+io.Append+io.List+io.Delete > 0 {
					t.Errorf("open: %s", opened)
				}
			}
			same(t, "open", cost(s.IO()), opened)
			check := func(what, want string, f func()) {
				t.Helper()
				before := s.IO()
				f()
				same(t, what, cost(s.IO().Sub(before)), want)
			}
			check("append", "none", func() { say(t, s, "u11", "a11") })
			check("set context", "none", func() { ok(t, s.SetContext(bg, itemFor(rs[9].Entry))) })
			check("derived again", "none", func() { ok(t, s.SetContext(bg)) })
			check("state, head, info", "none", func() { stateOf(t, s); s.Head(); s.Info() })
			check("at head", "none", func() { must(s.At(bg, coppice.Target{}))(t) })
			check("context", "none", func() { texts(t, s) })
			check("log of 10", "none", func() { collect(t, s.Log(bg, coppice.Target{})) })
			check("commit", write, func() { commit(t, s, state{Turns: 11}) })
			check("claim", write, func() { must(s.Claim(bg))(t) })
			check("label", write, func() { must(s.Label(bg, rs[9].Entry, "x"))(t) })
			must(s.Tree(bg))(t)
			check("tree again", "none", func() { must(s.Tree(bg))(t) })
			commit(t, s, state{Turns: 12})
			check("tree after a commit", "none", func() { must(s.Tree(bg))(t) })
			if kind != "replace" {
				write = "1 get " + write // the state in force there, from the log
			}
			check("branch", write, func() { must(s.Branch(bg, rs[8].Entry, nil))(t) })
			check("edit", write, func() { must(s.Edit(bg, s.Head().Entry, entry.User("x")))(t) })
			check("switch", write, func() { must(s.Switch(bg, rs[9].Entry))(t) })
			check("rollback", write, func() { must(s.Rollback(bg, coppice.Target{Seq: 9}))(t) })
			check("snapshot", "1 put", func() { must(s.Snapshot(bg, "x"))(t) })
		})
	}
}

// A new large image is one PUT more, comes back byte for byte, and is read again only when asked for.
func TestImages(t *testing.T) {
	onEach(t, func(t *testing.T, store *coppice.Store) {
		s := create(t, store, "s", nil)
		say(t, s, "u1")
		commit(t, s, nil)
		picture := bytes.Repeat([]byte("0123456789abcdef"), 20_000)
		before := s.IO()
		must(s.Append(bg, entry.User("look", entry.Image("image/png", picture))))(t)
		same(t, "append", cost(s.IO().Sub(before)), "none")
		want := must(s.Context(bg))(t).Messages[1]
		if !bytes.Contains(want.Raw, []byte(base64.StdEncoding.EncodeToString(picture))) {
			t.Error("the image is not in the context of the one who appended it")
		}
		commit(t, s, nil)
		same(t, "puts", s.IO().Sub(before).Put+s.IO().Sub(before).Append, 2)

		again := open(t, store, "s")
		before = again.IO()
		got := must(again.Context(bg))(t).Messages[1]
		same(t, "context", cost(again.IO().Sub(before)), "1 get")
		if !bytes.Equal(got.Raw, want.Raw) {
			t.Error("the image came back changed")
		}
		for e := range again.Entries(bg, again.Head().Entry) {
			m, _ := e.Message()
			if !bytes.Equal(m.Raw, want.Raw) {
				t.Error("the entry came back changed")
			}
		}
		before = again.IO()
		must(again.Context(bg))(t)
		same(t, "context again", cost(again.IO().Sub(before)), "none")
		f := must(again.Fork(bg, coppice.Target{}, "f", nil))(t)
		ok(t, store.Delete(bg, "s"))
		if got := must(f.Context(bg))(t).Messages[1]; !bytes.Equal(got.Raw, want.Raw) {
			t.Error("the fork lost the image")
		}
		text := "coppice-blob:sha256:" + strings.Repeat("0", 64) + ":5"
		must(f.Append(bg, entry.User(text)))(t)
		commit(t, f, nil)
		c := must(open(t, store, "f").Context(bg))(t)
		same(t, "text that looks like a reference", c.Messages[2].Text(), text)
	})
}
