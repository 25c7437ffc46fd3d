package lifecycle_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"io"
	"iter"
	"os"
	"path/filepath"
	"strings"
	"testing"

	coppice "github.com/coppice-go/coppice"
	"github.com/coppice-go/coppice/backend"
	"github.com/coppice-go/coppice/backend/memory"
	"github.com/coppice-go/coppice/entry"
	"github.com/coppice-go/coppice/internal/testutil"
	"github.com/coppice-go/coppice/transcript"
)

// A snapshot whose commit is missing in the log is damage: it is not combined with the log. Nothing is written after
// it, whether the log ends with a whole line or within one. A repair restores the content of the snapshot: title,
// folder, head and state.
func TestSnapshotOfALostCommit(t *testing.T) {
	for _, torn := range []string{"", `{"type":"message","id":"to`} {
		dir := t.TempDir()
		st := must(coppice.Open(bg, dir, nil))(t)
		o := &coppice.SessionOptions{Title: "the title", Cwd: "/work", Meta: map[string]string{"k": "v"}}
		s, rs := grown(t, st, "s", 20, o)
		title := "a later title"
		must(s.SetInfo(bg, coppice.InfoChange{Title: &title}))(t)
		must(s.Commit(bg, coppice.Turn{State: "the last"}))(t)
		must(s.Snapshot(bg, "green"))(t)
		ok(t, s.Close())
		ok(t, st.Close())
		ok(t, os.Remove(filepath.Join(dir, "checkpoint_latest", "s")))
		logs := must(filepath.Glob(filepath.Join(dir, "sessions", "s", "transcript", "*.jsonl")))(t)
		raw := must(os.ReadFile(logs[0]))(t)
		lines := strings.SplitAfter(string(raw), "\n")
		for _, half := range []string{strings.Join(lines[:len(lines)/2], "") + torn, "", torn} {
			ok(t, os.WriteFile(logs[0], []byte(half), 0o600))
			st = must(coppice.Open(bg, dir, nil))(t)
			if half != "" && half != torn {
				cutLog(t, st, rs[2].Commit)
			}
			must(st.Repair(bg, "s", true))(t)
			ok(t, st.Close())
		}

		st = must(coppice.Open(bg, dir, nil))(t)
		must(st.Repair(bg, "s", false))(t)
		s = open(t, st, "s")
		var last string
		ok(t, s.State(&last))
		if i := s.Info(); i.Title != title || i.Cwd != "/work" || i.Meta["k"] != "v" || last != "the last" {
			t.Errorf("after the repair: %+v, state %q", i, last)
		}
		must(s.At(bg, coppice.Target{Tag: "green"}))(t)
		say(t, s, "later")
		must(s.Commit(bg, coppice.Turn{}))(t)
		ok(t, s.Close())
		ok(t, st.Close())
	}
}

// cutLog uses a session whose log is too short, according to a snapshot.
func cutLog(t *testing.T, st *coppice.Store, early string) {
	t.Helper()
	s := open(t, st, "s")
	if i := s.Info(); i.Missing == 0 {
		t.Errorf("nothing is missing: %+v", i)
	}
	if _, err := s.At(bg, coppice.Target{Tag: "green"}); !errors.Is(err, coppice.ErrCorrupt) {
		t.Errorf("At: %v", err)
	}
	if _, err := s.Rollback(bg, coppice.Target{Tag: "green"}); !errors.Is(err, coppice.ErrCorrupt) {
		t.Errorf("Rollback: %v", err)
	}
	say(t, s, "later")
	if _, err := s.Commit(bg, coppice.Turn{}); !errors.Is(err, coppice.ErrCorrupt) {
		t.Errorf("a commit upon a short log: %v", err)
	}
	must(s.At(bg, coppice.Target{Commit: early}))(t)
	ok(t, s.Discard(bg))
	_ = s.Close()
}

// whileListing is a store that calls a function before some objects are listed.
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

// A copy of a session that is written concurrently has no snapshot that is newer than its log.
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

// A copy that fails because its source is damaged leaves nothing. Cases: a damaged log, a log that is too short
// according to a snapshot, an image or an imported file that is missing or damaged.
func TestFailedCopyLeavesNothing(t *testing.T) {
	testutil.SkipLong(t)
	for what, harm := range map[string]func(raw []byte) []byte{
		"transcript/*.jsonl flipped": func(raw []byte) []byte { raw[len(raw)/3] ^= 1; return raw },
		"transcript/*.jsonl cut": func(raw []byte) []byte {
			lines := bytes.SplitAfter(raw, []byte("\n"))
			return bytes.Join(lines[:len(lines)/2], nil)
		},
		"blobs/* gone":     func([]byte) []byte { return nil },
		"blobs/* cut":      func(raw []byte) []byte { return raw[:len(raw)/2] },
		"originals/* gone": func([]byte) []byte { return nil },
		"originals/* cut":  func(raw []byte) []byte { return raw[:len(raw)/2] },
	} {
		dir := t.TempDir()
		from := must(coppice.Open(bg, dir, nil))(t)
		none := func(func(transcript.Draft, error) bool) {}
		file := func() (io.Reader, error) { return strings.NewReader("it was a file"), nil }
		s := must(from.Import(bg, none, &coppice.SessionOptions{ID: "s", Original: file}))(t)
		image := entry.Image("image/png", bytes.Repeat([]byte("0123456789abcdef"), 20_000))
		must(s.Append(bg, entry.User("it", image)))(t)
		for range 20 {
			must(s.Commit(bg, coppice.Turn{}))(t)
			say(t, s, "more")
		}
		must(s.Commit(bg, coppice.Turn{}))(t)
		must(s.Snapshot(bg, "green"))(t)
		ok(t, s.Close())
		ok(t, os.Remove(filepath.Join(dir, "checkpoint_latest", "s")))
		pattern, _, _ := strings.Cut(what, " ")
		list := must(filepath.Glob(filepath.Join(dir, "sessions", "s", pattern)))(t)
		raw := must(os.ReadFile(list[len(list)-1]))(t)
		if raw = harm(raw); raw == nil {
			ok(t, os.Remove(list[len(list)-1]))
		} else {
			ok(t, os.WriteFile(list[len(list)-1], raw, 0o600))
		}
		b := memory.NewAppender()
		to := newStore(t, b, nil)
		if _, err := to.Copy(bg, from, "s", "c"); !errors.Is(err, coppice.ErrCorrupt) {
			t.Errorf("%s: %v", what, err)
		}
		for info, err := range b.List(bg, backend.ListOptions{}) {
			if ok(t, err); strings.Contains(info.Key, "/c") {
				t.Errorf("%s: left: %s", what, info.Key)
			}
		}
		must(from.Repair(bg, "s", false))(t)
		ok(t, closed(to.Copy(bg, from, "s", "c"))) // the loss is recorded
		ok(t, from.Close())
	}
}

// A commit whose state a repair could not restore is marked in the log, does not have the state of another commit, and
// cannot be the target of a rollback; verify reports it.
func TestLostStates(t *testing.T) {
	dir := t.TempDir()
	st := must(coppice.Open(bg, dir, nil))(t)
	s := create(t, st, "s", nil)
	for i := range 12 {
		say(t, s, "more")
		must(s.Commit(bg, coppice.Turn{State: i}))(t)
	}
	ok(t, s.Close())
	logs := must(filepath.Glob(filepath.Join(dir, "sessions", "s", "transcript", "*.jsonl")))(t)
	ok(t, os.WriteFile(logs[0], make([]byte, 9999), 0o600))
	must(st.Repair(bg, "s", false))(t)
	s = open(t, st, "s")
	var n int
	ok(t, s.State(&n))
	same(t, "the newest state", n, 11)
	lost := 0
	for c, err := range s.Log(bg, coppice.Target{}) {
		ok(t, err)
		v := must(s.At(bg, coppice.Target{Commit: c.Commit}))(t)
		if !c.StateLost {
			ok(t, v.State(&n))
			continue
		}
		lost++
		if err := v.State(&n); !errors.Is(err, coppice.ErrStateLost) || !v.Document().StateLost() {
			t.Errorf("commit %d: %v, state %d", c.Seq, err, n)
		}
		if _, err := s.Rollback(bg, coppice.Target{Commit: c.Commit}); !errors.Is(err, coppice.ErrStateLost) {
			t.Errorf("a rollback to commit %d: %v", c.Seq, err)
		}
	}
	same(t, "lost states", lost, 11)
	noted := must(st.Verify(bg, "s", true))(t).Problems
	if len(noted) != 1 || noted[0].Kind() != "lost" || !strings.Contains(noted[0].Error(), "commits 1 to 11") {
		t.Errorf("verify: %v", noted)
	}
	must(s.Branch(bg, "", nil))(t) // before the first entry there was no state
	var none int
	ok(t, s.State(&none))
	same(t, "state before the first entry", none, 0)
	ok(t, s.Close())
	ok(t, st.Close())
}

// closed closes a session that is no longer needed.
func closed(s *coppice.Session, err error) error {
	if err != nil {
		return err
	}
	return s.Close()
}

// A copy includes the images in the checkpoint. One whose object is damaged fails the copy.
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
