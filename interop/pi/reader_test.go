package pi

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/coppice-go/coppice/internal/testutil"
	"github.com/coppice-go/coppice/interop"
	"github.com/coppice-go/coppice/interop/internal/readtest"
	"github.com/coppice-go/coppice/transcript"
)

const (
	fileHeaderLine = `{"type":"session","version":3,"id":"s1","timestamp":"2026-01-01T00:00:00.000Z","cwd":"/x","extra":{"a":1}}`
	lineA          = `{"type":"message","id":"a","parentId":null,"timestamp":"2026-01-01T00:00:01.000Z","message":{"role":"user","content":"a"}}`
	lineB          = `{"type":"message","id":"b","parentId":"a","timestamp":"2026-01-01T00:00:02.000Z","message":{"role":"assistant","content":[{"type":"text","text":"b"}]}}`
	lineC          = `{"type":"message","id":"c","parentId":"b","timestamp":"2026-01-01T00:00:03.000Z","message":{"role":"user","content":"c"}}`
)

var lf = readtest.Lines

// TestDamagedFiles: damage never hides intact lines, all of it is reported, and Verbatim is correct.
func TestDamagedFiles(t *testing.T) {
	torn := lineC[:60]
	nul := strings.Repeat("\x00", 512)
	tests := []struct {
		name     string
		input    string
		ids      string
		bad      int
		kinds    string
		verbatim bool
	}{
		{"whole", lf(fileHeaderLine, lineA, lineB), "a b", 0, "", true},
		{"header only", lf(fileHeaderLine), "", 0, "", true},
		{"torn last line", lf(fileHeaderLine, lineA, lineB) + torn, "a b", 1, "torn-line", false},
		{"no final newline", lf(fileHeaderLine, lineA) + lineB, "a b", 0, "converted", false},
		{"torn header and nothing else", fileHeaderLine[:40], "!", 1, "torn-line", false},
		{"byte order mark", "\ufeff" + lf(fileHeaderLine, lineA), "a", 0, "converted", false},
		{"CR LF", strings.ReplaceAll(lf(fileHeaderLine, lineA, lineB), "\n", "\r\n"), "a b", 0, "converted", false},
		{"blank lines", lf(fileHeaderLine, "", lineA, "  ", lineB, ""), "a b", 0, "converted converted converted", false},
		{"white space around", lf(fileHeaderLine, " "+lineA+"\t", lineB), "a b", 0, "converted", false},
		{"white space inside stays", lf(fileHeaderLine, strings.ReplaceAll(lineA, `":`, `" : `)), "a", 0, "", true},
		{"NUL at the end", lf(fileHeaderLine, lineA) + nul, "a", 1, "bad-line", false},
		{"NUL before a line", lf(fileHeaderLine, lineA, nul+lineB, lineC), "a b c", 1, "bad-line", false},
		{"NUL after a torn line", lf(fileHeaderLine, lineA, torn+nul+lineB), "a b", 1, "bad-line converted", false},
		{"bad line in the middle", lf(fileHeaderLine, lineA, `{"type":"message","id":"x"`, lineB), "a b", 1, "bad-line", false},
		{"appended behind a torn line", lf(fileHeaderLine, lineA, torn+lineB, lineC), "a b c", 1, "bad-line converted", false},
		{"two lines without a newline between", lf(fileHeaderLine, lineA+lineB, lineC), "a b c", 0, "converted", false},
		{"values that are no objects", lf(fileHeaderLine, "42", "null", `"x"`, "[]", lineA), "a", 4, "bad-line bad-line bad-line bad-line", false},
		{"objects without a type", lf(fileHeaderLine, `{}`, `{"id":"x"}`, lineA), "a", 2, "bad-line bad-line", false},
		{"a type of the wrong kind", lf(fileHeaderLine, `{"type":7,"id":"x"}`, lineA), "a", 1, "bad-line", false},
		{"no header", lf(lineA, lineB), "a b", 0, "no-header", false},
		{"no header, bad first line", lf("garbage", lineA), "a", 1, "bad-line no-header", false},
		{"header after a bad line", lf("garbage", fileHeaderLine, lineA), "a", 1, "bad-line", false},
		{"two headers", lf(fileHeaderLine, lineA, fileHeaderLine, lineB), "a b", 0, "bad-line", false},
		{"version 99", lf(strings.Replace(fileHeaderLine, `:3`, `:99`, 1), lineA), "a", 0, "", true},
		{"version in quotes", lf(strings.Replace(fileHeaderLine, `:3`, `:"3"`, 1), lineA), "a", 0, "", true},
		{"version that is none", lf(strings.Replace(fileHeaderLine, `:3`, `:{}`, 1), lineA), "a", 0, "converted", false},
		{"header without an id", lf(`{"type":"session","version":3}`, lineA), "a", 0, "converted", false},
		{"title line first", lf(`{"type":"title","v":1,"title":"T","pad":"   "}`, fileHeaderLine, lineA), "a", 0, "converted", false},
		{"entry without an id", lf(fileHeaderLine, `{"type":"custom","parentId":null,"customType":"x"}`), "*", 0, "converted", false},
		{"self parent", lf(fileHeaderLine, strings.Replace(lineA, "null", `"a"`, 1)), "a", 0, "self-parent", true},
		{"a cycle", lf(fileHeaderLine, strings.Replace(lineA, "null", `"b"`, 1), lineB), "a b", 0, "cycle", true},
		{"the same id twice", lf(fileHeaderLine, lineA, lineA, lineB), "a a b", 0, "duplicate-id", true},
		{"child before parent", lf(fileHeaderLine, lineB, lineA, lineC), "b a c", 0, "", true},
		{"an unknown parent", lf(fileHeaderLine, lineB), "b", 0, "orphan", true},
		{"nested too deeply", lf(fileHeaderLine, `{"type":"custom","id":"x","data":`+strings.Repeat("[", 600)+strings.Repeat("]", 600)+`}`, lineA), "a", 1, "bad-line", false},
		{"empty", "", "!", 0, "", false},
		{"nothing but blank lines", "\n\n  \n", "!", 0, "converted converted converted", false},
		{"plain text", lf("Dear diary,", "today I wrote no JSON."), "!", 2, "bad-line bad-line", false},
		{"one pretty-printed document", "{\n  \"type\": \"session\",\n  \"messages\": [\n    {\n      \"id\": \"a\"\n    }\n  ]\n}\n", "!", 8, "bad-line converted" + strings.Repeat(" bad-line", 7), false},
		{"another program's JSONL", lf(`{"timestamp":"2026-01-01T00:00:00Z","type":"session_meta","payload":{}}`, `{"type":"user","uuid":"x","message":{"role":"user"}}`), "!", 2, "bad-line bad-line", false},
		{"one JSON array", `[{"type":"message"}]`, "!", 1, "torn-line", false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			f, err := tryReadFile(strings.NewReader(tt.input))
			var ids, kinds []string
			for _, e := range f.entries {
				if e.ID == "" || e.Type == "" {
					t.Errorf("entry without id or type: %s", e.Raw)
				}
				ids = append(ids, e.ID)
			}
			got := strings.Join(ids, " ")
			switch {
			case err != nil && !errors.Is(err, ErrNotSession):
				t.Fatal(err)
			case err != nil:
				got = "!"
				f.diag = f.reader.Diagnostics()
				if !strings.HasPrefix(err.Error(), "not a session file: ") {
					t.Errorf("error %q", err)
				}
			case tt.ids == "*" && len(ids) == 1:
				got = "*"
			}
			for _, d := range f.diag {
				kinds = append(kinds, d.Kind)
			}
			if got != tt.ids || f.reader.BadLines() != tt.bad || strings.Join(kinds, " ") != tt.kinds || f.reader.Verbatim() != tt.verbatim {
				t.Errorf("ids %q, %d bad, verbatim %v, diagnostics %v", got, f.reader.BadLines(), f.reader.Verbatim(), f.diag)
			}
			if f.reader.Verbatim() && rebuilt(f) != tt.input {
				t.Error("verbatim, and yet the lines are not the file")
			}
		})
	}
}

// rebuilt joins header and entries as a session would store them.
func rebuilt(f sessionFile) string {
	lines := []string{string(f.header.Raw)}
	for _, e := range f.entries {
		lines = append(lines, string(e.Raw))
	}
	return lf(lines...)
}

func TestFileHeader(t *testing.T) {
	tests := []struct {
		name, first string
		want        interop.Header
	}{
		{
			"version 3", `{"type":"session","version":3,"id":"s","timestamp":"2026-01-01T00:00:00.000Z","cwd":"/w","parentSession":"p"}`,
			interop.Header{Version: 3, ID: "s", Cwd: "/w", Parent: "p"},
		},
		{
			"version 1", `{"type":"session","id":"s","timestamp":"2026-01-01T00:00:00.000Z","cwd":"/w","provider":"p","branchedFrom":"b"}`,
			interop.Header{Raw: []byte(`{"type":"session","version":3,"id":"s","timestamp":"2026-01-01T00:00:00.000Z","cwd":"/w","provider":"p","branchedFrom":"b"}`), Version: 1, ID: "s", Cwd: "/w", Parent: "b"},
		},
		{
			"version 2", `{"type":"session","version":2,"id":"s","timestamp":"2026-01-01T00:00:00.000Z"}`,
			interop.Header{Raw: []byte(`{"type":"session","version":3,"id":"s","timestamp":"2026-01-01T00:00:00.000Z"}`), Version: 2, ID: "s"},
		},
		{"omp", `{"type":"session","version":3,"id":"s","timestamp":"2026-01-01T00:00:00.000Z","title":"T","cwd":5}`, interop.Header{Version: 3, ID: "s", Title: "T"}},
		{"made", lineB, interop.Header{Version: 3, Made: true}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			f := NewReader(strings.NewReader(lf(tt.first)), testNow)
			got, err := f.Header()
			if err != nil {
				t.Fatal(err)
			}
			if l, err := transcript.ParseLine(got.Raw); err != nil || l.ID != got.ID || l.Type != "session" {
				t.Errorf("header line %s: %v", got.Raw, err)
			}
			if got.Created.IsZero() || got.Created.Year() != 2026 {
				t.Errorf("created %v", got.Created)
			}
			if tt.want.Raw == nil && !got.Made {
				tt.want.Raw = []byte(tt.first)
			}
			if got.Made {
				tt.want.ID, tt.want.Raw = got.ID, got.Raw
			}
			tt.want.Created = got.Created
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if again, err := f.Header(); err != nil || again.ID != got.ID {
				t.Errorf("asked again: %v, %v", again.ID, err)
			}
		})
	}
}

// TestMigration pins the lines that version 1 and 2 become.
func TestMigration(t *testing.T) {
	v1 := lf(`{"type":"session","id":"s"}`,
		`{"type":"message","timestamp":"2025-01-01T00:00:00.000Z","message":{"role":"user","content":"q", "n":1.0},"x":[1]}`,
		`{"type":"compaction","timestamp":"2025-01-01T00:00:01.000Z","summary":"S","firstKeptEntryIndex":1,"tokensBefore":5}`,
		`{"type":"compaction","summary":"header","firstKeptEntryIndex":0}`,
		`not JSON: does not count`,
		`{"type":"compaction","summary":"itself","firstKeptEntryIndex":4}`,
		`{"type":"compaction","summary":"ahead","firstKeptEntryIndex":6}`,
		`{"type":"compaction","summary":"odd","firstKeptEntryIndex":1.5}`,
		`{"type":"custom","id":"own","parentId":null}`,
		`{"type":"message","message":{"role":"hookMessage","content":"h"}}`)
	f := readFile(t, []byte(v1))
	id := func(i int) string { return f.entries[i].ID }
	want := []string{
		`{"type":"message","id":"` + id(0) + `","parentId":null,"timestamp":"2025-01-01T00:00:00.000Z","message":{"role":"user","content":"q", "n":1.0},"x":[1]}`,
		`{"type":"compaction","id":"` + id(1) + `","parentId":"` + id(0) + `","timestamp":"2025-01-01T00:00:01.000Z","summary":"S","tokensBefore":5,"firstKeptEntryId":"` + id(0) + `"}`,
		`{"type":"compaction","id":"` + id(2) + `","parentId":"` + id(1) + `","summary":"header"}`,
		`{"type":"compaction","id":"` + id(3) + `","parentId":"` + id(2) + `","summary":"itself","firstKeptEntryId":"` + id(3) + `"}`,
		`{"type":"compaction","id":"` + id(4) + `","parentId":"` + id(3) + `","summary":"ahead"}`,
		`{"type":"compaction","id":"` + id(5) + `","parentId":"` + id(4) + `","summary":"odd"}`,
		`{"type":"custom","id":"own","parentId":null}`,
		`{"type":"message","id":"` + id(7) + `","parentId":"own","message":{"role":"custom","content":"h"}}`,
	}
	var got []string
	for _, e := range f.entries {
		got = append(got, string(e.Raw))
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("lines (-want +got):\n%s", diff)
	}
	if !strings.HasPrefix(id(0), "01941f29-7c00-7") { // 2025-01-01 in milliseconds: ids sort by the entries' own time
		t.Errorf("id %s", id(0))
	}
	if again := readFile(t, []byte(v1)); rebuilt(again) != rebuilt(f) {
		t.Error("equal input, clock and randomness give other bytes")
	}
	once := readFile(t, []byte(rebuilt(f)))
	if !once.reader.Verbatim() || rebuilt(once) != rebuilt(f) {
		t.Error("what was converted is not stable")
	}
	v2 := readFile(t, []byte(lf(`{"type":"session","version":2,"id":"s"}`, lineA,
		`{"type":"message","id":"h","parentId":"a","message":{"role":"hookMessage","content":"h"}}`)))
	if got := string(v2.entries[1].Raw); got != `{"type":"message","id":"h","parentId":"a","message":{"role":"custom","content":"h"}}` {
		t.Errorf("version 2: %s", got)
	}
	if v2.reader.Verbatim() || string(v2.entries[0].Raw) != lineA {
		t.Errorf("version 2: verbatim %v, %s", v2.reader.Verbatim(), v2.entries[0].Raw)
	}
}

var fillBytes = bytes.Repeat([]byte("x"), 64<<10)

// fill reads as n bytes of x without holding them.
type fill struct{ n int64 }

func (f *fill) Read(p []byte) (int, error) {
	if f.n == 0 {
		return 0, io.EOF
	}
	n := copy(p[:min(int64(len(p)), f.n)], fillBytes)
	f.n -= int64(n)
	return n, nil
}

// TestHugeLine: a line of 200 MB passes through in bounded memory, and leaves a stub.
func TestHugeLine(t *testing.T) {
	if testing.Short() {
		t.Skip("reads 200 MB")
	}
	r := io.MultiReader(strings.NewReader(lf(fileHeaderLine, lineA)+`{"type":"message","id":"big","parentId":"a","timestamp":"2026-01-01T00:00:02.000Z","message":{"role":"user","content":"`),
		&fill{200 << 20}, strings.NewReader(`"}}`+"\n"+strings.Replace(lineC, `"b"`, `"big"`, 1)+"\n"))
	var f sessionFile
	var err error
	taken := testutil.Allocated(func() { f, err = tryReadFile(r) })
	if err != nil {
		t.Fatal(err)
	}
	if taken > 128<<20 {
		t.Errorf("%d MiB were allocated", taken>>20)
	}
	if len(f.entries) != 3 || f.reader.Verbatim() || f.diag[0].Kind != transcript.DiagOversize || f.diag[0].Ordinal != 3 {
		t.Fatalf("%d entries, %v", len(f.entries), f.diag)
	}
	want := fmt.Sprintf(`{"type":"message","id":"big","parentId":"a","timestamp":"2026-01-01T00:00:02.000Z","stub":{"bytes":%d,"limit":67108864}}`, 200<<20+len(`{"type":"message","id":"big","parentId":"a","timestamp":"2026-01-01T00:00:02.000Z","message":{"role":"user","content":""}}`))
	if got := string(f.entries[1].Raw); got != want {
		t.Errorf("stub %s\nwant %s", got, want)
	}
	if c := f.context(transcript.Coppice); len(c.Messages) != 2 || c.Diagnostics[0].Kind != transcript.DiagNoMessage {
		t.Errorf("context %v, %v", brief(c.Messages), c.Diagnostics)
	}
}

// TestOversizeEntry: an entry over 4 MiB without its images becomes a stub that keeps its structure.
func TestOversizeEntry(t *testing.T) {
	long := strings.Repeat("x", 5<<20)
	result := `{"type":"message","id":"r","parentId":"a","timestamp":"2026-01-01T00:00:02.000Z","message":{"role":"toolResult","toolCallId":"k","toolName":"n","content":[{"type":"text","text":"` + long + `"},{"type":"text","text":"short"}],"isError":false}}`
	image := `{"type":"message","id":"i","parentId":"r","message":{"role":"user","content":[{"type":"image","mimeType":"image/png","data":"` + strings.Repeat("AAAA", 5<<18) + `"}]}}`
	many := `{"type":"custom","data":[` + strings.Repeat(`"`+strings.Repeat("y", 1000)+`",`, 5000) + `1],"id":"m","parentId":"i"}`
	f := readFile(t, []byte(lf(fileHeaderLine, lineA, result, image, many)))
	if len(f.entries) != 4 {
		t.Fatalf("%d entries", len(f.entries))
	}
	want := fmt.Sprintf(`{"type":"message","id":"r","parentId":"a","timestamp":"2026-01-01T00:00:02.000Z","message":{"role":"toolResult","toolCallId":"k","toolName":"n",`+
		`"content":[{"type":"text","text":"[5242882 bytes left out, over the limit of 4194304 for an entry]"},{"type":"text","text":"short"}],"isError":false},"stub":{"bytes":%d,"limit":4194304}}`, len(result))
	if got := string(f.entries[1].Raw); got != want {
		t.Errorf("stub %.400s\nwant %s", got, want)
	}
	if string(f.entries[2].Raw) != image {
		t.Error("an image is no reason for a stub")
	}
	if e := f.entries[3]; e.ID != "m" || e.ParentID != "i" || len(e.Raw) > 2<<20 {
		t.Errorf("stub %s under %s of %d bytes", e.ID, e.ParentID, len(e.Raw))
	}
	var over []uint64
	for _, d := range f.diag {
		if d.Kind == transcript.DiagOversize {
			over = append(over, d.Ordinal)
		}
	}
	if !slices.Equal(over, []uint64{3, 5}) {
		t.Errorf("oversize lines %v", over)
	}
}

// TestReadErrors: an error of the reader below is passed on, once there and for ever.
func TestReadErrors(t *testing.T) {
	broken := errors.New("disk on fire")
	f := NewReader(io.MultiReader(strings.NewReader(lf(fileHeaderLine, lineA)+"{"), &failing{broken}), testNow)
	if _, err := f.Next(); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if _, err := f.Next(); !errors.Is(err, broken) || f.Verbatim() {
			t.Fatalf("error %v, verbatim %v", err, f.Verbatim())
		}
	}
}

type failing struct{ err error }

func (f *failing) Read([]byte) (int, error) { return 0, f.err }

// TestNoiseIsGivenUp: a file of noise is not read to its end for a header.
func TestNoiseIsGivenUp(t *testing.T) {
	r := strings.NewReader(strings.Repeat("noise\n", 1_000_000))
	f := NewReader(r, testNow)
	_, err := f.Header()
	if !errors.Is(err, ErrNotSession) || r.Len() < 5_000_000 {
		t.Errorf("error %v with %d bytes left", err, r.Len())
	}
	if d := f.Diagnostics(); len(d) != 101 || d[100].Detail != "900 more" {
		t.Errorf("%d diagnostics", len(d))
	}
}

// FuzzFileReader: for any bytes, reading ends without a panic and returns only valid entries, and the lines of a
// verbatim file are its bytes.
func FuzzFileReader(f *testing.F) {
	for _, s := range []string{
		"", lf(fileHeaderLine, lineA, lineB), lf(fileHeaderLine, lineA) + lineB[:70], lf(lineA), "\ufeff" + lf(fileHeaderLine),
		lf(fileHeaderLine, lineA[:50]+lineB, "", "\x00\x00", lineC), lf(`{"type":"session","id":"s"}`, `{"type":"compaction","firstKeptEntryIndex":1e300}`, `{"type":"message","message":{"role":"hookMessage"}}`),
		lf(`{"type":"session","version":-1e9}`, `{"type":"x"}`), lf(`{"type":"session","version":3,"id":"\ud800"}`, `{"type":"\u0000","id":"\n","parentId":{}}`),
		lf(`{"type":"title","title":"t"}`, `{"type":"session","version":3,"id":"s"}`), "{\n}\n", lf(fileHeaderLine, strings.Replace(lineA, "null", `"a"`, 1), lineA, lineB),
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		file, err := tryReadFile(bytes.NewReader(data))
		if err != nil {
			if !errors.Is(err, ErrNotSession) {
				t.Fatal(err)
			}
			return
		}
		if file.reader.Verbatim() && rebuilt(file) != string(data) {
			t.Fatalf("verbatim, but %q became %q", data, rebuilt(file))
		}
		if bytes.ContainsAny(file.header.Raw, "\n\r") {
			t.Fatalf("header %q", file.header.Raw)
		}
		for i, e := range file.entries {
			if e.Type == "" || bytes.IndexByte(e.Raw, '\n') >= 0 {
				t.Fatalf("entry %d: %q", i, e.Raw)
			}
			steps := 0
			for at := int64(i); at >= 0; at = file.parents[at] {
				if steps++; steps > len(file.entries) {
					t.Fatalf("a walk from %d does not end", i)
				}
			}
		}
		for _, p := range allProfiles {
			if len(file.entries) > 0 {
				file.context(p)
			}
		}
		again := readFile(t, []byte(rebuilt(file)))
		if rebuilt(again) != rebuilt(file) {
			t.Fatalf("not stable: %q became %q", rebuilt(file), rebuilt(again))
		}
	})
}
