package importer

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	coppice "github.com/coppice-go/coppice"
	"github.com/coppice-go/coppice/backend"
	"github.com/coppice-go/coppice/backend/memory"
	"github.com/coppice-go/coppice/entry"
	"github.com/coppice-go/coppice/examples/session"
	"github.com/coppice-go/coppice/internal/fault"
	"github.com/coppice-go/coppice/internal/testutil"
	"github.com/coppice-go/coppice/interop"
	"github.com/coppice-go/coppice/interop/formats"
	"github.com/coppice-go/coppice/transcript"
)

// growing lets files go on in their sessions.
func growing() Options {
	o := options()
	o.Grow = true
	return o
}

// shown is what a user sees of a session.
type shown struct {
	Lines             []string
	Head, Title, Cwd  string
	Context, Original string
	Diagnostics       []string
	Updated           time.Time
}

func show(t *testing.T, st *coppice.Store, id string) shown { return showAs(t, st, id, "") }

// showAs is show by the rules of a profile.
func showAs(t *testing.T, st *coppice.Store, id string, by transcript.Profile) (is shown) {
	t.Helper()
	s, err := st.Open(t.Context(), id, &coppice.SessionOptions{ReadOnly: true, Profile: by})
	if err != nil {
		t.Fatal(err)
	}
	for e, err := range s.Entries(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		is.Lines = append(is.Lines, string(e.Raw))
	}
	is.Head, is.Title, is.Cwd, is.Updated = s.Head().Entry, s.Info().Title, s.Info().Cwd, s.Info().Updated
	c, err := s.Context(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for i := range c.Diagnostics {
		c.Diagnostics[i].Ordinal = 0 // commits have ordinals too, and those are others
	}
	text, err := json.Marshal(c)
	if err != nil {
		t.Fatal(err)
	}
	is.Context = string(text)
	tree, err := s.Tree(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range tree.Diagnostics() {
		is.Diagnostics = append(is.Diagnostics, d.Kind+" "+d.Entry)
	}
	var out bytes.Buffer
	if err := st.Export(t.Context(), id, &out); err != nil {
		t.Fatal(err)
	}
	is.Original = out.String()
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	return is
}

// files are sessions of every format.
func files(t *testing.T) map[string][]byte {
	t.Helper()
	all := map[string][]byte{"pi": session.JSONL()}
	for _, pattern := range []string{"claudecode/testdata/*.jsonl", "codex/testdata/*.jsonl", "pi/harness/testdata/*.jsonl"} {
		found, err := filepath.Glob("../../interop/" + pattern)
		if err != nil || len(found) == 0 {
			t.Fatal(pattern, err)
		}
		for _, name := range found {
			p, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			all[strings.TrimSuffix(filepath.Base(name), ".jsonl")+" of "+strings.Split(pattern, "/")[0]] = p
		}
	}
	for _, f := range []interop.Format{interop.Omp, interop.Atomic, interop.Operator, interop.ClaudeCode, interop.Codex} {
		begin := func() (interop.Reader, interop.Header) {
			r, err := formats.Open(interop.Bytes("f", session.JSONL()), interop.Pi, interop.Options{})
			if err != nil {
				t.Fatal(err)
			}
			h, err := r.Header()
			if err != nil {
				t.Fatal(err)
			}
			return r, h
		}
		_, h := begin()
		var out bytes.Buffer
		_, err := formats.Write(&out, f, h, func(yield func(transcript.Draft, error) bool) {
			r, _ := begin()
			for range 60 {
				if d, err := r.Next(); err != nil || !yield(d, nil) {
					return
				}
			}
		}, "")
		if err != nil {
			t.Fatal(f, err)
		}
		all["written as "+string(f)] = out.Bytes()
	}
	return all
}

// stores are new ones, one for each way to commit.
var stores = map[string]func() backend.Backend{
	"replace": func() backend.Backend { return memory.New() },
	"append":  func() backend.Backend { return memory.NewAppender() },
}

// A file that was imported before it was whole is one session afterwards, the same as if it had been imported once; or,
// where its beginning meant something else then, two, of which the second is that.
func TestGrows(t *testing.T) {
	testutil.SkipLong(t)
	const cuts = 7
	for name, whole := range files(t) {
		for kind, open := range stores {
			t.Run(name+"/"+kind, func(t *testing.T) {
				t.Parallel()
				o := growing()
				var err error
				if o.Format, err = formats.Told(interop.Bytes("f", whole)); err != nil {
					t.Fatal(err)
				}
				bring := func(st *coppice.Store, p []byte) (Result, error) {
					return Import(t.Context(), st, interop.Bytes("f", p), o)
				}
				st := storeOn(t, open())
				r, err := bring(st, whole)
				if err != nil {
					t.Fatal(err)
				}
				want := show(t, st, r.Session)
				lines, grew := bytes.SplitAfter(bytes.TrimSuffix(whole, []byte("\n")), []byte("\n")), 0
				for i := range cuts {
					cut := max(1, len(lines)*(i+1)/(cuts+1))
					st := storeOn(t, open())
					first, err := bring(st, bytes.Join(lines[:cut], nil))
					if err != nil {
						continue // no session yet
					}
					r, err := bring(st, whole)
					if err != nil {
						t.Fatalf("behind line %d: %v", cut, err)
					}
					if diff := cmp.Diff(want, show(t, st, r.Session)); diff != "" {
						t.Errorf("behind line %d: %+v:\n%s", cut, r, diff)
					}
					if r.Grew != (r.Session == first.Session) || r.Grew && r.Added != r.Entries-first.Entries {
						t.Errorf("behind line %d: %+v after %+v", cut, r, first)
					}
					if r.Grew {
						grew++
					}
					again, err := bring(st, whole)
					if err != nil || !again.Unchanged || again.Session != r.Session {
						t.Errorf("behind line %d: once more: %+v, %v after %+v", cut, again, err, r)
					}
				}
				if grew < cuts/3 {
					t.Errorf("%d of %d went on where they were", grew, cuts)
				}
			})
		}
	}
}

// Wherever a growth breaks off, what the session had is there, and the next import brings the rest; also where the
// file's bytes are kept in addition to its lines, because they differ.
func TestSizeGrowthBrokenOff(t *testing.T) {
	testutil.SkipLong(t)
	for name, end := range map[string]string{"lines": "\n", "original": "\r\n"} {
		short, whole := longFile(end)
		for kind, open := range stores {
			t.Run(name+"/"+kind, func(t *testing.T) {
				t.Parallel()
				for n := len(end) - 1; breakOff(t, open(), n, short, whole) > 0; n += 2 { // half of the writes each
					if n > 100 {
						t.Fatal("a growth writes over 100 times")
					}
				}
			})
		}
	}
}

// longFile is a file of which what is new takes two commits, and how it began.
func longFile(end string) (short, whole []byte) {
	whole = []byte(`{"type":"session","version":3,"id":"s","timestamp":"2026-01-01T00:00:00.000Z","cwd":"/w"}` + end)
	for i := range 9 {
		parent := "null"
		if i > 0 {
			parent = fmt.Sprintf(`"e%d"`, i-1)
		}
		bulk := 125_000 // seven of which are more than one commit of an import takes
		switch {
		case i < 2:
			bulk = 1
		case i == 2:
			short = bytes.Clone(whole)
		}
		whole = fmt.Appendf(whole, `{"type":"message","id":"e%d","parentId":%s,"timestamp":"2026-01-01T00:00:%02d.000Z","message":{"role":"user","content":%q,"timestamp":1}}`+end, i, parent, i, strings.Repeat("long ", bulk))
	}
	return short, whole
}

// breakOff lets all writes fail from the nth of a growth on, and returns how many failed.
func breakOff(t *testing.T, on backend.Backend, n int, short, whole []byte) (faults int) {
	t.Helper()
	b := fault.New(on, 1)
	st := storeOn(t, b)
	if _, err := Import(t.Context(), st, interop.Bytes("f", short), growing()); err != nil {
		t.Fatal(err)
	}
	b.Add(fault.Rule{
		When: func(c fault.Call) bool { return c.Op == "put" || c.Op == "append" },
		Skip: n, Count: -1, Outcome: backend.NotApplied, Err: fs.ErrPermission,
	})
	_, err := Import(t.Context(), st, interop.Bytes("f", whole), growing())
	faults = len(b.Faults())
	b.Clear()
	if got := show(t, st, "s"); !strings.HasPrefix(got.Original, string(short)) || !strings.HasPrefix(string(whole), got.Original) {
		t.Fatalf("call %d: %d bytes of the file are there", n, len(got.Original))
	}
	r, rerr := Import(t.Context(), st, interop.Bytes("f", whole), growing())
	if rerr != nil || r.Session != "s" || r.Entries != 9 {
		t.Fatalf("call %d: %v, then %+v, %v", n, err, r, rerr)
	}
	if got := show(t, st, "s"); len(got.Lines) != 9 || got.Original != string(whole) || got.Head != "e8" {
		t.Fatalf("call %d: %d lines, head %s", n, len(got.Lines), got.Head)
	}
	return faults
}

// An import fails only where entries are missing: closing a session whose checkpoint cannot be written loses nothing,
// and is reported apart.
func TestImportIsStoredWhereClosingFails(t *testing.T) {
	entries := func(id string, n int) (lines []byte) {
		const day = "2026-01-01T00:00:0"
		lines = fmt.Appendf(nil, `{"type":"session","version":3,"id":%q,"timestamp":"%s0.000Z"}`+"\n", id, day)
		for i := range n {
			lines = fmt.Appendf(lines, `{"type":"message","id":"e%d","parentId":null,"timestamp":"%s%d.000Z",`+
				`"message":{"role":"user","content":"x"}}`+"\n", i, day, i)
		}
		return lines
	}
	for _, before := range []int{0, 2} {
		reported := 0
		for n := range 20 { // writes that succeed
			b := fault.New(memory.NewAppender(), 1)
			st := storeOn(t, b)
			if before > 0 {
				if _, err := Import(t.Context(), st, interop.Bytes("f", entries("s", before)), growing()); err != nil {
					t.Fatal(err)
				}
			}
			b.Add(fault.Rule{
				When: func(c fault.Call) bool { return c.Op == "put" || c.Op == "append" },
				Skip: n, Count: -1, Outcome: backend.NotApplied, Err: syscall.ENOSPC,
			})
			o := growing()
			var closed error
			o.Closed = func(err error) { closed = err }
			res, err := Import(t.Context(), st, interop.Bytes("f", entries("s", 5)), o)
			faults := len(b.Faults())
			b.Clear()
			stored := uint64(0)
			if s, oerr := st.Open(t.Context(), "s", &coppice.SessionOptions{ReadOnly: true}); oerr == nil {
				stored = s.Info().Entries
				_ = s.Close()
			}
			if (stored == 5) != (err == nil) || err == nil && res.Entries != 5 {
				t.Errorf("%d before, write %d: %d are stored, %+v, %v", before, n, stored, res, err)
			}
			if closed != nil {
				reported++
				if !errors.Is(closed, syscall.ENOSPC) {
					t.Errorf("%d before, write %d: closing: %v", before, n, closed)
				}
			}
			if faults == 0 {
				break
			}
		}
		if reported == 0 {
			t.Errorf("%d before: no closing failed", before)
		}
	}
}

// An outcome that is unknown stays an error, and so does what is not an error of closing.
func TestOnlyClosing(t *testing.T) {
	full := &coppice.Error{Op: "close", Session: "s", Err: syscall.ENOSPC}
	for _, tt := range []struct {
		err  error
		want bool
	}{
		{nil, false},
		{full, true},
		{&coppice.Error{Op: "close", Session: "s", Err: coppice.ErrCommitUnknown}, false},
		{&coppice.Error{Op: "commit", Session: "s", Err: syscall.ENOSPC}, false},
		{syscall.ENOSPC, false},
	} {
		if got := OnlyClosing(tt.err); got != tt.want {
			t.Errorf("%v: %v", tt.err, got)
		}
	}
}

// A session that was used stays as it is, and the file becomes another one; a session whose entries are others by now
// is imported from its beginning, and removed. In both cases one session takes all that comes later.
func TestGrowsApart(t *testing.T) {
	const head = `{"type":"session","version":3,"id":"s","timestamp":"2026-01-01T00:00:00.000Z","cwd":"/w"}` + "\n"
	line := func(id, parent string) string {
		return fmt.Sprintf(`{"type":"message","id":%q,"parentId":%s,"timestamp":"2026-01-01T00:00:01.000Z","message":{"role":"user","content":%q,"timestamp":1}}`+"\n", id, parent, "say "+id)
	}
	first := head + line("a", "null") + line("b", `"a"`)
	for name, c := range map[string]struct {
		short, whole string
		between      func(ctx context.Context, s *coppice.Session) error
	}{
		"the head was moved": {first, first + line("c", `"b"`), func(ctx context.Context, s *coppice.Session) error {
			_, err := s.Branch(ctx, "a", nil)
			return err
		}},
		"it was named": {first, first + line("c", `"b"`), func(ctx context.Context, s *coppice.Session) error {
			_, err := s.Append(ctx, entry.Title("mine"))
			if err == nil {
				_, err = s.Commit(ctx, coppice.Turn{})
			}
			return err
		}},
		"a parent came later":   {head + line("b", `"a"`), head + line("b", `"a"`) + line("a", "null"), nil},
		"a parent came twice":   {first, first + line("a", "null") + line("c", `"a"`), nil},
		"an entry is another's": {first, head + line("a", "null") + line("d", `"a"`) + line("b", `"a"`), nil},
	} {
		for kind, open := range stores {
			t.Run(name+"/"+kind, func(t *testing.T) {
				once, st := storeOn(t, open()), storeOn(t, open())
				bring := func(st *coppice.Store, text string) Result {
					r, err := Import(t.Context(), st, interop.Bytes("f", []byte(text)), growing())
					if err != nil {
						t.Fatal(err)
					}
					return r
				}
				want := show(t, once, bring(once, c.whole).Session)
				if r := bring(st, c.short); r.Session != "s" {
					t.Fatalf("%+v", r)
				}
				if c.between != nil {
					s, err := st.Open(t.Context(), "s", nil)
					if err == nil {
						err = errors.Join(c.between(t.Context(), s), s.Close())
					}
					if err != nil {
						t.Fatal(err)
					}
				}
				var before shown
				if c.between != nil || !strings.HasPrefix(c.whole, c.short) {
					before = show(t, st, "s")
				}
				other := bring(st, c.whole)
				if diff := cmp.Diff(want, show(t, st, other.Session)); other.Session == "s" || other.Grew || diff != "" {
					t.Errorf("%+v:\n%s", other, diff)
				}
				if c.between == nil && strings.HasPrefix(c.whole, c.short) {
					if _, err := st.Open(t.Context(), "s", nil); !errors.Is(err, coppice.ErrDeleted) {
						t.Errorf("the session of before: %v", err)
					}
				} else if diff := cmp.Diff(before, show(t, st, "s")); diff != "" {
					t.Errorf("the session is another:\n%s", diff)
				}
				if r := bring(st, c.whole+line("z", "null")); !r.Grew || r.Added != 1 || r.Session != other.Session {
					t.Errorf("then %+v", r)
				}
			})
		}
	}
}
