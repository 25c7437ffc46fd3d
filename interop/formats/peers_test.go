package formats

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"testing"

	"github.com/google/go-cmp/cmp"

	coppice "github.com/coppice-go/coppice"
	"github.com/coppice-go/coppice/backend/memory"
	"github.com/coppice-go/coppice/entry"
	"github.com/coppice-go/coppice/internal/testutil"
	"github.com/coppice-go/coppice/interop"
	"github.com/coppice-go/coppice/transcript"
)

// The peers' own code and our reader with their profile return the same for a file.
func TestPeerVectors(t *testing.T) {
	var file struct {
		Vectors []struct {
			Name, Input string
			Observed    map[string]struct {
				Outcome  string
				Messages []string
				Entries  int
			}
		}
	}
	if err := json.Unmarshal(testutil.SharedFile(t, "vectors/context.json"), &file); err != nil {
		t.Fatal(err)
	}
	peers := map[string]interop.Format{"pi-1.5.2": interop.Pi, "pi-0.73.1": interop.Pi, "omp-18.2.9": interop.Omp, "atomic-2026-08": interop.Atomic}
	compared := 0
	for _, v := range file.Vectors {
		for peer, want := range v.Observed {
			f, ok := peers[peer]
			if !ok || want.Outcome != "ok" || v.Name == "no_header" {
				continue
			}
			s := read(t, f, []byte(v.Input))
			got := s.context(profiles[f])
			compared++
			if len(got.Messages) != len(want.Messages) || len(s.entries) != want.Entries {
				t.Errorf("%s, %s: %d messages of %d entries, the peer has %d of %d", v.Name, peer, len(got.Messages), len(s.entries), len(want.Messages), want.Entries)
			}
			// What was read can be written, and the peer sees the same of it.
			text, _ := write(t, f, s, s.last())
			back := read(t, f, []byte(text))
			if diff := cmp.Diff(said(got), said(back.context(profiles[f]))); diff != "" {
				t.Errorf("%s, %s: written and read again:\n%s", v.Name, peer, diff)
			}
		}
	}
	t.Logf("%d answers compared", compared)
}

// Real sessions are detected, read, and written in every format, with the same content.
func TestRealFiles(t *testing.T) {
	testutil.SkipLong(t)
	for _, name := range []string{"before-compaction.jsonl", "large-session.jsonl", "prompt-cache-replay-session.v1.jsonl"} {
		data := testutil.SharedFile(t, "fixtures/pi/"+name)
		if f := Detect(data[:min(len(data), headBytes)], name); f != interop.Pi {
			t.Errorf("%s is told as %q", name, f)
		}
		s := read(t, "", data)
		want := said(s.context(transcript.Coppice))
		for _, to := range []interop.Format{interop.Pi, interop.Omp} {
			text, losses := write(t, to, s, s.last())
			if len(losses) > 0 {
				t.Errorf("%s as %s: %v", name, to, losses)
			}
			if diff := cmp.Diff(want, said(read(t, to, []byte(text)).context(transcript.Coppice))); diff != "" {
				t.Errorf("%s as %s:\n%s", name, to, diff)
			}
		}
		for _, to := range []interop.Format{interop.Atomic, interop.Operator} {
			text, losses := write(t, to, s, s.last())
			if got := len(read(t, to, []byte(text)).context(transcript.Coppice).Messages); got != len(want) {
				t.Errorf("%s as %s: %d messages, %d wanted; %v", name, to, got, len(want), losses)
			}
		}
	}
}

// Imported into a store, every file comes out as it came in, damaged or not.
func TestOriginalBytes(t *testing.T) {
	st, err := coppice.New(memory.New(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := st.Close(); err != nil {
			t.Error(err)
		}
	}()
	slot := `{"type":"title","v":1,"title":"T","updatedAt":"x","pad":""}` + "\n"
	for _, f := range written {
		whole := lf(everyType(f, true)...)
		bare := lf(everyType(f, false)...)
		for name, data := range map[string]string{
			"whole": whole, "bare": bare, "title line": slot + whole, "torn": whole[:len(whole)-20], "NUL": whole + "\x00\x00\x00", "mark": "\ufeff" + whole,
			"double ids": whole + whole[bytes.IndexByte([]byte(whole), '\n')+1:], "no header": whole[bytes.IndexByte([]byte(whole), '\n')+1:],
			"blank lines": "\n" + bare + "\n\n", "garbage": "garbage\n" + whole,
		} {
			s := importFile(t, st, f, []byte(data))
			var out bytes.Buffer
			if err := st.Export(context.Background(), s, &out); err != nil || out.String() != data {
				t.Errorf("%s, %s: %d bytes, %d came in, %v", f, name, out.Len(), len(data), err)
			}
		}
	}
}

func importFile(t *testing.T, st *coppice.Store, f interop.Format, data []byte) string {
	t.Helper()
	r, err := Open(source("x", data), f, options())
	if err != nil {
		t.Fatal(err)
	}
	h, err := r.Header()
	if err != nil {
		t.Fatalf("%s: %v", f, err)
	}
	lines := func(yield func(transcript.Draft, error) bool) {
		if !yield(entry.Line(h.Raw), nil) {
			return
		}
		for {
			d, err := r.Next()
			if errors.Is(err, io.EOF) || !yield(d, err) || err != nil {
				return
			}
		}
	}
	o := &coppice.SessionOptions{Original: func() (io.Reader, error) {
		if r.Verbatim() {
			return nil, nil
		}
		return bytes.NewReader(data), nil
	}}
	s, err := st.Import(context.Background(), lines, o)
	if err != nil {
		t.Fatalf("%s: %v", f, err)
	}
	if err := errors.Join(s.Close(), r.Close()); err != nil {
		t.Fatal(err)
	}
	return s.ID()
}
