package atomic

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/coppice-go/coppice/interop"
	"github.com/coppice-go/coppice/interop/internal/readtest"
	"github.com/coppice-go/coppice/transcript"
)

var lf = readtest.Lines

func readAll(r *Reader) (h interop.Header, entries []transcript.Entry, err error) {
	h, lines, err := readtest.All(r)
	for i, l := range lines {
		entries = append(entries, l.Entry(uint64(i)))
	}
	return h, entries, err
}

func open(data []byte) *Reader {
	return NewReader(interop.Bytes("x", data), interop.Options{Now: readtest.Now})
}

const (
	header  = `{"type":"session","version":3,"id":"s","timestamp":"2026-01-01T00:00:00.000Z","cwd":"/w","internal":true,"workflow":{"runId":"r","stageId":"i","stageName":"n"}}`
	user    = `{"type":"message","id":"u","parentId":null,"timestamp":"2026-01-01T00:00:01.000Z","message":{"role":"user","content":"q","timestamp":1}}`
	inert   = `{"type":"compaction","id":"c","parentId":"u","timestamp":"2026-01-01T00:00:02.000Z","summary":"S","firstKeptEntryId":null,"tokensBefore":1}`
	retired = `{"type":"context_compaction","id":"x","parentId":"c","timestamp":"2026-01-01T00:00:03.000Z","promptVersion":1,"deletedTargets":["u"],"protectedEntryIds":[],"stats":{}}`
	summed  = `{"type":"session_summary","id":"y","parentId":"x","timestamp":"2026-01-01T00:00:04.000Z","summary":"s","summarizedThroughId":"u"}`
	hidden  = `{"type":"custom_message","id":"z","parentId":"y","timestamp":"2026-01-01T00:00:05.000Z","customType":"k","content":"c","display":false,"excludeFromContext":true}`
	active  = `{"type":"compaction","id":"v","parentId":"z","timestamp":"2026-01-01T00:00:06.000Z","summary":"LINES","firstKeptEntryId":null,"tokensBefore":1,"details":{"strategy":"verbatim-lines"}}`
)

// Lines stay unchanged, and the profile builds atomic's own context of them.
func TestContext(t *testing.T) {
	data := lf(header, user, inert, retired, summed, hidden, active)
	r := open([]byte(data))
	h, entries, err := readAll(r)
	if err != nil || !r.Verbatim() || string(h.Raw) != header || len(entries) != 6 {
		t.Fatalf("%d entries, verbatim %v, %v", len(entries), r.Verbatim(), err)
	}
	roles := func(n int) (out []string) {
		for _, m := range transcript.BuildContext(entries[:n], transcript.Atomic).Messages {
			out = append(out, m.Role)
		}
		return out
	}
	for n, want := range map[int][]string{1: {"user"}, 2: {"user"}, 3: {"user"}, 4: {"user"}, 5: {"user", "custom"}, 6: {"custom"}} {
		if diff := cmp.Diff(want, roles(n)); diff != "" {
			t.Errorf("after %d entries:\n%s", n, diff)
		}
	}
}

// FuzzReader: whatever the bytes, reading ends, and a file that is called verbatim is given back.
func FuzzReader(f *testing.F) {
	for _, s := range []string{"", lf(header, user, inert, retired), lf(header, summed, hidden, active), lf(header, active) + user[:40], strings.Repeat("{", 50)} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		Detect(data)
		r := open(data)
		h, entries, err := readAll(r)
		if err != nil {
			if !errors.Is(err, interop.ErrNotSession) {
				t.Fatal(err)
			}
			return
		}
		rebuilt := string(h.Raw) + "\n"
		var lines []transcript.Line
		for _, e := range entries {
			rebuilt += string(e.Raw) + "\n"
			l, err := transcript.ParseLine(e.Raw)
			if err != nil {
				t.Fatal(err)
			}
			lines = append(lines, l)
		}
		if r.Verbatim() && rebuilt != string(data) {
			t.Fatalf("verbatim, but %q became %q", data, rebuilt)
		}
		transcript.ResolveParents(lines)
		transcript.BuildContext(entries, transcript.Atomic)
	})
}
