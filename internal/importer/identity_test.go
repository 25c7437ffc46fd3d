package importer

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	coppice "github.com/coppice-go/coppice"
	"github.com/coppice-go/coppice/backend"
	"github.com/coppice-go/coppice/backend/memory"
	"github.com/coppice-go/coppice/examples/session"
	"github.com/coppice-go/coppice/internal/fault"
	"github.com/coppice-go/coppice/internal/testutil"
	"github.com/coppice-go/coppice/internal/trace"
	"github.com/coppice-go/coppice/interop"
)

// take imports all that is in a folder, as the command does, and returns the results.
func take(t *testing.T, st *coppice.Store, o Options, paths ...string) (list []Result) {
	t.Helper()
	var b Batch
	for _, f := range Find(t.Context(), paths) {
		if f.Beside || b.Contains(f.Path) {
			continue
		}
		r, err := b.Import(t.Context(), st, f, o)
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, r)
	}
	return list
}

// writeFile writes a file, with folders, that was changed at a time.
func writeFile(t *testing.T, path string, p []byte, changed time.Time) {
	t.Helper()
	err := os.MkdirAll(filepath.Dir(path), 0o755)
	if err == nil {
		err = os.WriteFile(path, p, 0o600)
	}
	if err == nil {
		err = os.Chtimes(path, changed, changed)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// piFile is a small session of pi.
func piFile(i int) (id string, text []byte) {
	id = fmt.Sprintf("019cadab-0000-7000-8000-%012d", i)
	return id, fmt.Appendf(nil,
		`{"type":"session","version":3,"id":%q,"timestamp":"2026-01-01T00:00:00.000Z","cwd":"/w"}`+"\n"+
			`{"type":"message","id":"a","parentId":null,"timestamp":"2026-01-01T00:00:01.000Z",`+
			`"message":{"role":"user","content":"hi"}}`+"\n", id)
}

// Files with the size and time of their import are not read, and cost at most two reads of the store each.
func TestKnownFiles(t *testing.T) {
	testutil.SkipLong(t)
	const files = 300
	then := time.Unix(1_700_000_000, 5)
	for name, b := range map[string]backend.Backend{"append": memory.NewAppender(), "replace": memory.New()} {
		t.Run(name, func(t *testing.T) {
			dir, counted := t.TempDir(), trace.New(b)
			for i := range files {
				id, text := piFile(i)
				writeFile(t, filepath.Join(dir, "2026-01-01T00-00-00-000Z_"+id+".jsonl"), text, then)
			}
			st := storeOn(t, counted)
			if got := take(t, st, growing(), dir); len(got) != files {
				t.Fatalf("%d files", len(got))
			}
			for _, f := range Find(t.Context(), []string{dir}) { // a reader would report these
				writeFile(t, f.Path, bytes.Repeat([]byte("x"), int(f.Size)), then)
			}
			counted.Reset()
			stats := countStats(t)
			for _, r := range take(t, st, growing(), dir) {
				if !r.Unchanged || r.Entries != 1 || r.Format != "pi" {
					t.Fatalf("%+v", r)
				}
			}
			if io := counted.IO(); io.Get > 2*files || io.Stat+io.List+io.Put+io.Append > 0 {
				t.Errorf("%d files cost %+v", files, io)
			}
			if *stats != files+1 { // of the folder too
				t.Errorf("%d files cost %d calls of stat", files, *stats)
			}
		})
	}
}

// countStats counts calls of stat until the test ends.
func countStats(t *testing.T) *int {
	t.Helper()
	n := 0
	stat = func(path string) (os.FileInfo, error) {
		n++
		return os.Stat(path)
	}
	t.Cleanup(func() { stat = os.Stat })
	return &n
}

// Files with another time and the same content are compared once: one write for each, and the next import reads nothing
// of them. A session that was used here is not written to.
func TestTouchedFiles(t *testing.T) {
	const files = 10
	for name, b := range map[string]backend.Backend{"append": memory.NewAppender(), "replace": memory.New()} {
		t.Run(name, func(t *testing.T) {
			dir, counted := t.TempDir(), trace.New(b)
			ids := make([]string, files)
			for i := range files {
				id, text := piFile(i)
				ids[i] = id
				writeFile(t, filepath.Join(dir, "t_"+id+".jsonl"), text, time.Unix(1, 0))
			}
			st := storeOn(t, counted)
			take(t, st, growing(), dir)
			add(t, st, ids[0])
			list := Find(t.Context(), []string{dir})
			touch := func(p []byte) {
				for _, f := range list {
					text := p
					if text == nil {
						text = testutil.Must(os.ReadFile(f.Path))(t)
					}
					writeFile(t, f.Path, text[:f.Size], time.Unix(2, 0))
				}
			}
			touch(nil)
			counted.Reset()
			for _, r := range take(t, st, growing(), dir) {
				if !r.Unchanged {
					t.Fatalf("%+v", r)
				}
			}
			appends := map[string]int{"append": files - 1}[name] // a store that appends puts the checkpoint at the end
			if io := counted.IO(); io.Put != files-1 || io.Append != appends || io.List+io.Stat > 0 {
				t.Errorf("%d files that were touched cost %+v", files, io)
			}
			if err := os.Remove(filepath.Join(dir, "t_"+ids[0]+".jsonl")); err != nil {
				t.Fatal(err)
			}
			list = Find(t.Context(), []string{dir})
			touch(bytes.Repeat([]byte("x"), 1000)) // a reader would report these
			counted.Reset()
			for _, r := range take(t, st, growing(), dir) {
				if !r.Unchanged || r.Entries != 1 {
					t.Fatalf("%+v", r)
				}
			}
			if io := counted.IO(); io.Get > 2*files || io.Stat+io.List+io.Put+io.Append > 0 {
				t.Errorf("%d files cost %+v", files, io)
			}
			for i, id := range ids {
				var out bytes.Buffer
				_, text := piFile(i)
				if err := st.Export(t.Context(), id, &out); err != nil || out.String() != string(text) {
					t.Errorf("%s: %s, %v", id, &out, err)
				}
			}
		})
	}
}

// Of a file that was touched or has grown the beginning and the end of what was imported are compared; verify
// compares all of it.
func TestEditedFiles(t *testing.T) {
	testutil.SkipLong(t)
	ends := lineEnds(session.JSONL())
	less := session.JSONL()[:ends[len(ends)-9]]
	middle := bytes.Clone(less)
	copy(middle[checkpointMiddle(less):], "EDITED")
	for _, c := range []struct {
		name      string
		then, now []byte
		verify    bool
		same      bool // it is the same session
	}{
		{"touched", less, less, false, true},
		{"touched, all compared", less, less, true, true},
		{"grown", less, session.JSONL(), false, true},
		{"grown, all compared", less, session.JSONL(), true, true},
		{"edited in the middle", less, middle, false, true},
		{"edited in the middle, all compared", less, middle, true, false},
		{"edited at the beginning", less, append([]byte(" "), less[:len(less)-1]...), false, false},
		{"edited at the end", less, append(bytes.Clone(less[:len(less)-2]), " \n"...), false, false},
		{"a copy from earlier", session.JSONL(), less, false, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			file, st, o := filepath.Join(t.TempDir(), "s.jsonl"), newStore(t), growing()
			writeFile(t, file, c.then, time.Unix(1, 0))
			first := take(t, st, o, file)[0]
			writeFile(t, file, c.now, time.Unix(2, 0))
			o.Verify = c.verify
			second := take(t, st, o, file)[0]
			if same := second.Session == first.Session && second.Unchanged != second.Grew; same != c.same {
				t.Errorf("%+v after %+v", second, first)
			}
		})
	}
}

// checkpointMiddle is an offset in the middle of a file, within a word.
func checkpointMiddle(p []byte) int {
	at := len(p) / 2
	return at + bytes.Index(p[at:], []byte("content")) + len(`content":[{"`)
}

// An import that is cancelled or fails in the middle leaves no tombstone: the next one completes the session under the
// file's own id.
func TestImportThatIsBrokenOff(t *testing.T) {
	testutil.SkipLong(t)
	for format, skips := range map[interop.Format][]int{interop.Pi: {1, 4}, interop.ClaudeCode: {2}} {
		raw := benchFile(format, 9<<20)
		whole := storeOn(t, memory.NewAppender())
		r, err := Import(t.Context(), whole, interop.Bytes("f", raw), growing())
		if err != nil {
			t.Fatal(err)
		}
		want := storedOf(t, whole, r, false)
		for _, op := range []string{"append", "put"} {
			for _, skip := range skips {
				var b backend.Backend = memory.New()
				if op == "append" {
					b = memory.NewAppender()
				}
				faulty := fault.New(b, 1)
				st := storeOn(t, faulty)
				faulty.Add(fault.Rule{When: fault.On(op, ""), Skip: skip, Err: context.Canceled, Kind: fault.Before})
				_, err := Import(t.Context(), st, interop.Bytes("f", raw), growing())
				if err == nil {
					break
				}
				if !errors.Is(err, context.Canceled) {
					t.Fatalf("%s, %s %d: %v", format, op, skip, err)
				}
				r, err := Import(t.Context(), storeOn(t, b), interop.Bytes("f", raw), growing())
				if err != nil || r.Session != "bench" {
					t.Fatalf("%s, %s %d: %+v, %v", format, op, skip, r, err)
				}
				if skip != 2 {
					continue // to compare all of a session takes time
				}
				if diff := cmp.Diff(want, storedOf(t, storeOn(t, b), r, false)); diff != "" {
					t.Fatalf("%s, %s %d: %s", format, op, skip, diff)
				}
			}
		}
	}
}

// A session is not read while its agents' files did not change either; one that did, or is new, is imported.
func TestKnownAgents(t *testing.T) {
	st, file := newStore(t), agents(t, "", "")
	dir := filepath.Dir(file)
	first := take(t, st, growing(), dir)
	if len(first) != 1 || len(first[0].Children) != 1 {
		t.Fatalf("%+v", first)
	}
	again := take(t, st, growing(), dir)
	if len(again) != 1 || !again[0].Unchanged || len(again[0].Files) != 1 {
		t.Fatalf("%+v", again)
	}
	agent := filepath.Join(dir, stem(file), "subagents", "agent-ab12.jsonl")
	p, err := os.ReadFile(agent)
	if err != nil {
		t.Fatal(err)
	}
	writeFile(t, agent, append(p, said(1)...), time.Unix(9, 0))
	if r := take(t, st, growing(), file)[0]; !r.Unchanged || len(r.Children) != 1 {
		t.Errorf("an agent that went on: %+v", r)
	}
	writeFile(t, filepath.Join(filepath.Dir(agent), "agent-cd34.jsonl"),
		bytes.ReplaceAll(p, []byte("ab12"), []byte("cd34")), time.Unix(9, 0))
	if r := take(t, st, growing(), file)[0]; !r.Unchanged || len(r.Children) != 1 {
		t.Errorf("a new agent: %+v", r)
	}
	if r := take(t, st, growing(), dir); len(r) != 1 || len(r[0].Children) != 0 || len(r[0].Files) != 2 {
		t.Errorf("nothing new: %+v", r)
	}
}

// The file of an agent whose session is not in the folder is a file of its own, whenever it is imported.
func TestAgentsOfOtherSessions(t *testing.T) {
	st, file := newStore(t), agents(t, "", "")
	dir := filepath.Dir(file)
	p, err := os.ReadFile(filepath.Join(dir, stem(file), "subagents", "agent-ab12.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	p = bytes.ReplaceAll(bytes.ReplaceAll(p, []byte("ab12"), []byte("cd34")), []byte("2222"), []byte("3333"))
	writeFile(t, filepath.Join(dir, "agent-cd34.jsonl"), p, time.Unix(9, 0))
	for _, known := range []bool{false, true} {
		list := take(t, st, growing(), dir)
		if len(list) != 2 {
			t.Fatalf("known %v: %+v", known, list)
		}
		for _, r := range list {
			if r.Unchanged != known {
				t.Errorf("known %v: %+v", known, r)
			}
		}
	}
}

// Two files with one id that differ in the middle are two sessions also where both grow: no import deletes the session
// of the other one.
func TestGrowthOfTwoFilesWithOneID(t *testing.T) {
	testutil.SkipLong(t)
	ends := lineEnds(session.JSONL())
	a := session.JSONL()[:ends[len(ends)-9]]
	b := bytes.Clone(session.JSONL())
	copy(b[checkpointMiddle(a):], "EDITED")
	dir, st, o := t.TempDir(), newStore(t), growing()
	first, second := filepath.Join(dir, "a.jsonl"), filepath.Join(dir, "b.jsonl")
	writeFile(t, first, a, time.Unix(1, 0))
	one := take(t, st, o, first)[0]
	for _, text := range [][]byte{b[:ends[len(ends)-5]], b[:ends[len(ends)-3]], b} {
		writeFile(t, second, text, time.Unix(2, 0))
		if r := take(t, st, o, second)[0]; r.Session == one.Session || len(r.Replaced) > 0 {
			t.Fatalf("%+v beside %s", r, one.Session)
		}
	}
	writeFile(t, first, session.JSONL(), time.Unix(3, 0))
	o.Verify = true
	if r := take(t, st, o, first)[0]; r.Session != one.Session || !r.Grew {
		t.Errorf("%+v after %+v", r, one)
	}
	if n := sessions(t, st); n != 2 {
		t.Errorf("%d sessions", n)
	}
}

// A session that was deleted because another one has its file now does not count as deleted by a user.
func TestReplacedIsNotDeleted(t *testing.T) {
	whole := session.JSONL()[:lineEnds(session.JSONL())[3]]
	st := newStore(t)
	first, err := Import(t.Context(), st, interop.Bytes("f", whole), growing())
	if err == nil {
		err = st.DropImport(t.Context(), first.Session, "")
	}
	if err != nil {
		t.Fatal(err)
	}
	r, err := Import(t.Context(), st, interop.Bytes("f", whole), growing())
	if err != nil || !r.Deleted.IsZero() || r.Entries != first.Entries {
		t.Errorf("%+v, %v", r, err)
	}
}

// Imports of one folder at the same time import each file once, and none fails.
func TestImportsAtTheSameTime(t *testing.T) {
	dir, b := t.TempDir(), memory.NewAppender()
	for i := range 30 {
		id, text := piFile(i)
		writeFile(t, filepath.Join(dir, "t_"+id+".jsonl"), text, time.Unix(1, 0))
	}
	var all sync.WaitGroup
	for range 3 {
		st := storeOn(t, b)
		all.Go(func() {
			var batch Batch
			for _, f := range Find(t.Context(), []string{dir}) {
				if _, err := batch.Import(t.Context(), st, f, growing()); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	if n := sessions(t, storeOn(t, b)); n != 30 {
		t.Errorf("%d sessions", n)
	}
}

// hooked calls before with the key of each object that is put.
type hooked struct {
	backend.Appender
	before func(key string)
}

func (h hooked) Put(ctx context.Context, key string, p []byte, c backend.Cond) (backend.Info, error) {
	h.before(key)
	return h.Appender.Put(ctx, key, p, c)
}

// An import that finds the id free, and is then overtaken by a whole import of the file, makes no second beginning of
// the session.
func TestAnImportThatIsOvertaken(t *testing.T) {
	id, text := piFile(1)
	b, once := memory.NewAppender(), sync.Once{}
	src := interop.Bytes("f", text)
	st := storeOn(t, hooked{b, func(key string) {
		if strings.HasPrefix(key, "sessions/"+id+"/transcript/") {
			once.Do(func() {
				if r, err := Import(t.Context(), storeOn(t, b), src, growing()); err != nil || r.Session != id {
					t.Errorf("%+v, %v", r, err)
				}
			})
		}
	}})
	o := growing()
	o.Closed = func(err error) { t.Error(err) }
	r, err := Import(t.Context(), st, src, o)
	if err != nil || !r.Unchanged || r.Session != id {
		t.Errorf("%+v, %v", r, err)
	}
	report, err := st.Verify(t.Context(), "", true)
	if err != nil || len(report.Problems) > 0 {
		t.Errorf("%+v, %v", report, err)
	}
}

// Another import that brings in the agents of a session while this one is at it makes no second session of them.
func TestAgentsAtTheSameTime(t *testing.T) {
	st, file := newStore(t), agents(t, "", "")
	src := FromFile(file)
	beside, again := src.Beside, true
	src.Beside = func(name string) (io.ReadCloser, error) {
		if n := sessions(t, st); n == 1 && again {
			again = false
			if r, err := Import(t.Context(), st, FromFile(file), growing()); err != nil || len(r.Children) != 1 {
				t.Errorf("%+v, %v", r, err)
			}
		}
		return beside(name)
	}
	if _, err := Import(t.Context(), st, src, growing()); err != nil || again {
		t.Fatal(again, err)
	}
	if n := sessions(t, st); n != 2 {
		t.Errorf("%d sessions", n)
	}
}

// The source of a session holds the hashes of what was imported.
func TestSource(t *testing.T) {
	changed := time.Unix(3, 7)
	for _, n := range []int{1, 100, 4 << 10, 64 << 10, 64<<10 + 1, 128 << 10, 200_000} {
		id, text := piFile(n)
		text = append(text[:len(text)-1], bytes.Repeat([]byte(" "), max(0, n-len(text)))...)
		text = append(text, '\n')
		file := filepath.Join(t.TempDir(), "s.jsonl")
		writeFile(t, file, text, changed)
		st := newStore(t)
		r := take(t, st, growing(), file)[0]
		s, err := st.Open(t.Context(), r.Session, &coppice.SessionOptions{ReadOnly: true})
		if err != nil {
			t.Fatal(err)
		}
		got := s.Info().Source
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		head, tail := text[:min(len(text), 4<<10)], text[max(0, len(text)-64<<10):]
		if got.Program != "pi" || got.Session != id || got.Bytes != int64(len(text)) || got.Size != int64(len(text)) ||
			!got.Changed.Equal(changed) || got.SHA256 != sum(text) || got.Head != sum(head) || got.Tail != sum(tail) {
			t.Errorf("%d bytes: %+v", len(text), got)
		}
	}
}
