package scenarios_test

import (
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"testing"

	"github.com/coppice-go/coppice"
	"github.com/coppice-go/coppice/backend"
	"github.com/coppice-go/coppice/backend/memory"
	"github.com/coppice-go/coppice/entry"
	"github.com/coppice-go/coppice/internal/fault"
	"github.com/coppice-go/coppice/internal/testutil"
	"github.com/coppice-go/coppice/transcript"
)

// An import keeps lines byte for byte, and the export is the file; later entries are not part of the original.
func TestImportExport(t *testing.T) {
	onEach(t, func(t *testing.T, store *coppice.Store) {
		raw := strings.Join([]string{
			header, piLine("a", "null", "one"), piLine("b", "a", "two"), piLine("c", "a", "two again"),
			`{"type":"unknown_thing","id":"d","parentId":"c","x":{"y":null}}`, piLine("e", "nowhere", "orphan"),
			`{"type":"label","id":"f","parentId":"e","targetId":"a","label":"first"}`, "",
		}, "\n")
		s := importFile(t, store, []byte(raw))
		info := s.Info()
		same(t, "title and cwd", info.Title+info.Cwd, "the title/w")
		same(t, "context", texts(t, s), "orphan")
		tree := must(s.Tree(bg))(t)
		same(t, "children of a", len(tree.Children("a")), 2)
		n, _ := tree.Node("a")
		same(t, "label", n.Label, "first")
		same(t, "diagnostics", tree.Diagnostics()[0].Kind, transcript.DiagOrphan)
		same(t, "original", exported(t, store.Export, s.ID()), raw)
		same(t, "pi", exported(t, store.ExportPi, s.ID()), raw)
		must(s.Switch(bg, "c"))(t)
		same(t, "context", texts(t, s), "one two again")
		say(t, s, "u1")
		commit(t, s, state{Turns: 1})
		ok(t, s.Close())
		same(t, "original", exported(t, store.Export, s.ID()), raw)
		pi := exported(t, store.ExportPi, s.ID())
		same(t, "pi begins with it", strings.HasPrefix(pi, raw), true)
		back := importFile(t, store, []byte(pi))
		same(t, "context of the export", texts(t, back), "one two again u1")
	})
}

// An exported pi file ends at the head of the session, wherever that is.
func TestExportPiKeepsTheHead(t *testing.T) {
	onEach(t, func(t *testing.T, store *coppice.Store) {
		s, rs := grown(t, store, "s", 3, &coppice.SessionOptions{Title: "t"})
		must(s.Branch(bg, rs[0].Entry, nil))(t)
		pi := exported(t, store.ExportPi, "s")
		if !strings.Contains(pi, `"customType":"coppice.head"`) || strings.Contains(pi, "coppice.commit") {
			t.Errorf("export: %s", pi)
		}
		back := importFile(t, store, []byte(pi))
		same(t, "context", texts(t, back), "u1 a1")
		same(t, "title", back.Info().Title, "t")
		same(t, "entries", len(collect(t, back.Entries(bg))), 7)
	})
}

// Files that are no pi v3 are converted, and their bytes come back.
func TestImportOriginals(t *testing.T) {
	onEach(t, func(t *testing.T, store *coppice.Store) {
		for name, raw := range map[string]string{
			"crlf":         header + "\r\n" + piLine("a", "null", "one") + "\r\n",
			"bom":          "\ufeff" + header + "\n" + piLine("a", "null", "one") + "\n",
			"torn":         header + "\n" + piLine("a", "null", "one") + "\n" + `{"type":"mess`,
			"no last line": header + "\n" + piLine("a", "null", "one"),
			"no header":    piLine("a", "null", "one") + "\n",
			"v1":           `{"type":"session","id":"x","timestamp":"2026-01-01T00:00:00.000Z","cwd":"/w"}` + "\n" + `{"type":"message","timestamp":"2026-01-01T00:00:00.000Z","message":{"role":"user","content":"one"}}` + "\n",
		} {
			s := importFile(t, store, []byte(raw))
			same(t, name, texts(t, s), "one")
			same(t, name+" original", exported(t, store.Export, s.ID()), raw)
			pi := exported(t, store.ExportPi, s.ID())
			same(t, name+" as pi", texts(t, importFile(t, store, []byte(pi))), "one")
		}
	})
}

// Parents may follow their children, and ids may be duplicates: the last line with an id counts.
func TestImportOddTrees(t *testing.T) {
	onEach(t, func(t *testing.T, store *coppice.Store) {
		raw := strings.Join([]string{
			header, piLine("b", "a", "two"), piLine("a", "null", "one"), piLine("c", "b", "three"),
			piLine("x", "y", "cycle"), piLine("y", "x", "cycle"), piLine("d", "c", "four"), "",
		}, "\n")
		s := importFile(t, store, []byte(raw))
		same(t, "context", texts(t, s), "one two three four")
		again := open(t, store, s.ID())
		same(t, "reopened", texts(t, again), "one two three four")
		same(t, "path", ids(collect(t, again.Path(bg, ""))), []string{"d", "c", "b", "a"})
		say(t, again, "u5")
		commit(t, again, nil)
		same(t, "goes on", texts(t, open(t, store, s.ID())), "one two three four u5")
	})
}

// A large import is several commits, complete at the end; images are stored outside their lines and returned.
func TestImportLarge(t *testing.T) {
	testutil.SkipLong(t)
	onEach(t, func(t *testing.T, store *coppice.Store) {
		var raw strings.Builder
		raw.WriteString(header + "\n")
		parent := "null"
		pad := strings.Repeat("x", 4000)
		const lines = 2500 // more than the 4 MiB that go into one commit
		for i := range lines {
			id := fmt.Sprintf("%06x", i)
			raw.WriteString(piLine(id, parent, pad) + "\n")
			parent = id
		}
		picture := base64.StdEncoding.EncodeToString(bytes.Repeat([]byte("0123456789"), 5000))
		raw.WriteString(`{"type":"message","id":"pic","parentId":"` + parent + `","message":{"role":"user","content":[{"type":"image","data":"` + picture + `","mimeType":"image/png"}]}}` + "\n")
		s := importFile(t, store, []byte(raw.String()))
		log := collect(t, s.Log(bg, coppice.Target{}))
		if len(log) < 4 {
			t.Errorf("%d commits", len(log))
		}
		ok(t, s.Close())
		if exported(t, store.Export, s.ID()) != raw.String() {
			t.Error("the original came back changed")
		}
		again := open(t, store, s.ID())
		same(t, "entries", len(collect(t, again.Path(bg, ""))), lines+1)
		before := again.IO()
		c := must(again.Context(bg))(t)
		if last := c.Messages[len(c.Messages)-1]; !strings.Contains(string(last.Raw), picture) {
			t.Error("the image came back changed")
		}
		same(t, "a small image rides along", cost(again.IO().Sub(before)), "none")
	})
}

// A failed import leaves no session, and does not affect the session of a taken id.
func TestImportFails(t *testing.T) {
	testutil.SkipLong(t)
	b := memory.New()
	fb := fault.New(b, 1)
	store := newStore(t, fb, nil)
	picture := base64.StdEncoding.EncodeToString(bytes.Repeat([]byte("0123456789"), 5000))
	image := `{"type":"message","id":"pic","parentId":null,"message":{"role":"user","content":[{"type":"image","data":"` + picture + `","mimeType":"image/png"}]}}`
	broken := func(yield func(transcript.Draft, error) bool) {
		_ = yield(entry.Line([]byte(image)), nil) && yield(transcript.Draft{}, errors.New("the file ended"))
	}
	if _, err := store.Import(bg, broken, nil); err == nil {
		t.Fatal("it went through")
	}
	count := func() (n int) {
		for info, err := range b.List(bg, backend.ListOptions{}) {
			ok(t, err)
			if info.Key != "cas/proof" {
				n++
			}
		}
		return n
	}
	same(t, "objects", count(), 0)
	for _, junk := range []string{"not JSONL\n", "", "{}\n{}\n", "42\n"} {
		lines, o := fileLines([]byte(junk))
		if _, err := store.Import(bg, lines, o); err == nil {
			t.Errorf("%q was taken", junk)
		}
	}
	same(t, "objects", count(), 0)

	var many strings.Builder
	many.WriteString(header + "\n")
	for i := range 2500 {
		many.WriteString(piLine(fmt.Sprint(i), "null", strings.Repeat("x", 4000)) + "\n")
	}
	fb.Add(fault.Rule{When: fault.On("put", "checkpoint_latest/"), Skip: 2, Count: 1, Outcome: backend.NotApplied})
	lines, o := fileLines([]byte(many.String()))
	if _, err := store.Import(bg, lines, o); err == nil {
		t.Fatal("it went through")
	}
	fb.Clear()
	same(t, "listed", len(collect(t, store.List(bg, coppice.ListOptions{}))), 0)
	same(t, "objects", count(), 1) // the tombstone

	s := create(t, store, "taken", nil)
	say(t, s, "u1")
	commit(t, s, nil)
	lines, o = fileLines([]byte(header + "\n" + piLine("a", "null", "one") + "\n"))
	o.ID = "taken"
	if _, err := store.Import(bg, lines, o); !errors.Is(err, fs.ErrExist) {
		t.Errorf("a taken id: %v", err)
	}
	same(t, "still there", texts(t, open(t, store, "taken")), "u1")
}

// Real sessions are returned byte for byte, with the same context as in pi.
func TestRealSessions(t *testing.T) {
	testutil.SkipLong(t)
	for name, want := range map[string]int{"before-compaction.jsonl": 446, "large-session.jsonl": 914} {
		raw := testutil.SharedFile(t, "fixtures/pi/"+name)
		onEach(t, func(t *testing.T, store *coppice.Store) {
			s := importFile(t, store, raw)
			ok(t, s.Close())
			if exported(t, store.Export, s.ID()) != string(raw) {
				t.Error("the original came back changed")
			}
			ro := must(store.Open(bg, s.ID(), &coppice.SessionOptions{ReadOnly: true, Profile: transcript.Pi, ContextBytes: -1}))(t)
			same(t, name, len(must(ro.Context(bg))(t).Messages), want)
			ok(t, ro.Close())
		})
	}
}

// An import is dropped completely or not at all, whichever request fails, and a repeated drop completes it. A session
// with later commits stays.
func TestDropImport(t *testing.T) {
	raw := []byte(`{"type":"session","version":3,"id":"x","timestamp":"2026-01-02T03:04:05.000Z","cwd":"/w"}` + "\n" +
		`{"type":"message","id":"m1","parentId":null,"timestamp":"2026-01-02T03:04:06.000Z","message":{"role":"user","content":"u1"}}` + "\n")
	imported := func(t *testing.T, store *coppice.Store) {
		lines, o := fileLines(raw)
		o.ID = "s"
		ok(t, must(store.Import(bg, lines, o))(t).Close())
	}
	for name, make := range map[string]func() backend.Backend{
		"replace": func() backend.Backend { return memory.New() },
		"append":  func() backend.Backend { return memory.NewAppender() },
	} {
		for _, kind := range []fault.Kind{fault.Before, fault.After} {
			t.Run(fmt.Sprintf("%s/%v", name, kind), func(t *testing.T) {
				for at, failed := 0, true; failed; at++ {
					b := make()
					imported(t, newStore(t, b, nil))
					f := fault.New(b, 1, fault.Rule{Skip: at, Kind: kind, Outcome: backend.NotApplied})
					err := newStore(t, f, nil).DropImport(bg, "s", "")
					failed = len(f.Faults()) > 0
					store := newStore(t, b, nil)
					if s, oerr := store.Open(bg, "s", nil); oerr == nil {
						same(t, "context", texts(t, s), "u1")
						if err == nil {
							t.Errorf("call %d: dropped without an error, and there", at)
						}
					} else if !errors.Is(oerr, fs.ErrNotExist) {
						t.Errorf("call %d: %v", at, oerr)
					}
					ok(t, store.DropImport(bg, "s", ""))
					if left := keysIn(t, b, "sessions/s/"); len(left) > 0 {
						t.Errorf("call %d: %q are left", at, left)
					}
				}
				b := make()
				store := newStore(t, b, nil)
				imported(t, store)
				s := open(t, store, "s")
				say(t, s, "mine")
				commit(t, s, nil)
				if err := store.DropImport(bg, "s", ""); !errors.Is(err, fs.ErrExist) {
					t.Errorf("a session that was continued: %v", err)
				}
				same(t, "it stays", texts(t, open(t, store, "s")), "u1 mine")
			})
		}
	}
}
