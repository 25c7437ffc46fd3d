package manager_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	coppice "github.com/coppice-go/coppice"
	"github.com/coppice-go/coppice/backend"
	_ "github.com/coppice-go/coppice/backend/local"
	"github.com/coppice-go/coppice/backend/memory"
	"github.com/coppice-go/coppice/entry"
	"github.com/coppice-go/coppice/internal/fault"
	"github.com/coppice-go/coppice/internal/testutil"
	"github.com/coppice-go/coppice/manager"
	"github.com/coppice-go/coppice/transcript"
)

func store(t *testing.T) *coppice.Store {
	t.Helper()
	s, err := coppice.New(memory.New(), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

func bin(t *testing.T) *manager.Trash {
	t.Helper()
	now := testutil.Clock(time.Date(2026, 11, 20, 10, 0, 0, 0, time.UTC), time.Hour)
	return &manager.Trash{Path: filepath.Join(t.TempDir(), "trash"), Now: now}
}

// grown returns a session with two branches, a label, a state, and the head on the older branch.
func grown(t *testing.T, st *coppice.Store, id string) string {
	t.Helper()
	s := testutil.Must(st.Create(id, &coppice.SessionOptions{Title: "the bug", Cwd: "/w"}))(t)
	ids := testutil.Must(s.Append(bg, entry.User("u1"), entry.Assistant("a1"), entry.User("u2")))(t)
	testutil.Must(s.Commit(bg, coppice.Turn{State: map[string]int{"n": 1}, Manager: []int{7}}))(t)
	testutil.Must(s.Label(bg, ids[0], "start"))(t)
	testutil.Must(s.Branch(bg, ids[1], &coppice.BranchOptions{Name: "try"}))(t)
	testutil.Must(s.Append(bg, entry.User("u3")))(t)
	testutil.Must(s.Commit(bg, coppice.Turn{State: map[string]int{"n": 2}}))(t)
	testutil.Must(s.Switch(bg, "main"))(t)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	return ids[2]
}

func export(t *testing.T, write func(context.Context, string, io.Writer) error, id string) string {
	t.Helper()
	var b bytes.Buffer
	if err := write(bg, id, &b); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestWhatIsRestoredIsWhatWasDeleted(t *testing.T) {
	st, tr := store(t), bin(t)
	head := grown(t, st, "s")
	before := export(t, st.ExportPi, "s")
	item := testutil.Must(tr.Put(bg, st, "s", "mem:"))(t)
	if _, err := st.Open(bg, "s", nil); !errors.Is(err, fs.ErrNotExist) {
		t.Fatalf("the session is still there: %v", err)
	}
	items := testutil.Must(tr.List())(t)
	if len(items) != 1 || items[0] != item || item.Session != "s" || item.Title != "the bug" || item.Cwd != "/w" || item.Bytes == 0 {
		t.Fatalf("items %+v, put %+v", items, item)
	}
	s := testutil.Must(tr.Restore(bg, st, item.Name))(t)
	if s.ID() == "s" || s.Info().Title != "the bug" || s.Info().Cwd != "/w" {
		t.Errorf("restored %+v", s.Info())
	}
	if h := s.Head(); h.Entry != head || h.Branch != "main" {
		t.Errorf("head %+v, want %s", h, head)
	}
	doc := testutil.Must(s.At(bg, coppice.Target{}))(t).Document()
	if string(doc.State) != `{"n":1}` || string(doc.Manager) != `[7]` {
		t.Errorf("state %s, manager %s", doc.State, doc.Manager)
	}
	tree := testutil.Must(s.Tree(bg))(t)
	if n, _ := tree.Node(slices.Collect(tree.Path(head))[0].ID); n.Label != "start" {
		t.Errorf("label %q", n.Label)
	}
	testutil.Must(s.Switch(bg, "try"))(t)
	if c := testutil.Must(s.Context(bg))(t); c.Messages[len(c.Messages)-1].Text() != "u3" {
		t.Errorf("branch try: %v", c.Messages)
	}
	after := export(t, st.ExportPi, s.ID())
	for line := range strings.Lines(before) {
		if !strings.Contains(line, `"type":"session"`) && !strings.Contains(line, "coppice.head") && !strings.Contains(after, line) {
			t.Errorf("lost: %s", line)
		}
	}
	if items = testutil.Must(tr.List())(t); len(items) != 0 {
		t.Errorf("still in the trash: %v", items)
	}
	if got := s.Info().Entries; got != item.Entries {
		t.Errorf("%d entries, there were %d", got, item.Entries)
	}
	other := store(t)
	grown(t, st, "t")
	item = testutil.Must(tr.Put(bg, st, "t", "mem:"))(t)
	if s = testutil.Must(tr.Restore(bg, other, item.Name))(t); s.ID() != "t" {
		t.Errorf("in another store it is %s", s.ID())
	}
}

// The original bytes of an imported file are restored too.
func TestTheOriginalIsKept(t *testing.T) {
	st, tr := store(t), bin(t)
	original := "\xef\xbb\xbf{\"type\":\"session\"}\r\nnot a line\r\n"
	lines := []string{
		`{"type":"session","version":3,"id":"x","timestamp":"2026-01-02T03:04:05.000Z","cwd":"/w"}`,
		`{"type":"message","id":"u1","parentId":null,"timestamp":"2026-01-02T03:04:05.000Z","message":{"role":"user","content":"x"}}`,
	}
	seq := transcript.Drafts(lines...)
	o := &coppice.SessionOptions{ID: "s", Original: func() (io.Reader, error) { return strings.NewReader(original), nil }}
	testutil.Must(testutil.Must(st.Import(bg, seq, o))(t).Append(bg, entry.User("later")))(t)
	item := testutil.Must(tr.Put(bg, st, "s", ""))(t)
	s := testutil.Must(tr.Restore(bg, st, item.Name))(t)
	if got := export(t, st.Export, s.ID()); got != original {
		t.Errorf("original %q", got)
	}
}

func TestACopyThatCannotBeMadeDeletesNothing(t *testing.T) {
	st := store(t)
	grown(t, st, "s")
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	tr := &manager.Trash{Path: file, Now: clock()}
	if _, err := tr.Put(bg, st, "s", ""); err == nil {
		t.Fatal("put into a file")
	}
	if s, err := st.Open(bg, "s", nil); err != nil || s.Info().Entries == 0 {
		t.Errorf("the session is gone: %v", err)
	}
	tr = bin(t)
	if _, err := tr.Put(bg, st, "nosuch", ""); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("nothing was put: %v", err)
	}
	if left, err := os.ReadDir(tr.Path); len(left) != 0 {
		t.Errorf("%d leftovers, %v", len(left), err)
	}
}

// The copy is durable before anything is deleted: its files, their folder, the name of that folder, and the name of the
// trash. If one of them cannot be synced the session stays, no copy is listed, and another Put succeeds.
func TestCopyIsSyncedBeforeTheDeletion(t *testing.T) {
	want := []string{"info.json", "session.jsonl"}
	if runtime.GOOS != "windows" {
		want = append(want, ".new", "above", "trash")
	}
	slices.Sort(want)
	for fails := range len(want) + 1 {
		faulty := fault.New(memory.New(), 1)
		st := testutil.Must(coppice.New(faulty, nil))(t)
		grown(t, st, "s")
		tr := bin(t)
		var synced []string
		tr.SetSync(func(f *os.File) error {
			name, _, _ := strings.Cut(filepath.Base(f.Name()), "-")
			if f.Name() == filepath.Dir(tr.Path) {
				name = "above"
			}
			if synced = append(synced, name); len(synced) == fails+1 {
				return syscall.EIO
			}
			return f.Sync()
		})
		var before []string // the first write
		faulty.Add(fault.Rule{Count: -1, When: func(c fault.Call) bool {
			if c.Op == "put" && before == nil {
				before = slices.Sorted(slices.Values(synced))
			}
			return false
		}})
		_, err := tr.Put(bg, st, "s", "")
		if fails == len(want) {
			if err != nil || !slices.Equal(before, want) {
				t.Errorf("%v; synced before the deletion: %q, want %q", err, before, want)
			}
			continue
		}
		if !errors.Is(err, syscall.EIO) || before != nil {
			t.Errorf("sync %d fails: %v; synced before the deletion: %q", fails, err, before)
		}
		if items := testutil.Must(tr.List())(t); len(items) != 0 {
			t.Errorf("sync %d fails: %v", fails, items)
		}
		tr.SetSync(nil)
		testutil.Must(tr.Put(bg, st, "s", ""))(t)
	}
}

// A deletion that was refused leaves the session and no copy. One that was not finished leaves the copy, and the next
// Put finishes it, with the same item.
func TestPutThatFails(t *testing.T) {
	faulty := fault.New(memory.NewAppender(), 1)
	st := testutil.Must(coppice.New(faulty, nil))(t)
	t.Cleanup(func() { _ = st.Close() })
	tr := bin(t)
	grown(t, st, "s")
	full := func(op string) fault.Rule {
		return fault.Rule{When: fault.On(op, ""), Count: -1, Outcome: backend.NotApplied, Err: syscall.ENOSPC}
	}
	faulty.Add(full("append"))
	_, err := tr.Put(bg, st, "s", "mem:")
	if !errors.Is(err, syscall.ENOSPC) || backend.OutcomeOf(err) != backend.NotApplied {
		t.Errorf("the log is full: %v", err)
	}
	if items := testutil.Must(tr.List())(t); len(items) != 0 {
		t.Errorf("a copy of a session that is there: %v", items)
	}
	faulty.Clear()
	faulty.Add(full("delete"))
	var item manager.TrashItem
	item, err = tr.Put(bg, st, "s", "mem:")
	if !errors.Is(err, coppice.ErrDeleteUnfinished) {
		t.Errorf("objects cannot be removed: %v", err)
	}
	if items := testutil.Must(tr.List())(t); len(items) != 1 || items[0] != item {
		t.Errorf("the copy of a deleted session: %v, want %v", items, item)
	}
	if _, err := tr.Put(bg, st, "s", "another store"); !errors.Is(err, coppice.ErrDeleted) {
		t.Errorf("put from another store: %v", err)
	}
	faulty.Clear()
	if again, err := tr.Put(bg, st, "s", "mem:"); err != nil || again != item {
		t.Errorf("repeated: %v, %v", again, err)
	}
	for info, err := range faulty.List(bg, backend.ListOptions{Prefix: "sessions/"}) {
		t.Errorf("left: %s, %v", info.Key, err)
	}
	if _, err := tr.Put(bg, st, "s", "mem:"); !errors.Is(err, coppice.ErrDeleted) {
		t.Errorf("nothing is left: %v", err)
	}
	if s := testutil.Must(tr.Restore(bg, st, item.Name))(t); s.Info().Entries != item.Entries {
		t.Errorf("%d entries are restored of %d", s.Info().Entries, item.Entries)
	}
}

// A session that was committed to or held since a commit stays as it is, and no copy of it is made.
func TestPutAt(t *testing.T) {
	st, tr := store(t), bin(t)
	grown(t, st, "s")
	s := testutil.Must(st.Open(bg, "s", nil))(t)
	before := s.Head().Commit
	testutil.Must(s.Commit(bg, coppice.Turn{State: 3}))(t)
	at := s.Head().Commit
	stays := func(commit string, want error) {
		t.Helper()
		if _, err := tr.PutAt(bg, st, "s", commit, "mem:"); !errors.Is(err, want) {
			t.Errorf("%v, want %v", err, want)
		}
		if items := testutil.Must(tr.List())(t); len(items) != 0 {
			t.Errorf("a copy of a session that stays: %v", items)
		}
	}
	stays(before, coppice.ErrConflict)
	testutil.Must(s.Hold(bg, "case 7"))(t)
	stays(at, coppice.ErrConflict)
	stays(s.Head().Commit, coppice.ErrHeld)
	testutil.Must(s.Hold(bg, ""))(t)
	item := testutil.Must(tr.PutAt(bg, st, "s", s.Head().Commit, "mem:"))(t)
	if items := testutil.Must(tr.List())(t); len(items) != 1 || items[0] != item {
		t.Errorf("%v, want %v", items, item)
	}
	if _, err := tr.PutAt(bg, st, "s", at, "mem:"); !errors.Is(err, coppice.ErrDeleted) {
		t.Errorf("a deleted session: %v", err)
	}
}

func TestFindAndEmpty(t *testing.T) {
	st, tr := store(t), bin(t)
	if items, err := tr.List(); err != nil || items != nil {
		t.Errorf("a trash that was never used: %v, %v", items, err)
	}
	var items []manager.TrashItem
	for _, id := range []string{"abc-1", "abc-2", "other"} {
		grown(t, st, id)
		items = append(items, testutil.Must(tr.Put(bg, st, id, ""))(t))
	}
	if got := testutil.Must(tr.Find("o"))(t); got != items[2] {
		t.Errorf("found %+v", got)
	}
	if got := testutil.Must(tr.Find(items[0].Name))(t); got != items[0] {
		t.Errorf("found %+v", got)
	}
	if _, err := tr.Find("abc"); !errors.Is(err, transcript.ErrAmbiguous) {
		t.Errorf("not unique: %v", err)
	}
	for _, word := range []string{"", "zzz", "../x"} {
		if _, err := tr.Find(word); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%q: %v", word, err)
		}
	}
	if err := os.MkdirAll(filepath.Join(tr.Path, "foreign"), 0o700); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"../trash/" + items[0].Name, ".", "", "foreign"} {
		if _, err := tr.Restore(bg, st, name); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("restore %q: %v", name, err)
		}
	}
	half := filepath.Join(tr.Path, ".gone-x")
	if err := os.MkdirAll(half, 0o700); err != nil {
		t.Fatal(err)
	}
	gone := testutil.Must(tr.Empty(items[1].Deleted))(t)
	if _, err := os.Stat(half); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("half an item is still there: %v", err)
	}
	if len(gone) != 1 || gone[0] != items[0] {
		t.Errorf("gone %+v", gone)
	}
	if gone = testutil.Must(tr.Empty(items[2].Deleted.Add(time.Second)))(t); len(gone) != 2 {
		t.Errorf("gone %+v", gone)
	}
	if _, err := os.Stat(filepath.Join(tr.Path, "foreign")); err != nil {
		t.Errorf("what is not ours went: %v", err)
	}
}

// A restored session keeps its profile.
func TestTheRulesAreKept(t *testing.T) {
	st, tr := store(t), bin(t)
	s := testutil.Must(st.Create("s", &coppice.SessionOptions{Profile: transcript.OMP}))(t)
	testutil.Must(s.Append(bg, entry.User("u")))(t)
	testutil.Must(s.Commit(bg, coppice.Turn{}))(t)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	item := testutil.Must(tr.Put(bg, st, "s", "mem:"))(t)
	if got := testutil.Must(tr.Restore(bg, st, item.Name))(t).Profile(); got != transcript.OMP {
		t.Errorf("profile %q", got)
	}
}

// A restore that fails leaves no objects of a session, and the item stays in the trash: a later restore succeeds.
func TestFailedRestoreLeavesNothing(t *testing.T) {
	st, tr := store(t), bin(t)
	grown(t, st, "s")
	item := testutil.Must(tr.Put(bg, st, "s", "here"))(t)
	for _, below := range []func() backend.Backend{
		func() backend.Backend { return memory.New() }, func() backend.Backend { return memory.NewAppender() },
	} {
		for n := range 32 {
			b := fault.New(below(), 1)
			full := fault.Rule{When: fault.On("put", ""), Skip: n, Outcome: backend.NotApplied, Count: -1}
			full.Err = syscall.ENOSPC
			b.Add(full)
			other := testutil.Must(coppice.New(b, &coppice.Options{SingleWriter: true}))(t)
			s, err := tr.Restore(bg, other, item.Name)
			if err == nil {
				if n < 1 {
					t.Fatal("it wrote nothing")
				}
				testutil.OK(t, s.Close())
				b.Clear()
				item = testutil.Must(tr.Put(bg, other, "s", "here"))(t)
				break
			}
			if !errors.Is(err, syscall.ENOSPC) {
				t.Errorf("write %d fails: %v", n, err)
			}
			for info, err := range b.List(bg, backend.ListOptions{}) {
				t.Errorf("write %d fails: %s is left, %v", n, info.Key, err)
			}
			if items := testutil.Must(tr.List())(t); len(items) != 1 {
				t.Fatalf("write %d fails: in the trash are %v", n, items)
			}
		}
	}
}

// A restored session has the log with its states, the snapshots with their tags, and the branches; its commits have
// their numbers, ids, times and keys. This holds on every kind of store, and for a log of many segments.
func TestRestoreKeepsTheLog(t *testing.T) {
	for name, b := range map[string]func() backend.Backend{
		"replace": func() backend.Backend { return memory.New() },
		"append":  func() backend.Backend { return memory.NewAppender() },
	} {
		t.Run(name, func(t *testing.T) {
			st, tr := testutil.Must(coppice.New(b(), nil))(t), bin(t)
			o := &coppice.SessionOptions{Title: "t", Meta: map[string]string{"team": "blue"}}
			s := testutil.Must(st.Create("s", o))(t)
			image := bytes.Repeat([]byte("image"), 10_000)
			for i := range 400 {
				drafts := []transcript.Draft{entry.User(fmt.Sprint("u", i))}
				if i == 5 {
					drafts = append(drafts, entry.User("look", entry.Image("image/png", image)))
				}
				turn := coppice.Turn{State: map[string]int{"n": i}, Key: fmt.Sprint("k", i), Entries: drafts}
				testutil.Must(s.Commit(bg, turn))(t)
				if i%100 == 50 {
					testutil.Must(s.Snapshot(bg, fmt.Sprint("tag", i)))(t)
				}
				if i == 200 {
					testutil.Must(s.Rollback(bg, coppice.Target{Seq: 100}))(t)
				}
			}
			testutil.OK(t, s.Close())
			s = testutil.Must(st.Open(bg, "s", &coppice.SessionOptions{ReadOnly: true}))(t)
			before := seen(t, s)
			testutil.OK(t, s.Close())
			item := testutil.Must(tr.Put(bg, st, "s", "here"))(t)
			for _, to := range []*coppice.Store{st, testutil.Must(coppice.New(b(), nil))(t)} {
				r := testutil.Must(tr.Restore(bg, to, item.Name))(t)
				if diff := cmp.Diff(before, seen(t, r)); diff != "" {
					t.Errorf("restored is another session:\n%s", diff)
				}
				report := testutil.Must(to.Verify(bg, r.ID(), true))(t)
				if len(report.Problems) > 0 {
					t.Errorf("verify: %v", report.Problems)
				}
				last := coppice.Turn{State: map[string]int{"n": 399}, Key: "k399"}
				last.Entries = []transcript.Draft{entry.User("u399")}
				if !testutil.Must(r.Commit(bg, last))(t).Repeated {
					t.Error("a key of a commit is not known any more")
				}
				testutil.OK(t, r.Close())
				item = testutil.Must(tr.Put(bg, to, r.ID(), "here"))(t)
			}
		})
	}
}

// seen returns everything that a session shows, except its id.
func seen(t *testing.T, s *coppice.Session) (out []string) {
	t.Helper()
	for c, err := range s.States(bg, coppice.Target{}) {
		testutil.OK(t, err)
		out = append(out, fmt.Sprintf("%+v %s", c.Commit, c.Document.State))
	}
	for e, err := range s.Entries(bg) {
		testutil.OK(t, err)
		out = append(out, fmt.Sprint(e.ParentID, string(e.Raw)))
	}
	for i, err := range s.Snapshots(bg) {
		testutil.OK(t, err)
		var at coppice.Target
		testutil.OK(t, at.UnmarshalText([]byte("snap:"+i.ID)))
		v := testutil.Must(s.At(bg, at))(t)
		out = append(out, fmt.Sprint(i.Seq, i.Tag, i.Time, i.Commit, string(v.Document().State)))
	}
	info := s.Info()
	out = append(out, fmt.Sprint(s.Head(), info.Title, info.Meta, info.Created))
	return append(out, fmt.Sprint(testutil.Must(s.Tree(bg))(t).Branches()))
}

// Purge removes the items of a session of one store, and what a crash left of a removal.
func TestTrashPurge(t *testing.T) {
	st, tr := store(t), bin(t)
	other := store(t)
	grown(t, st, "s")
	grown(t, st, "t")
	grown(t, other, "s")
	mine := testutil.Must(tr.Put(bg, st, "s", "mine"))(t)
	testutil.Must(tr.Put(bg, st, "t", "mine"))(t)
	testutil.Must(tr.Put(bg, other, "s", "other"))(t)
	left := []string{".gone-x", ".new-s~1"} // by crashes
	for _, name := range append(left, ".new-s-2~1") {
		testutil.OK(t, os.Mkdir(filepath.Join(tr.Path, name), 0o700))
	}
	gone := testutil.Must(tr.Purge("s", func(name string) bool { return name == "mine" }))(t)
	if len(gone) != 1 || gone[0].Name != mine.Name {
		t.Errorf("removed %v", gone)
	}
	if items := testutil.Must(tr.List())(t); len(items) != 2 {
		t.Errorf("left: %v", items)
	}
	for _, name := range left {
		if _, err := os.Stat(filepath.Join(tr.Path, name)); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s: %v", name, err)
		}
	}
	unrelated := filepath.Join(tr.Path, ".new-s-2~1")
	if _, err := os.Stat(unrelated); err != nil {
		t.Errorf("the copy of another session: %v", err)
	}
	testutil.OK(t, os.Chtimes(unrelated, time.Unix(5, 0), time.Unix(5, 0)))
	for _, c := range []struct {
		before time.Time
		stays  bool
	}{{time.Unix(5, 0), true}, {time.Unix(6, 0), false}} {
		testutil.Must(tr.Empty(c.before))(t)
		if _, err := os.Stat(unrelated); (err == nil) != c.stays {
			t.Errorf("emptied before %v: %v", c.before, err)
		}
	}
}

// Items that have a value of a state are those of the session, of forks, and of sessions that have an entry of it.
func TestTrashHasStates(t *testing.T) {
	st, tr := store(t), bin(t)
	create := func(id string, o *coppice.SessionOptions) *coppice.Session {
		s := testutil.Must(st.Create(id, o))(t)
		testutil.Must(s.Commit(bg, coppice.Turn{State: map[string]any{"key": id}, Docs: map[string]any{"doc": 1}}))(t)
		return s
	}
	put := func(s *coppice.Session) {
		testutil.OK(t, s.Close())
		testutil.Must(tr.Put(bg, st, s.ID(), "mine"))(t)
	}
	s := create("s", nil)
	put(testutil.Must(s.Fork(bg, coppice.Target{}, "fork", nil))(t))
	testutil.Must(s.Append(bg, entry.User("said")))(t)
	testutil.Must(s.Commit(bg, coppice.Turn{}))(t)
	put(testutil.Must(st.Copy(bg, st, "s", "copy"))(t))
	put(create("agent", &coppice.SessionOptions{Parent: "s"}))
	put(create("unrelated", nil))
	for _, c := range []struct {
		o    coppice.EraseOptions
		want string
	}{
		{coppice.EraseOptions{States: []string{"/key"}}, "copy fork"},
		{coppice.EraseOptions{Docs: []string{"doc"}}, "copy fork"},
		{coppice.EraseOptions{States: []string{"/none"}}, ""},
	} {
		var got []string
		for _, it := range testutil.Must(tr.Having(bg, s, nil, &c.o))(t) {
			got = append(got, it.Session)
		}
		slices.Sort(got)
		if strings.Join(got, " ") != c.want {
			t.Errorf("%+v: %v, want %s", c.o, got, c.want)
		}
	}
}

// A copy of an entry is known by an id that no other entry has, of any time, as in the sessions of a store: another
// import of a file may have given it another one. A short id is a copy's with the same time only.
func TestTrashHasCopiesOfAnotherTime(t *testing.T) {
	for id, copied := range map[string]bool{"01a22215-66b3-7708-992c-7454e557c61e": true, "0f3a9c1e": false} {
		st, tr := store(t), bin(t)
		imported := func(session, at string) *coppice.Session {
			line := `{"type":"message","id":"` + id + `","parentId":null,"timestamp":"` + at +
				`","message":{"role":"user","content":"said"}}`
			return testutil.Must(st.Import(bg, func(yield func(transcript.Draft, error) bool) {
				yield(transcript.Draft{Raw: []byte(line)}, nil)
			}, &coppice.SessionOptions{ID: session}))(t)
		}
		s := imported("s", "2026-01-01T00:00:00Z")
		testutil.OK(t, imported("copy", "2026-01-01T00:00:01Z").Close())
		testutil.Must(tr.Put(bg, st, "copy", "mine"))(t)
		items := testutil.Must(tr.Having(bg, s, []string{id}, &coppice.EraseOptions{}))(t)
		if (len(items) == 1) != copied {
			t.Errorf("%s: %v", id, items)
		}
		testutil.OK(t, s.Close())
	}
}
