package scenarios_test

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"testing"

	"github.com/coppice-go/coppice"
	"github.com/coppice-go/coppice/backend/memory"
	"github.com/coppice-go/coppice/entry"
	"github.com/coppice-go/coppice/internal/testutil"
	"github.com/coppice-go/coppice/transcript"
)

// Branch, Switch and Edit move the head, survive a restart, and restore the state in force at the target.
func TestNavigation(t *testing.T) {
	onEach(t, func(t *testing.T, store *coppice.Store) {
		s := create(t, store, "s", nil)
		one := say(t, s, "u1", "a1")
		commit(t, s, state{Turns: 1})
		two := say(t, s, "u2", "a2")
		commit(t, s, state{Turns: 2})

		r := must(s.Edit(bg, two[0], entry.User("u2b")))(t)
		same(t, "context", texts(t, s), "u1 a1 u2b")
		same(t, "state", stateOf(t, s), state{Turns: 1})
		same(t, "branch", r.Branch, "main")
		say(t, s, "a2b")
		commit(t, s, state{Turns: 22})
		tree := must(s.Tree(bg))(t)
		versions, at := tree.Siblings(two[0])
		same(t, "versions", len(versions), 2)
		same(t, "place", at, 0)

		must(s.Switch(bg, versions[0].ID))(t)
		again := open(t, store, "s")
		same(t, "context", texts(t, again), "u1 a1 u2 a2")
		same(t, "state", stateOf(t, again), state{Turns: 2})
		must(again.Switch(bg, versions[1].ID))(t)
		same(t, "context", texts(t, again), "u1 a1 u2b a2b")
		same(t, "state", stateOf(t, again), state{Turns: 22})

		seq := again.Head().Seq
		r = must(again.Switch(bg, r.Entry))(t)
		same(t, "no commit where the head is there", r.Seq, seq)

		r = must(again.Branch(bg, one[0], &coppice.BranchOptions{Name: "try", Summary: "it failed"}))(t)
		same(t, "branch", r.Branch, "try")
		c := must(again.Context(bg))(t)
		same(t, "messages", len(c.Messages), 2)
		same(t, "role", c.Messages[1].Role, "branchSummary")
		same(t, "state", stateOf(t, again), state{Turns: -1})
		if _, err := again.Branch(bg, one[0], &coppice.BranchOptions{Name: "main"}); !errors.Is(err, fs.ErrExist) {
			t.Errorf("a name that is taken: %v", err)
		}
		must(again.Switch(bg, "main"))(t)
		same(t, "context", texts(t, again), "u1 a1 u2b a2b")
		must(again.Switch(bg, "try"))(t)
		same(t, "messages", len(must(open(t, store, "s").Context(bg))(t).Messages), 2)

		must(again.Branch(bg, "", nil))(t)
		same(t, "a new root", texts(t, again), "")
		id := say(t, again, "u9")
		commit(t, again, nil)
		e := must(again.Entry(bg, id[0]))(t)
		same(t, "parent", e.ParentID, "")
		same(t, "reopened", texts(t, open(t, store, "s")), "u9")
		if _, err := again.Branch(bg, "nowhere", nil); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("an entry that is not there: %v", err)
		}
	})
}

// A move is refused while appended entries are not stored: nothing changes. After Discard, or a commit, it succeeds.
func TestMovesRefuseABuffer(t *testing.T) {
	for name, move := range moves {
		t.Run(name, func(t *testing.T) {
			onEach(t, func(t *testing.T, store *coppice.Store) {
				s, ids := forked(t, store)
				before := s.Head()
				pending := say(t, s, "p")
				for _, key := range []string{"", "once"} {
					if _, err := move(s, ids, coppice.WithKey(key)); !errors.Is(err, coppice.ErrUncommitted) {
						t.Errorf("key %q: %v, want ErrUncommitted", key, err)
					}
				}
				same(t, "context", texts(t, s), "a b c p")
				same(t, "head", s.Head().Entry, pending[0])
				same(t, "stored", open(t, store, "s").Head(), before)
				if name == "rollback" {
					commit(t, s, nil)
				} else {
					ok(t, s.Discard(bg))
				}
				r := must(move(s, ids))(t)
				same(t, "stored", open(t, store, "s").Head(), r.Head)
			})
		})
	}
}

// A label names an entry and leaves the head alone.
func TestLabel(t *testing.T) {
	onEach(t, func(t *testing.T, store *coppice.Store) {
		s := create(t, store, "s", nil)
		id := say(t, s, "u1", "a1")
		commit(t, s, state{Turns: 1})
		say(t, s, "u2")
		r := must(s.Label(bg, id[0], "works"))(t)
		same(t, "head", r.Entry, id[1])
		same(t, "entries", r.Entries, 1)
		same(t, "context", texts(t, s), "u1 a1 u2")
		if _, err := s.Label(bg, s.Head().Entry, "x"); !errors.Is(err, coppice.ErrUncommitted) {
			t.Errorf("an entry that is not committed: %v, want ErrUncommitted", err)
		}
		commit(t, s, nil)
		again := open(t, store, "s")
		same(t, "context", texts(t, again), "u1 a1 u2")
		n, _ := must(again.Tree(bg))(t).Node(id[0])
		same(t, "label", n.Label, "works")
		must(again.Label(bg, id[0][:35], ""))(t)
		n, _ = must(again.Tree(bg))(t).Node(id[0])
		same(t, "label", n.Label, "")
		say(t, again, "a2")
		commit(t, again, nil)
		same(t, "context", texts(t, open(t, store, "s")), "u1 a1 u2 a2")
		same(t, "state", stateOf(t, again), state{Turns: 1})
	})
}

// A draft may name its parent: any entry, in memory or not, or one of the same call.
func TestDraftParent(t *testing.T) {
	onEach(t, func(t *testing.T, store *coppice.Store) {
		s := create(t, store, "s", nil)
		id := say(t, s, "u1", "a1", "u2")
		commit(t, s, nil)
		s = open(t, store, "s")
		d := entry.User("u2b")
		d.Parent = id[1]
		e := entry.Assistant("a2b")
		got := must(s.Append(bg, d, e))(t)
		same(t, "context", texts(t, s), "u1 a1 u2b a2b")
		commit(t, s, nil)
		again := open(t, store, "s")
		same(t, "context", texts(t, again), "u1 a1 u2b a2b")
		same(t, "parent", must(again.Entry(bg, got[0]))(t).ParentID, id[1])

		d = entry.User("x")
		d.Parent = "nowhere"
		if _, err := s.Append(bg, d); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("a parent that is not there: %v", err)
		}
		same(t, "context", texts(t, s), "u1 a1 u2b a2b")
	})
}

// Ids chosen by callers must be unused in the whole tree, among pending entries, and in one call.
func TestGivenIDs(t *testing.T) {
	onEach(t, func(t *testing.T, store *coppice.Store) {
		s := create(t, store, "s", nil)
		d := entry.User("u1")
		d.ID = "mine"
		must(s.Append(bg, d))(t)
		taken := func(d ...transcript.Draft) {
			t.Helper()
			if _, err := s.Append(bg, d...); !errors.Is(err, fs.ErrExist) {
				t.Errorf("a taken id: %v", err)
			}
		}
		taken(d)
		commit(t, s, nil)
		taken(d)
		s = open(t, store, "s")
		taken(d)
		taken(entry.Line([]byte(`{"type":"message","id":"mine","parentId":null,"message":{"role":"user","content":"x"}}`)))
		d.ID = "two"
		taken(d, d)
		raw := `{"type":"message","id":"raw1","parentId":"mine","timestamp":"2026-01-01T00:00:00.000Z","message":{"role":"assistant","content":"a1"},"extra":[1, 2]}`
		must(s.Append(bg, entry.Line([]byte(raw))))(t)
		commit(t, s, nil)
		e := must(open(t, store, "s").Entry(bg, "raw1"))(t)
		same(t, "raw", string(e.Raw), raw)
		same(t, "context", texts(t, s), "u1 a1")
		if _, err := s.Append(bg, entry.Line([]byte(`{"type":"custom","id":"raw2","parentId":"min"}`))); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("a parent of a raw line that is not there: %v", err)
		}
	})
}

// The context keeps its bound, and reports what it cut; a view of the head has everything.
func TestBoundedContext(t *testing.T) {
	onEach(t, func(t *testing.T, store *coppice.Store) {
		s := create(t, store, "s", &coppice.SessionOptions{ContextBytes: 2000})
		var warned []string
		for range 20 {
			say(t, s, "u", "a")
			complete := must(s.Context(bg))(t).Window.Complete
			r := commit(t, s, nil)
			if first := !complete && len(warned) == 0; first != (len(r.Warnings) == 1) {
				t.Errorf("seq %d: the context is complete: %v, warnings %q", r.Seq, complete, r.Warnings)
			}
			warned = append(warned, r.Warnings...)
		}
		if len(warned) != 1 || !strings.Contains(warned[0], "bound of 2000 bytes") {
			t.Errorf("warnings %q", warned)
		}
		again := open(t, store, "s")
		c := must(again.Context(bg))(t)
		if c.Window.Complete || c.Window.OmittedEntries+len(c.Messages) != 40 || len(c.Messages) > 16 {
			t.Errorf("window %+v of %d messages", c.Window, len(c.Messages))
		}
		v := must(again.At(bg, coppice.Target{}))(t)
		whole := must(v.Context(bg))(t)
		same(t, "whole", len(whole.Messages), 40)
		same(t, "complete", whole.Window.Complete, true)
	})
}

// The default bound is 4 MiB of messages; an image counts as its reference only.
func TestDefaultBound(t *testing.T) {
	testutil.SkipLong(t)
	shapes := map[string]string{
		"pi":        `{"role":"user","content":[{"type":"image","mimeType":"image/png","data":"%s"}]}`,
		"anthropic": `{"role":"user","content":[{"type":"image","source":{"type":"base64","media_type":"image/png","data":"%s"}}]}`,
		"openai":    `{"role":"user","content":[{"type":"image_url","image_url":{"url":"data:image/png;base64,%s"}}]}`,
		"bedrock":   `{"role":"user","content":[{"image":{"format":"png","source":{"bytes":"%s"}}}]}`,
	}
	for name, shape := range shapes {
		t.Run(name, func(t *testing.T) {
			store := newStore(t, memory.New(), nil)
			s := create(t, store, "s", nil)
			for i := range 3 {
				shot := base64.StdEncoding.EncodeToString(bytes.Repeat([]byte{byte(i), 1, 2}, 1<<19)) // 2 MiB as text
				must(s.Append(bg, entry.Message(json.RawMessage(fmt.Sprintf(shape, shot)))))(t)
				for range 10 {
					say(t, s, "u")
				}
			}
			commit(t, s, nil)
			c := must(open(t, store, "s").Context(bg))(t)
			same(t, "messages", len(c.Messages), 33)
			same(t, "window", c.Window, transcript.Window{Complete: true})
			long := strings.Repeat("x", 900<<10)
			say(t, s, long, long, long, long)
			same(t, "warnings within the bound", len(commit(t, s, nil).Warnings), 0)
			same(t, "within the bound", must(s.Context(bg))(t).Window.Complete, true)
			say(t, s, long, long)
			if r := commit(t, s, nil); len(r.Warnings) != 1 || !strings.Contains(r.Warnings[0], "4194304") {
				t.Errorf("warnings %q", r.Warnings)
			}
			same(t, "beyond it", must(open(t, store, "s").Context(bg))(t).Window.Complete, false)
		})
	}
}

// A compaction shortens the context, and entries before it can still be reached.
func TestCompaction(t *testing.T) {
	onEach(t, func(t *testing.T, store *coppice.Store) {
		s := create(t, store, "s", nil)
		id := say(t, s, "u1", "a1", "u2", "a2")
		commit(t, s, nil)
		must(s.Append(bg, entry.Compaction("all before", id[2], 100)))(t)
		r := commit(t, s, nil)
		log := collect(t, s.Log(bg, coppice.Target{}))
		same(t, "reason", log[0].Reason, "compaction")
		same(t, "messages", len(must(s.Context(bg))(t).Messages), 3)
		again := open(t, store, "s")
		same(t, "messages", len(must(again.Context(bg))(t).Messages), 3)
		must(again.Branch(bg, id[1], nil))(t)
		same(t, "context", texts(t, again), "u1 a1")
		must(again.Switch(bg, r.Entry))(t)
		same(t, "messages", len(must(again.Context(bg))(t).Messages), 3)
		say(t, again, "u3")
		commit(t, again, nil)
		same(t, "messages", len(must(open(t, store, "s").Context(bg))(t).Messages), 4)
	})
}

// Model and thinking level are part of the document.
func TestSettings(t *testing.T) {
	onEach(t, func(t *testing.T, store *coppice.Store) {
		s := create(t, store, "s", nil)
		must(s.Append(bg, entry.Model("prov", "m1"), entry.Thinking("high"), entry.User("u1")))(t)
		commit(t, s, nil)
		v := must(open(t, store, "s").At(bg, coppice.Target{}))(t)
		same(t, "settings", v.Document().Settings, transcript.Settings{Model: "prov/m1", ThinkingLevel: "high"})
		first := s.Head().Entry
		must(s.Append(bg, entry.Model("prov", "m2")))(t)
		commit(t, s, nil)
		same(t, "settings", must(s.At(bg, coppice.Target{}))(t).Document().Settings.Model, "prov/m2")
		must(s.Branch(bg, first, nil))(t)
		same(t, "settings", must(s.At(bg, coppice.Target{}))(t).Document().Settings.Model, "prov/m1")
	})
}

// A summary is in the commit of the move, with its details.
func TestBranchSummary(t *testing.T) {
	onEach(t, func(t *testing.T, store *coppice.Store) {
		s := create(t, store, "s", nil)
		one := say(t, s, "u1", "a1", "u2", "a2")
		commit(t, s, state{Turns: 1})
		o := &coppice.BranchOptions{Summary: "it failed", Details: json.RawMessage(`{"readFiles": ["a.go"],"n":1.50}`), FromHook: true}
		r := must(s.Branch(bg, one[1], o))(t)
		same(t, "commits", r.Seq, 2)
		same(t, "entries", r.Entries, 1)
		again := open(t, store, "s")
		e := must(again.Entry(bg, r.Entry))(t)
		same(t, "type", e.Type, "branch_summary")
		for name, want := range map[string]string{
			"fromId": `"` + one[1] + `"`, "summary": `"it failed"`, "details": `{"readFiles":["a.go"],"n":1.50}`, "fromHook": "true",
		} {
			var fields map[string]json.RawMessage
			ok(t, e.Decode(&fields))
			same(t, name, string(fields[name]), want)
		}
		same(t, "messages", len(must(again.Context(bg))(t).Messages), 3)

		r = must(s.Branch(bg, one[1], &coppice.BranchOptions{Summary: "plain"}))(t)
		if raw := string(must(s.Entry(bg, r.Entry))(t).Raw); strings.Contains(raw, "details") || strings.Contains(raw, "fromHook") {
			t.Errorf("fields that nobody set: %s", raw)
		}
		head := s.Head()
		if _, err := s.Branch(bg, one[1], &coppice.BranchOptions{Summary: "x", Details: json.RawMessage(`{"torn`)}); err == nil {
			t.Error("details that are no JSON were taken")
		}
		same(t, "head after a refusal", s.Head(), head)
		r = must(s.Branch(bg, one[1], &coppice.BranchOptions{Details: json.RawMessage("1")}))(t)
		same(t, "details without a summary", r.Entries, 0)
	})
}
