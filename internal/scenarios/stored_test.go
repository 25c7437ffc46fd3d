package scenarios_test

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/coppice-go/coppice"
	"github.com/coppice-go/coppice/backend"
	"github.com/coppice-go/coppice/backend/local"
	"github.com/coppice-go/coppice/backend/memory"
	"github.com/coppice-go/coppice/entry"
	"github.com/coppice-go/coppice/internal/testutil"
	"github.com/coppice-go/coppice/snapshot"
	"github.com/coppice-go/coppice/transcript"
)

// 17: text that the hook removes is in no object, compressed or not, whichever call stored it.
func TestRedactionReachesNoObject(t *testing.T) {
	testutil.SkipLong(t)
	const secret = "sk-live-0123456789abcdef"
	redact := func(_ context.Context, d *transcript.Draft) error {
		d.Body = json.RawMessage(strings.ReplaceAll(string(d.Body), secret, "[redacted]"))
		d.Raw = []byte(strings.ReplaceAll(string(d.Raw), secret, "[redacted]"))
		if len(d.Raw) == 0 {
			d.Raw = nil
		}
		return nil
	}
	onEachBackend(t, func(t *testing.T, b backend.Backend) {
		o := fixedOptions()
		o.Hooks.BeforeAppend = redact
		store := newStore(t, b, o)
		s := create(t, store, "s", nil)
		id := say(t, s, "u "+secret, "a "+secret)
		must(s.Append(bg, entry.ToolResult("c", "bash", secret, false), entry.Custom("x", secret),
			entry.Compaction(secret, id[0], 1), entry.CustomMessage("x", secret, true), entry.Title(secret)))(t)
		must(s.Append(bg, entry.Line([]byte(piLine("raw", id[0], secret)))))(t)
		commit(t, s, nil)
		must(s.Edit(bg, id[1], entry.User("edit "+secret)))(t)
		must(s.Branch(bg, id[0], &coppice.BranchOptions{Summary: "sum " + secret}))(t)
		must(s.Snapshot(bg, ""))(t)
		for range 300 {
			must(s.Append(bg, entry.User(secret)))(t)
		}
		commit(t, s, nil)
		must(s.Fork(bg, coppice.Target{}, "f", nil))(t)
		ok(t, s.Close())
		lines, io := fileLines([]byte(header + "\n" + piLine("a", "null", secret) + "\n" + "torn " + secret))
		must(store.Import(bg, lines, io))(t)
		same(t, "holders", holders(t, b, secret), []string(nil))
		if len(holders(t, b, "[redacted]")) == 0 {
			t.Error("the test finds nothing")
		}
	})
}

// 17: a message that is only in an explicit context passes the hook as well.
func TestRedactionOfAnExplicitContext(t *testing.T) {
	onEachBackend(t, func(t *testing.T, b backend.Backend) {
		o := fixedOptions()
		o.Hooks.BeforeAppend = func(_ context.Context, d *transcript.Draft) error {
			d.Body = json.RawMessage(strings.ReplaceAll(string(d.Body), "secret", "[redacted]"))
			return nil
		}
		s := create(t, newStore(t, b, o), "s", nil)
		ok(t, s.SetContext(bg, itemOf(`{"role":"user","content":"the secret so far"}`)))
		commit(t, s, nil)
		same(t, "context", texts(t, s), "the [redacted] so far")
		same(t, "holders", holders(t, b, "secret"), []string(nil))
	})
}

// 25: unchanged state is not written again: not in a commit that repeats it, and not in one without state.
func TestUnchangedStateIsNotWrittenAgain(t *testing.T) {
	for _, kind := range []string{"append", "local"} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			store := newStore(t, backends[kind](t), nil)
			s := create(t, store, "s", &coppice.SessionOptions{Snapshots: snapshot.Policy{Every: -1}})
			big := map[string]string{"pad": strings.Repeat("0123456789", 20_000), "n": "1"}
			if r := commit(t, s, big); r.Bytes < 200_000 {
				t.Fatalf("the first commit has %d bytes", r.Bytes)
			}
			for i := range 20 {
				var v any
				if i%2 == 0 {
					v = maps.Clone(big)
				}
				say(t, s, "u")
				if r := commit(t, s, v); r.Bytes > 1500 {
					t.Errorf("commit %d has %d bytes", i, r.Bytes)
				}
			}
			big["n"] = "2"
			if r := commit(t, s, big); r.Bytes > 1500 {
				t.Errorf("one small change has %d bytes", r.Bytes)
			}
			var got map[string]string
			ok(t, open(t, store, "s").State(&got))
			same(t, "state", maps.Equal(got, big), true)
		})
	}
}

// The bytes written for a turn do not grow with the history, also on a store that replaces objects.
func TestBytesPutDoNotGrow(t *testing.T) {
	testutil.SkipLong(t)
	store := newStore(t, memory.New(), nil)
	inline(store)
	s := create(t, store, "s", &coppice.SessionOptions{ContextBytes: 4 << 10})
	const span = 170 // two rounds of sealing
	wrote := func() int64 {
		before := s.IO().BytesWritten
		for i := range span {
			say(t, s, fmt.Sprintf("u%d %s", i, strings.Repeat("words ", 10)), fmt.Sprint("a", i))
			commit(t, s, state{Turns: i})
		}
		return s.IO().BytesWritten - before
	}
	first := wrote()
	_ = wrote()
	if last := wrote(); float64(last) > 1.3*float64(first) {
		t.Errorf("%d turns wrote %d bytes, then %d", span, first, last)
	}
}

// 5, orphans: after a session of many turns, moves, snapshots and deletions the disk has only files that a reader of
// the store knows: no temporary file, no empty object.
func TestNothingIsLeftOver(t *testing.T) {
	dir := t.TempDir()
	b, err := local.Open(dir, nil)
	ok(t, err)
	t.Cleanup(func() { _ = b.Close() })
	store := newStore(t, b, nil)
	s, rs := grown(t, store, "s", 100, nil)
	must(s.Rollback(bg, coppice.Target{Seq: 5}))(t)
	must(s.Fork(bg, coppice.Target{Seq: 7}, "f", nil))(t)
	must(s.Snapshot(bg, "x"))(t)
	must(s.Label(bg, rs[3].Entry, "l"))(t)
	must(s.Prune(bg, snapshot.Retention{}))(t)
	ok(t, s.Close())
	ok(t, store.Delete(bg, "f"))
	ok(t, store.Close())
	known := objects(t, b)
	ok(t, filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() || strings.HasPrefix(d.Name(), ".lock") || d.Name() == ".reserve" {
			return err
		}
		key, err := filepath.Rel(dir, path)
		if object, is := known[filepath.ToSlash(key)]; !is || object == "" {
			t.Errorf("%s is left over", key)
		}
		return err
	}))
}

// Nothing is removed without a request: not by age, number or size, on any read or commit.
func TestNothingGoesByItself(t *testing.T) {
	onEachBackend(t, func(t *testing.T, b backend.Backend) {
		o, now := fixedOptions(), clock()
		o.Now = func() time.Time { return now().AddDate(20, 0, 0) }
		old := newStore(t, b, nil)
		s, _ := grown(t, old, "old", 20, nil)
		must(s.Snapshot(bg, ""))(t)
		ok(t, s.Close())
		before := objects(t, b)
		store := newStore(t, b, o)
		s2, _ := grown(t, store, "new", 20, nil)
		ok(t, s2.Close())
		_ = collect(t, store.List(bg, coppice.ListOptions{}))
		ro := must(store.Open(bg, "old", &coppice.SessionOptions{ReadOnly: true}))(t)
		_ = texts(t, ro)
		ok(t, ro.Close())
		ok(t, store.Close())
		after := objects(t, b)
		for _, key := range slices.Sorted(maps.Keys(before)) {
			same(t, key, after[key] == before[key], true)
		}
	})
}
