package lifecycle_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"iter"
	"os"
	"path/filepath"
	"strings"
	"testing"

	coppice "github.com/coppice-go/coppice"
	"github.com/coppice-go/coppice/backend"
	"github.com/coppice-go/coppice/backend/memory"
	"github.com/coppice-go/coppice/entry"
)

// A snapshot whose commit the log lost is damage: it is not mixed with what the log has.
func TestSnapshotOfALostCommit(t *testing.T) {
	dir := t.TempDir()
	st := must(coppice.Open(bg, dir, nil))(t)
	s, rs := grown(t, st, "s", 20, nil)
	must(s.Snapshot(bg, "green"))(t)
	ok(t, s.Close())
	ok(t, st.Close())
	ok(t, os.Remove(filepath.Join(dir, "checkpoint_latest", "s")))
	logs := must(filepath.Glob(filepath.Join(dir, "sessions", "s", "transcript", "*.jsonl")))(t)
	raw := must(os.ReadFile(logs[0]))(t)
	lines := strings.SplitAfter(string(raw), "\n")
	ok(t, os.WriteFile(logs[0], []byte(strings.Join(lines[:len(lines)/2], "")), 0o600))

	st = must(coppice.Open(bg, dir, nil))(t)
	s = open(t, st, "s")
	for range 20 { // the log grows past the place of the snapshot again
		if _, err := s.At(bg, coppice.Target{Tag: "green"}); !errors.Is(err, coppice.ErrCorrupt) {
			t.Fatalf("At: %v", err)
		}
		if _, err := s.Rollback(bg, coppice.Target{Tag: "green"}); !errors.Is(err, coppice.ErrCorrupt) {
			t.Fatalf("Rollback: %v", err)
		}
		say(t, s, "later")
		must(s.Commit(bg, coppice.Turn{}))(t)
	}
	must(s.At(bg, coppice.Target{Commit: rs[2].Commit}))(t)
	ok(t, s.Close())
	ok(t, st.Close())
}

// whileListing is a store in which something happens before some objects are listed.
type whileListing struct {
	*memory.Backend
	prefix string
	do     func()
}

func (w *whileListing) List(ctx context.Context, o backend.ListOptions) iter.Seq2[backend.Info, error] {
	if do := w.do; do != nil && strings.HasSuffix(o.Prefix, w.prefix) {
		w.do = nil
		do()
	}
	return w.Backend.List(ctx, o)
}

// A copy of a session that is written meanwhile has no snapshot that is newer than its log.
func TestCopyBesideAWriter(t *testing.T) {
	b := &whileListing{Backend: memory.New(), prefix: "snapshots/"}
	from, to := newStore(t, b, nil), newStore(t, memory.New(), nil)
	s, _ := grown(t, from, "s", 3, nil)
	must(s.Snapshot(bg, "old"))(t)
	b.do = func() {
		say(t, s, "later")
		must(s.Commit(bg, coppice.Turn{}))(t)
		must(s.Snapshot(bg, "new"))(t)
	}
	c := must(to.Copy(bg, from, "s", "c"))(t)
	if b.do != nil {
		t.Fatal("the writer did not run")
	}
	must(c.At(bg, coppice.Target{Tag: "old"}))(t)
	ok(t, c.Close())
	if rep, err := to.Verify(bg, "c", true); err != nil || len(rep.Problems) > 0 {
		t.Errorf("%v, %v", rep.Problems, err)
	}
	ok(t, s.Close())
}

// A copy that fails on damage of its source leaves nothing.
func TestFailedCopyLeavesNothing(t *testing.T) {
	dir := t.TempDir()
	from := must(coppice.Open(bg, dir, nil))(t)
	s, _ := grown(t, from, "s", 30, nil)
	must(s.Snapshot(bg, "green"))(t)
	ok(t, s.Close())
	logs := must(filepath.Glob(filepath.Join(dir, "sessions", "s", "transcript", "*.jsonl")))(t)
	raw := must(os.ReadFile(logs[0]))(t)
	raw[len(raw)/3] ^= 1
	ok(t, os.WriteFile(logs[0], raw, 0o600))
	b := memory.NewAppender()
	to := newStore(t, b, nil)
	if _, err := to.Copy(bg, from, "s", "c"); !errors.Is(err, coppice.ErrCorrupt) {
		t.Fatalf("Copy: %v", err)
	}
	for info, err := range b.List(bg, backend.ListOptions{}) {
		if ok(t, err); strings.Contains(info.Key, "/c") {
			t.Errorf("left: %s", info.Key)
		}
	}
	ok(t, from.Close())
}

// A copy has the images that the checkpoint carries. One whose object is damaged fails it.
func TestCopyOfADamagedImage(t *testing.T) {
	for name, size := range map[string]int{"in the checkpoint": 20 << 10, "alone": 300 << 10} {
		t.Run(name, func(t *testing.T) {
			b, to := memory.New(), newStore(t, memory.New(), nil)
			from := newStore(t, b, nil)
			s := create(t, from, "s", nil)
			picture := base64.StdEncoding.EncodeToString(bytes.Repeat([]byte{7}, size))
			raw := `{"role":"user","content":[{"type":"image","mimeType":"image/png","data":"` + picture + `"}]}`
			must(s.Append(bg, entry.Message(json.RawMessage(raw))))(t)
			must(s.Commit(bg, coppice.Turn{}))(t)
			ok(t, s.Close())
			for _, key := range keysIn(t, b, "/blobs/") {
				must(b.Put(bg, key, []byte("damaged"), backend.Cond{}))(t)
			}
			c, err := to.Copy(bg, from, "s", "c")
			if size > 64<<10 {
				if !errors.Is(err, coppice.ErrCorrupt) {
					t.Errorf("Copy: %v", err)
				}
				return
			}
			ok(t, err)
			for e, err := range c.Entries(bg) {
				if ok(t, err); !strings.Contains(string(e.Raw), picture) {
					t.Errorf("the image is lost: %.100s", e.Raw)
				}
			}
			ok(t, c.Close())
		})
	}
}
