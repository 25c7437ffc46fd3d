package importer

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"testing"
	"time"

	coppice "github.com/coppice-go/coppice"
	"github.com/coppice-go/coppice/backend"
	"github.com/coppice-go/coppice/backend/memory"
	"github.com/coppice-go/coppice/examples/session"
	"github.com/coppice-go/coppice/interop"
	"github.com/coppice-go/coppice/interop/pi"
	"github.com/coppice-go/coppice/transcript"
)

// A file without a date is as old as it is, and not new.
func TestAFileWithoutADate(t *testing.T) {
	src := interop.Bytes("x.jsonl", []byte(`{"type":"custom-title","customTitle":"Reef",`+
		`"sessionId":"a0000000-0000-4000-8000-000000000000"}`))
	src.Changed = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	st, err := coppice.New(memory.New(), nil)
	if err != nil {
		t.Fatal(err)
	}
	res, err := Import(t.Context(), st, src, Options{Now: src.Changed.AddDate(0, 2, 0)})
	if err != nil {
		t.Fatal(err)
	}
	for sum, err := range st.List(t.Context(), coppice.ListOptions{}) {
		if err != nil || sum.ID != res.Session || !sum.Created.Equal(src.Changed) || !sum.Updated.Equal(src.Changed) {
			t.Errorf("%+v, %v", sum, err)
		}
	}
}

func TestFind(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"a/x.jsonl", "b.jsonl", "a/y.txt", "empty/z.txt", "direct.txt"} {
		p := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(p), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(p, []byte(name), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(filepath.Join(dir, "b.jsonl"), filepath.Join(dir, "a", "link.jsonl")); err != nil {
		t.Log("no links here:", err)
	}
	at := func(name string) string { return filepath.Join(dir, name) }
	got := Find(t.Context(), []string{dir, at("direct.txt"), at("missing"), at("empty")})
	want := []struct {
		path string
		fine bool
	}{{at("a/x.jsonl"), true}, {at("b.jsonl"), true}, {at("direct.txt"), true}, {at("missing"), false}, {at("empty"), false}}
	if len(got) != len(want) {
		t.Fatalf("found %+v", got)
	}
	for i, w := range want {
		if got[i].Path != w.path || (got[i].Err == nil) != w.fine {
			t.Errorf("%d: %+v, want %+v", i, got[i], w)
		}
		if got[i].Err == nil && got[i].Size == 0 {
			t.Errorf("%s: no size", got[i].Path)
		}
	}
}

// Folders behind links are read, each file once, circles included; what was changed last comes last.
func TestFindFollowsLinks(t *testing.T) {
	dir, other := t.TempDir(), t.TempDir()
	begun := time.Date(2025, 1, 1, 0, 0, 0, 0, time.UTC)
	for i, name := range []string{filepath.Join(dir, "z.jsonl"), filepath.Join(dir, "a.jsonl"), filepath.Join(other, "far.jsonl"), filepath.Join(dir, "m.jsonl.zst")} {
		if err := os.WriteFile(name, []byte("x"), 0o644); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(name, begun, begun.Add(time.Duration(i)*time.Hour)); err != nil {
			t.Fatal(err)
		}
	}
	for link, to := range map[string]string{"again": ".", "others": other, "others-too": other, "file.jsonl": "a.jsonl", "nowhere": "gone", "gone.jsonl": "gone"} {
		err := os.Symlink(to, filepath.Join(dir, link))
		if err != nil && runtime.GOOS == "windows" {
			t.Skip("links need a right there:", err)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	top := filepath.Join(other, "top")
	if err := os.Symlink(dir, top); err != nil {
		t.Fatal(err)
	}
	for _, from := range []string{dir, top} {
		var got []string
		for _, f := range Find(t.Context(), []string{from}) {
			name, err := filepath.Rel(from, f.Path)
			if err != nil || (f.Err == nil) == (name == "gone.jsonl") {
				t.Errorf("%s: %v, %v", f.Path, f.Err, err)
			}
			got = append(got, name)
		}
		if want := []string{"gone.jsonl", "z.jsonl", "a.jsonl", filepath.Join("others", "far.jsonl"), "m.jsonl.zst"}; !slices.Equal(got, want) {
			t.Errorf("from %s: %q, want %q", from, got, want)
		}
	}
}

func TestFindEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	found := Find(ctx, []string{t.TempDir()})
	if len(found) != 1 || !errors.Is(found[0].Err, context.Canceled) {
		t.Errorf("%+v", found)
	}
}

func options() Options { return Options{Now: time.Unix(1_700_000_000, 0)} }

func newStore(t *testing.T) *coppice.Store {
	t.Helper()
	return storeOn(t, memory.New())
}

func storeOn(t *testing.T, b backend.Backend) *coppice.Store {
	t.Helper()
	st, err := coppice.New(b, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := st.Close(); err != nil {
			t.Error(err)
		}
	})
	return st
}

// A session continues by the rules of the program that it comes from, without a request for them.
func TestImportTakesTheRulesOfTheFormat(t *testing.T) {
	const omp = `{"type":"title","v":1,"title":"t","updatedAt":"2026-01-01T00:00:00.000Z","pad":""}
{"type":"session","version":3,"id":"o","timestamp":"2026-01-01T00:00:00.000Z","cwd":"/w"}
{"type":"message","id":"u1","parentId":null,"timestamp":"2026-01-01T00:00:01.000Z","message":{"role":"user","content":"before","timestamp":1}}
{"type":"reset_boundary","id":"r1","parentId":"u1","timestamp":"2026-01-01T00:00:02.000Z"}
{"type":"message","id":"u2","parentId":"r1","timestamp":"2026-01-01T00:00:03.000Z","message":{"role":"user","content":"after","timestamp":1}}
`
	st := newStore(t)
	r, err := Import(t.Context(), st, interop.Bytes("f", []byte(omp)), options())
	if err != nil || r.Format != "omp" {
		t.Fatalf("%+v, %v", r, err)
	}
	for _, o := range []*coppice.SessionOptions{nil, {Profile: transcript.Pi}} {
		s, err := st.Open(t.Context(), r.Session, o)
		if err != nil {
			t.Fatal(err)
		}
		c, err := s.Context(t.Context())
		if want := map[bool]int{true: 1, false: 2}[o == nil]; err != nil || len(c.Messages) != want {
			t.Errorf("%d messages, want %d, %v", len(c.Messages), want, err)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
}

// An import names the program that made its session, unless the file is of a session with metadata.
func TestImportNamesTheProgram(t *testing.T) {
	st := newStore(t)
	const title = `{"type":"title","v":1,"title":"t","updatedAt":"2026-01-01T00:00:00.000Z","pad":""}` + "\n"
	header := func(more string) string {
		return `{"type":"session","version":3,"id":"o` + more + "}\n"
	}
	message := `{"type":"message","id":"u1","parentId":null,"message":{"role":"user","content":"before"}}` + "\n"
	for _, test := range []struct{ file, program, team string }{
		{header(`1","cwd":"/w"`), "pi", ""},
		{title + header(`2","cwd":"/w"`), "omp", ""},
		{header(`3","coppice":{"meta":{"team":"tides"}}`), "", "tides"},
		{header(`4","coppice":{"meta":{"program":"codex"}}`), "codex", ""},
	} {
		r, err := Import(t.Context(), st, interop.Bytes("f", []byte(test.file+message)), options())
		if err != nil {
			t.Fatal(err)
		}
		s, err := st.Open(t.Context(), r.Session, nil)
		if err != nil {
			t.Fatal(err)
		}
		if meta := s.Info().Meta; meta[ProgramMeta] != test.program || meta["team"] != test.team {
			t.Errorf("%s: %v", test.file, meta)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
}

// Reading that fails in the middle leaves no session.
func TestAnImportThatFailsLeavesNothing(t *testing.T) {
	st := newStore(t)
	src := interop.Source{Name: "half", Open: func() (io.ReadCloser, error) { return io.NopCloser(&failing{p: session.JSONL()[:100_000]}), nil }}
	if _, err := Import(t.Context(), st, src, options()); !errors.Is(err, errDisk) {
		t.Errorf("error %v", err)
	}
	for sum, err := range st.List(t.Context(), coppice.ListOptions{}) {
		t.Errorf("%s is there, %v", sum.ID, err)
	}
}

var errDisk = errors.New("the disk is gone")

type failing struct{ p []byte }

func (f *failing) Read(p []byte) (int, error) {
	if len(f.p) == 0 {
		return 0, errDisk
	}
	n := copy(p, f.p)
	f.p = f.p[n:]
	return n, nil
}

func TestImport(t *testing.T) {
	st := newStore(t)
	var read int64
	o := options()
	o.Read = func(n int64) { read += n }
	res, err := Import(t.Context(), st, interop.Bytes("it", session.JSONL()), o)
	if err != nil {
		t.Fatal(err)
	}
	if res.Entries != 305 || res.BadLines != 0 || len(res.Diagnostics) != 0 || read != int64(len(session.JSONL())) {
		t.Errorf("%+v, %d bytes read", res, read)
	}
	o.Session = res.Session
	if _, err := Import(t.Context(), st, interop.Bytes("it", session.JSONL()), o); !errors.Is(err, fs.ErrExist) {
		t.Errorf("a taken id: %v", err)
	}
	if _, err := Import(t.Context(), st, interop.Bytes("prose", []byte("prose\n")), options()); !errors.Is(err, pi.ErrNotSession) {
		t.Errorf("prose: %v", err)
	}
	if _, err := Import(t.Context(), st, FromFile(filepath.Join(t.TempDir(), "no")), options()); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("no file: %v", err)
	}
}

// Transcripts of agents come behind the sessions that may have started them, however old they are.
func TestFindAgentsLast(t *testing.T) {
	dir := t.TempDir()
	begun := time.Date(2025, 1, 1, 0, 0, 0, 0, time.UTC)
	want := []string{"z.jsonl", "b.jsonl", "agent-2.jsonl", "agent-1.jsonl"}
	for i, name := range []string{"agent-2.jsonl", "z.jsonl", "agent-1.jsonl", "b.jsonl"} { // as they were changed
		file := filepath.Join(dir, name)
		at := begun.AddDate(0, 0, i)
		err := os.WriteFile(file, []byte("x"), 0o600)
		if err == nil {
			err = os.Chtimes(file, at, at)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	var got []string
	for _, f := range Find(t.Context(), []string{dir}) {
		got = append(got, filepath.Base(f.Path))
	}
	if !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}
