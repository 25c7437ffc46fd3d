package manager_test

import (
	"bytes"
	"errors"
	"io/fs"
	"strings"
	"testing"

	coppice "github.com/coppice-go/coppice"
	"github.com/coppice-go/coppice/backend"
	"github.com/coppice-go/coppice/backend/memory"
	"github.com/coppice-go/coppice/entry"
	"github.com/coppice-go/coppice/internal/fault"
	"github.com/coppice-go/coppice/internal/testutil"
	"github.com/coppice-go/coppice/manager"
	"github.com/coppice-go/coppice/transcript"
)

// body returns the lines of a session after its header, as pi reads them.
func body(t *testing.T, st *coppice.Store, id string) string {
	t.Helper()
	var b bytes.Buffer
	testutil.OK(t, st.ExportPi(bg, id, &b))
	_, lines, _ := strings.Cut(b.String(), "\n")
	return lines
}

// Like forkFrom of pi: every branch, byte for byte, under a new id, with the old session as its parent.
func TestACopyIsOfTheWholeSession(t *testing.T) {
	st := storeOn(t, memory.New())
	image := strings.Repeat("iVBORw0KGgoAAAANSUhEUgAA", 3000) // large enough to be stored outside its line
	odd := []string{
		`{"type":"message", "id":"u1","parentId":null,"timestamp":"2026-01-02T03:04:05.000Z","message":{"role":"user","content":"One"},"x":1.50}`,
		`{"type":"message","id":"a1","parentId":"u1","timestamp":"2026-01-02T03:04:06.000Z","message":{"role":"assistant","content":"Two"}}`,
		`{"type":"message","id":"i1","parentId":"a1","timestamp":"2026-01-02T03:04:07.000Z","message":{"role":"user","content":[{"type":"image","data":"` + image + `","mimeType":"image/png"}]}}`,
		`{"type":"session_info","id":"n1","parentId":"i1","timestamp":"2026-01-02T03:04:08.000Z","name":"its name"}`,
	}
	s := testutil.Must(st.Import(bg, transcript.Drafts(append([]string{`{"type":"session","version":3,"id":"x","cwd":"/w","extra":true}`}, odd...)...), &coppice.SessionOptions{ID: "old", Profile: transcript.OMP}))(t)
	testutil.Must(s.Label(bg, "a1", "here"))(t)
	testutil.Must(s.Branch(bg, "u1", &coppice.BranchOptions{Name: "other"}))(t)
	testutil.Must(s.Append(bg, entry.Assistant("Another way")))(t)
	testutil.Must(s.Commit(bg, coppice.Turn{State: map[string]int{"step": 7}, Manager: map[string]bool{"m": true}}))(t)
	testutil.Must(s.Branch(bg, "a1", &coppice.BranchOptions{Name: "third"}))(t)
	testutil.Must(s.Commit(bg, coppice.Turn{State: map[string]int{"step": 8}}))(t)

	c := testutil.Must(manager.Copy(bg, st, "old", "", nil))(t)
	strip := func(id string) string { // the last line names the head, under an id of its own
		lines := strings.Split(strings.TrimSpace(body(t, st, id)), "\n")
		return strings.Join(lines[:len(lines)-1], "\n")
	}
	same(t, "all lines", strip(c.ID()) == strip("old"), true)
	same(t, "all entries", c.Info().Entries, s.Info().Entries)
	same(t, "head", c.Head().Entry, "a1")
	same(t, "branch", c.Head().Branch, "third")
	same(t, "parent", c.Info().Parent, "old")
	same(t, "rules", c.Profile(), transcript.OMP)
	same(t, "title and directory", c.Info().Title+c.Info().Cwd, s.Info().Title+"/w")
	same(t, "context", contextOf(t, c), contextOf(t, s))
	from, to := testutil.Must(s.At(bg, coppice.Target{}))(t).Document(),
		testutil.Must(c.At(bg, coppice.Target{}))(t).Document()
	same(t, "state", string(to.State)+string(to.Manager), string(from.State)+string(from.Manager))
	labels := testutil.Must(manager.Labels(bg, c))(t)
	if len(labels) != 1 || labels[0].Entry != "a1" || labels[0].Text != "here" {
		t.Errorf("labels %v", labels)
	}
	heads := func(s *coppice.Session) string {
		var list []string
		for _, b := range testutil.Must(s.Tree(bg))(t).Branches() {
			list = append(list, b.Name+"@"+b.Head)
		}
		return strings.Join(list, " ")
	}
	same(t, "branches", heads(c), heads(s))
	testutil.Must(c.Switch(bg, "other"))(t)
	same(t, "the other branch", contextOf(t, c), "One Another way")
	testutil.OK(t, c.Close())
	if r := testutil.Must(st.Verify(bg, c.ID(), true))(t); len(r.Problems) > 0 {
		t.Error(r.Problems)
	}
}

func TestACopyElsewhereAndUnderAnotherName(t *testing.T) {
	st := storeOn(t, memory.New())
	m := manager.New(st, nil)
	testutil.Must(m.Create(bg, "/w", ""))(t)
	say(t, m, "u1", "a1")
	testutil.Must(m.Rename(bg, "old name"))(t)
	testutil.Must(m.Move(bg, "/moved"))(t)
	id, head := m.Session().ID(), m.Session().Head().Entry
	testutil.OK(t, m.Close(bg))
	c := testutil.Must(manager.Copy(bg, st, id, "/third", &coppice.SessionOptions{ID: "mine", Title: "new name"}))(t)
	same(t, "id, name and directory", c.ID()+c.Info().Title+c.Info().Cwd, "minenew name/third")
	same(t, "context", contextOf(t, c), "u1 a1")
	same(t, "head", c.Head().Entry, head)
	same(t, "state", string(testutil.Must(c.At(bg, coppice.Target{}))(t).Document().State), `{"said":2}`)
	testutil.OK(t, c.Close())
	c = testutil.Must(st.Open(bg, "mine", nil))(t)
	same(t, "after a restart", c.Info().Title+c.Info().Cwd+c.Head().Entry, "new name/third"+head)
	testutil.OK(t, c.Close())
	if _, err := manager.Copy(bg, st, id, "", &coppice.SessionOptions{ID: "mine"}); !errors.Is(err, fs.ErrExist) {
		t.Errorf("an id that is taken: %v", err)
	}
	if _, err := manager.Copy(bg, st, "nosuch", "", nil); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("of nothing: %v", err)
	}
	same(t, "sessions", count(t, st), 2)

	empty := testutil.Must(st.Create("empty", &coppice.SessionOptions{Cwd: "/w"}))(t)
	testutil.Must(empty.Commit(bg, coppice.Turn{State: 1}))(t)
	c = testutil.Must(manager.Copy(bg, st, "empty", "", nil))(t)
	same(t, "an empty one", c.Info().Cwd+c.Info().Parent+c.Head().Entry, "/wempty")
	same(t, "its state", string(testutil.Must(c.At(bg, coppice.Target{}))(t).Document().State), "1")
}

// A copy that fails is removed.
func TestACopyThatFails(t *testing.T) {
	mem := memory.New()
	st := storeOn(t, mem)
	s := testutil.Must(st.Create("old", &coppice.SessionOptions{Cwd: "/w"}))(t)
	testutil.Must(s.Append(bg, entry.User("u1"), entry.Assistant("a1")))(t)
	testutil.Must(s.Commit(bg, coppice.Turn{State: 1}))(t)
	testutil.Must(s.Branch(bg, s.Head().Entry, &coppice.BranchOptions{Name: "b"}))(t)
	testutil.OK(t, s.Close())
	failed := 0
	for n := 1; n < 12; n++ {
		puts := 0
		broken := storeOn(t, fault.New(mem, 1, fault.Rule{Count: -1, Outcome: backend.NotApplied, Err: errors.New("no permission"), When: func(c fault.Call) bool {
			if c.Op != "put" && c.Op != "append" {
				return false
			}
			puts++
			return puts == n
		}}))
		c, err := manager.Copy(bg, broken, "old", "", nil)
		if err != nil {
			failed++
			same(t, "sessions after a failure", count(t, st), 1)
			continue
		}
		id := c.ID()
		testutil.OK(t, c.Close())
		testutil.OK(t, st.Delete(bg, id))
	}
	if failed == 0 {
		t.Error("nothing failed")
	}
}
