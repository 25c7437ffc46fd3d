package coppice_test

import (
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
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
	"github.com/coppice-go/coppice/checkpoint"
	"github.com/coppice-go/coppice/entry"
	"github.com/coppice-go/coppice/internal/testutil"
	"github.com/coppice-go/coppice/transcript"
)

// compatDir holds a store as an earlier release wrote it: local/ is the folder of a store on disk, objects/
// has the objects of a store that only replaces, one file a key, and the JSON files record what the public API
// reported of each. Formats may change, but these stores must be read the same forever.
const compatDir = "testdata/compat/v1"

// compatKinds are the two stores, and how a copy of each is opened.
var compatKinds = kindsBelow(compatDir)

// kindsBelow returns how copies of the stores in the folders local and objects of a folder are opened.
func kindsBelow(folder string) map[string]func(t testing.TB) backend.Backend {
	return map[string]func(t testing.TB) backend.Backend{
		"local": func(t testing.TB) backend.Backend {
			dir := t.TempDir()
			ok(t, os.CopyFS(dir, os.DirFS(filepath.Join(folder, "local"))))
			b := must(local.Open(dir, nil))(t)
			t.Cleanup(func() { _ = b.Close() })
			return b
		},
		"objects": func(t testing.TB) backend.Backend {
			b := memory.New()
			from := os.DirFS(filepath.Join(folder, "objects"))
			ok(t, fs.WalkDir(from, ".", func(key string, d fs.DirEntry, err error) error {
				if err != nil || d.IsDir() {
					return err
				}
				p, err := fs.ReadFile(from, key)
				if err == nil {
					_, err = b.Put(bg, key, p, backend.IfAbsent())
				}
				return err
			}))
			return b
		},
	}
}

// compatReport is what the public API reports of a session. Only what is recorded is compared: a later release
// may report more.
type compatReport struct {
	Info      compatInfo
	Profile   transcript.Profile
	State     string // byte for byte
	Manager   string `json:",omitempty"`
	Settings  transcript.Settings
	Explicit  bool     `json:",omitempty"`
	Context   []string // role, digest of the raw message, start of its text
	Branches  []string
	Tree      []string // ordinal, id, parent, type, role, label
	Log       []string // newest first; ends with a digest of state and context as of that commit
	Snapshots []string `json:",omitempty"`
	Export    string   // digest of the exported bytes
}

// compatInfo has the fields of checkpoint.Summary that an earlier release had.
type compatInfo struct {
	Seq, Epoch                              uint64
	Commit, Entry, Branch, Reason           string
	ID, Title, Cwd, Parent, Preview, Status string
	First                                   string
	Created, Updated                        time.Time
	Entries                                 uint64
	Bytes                                   int64
	Internal                                bool
}

func compatInfoOf(s checkpoint.Summary) compatInfo {
	return compatInfo{
		Seq: s.Seq, Epoch: s.Epoch, Commit: s.Commit, Entry: s.Entry, Branch: s.Branch, Reason: s.Reason,
		ID: s.ID, Title: s.Title, Cwd: s.Cwd, Parent: s.Parent, Preview: s.Preview, Status: s.Status, First: s.First,
		Created: s.Created.UTC(), Updated: s.Updated.UTC(), Entries: s.Entries, Bytes: s.Bytes, Internal: s.Internal,
	}
}

// digest is a short hash of byte strings.
func digest(p ...[]byte) string {
	h := sha256.New()
	for _, part := range p {
		fmt.Fprintf(h, "%d:%s", len(part), part)
	}
	return fmt.Sprintf("%x", h.Sum(nil)[:8])
}

// compatReportOf opens a session and reports it.
func compatReportOf(t testing.TB, store *coppice.Store, id string) compatReport {
	t.Helper()
	s := must(store.Open(bg, id, &coppice.SessionOptions{ReadOnly: true}))(t)
	defer s.Close()
	c := must(s.Context(bg))(t)
	doc := must(s.At(bg, coppice.Target{}))(t).Document()
	r := compatReport{
		Info: compatInfoOf(s.Info()), Profile: s.Profile(), State: string(doc.State), Manager: string(doc.Manager),
		Settings: c.Settings, Explicit: c.Explicit, Export: digest([]byte(exported(t, store.Export, id))),
	}
	for _, m := range c.Messages {
		r.Context = append(r.Context, fmt.Sprintf("%s %s %.40q", m.Role, digest(m.Raw), m.Text()))
	}
	tree := must(s.Tree(bg))(t)
	for _, b := range tree.Branches() {
		r.Branches = append(r.Branches, b.Name+" "+b.Head)
	}
	for n := range tree.Nodes(transcript.FilterAll) {
		r.Tree = append(r.Tree, fmt.Sprintf("%d %s %s %s %s %q", n.Ordinal, n.ID, n.ParentID, n.Type, n.Role, n.Label))
	}
	for _, c := range collect(t, s.Log(bg, coppice.Target{})) {
		r.Log = append(r.Log, compatCommit(t, s, c))
	}
	for _, i := range collect(t, s.Snapshots(bg)) {
		v := must(s.At(bg, coppice.Target{Snapshot: i.ID}))(t)
		r.Snapshots = append(r.Snapshots, fmt.Sprintf("%s seq %d commit %s tag %q reason %s %s",
			i.ID, i.Seq, i.Commit, i.Tag, i.Reason, compatView(t, v)))
	}
	return r
}

func compatCommit(t testing.TB, s *coppice.Session, c checkpoint.Commit) string {
	t.Helper()
	text := fmt.Sprintf("%d epoch %d %s after %s: %s by %s at %s, head %s on %s, %d entries, keyframe %t",
		c.Seq, c.Epoch, c.Commit, c.Parent, c.Reason, c.Writer, c.Time.UTC().Format(time.RFC3339Nano),
		c.Entry, c.Branch, c.Entries, c.Keyframe)
	for _, part := range []struct{ name, value string }{{"key", c.Key}, {"kept", c.Kept}, {"snapshot", c.Snapshot}} {
		if part.value != "" {
			text += ", " + part.name + " " + part.value
		}
	}
	if c.Kept != "" && c.Kept == c.Branch {
		return text // a turn that lost: where the session stood then is a matter of the winner's line
	}
	return text + ", " + compatView(t, must(s.At(bg, coppice.Target{Commit: c.Commit}))(t))
}

// compatView is a digest of state and context.
func compatView(t testing.TB, v *coppice.View) string {
	t.Helper()
	parts := [][]byte{v.Document().State, v.Document().Manager}
	for _, m := range must(v.Context(bg))(t).Messages {
		parts = append(parts, m.Raw)
	}
	return digest(parts...)
}

func compatGolden(t testing.TB, kind string) map[string]compatReport {
	t.Helper()
	golden := map[string]compatReport{}
	ok(t, json.Unmarshal(must(os.ReadFile(filepath.Join(compatDir, kind+".json")))(t), &golden))
	return golden
}

// compatStore opens a copy with a clock and randomness that its writer never had.
func compatStore(t testing.TB, b backend.Backend) *coppice.Store {
	t.Helper()
	now := clockAt(time.Date(2027, 3, 1, 9, 0, 0, 0, time.UTC))
	return newStore(t, b, &coppice.Options{Now: now, Rand: rand.NewChaCha8([32]byte{200}), Writer: "later"})
}

// A store that an earlier release wrote is read as that release read it, to the byte and at every commit; it
// verifies, and it continues: with one more turn, with a key that was used then, with an import that grows.
func TestCompatStore(t *testing.T) {
	testutil.SkipLong(t)
	for kind, open := range compatKinds {
		t.Run(kind, func(t *testing.T) {
			b := open(t)
			store := compatStore(t, b)
			golden := compatGolden(t, kind)
			before := objects(t, b)
			compatListed(t, store, golden)
			for id, want := range golden {
				compatSame(t, id, compatReportOf(t, store, id), want)
			}
			_, deleted := store.Open(bg, compatDeleted, nil)
			same(t, "the deleted one is not there", errors.Is(deleted, fs.ErrNotExist), true)
			compatSound(t, store, map[string]int{"local": 1}[kind])
			same(t, "reading writes nothing", objects(t, b), before)

			compatKeys(t, store, golden[compatKeyed])
			compatGrows(t, store, golden[compatGrown])
			for id, want := range golden {
				compatGoesOn(t, store, id, want)
			}
			compatStaysDeleted(t, store)
			compatSound(t, store, 0)
			must(store.GC(bg, "", false))(t)
			compatSound(t, store, 0)
			ok(t, store.Close())
			compatSound(t, compatStore(t, b), 0)
		})
	}
}

// compatSame compares part by part, so that a failure names what differs.
func compatSame(t *testing.T, id string, got, want compatReport) {
	t.Helper()
	same(t, id+": info", got.Info, want.Info)
	same(t, id+": profile", got.Profile, want.Profile)
	same(t, id+": state", got.State+got.Manager, want.State+want.Manager)
	same(t, id+": settings", got.Settings, want.Settings)
	same(t, id+": explicit", got.Explicit, want.Explicit)
	same(t, id+": export", got.Export, want.Export)
	for _, list := range []struct {
		what      string
		got, want []string
	}{
		{"context", got.Context, want.Context},
		{"branches", got.Branches, want.Branches},
		{"tree", got.Tree, want.Tree},
		{"log", got.Log, want.Log},
		{"snapshots", got.Snapshots, want.Snapshots},
	} {
		compatLines(t, id+": "+list.what, list.got, list.want)
	}
}

func compatLines(t *testing.T, what string, got, want []string) {
	t.Helper()
	same(t, what+": lines", len(got), len(want))
	for i := range min(len(got), len(want)) {
		same(t, fmt.Sprintf("%s %d", what, i), got[i], want[i])
	}
}

// compatListed holds a listing against what opening the sessions reported. That of a session which was not
// closed is as old as its checkpoint.
func compatListed(t *testing.T, store *coppice.Store, golden map[string]compatReport) {
	t.Helper()
	n := 0
	for _, sum := range collect(t, store.List(bg, coppice.ListOptions{})) {
		n++
		want, known := golden[sum.ID]
		same(t, "listed: "+sum.ID, known, true)
		if sum.ID != compatTorn {
			same(t, "listed", compatInfoOf(sum), want.Info)
		}
	}
	same(t, "sessions listed", n, len(golden))
}

// compatSound verifies every byte; torn is how many torn tails may be there.
func compatSound(t *testing.T, store *coppice.Store, torn int) {
	t.Helper()
	for _, p := range must(store.Verify(bg, "", true))(t).Problems {
		if torn--; p.Kind() != "torn-tail" || torn < 0 {
			t.Errorf("verify: %s %v", p.Kind(), p)
		}
	}
	if torn > 0 {
		t.Errorf("verify missed %d torn tails", torn)
	}
}

// compatKeys repeats a turn whose key the session remembers.
func compatKeys(t *testing.T, store *coppice.Store, want compatReport) {
	t.Helper()
	s := open(t, store, compatKeyed)
	r := must(s.Commit(bg, coppice.Turn{State: state{Turns: 2}, Key: "job-2"}))(t)
	same(t, "seq of a known key", r.Seq, 2)
	same(t, "commit of a known key", strings.Contains(strings.Join(want.Log, "\n"), r.Commit), true)
	same(t, "nothing was committed", s.Head().Seq, want.Info.Seq)
	ok(t, s.Close())
}

// compatGrows lets an import go on in its session.
func compatGrows(t *testing.T, store *coppice.Store, want compatReport) {
	t.Helper()
	lines, o := fileLines(compatPi(len(compatPiLines)))
	o.ID = compatGrown
	s, added, err := store.Grow(bg, lines, o)
	ok(t, err)
	same(t, "entries it grew by", added, len(compatPiLines)-compatPiSecond)
	same(t, "entries", s.Info().Entries, want.Info.Entries+uint64(added))
	ok(t, s.Close())
}

// compatGoesOn commits one more turn, and reads it with another handle. All that was there is still there.
func compatGoesOn(t *testing.T, store *coppice.Store, id string, want compatReport) {
	t.Helper()
	s := open(t, store, id)
	before := texts(t, s)
	ids := must(s.Append(bg, entry.User("one more"), entry.Assistant("and its answer")))(t)
	r := must(s.Commit(bg, coppice.Turn{State: state{Turns: 1000}, Key: "later"}))(t)
	same(t, id+": entries", r.Entries, 2)
	same(t, id+": head", r.Entry, ids[1])
	ok(t, s.Close())

	again := open(t, store, id)
	same(t, id+": head", again.Head(), r.Head)
	same(t, id+": context", texts(t, again), strings.TrimSpace(before+" one more and its answer"))
	same(t, id+": state", stateOf(t, again), state{Turns: 1000})
	same(t, id+": preview", again.Info().Preview+" "+again.Info().Status, "and its answer answered")
	ok(t, again.Close())

	now := compatReportOf(t, store, id)
	compatLines(t, id+": tree", now.Tree[:len(want.Tree)], want.Tree)
	compatLines(t, id+": log", now.Log[len(now.Log)-len(want.Log):], want.Log)
	same(t, id+": snapshots", len(now.Snapshots) >= len(want.Snapshots), true)
	for _, b := range want.Branches {
		name, _, _ := strings.Cut(b, " ")
		kept := slices.ContainsFunc(now.Branches, func(n string) bool { return strings.HasPrefix(n, name+" ") })
		same(t, id+": branch "+name, kept, true)
	}
}

func compatStaysDeleted(t *testing.T, store *coppice.Store) {
	t.Helper()
	if _, err := store.OpenOrCreate(bg, compatDeleted, nil); err == nil {
		t.Error("a deleted id was opened or created again")
	}
	s := create(t, store, compatDeleted, nil)
	say(t, s, "u1")
	_, err := s.Commit(bg, coppice.Turn{})
	same(t, "a deleted id is taken", errors.Is(err, fs.ErrExist), true)
	same(t, "there is nothing to reload", errors.Is(s.Reload(bg), coppice.ErrDeleted), true)
	ok(t, s.Discard(bg))
	ok(t, s.Close())
	ok(t, store.Delete(bg, compatDeleted))
}

// A session of an earlier release has no index, and is searched all the same. It gains one when it seals the next time.
func TestKnownIDsOfAnEarlierRelease(t *testing.T) {
	testutil.SkipLong(t)
	for kind, openStore := range compatKinds {
		t.Run(kind, func(t *testing.T) {
			b := openStore(t)
			store := compatStore(t, b)
			inline(store)
			for id := range compatGolden(t, kind) {
				s := open(t, store, id)
				var notes []transcript.Draft
				for _, e := range collect(t, s.Entries(bg)) {
					body := []byte(`{"customType":"note"}`)
					notes = append(notes, transcript.Draft{Type: "custom", ID: e.ID, Body: body})
				}
				runs := func() (n int) {
					for key := range objects(t, b) {
						session, _, found := strings.Cut(key, "/ids/")
						if found && strings.HasSuffix(session, strings.ToLower(id)) {
							n++
						}
					}
					return n
				}
				ignored := func(s *coppice.Session) {
					t.Helper()
					r := must(s.Commit(bg, coppice.Turn{Entries: known(transcript.KnownIgnore, notes...)}))(t)
					same(t, id+": stored again", r.Entries, 0)
				}
				ignored(s)
				same(t, id+": runs", runs(), 0)
				for range 3 { // each is a seal's worth
					must(s.Append(bg, entry.User(strings.Repeat("x", 300<<10))))(t)
					commit(t, s, nil)
				}
				ok(t, s.Close())
				if runs() == 0 {
					t.Errorf("%s: it was sealed, and has no index", id)
				}
				s = open(t, store, id)
				before := s.IO()
				ignored(s)
				if got := s.IO().Sub(before).Get; got > 4 {
					t.Errorf("%s: %d reads", id, got)
				}
				ok(t, s.Close())
				for _, p := range must(store.Verify(bg, id, true))(t).Problems {
					if errors.Is(p, coppice.ErrCorrupt) {
						t.Error(p)
					}
				}
			}
		})
	}
}
