package formats

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	coppice "github.com/coppice-go/coppice"
	"github.com/coppice-go/coppice/backend/memory"
	"github.com/coppice-go/coppice/interop"
	"github.com/coppice-go/coppice/transcript"
)

// harnessFiles are sessions of pi's agent-core harness in both forms: a compaction with what it retained, another
// lane, and a name.
var harnessFiles = map[string]string{
	"transactions": lf(
		`{"v":4,"kind":"header","id":"h1","storageVersion":1,"createdAt":1767225600000,"cwd":"/w"}`,
		`[{"kind":"entry","id":"u1","parentId":null,"type":"message","message":{"role":"user","content":"one","timestamp":1},"seq":1,"timestamp":1767225600000},{"kind":"value","op":"set","seq":2,"namespace":"pi.branch.tip","key":"main","value":"u1"}]`,
		`{"kind":"value","op":"set","seq":3,"namespace":"pi.session.name","key":"","value":"N"}`,
		`[{"kind":"value","op":"set","seq":4,"namespace":"pi.branch.tip","key":"scout","value":"u1"},{"kind":"entry","id":"u2","parentId":"u1","type":"message","message":{"role":"user","content":"aside","timestamp":1},"seq":5,"timestamp":1767225600000},{"kind":"value","op":"set","seq":6,"namespace":"pi.branch.tip","key":"scout","value":"u2"}]`,
		`[{"kind":"entry","id":"c1","parentId":"u1","type":"compaction","summary":"SUM","retainedTail":[{"role":"user","content":"kept","timestamp":1}],"tokensBefore":3,"fromHook":false,"seq":7,"timestamp":1767225600000},{"kind":"value","op":"set","seq":8,"namespace":"pi.branch.tip","key":"main","value":"c1"}]`,
		`[{"kind":"entry","id":"u3","parentId":"u2","type":"message","message":{"role":"user","content":"aside again","timestamp":1},"seq":9,"timestamp":1767225600000},{"kind":"value","op":"set","seq":10,"namespace":"pi.branch.tip","key":"scout","value":"u3"}]`),
	"lanes": lf(
		`{"kind":"header","version":4,"id":"h2","createdAt":1767225600000,"cwd":"/w"}`,
		`{"kind":"entry","lane":"main","id":"u1","type":"message","message":{"role":"user","content":"one","timestamp":1},"parentId":null,"seq":1,"timestamp":1767225600000}`,
		`{"kind":"entry","lane":"main","id":"c1","type":"compaction","summary":"SUM","retainedTail":[{"role":"user","content":"kept","timestamp":1}],"tokensBefore":3,"parentId":"u1","seq":2,"timestamp":1767225600000}`,
		`{"kind":"lane","seq":3,"lane":"scout","leafId":"u1"}`,
		`{"kind":"entry","lane":"scout","id":"u2","type":"message","message":{"role":"user","content":"aside","timestamp":1},"parentId":"u1","seq":4,"timestamp":1767225600000}`),
}

// A file of pi's harness is detected as pi's by its content, under any name and also without its header.
func TestDetectHarness(t *testing.T) {
	for name, data := range harnessFiles {
		_, rest, _ := strings.Cut(data, "\n")
		for _, head := range []string{data, rest, "\ufeff" + data, data[:len(data)-9], data[:40] + "\n" + rest} {
			for _, path := range []string{"", "x.jsonl", "/home/u/.pi/agent/sessions/--w--/x.jsonl"} {
				if got := Detect([]byte(head), path); got != interop.Pi {
					t.Errorf("%s at %q is told as %q: %.60s", name, path, got, head)
				}
			}
		}
	}
}

// The right reader reads a file of either of pi's programs, with a detected or a given format; its source is opened
// once, and closed.
func TestOpenHarness(t *testing.T) {
	coding := lf(headers[interop.Pi][0], `{"type":"message","id":"u1","parentId":null,"timestamp":"2026-01-01T00:00:00.000Z","message":{"role":"user","content":"one"}}`)
	for _, tt := range []struct {
		data string
		want []string
	}{
		{harnessFiles["transactions"], []string{"SUM", "kept"}},
		{harnessFiles["lanes"], []string{"SUM", "kept"}},
		{coding, []string{"one"}},
	} {
		for _, f := range []interop.Format{"", interop.Pi} {
			opened, closed := 0, 0
			src := interop.Source{Name: "x", Open: func() (io.ReadCloser, error) {
				opened++
				return struct {
					io.Reader
					io.Closer
				}{strings.NewReader(tt.data), closer(func() error { closed++; return nil })}, nil
			}}
			s, err := tryRead(f, src)
			if err != nil {
				t.Fatal(err)
			}
			if s.reader.Close() != nil || closed != opened || f == interop.Pi && opened != 1 {
				t.Errorf("opened %d times, closed %d times", opened, closed)
			}
			if got := said(s.context(transcript.Coppice)); !cmp.Equal(got, tt.want) {
				t.Errorf("it says %q, want %q", got, tt.want)
			}
			if s.reader.Verbatim() != (tt.data == coding) {
				t.Error("which bytes are the file's is not said")
			}
		}
	}
	for _, err := range []error{io.ErrUnexpectedEOF, io.ErrNoProgress} {
		src := interop.Source{Name: "x", Open: func() (io.ReadCloser, error) { return nil, err }}
		if _, got := tryRead(interop.Pi, src); !errors.Is(got, err) {
			t.Errorf("%v, want %v", got, err)
		}
		src.Open = func() (io.ReadCloser, error) { return io.NopCloser(broken{err}), nil }
		if _, got := tryRead(interop.Pi, src); !errors.Is(got, err) {
			t.Errorf("%v, want %v", got, err)
		}
	}
}

type closer func() error

func (c closer) Close() error { return c() }

type broken struct{ err error }

func (b broken) Read([]byte) (int, error) { return 0, b.err }

// A file of the harness that was imported into a store opens at its main lane, and is exported unchanged.
func TestHarnessInAStore(t *testing.T) {
	st, err := coppice.New(memory.New(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := st.Close(); err != nil {
			t.Error(err)
		}
	}()
	for name, whole := range harnessFiles {
		for _, data := range []string{whole, whole[:len(whole)-9], whole + "\x00\x00", "x\n" + whole, whole + whole, strings.ReplaceAll(whole, "\n", "\r\n")} {
			id := importFile(t, st, interop.Pi, []byte(data))
			var out bytes.Buffer
			if err := st.Export(context.Background(), id, &out); err != nil || out.String() != data {
				t.Errorf("%s: %d bytes, %d came in, %v", name, out.Len(), len(data), err)
			}
			s, err := st.Open(context.Background(), id, nil)
			if err != nil {
				t.Fatal(err)
			}
			c, err := s.Context(context.Background())
			if err != nil || !cmp.Equal(said(c), []string{"SUM", "kept"}) {
				t.Errorf("%s opens at %q, %v", name, said(c), err)
			}
			if err := s.Close(); err != nil {
				t.Error(err)
			}
		}
	}
}

// A session from the harness can be written for every other program.
func TestWriteHarnessAsAny(t *testing.T) {
	for name, data := range harnessFiles {
		s := read(t, "", []byte(data))
		last := s.entries[len(s.entries)-1]
		for _, to := range written {
			text, _ := write(t, to, s, last.ParentID)
			got := said(read(t, to, []byte(text)).context(transcript.Coppice))
			if to != interop.Atomic && !cmp.Equal(got, []string{"SUM", "kept"}) {
				t.Errorf("%s as %s says %q", name, to, got)
			}
		}
	}
}

// Entries are appended to a file in its own form; to a damaged one nothing is.
func TestContinueHarness(t *testing.T) {
	for name, data := range harnessFiles {
		s := read(t, "", []byte(data))
		head := s.entries[len(s.entries)-1].ParentID
		known := len(s.entries)
		s.drafts = append(s.drafts, transcript.Draft{Raw: fmt.Appendf(nil, `{"type":"message","id":"q1","parentId":%q,"timestamp":"2026-02-01T00:00:00.000Z","message":{"role":"user","content":"more","timestamp":1769904000000}}`, head)})
		var out bytes.Buffer
		losses, err := Continue(&out, interop.Pi, strings.NewReader(data), s.header, known, s.seq(), "q1")
		if err != nil || len(losses) > 0 || !strings.HasPrefix(out.String(), data) {
			t.Fatalf("%s: %v, %v\n%s", name, losses, err, out.String())
		}
		if got := said(read(t, "", out.Bytes()).context(transcript.Coppice)); !cmp.Equal(got, []string{"SUM", "kept", "more"}) {
			t.Errorf("%s says %q\n%s", name, got, out.String()[len(data):])
		}
		for _, original := range []io.Reader{strings.NewReader(data[:len(data)-1]), strings.NewReader(data + "x\n"), bytes.NewBufferString(data)} {
			out.Reset()
			if _, err := Continue(&out, interop.Pi, original, s.header, known, s.seq(), "q1"); !errors.Is(err, ErrNoAppend) || out.Len() > 0 {
				t.Errorf("%s: %v, and %d bytes are written", name, err, out.Len())
			}
		}
	}
}
