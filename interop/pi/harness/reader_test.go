package harness

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/coppice-go/coppice/internal/testutil"
	"github.com/coppice-go/coppice/interop"
)

// A transaction with a user message on the main lane.
func say(id, parent string, seq int) string {
	return fmt.Sprintf(`[{"kind":"entry","id":%q,"parentId":%s,"type":"message","message":{"role":"user","content":%q,"timestamp":1},"seq":%d,"timestamp":1767225600000},{"kind":"value","op":"set","seq":%d,"namespace":"pi.branch.tip","key":"main","value":%q}]`,
		id, js(place(parent)), id, seq, seq+1, id)
}

// Damage is reported and hides nothing intact.
func TestDamage(t *testing.T) {
	head := headerOf(false)
	a, b, c := say("a", "", 1), say("b", "a", 3), say("c", "b", 5)
	whole := lf(head, a, b, c)
	for _, tt := range []struct {
		name, data, says, found string
		bad                     int
	}{
		{"none", whole, "abc", "", 0},
		{"a torn last line", whole + c[:60], "abc", "torn-line", 1},
		{"a last line without its end", strings.TrimSuffix(whole, "\n"), "abc", "converted", 0},
		{"a bad line", lf(head, a, "garbage", b, c), "abc", "bad-line", 1},
		{"a torn line in the middle", lf(head, a, b[:50], b, c), "abc", "bad-line", 1},
		{"one appended behind a torn one", lf(head, a, b[:50]+b, c), "abc", "bad-line converted", 1},
		{"a single write behind a torn one", lf(head, a, b, `{"kind":"entry","id":"c","parentId":"b","ty{"kind":"entry","id":"c","parentId":"b","type":"message","message":{"role":"user","content":"c"},"seq":5,"timestamp":1}`), "ab", "bad-line converted", 1}, // no word of its lane
		{"two on one line", lf(head, a+b, c), "abc", "converted", 0},
		{"NUL, as a crash leaves it", lf(head, a, b) + "\x00\x00\x00" + c + "\n\x00\x00", "abc", "bad-line bad-line", 2},
		{"CR LF", strings.ReplaceAll(whole, "\n", "\r\n"), "abc", "converted", 0},
		{"a byte order mark", "\ufeff" + whole, "abc", "converted", 0},
		{"blank lines", lf("", head, "", a, b, "", c, ""), "abc", "", 0},
		{"no header", lf(a, b, c), "abc", "no-header", 0},
		{"a torn header", lf(head[:30], a, b, c), "abc", "bad-line no-header", 1},
		{"garbage before the header", lf("x", head, a, b, c), "abc", "bad-line", 1},
		{"two headers", lf(head, a, head, b, c), "abc", "bad-line", 1},
		{"a gap", lf(head, a, b, say("c", "b", 99)), "abc", "", 0},
		{"numbers that go back", lf(head, a, b, say("c", "b", 2)), "abc", "noted noted", 0},
		{"a write without a number", lf(head, a, b, strings.ReplaceAll(strings.ReplaceAll(c, `"seq":5,`, ""), `"seq":6,`, "")), "abc", "noted", 0},
		{"the same entry twice", lf(head, a, b, b, c), "abc", "noted noted duplicate-id", 0},
		{"a parent that comes later", lf(head, a, say("c", "b", 3), say("b", "a", 5), say("d", "c", 7)), "abcd", "", 0},
		{"a parent that is missing", lf(head, a, say("c", "gone", 3), say("d", "c", 5)), "cd", "orphan", 0},
		{"a parent that is no id", lf(head, a, strings.Replace(b, `"parentId":"a"`, `"parentId":7`, 1), c), "bc", "noted", 0},
		{"its own parent", lf(head, a, say("b", "b", 3)), "b", "self-parent", 0},
		{"a circle", lf(head, say("a", "b", 1), say("b", "a", 3), say("c", "b", 5)), "abc", "cycle", 0},
		{"a circle that grows behind a lane", lf(head, a, say("c", "b", 3), say("b", "c", 5)), "cb", "cycle", 0},
		{"a tip that is nowhere", lf(head, a, b, `{"kind":"value","op":"set","seq":5,"namespace":"pi.branch.tip","key":"main","value":"gone"}`), "", "orphan", 0},
		{"words of lanes lost", lf(head, a[1:strings.Index(a, `},{"kind":"value"`)+1], b[1:strings.Index(b, `},{"kind":"value"`)+1]), "ab", "", 0},
		{"a write that is no object", lf(head, a, strings.Replace(b, "[", "[7,", 1), c), "abc", "bad-line", 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if !Detect([]byte(tt.data)) {
				t.Error("is not told")
			}
			s := read(t, tt.data)
			said := ""
			for _, m := range s.context().Messages {
				said += m.Text()
			}
			var kinds []string
			for _, d := range s.found {
				kinds = append(kinds, d.Kind)
			}
			if found := strings.Join(kinds, " "); said != tt.says || found != tt.found || s.reader.BadLines() != tt.bad {
				t.Errorf("says %q, found %q, %d bad; want %q, %q, %d\n%v\n%s", said, found, s.reader.BadLines(), tt.says, tt.found, tt.bad, s.found, s.outline())
			}
		})
	}
}

// A file that is not the harness's returns ErrNotSession; an error of its source is returned.
func TestNoSession(t *testing.T) {
	for _, data := range []string{
		"", "\n", "{}", "prose\n", `{"type":"session","version":3,"id":"s"}`, `{"kind":"header"}`, `{"kind":"entry"}`, `[[]]`, `["x"]`, "[", `{"kind":"value","seq":1}`,
		strings.Repeat("x\n", maxRefused+10) + lf(headerOf(false)),
	} {
		if _, err := tryRead(source([]byte(data))); !errors.Is(err, interop.ErrNotSession) {
			t.Errorf("%.60q: %v", data, err)
		}
		if len(data) < 100 && Detect([]byte(data)) {
			t.Errorf("%q is told as a session", data)
		}
	}
	broken := errors.New("broken")
	src := interop.Source{Name: "x", Open: func() (io.ReadCloser, error) { return nil, broken }}
	if _, err := tryRead(src); !errors.Is(err, broken) {
		t.Error(err)
	}
	src.Open = func() (io.ReadCloser, error) {
		return io.NopCloser(io.MultiReader(strings.NewReader(lf(headerOf(false), say("a", "", 1))), failing{broken})), nil
	}
	s, err := tryRead(src)
	if !errors.Is(err, broken) || len(s.entries) != 2 {
		t.Errorf("%d entries, %v", len(s.entries), err)
	}
	r := NewReader(source([]byte(lf(headerOf(false), say("a", "", 1)))), options())
	if _, err := r.Header(); err != nil || r.Close() != nil {
		t.Fatal(err)
	}
	if _, err := r.Next(); err == nil || errors.Is(err, io.EOF) || errors.Is(err, fs.ErrNotExist) {
		t.Errorf("after closing: %v", err)
	}
}

type failing struct{ err error }

func (f failing) Read([]byte) (int, error) { return 0, f.err }

// The header has the values of the file; any of them may be missing.
func TestHeader(t *testing.T) {
	for _, tt := range []struct{ line, want string }{
		{`{"v":4,"kind":"header","id":"s","storageVersion":1,"createdAt":1767225600000,"cwd":"/w"}`, `{"type":"session","version":3,"id":"s","timestamp":"2026-01-01T00:00:00.000Z","cwd":"/w"}`},
		{`{"v":4,"kind":"header","id":"s","storageVersion":1,"createdAt":1767225600000,"cwd":"/w","parentSessionId":"p"}`, `{"type":"session","version":3,"id":"s","timestamp":"2026-01-01T00:00:00.000Z","cwd":"/w","parentSession":"p"}`},
		{`{"kind":"header","version":4,"id":"s","createdAt":1767225600000,"cwd":"/w","legacyParentSessionPath":"/p","metadata":{"a":1.0}}`, `{"type":"session","version":3,"id":"s","timestamp":"2026-01-01T00:00:00.000Z","cwd":"/w","parentSession":"/p","metadata":{"a":1.0}}`},
		{`{"kind":"header","v":5,"id":"s","createdAt":"soon","cwd":7,"metadata":[]}`, `{"type":"session","version":3,"id":"s","timestamp":"2026-03-01T12:00:00.000Z","cwd":""}`},
	} {
		if s := read(t, tt.line+"\n"); string(s.header.Raw) != tt.want || s.header.Version != 4 || s.header.ID != "s" || s.header.Made {
			t.Errorf("%s gives %s (%+v)", tt.line, s.header.Raw, s.header)
		}
	}
	if s := read(t, `{"v":4,"kind":"header"}`+"\n"); s.header.ID == "" {
		t.Error("no id was made")
	}
}

// Usage is counted once: a row repeats the usage of its entry, or counts on its own.
func TestUsageIsCountedOnce(t *testing.T) {
	row := func(rest string) string { return `{"kind":"usage","id":"x","usage":{"input":1},"seq":3,` + rest + `}` }
	entry := `{"kind":"entry","id":"a","parentId":null,"type":"message","message":{"role":"assistant","content":[],"provider":"p","model":"m","usage":{"input":1},"stopReason":"stop"},"seq":1,"timestamp":1767225600000}`
	for rest, want := range map[string]string{
		`"adjustment":true`: "usage",
		`"adjustment":true,"details":{"source":"v3-import"}`: "custom",
		`"adjustment":false`:                                  "custom", // of a summary with a usage of its own
		`"adjustment":false,"entryId":"a"`:                    "custom",
		`"adjustment":false,"entryId":"gone"`:                 "usage",
		`"adjustment":true,"usage":7`:                         "custom",
		`"adjustment":true,"details":{"a":[1]},"entryId":"z"`: "usage",
	} {
		s := read(t, lf(headerOf(false), entry, row(rest)))
		if got := s.entries[2]; got.Type != want {
			t.Errorf("%s gives %s", rest, got.Raw)
		}
	}
}

// Writes of kinds that the reader does not use are kept unchanged, in order, on the lane that they name.
func TestEverythingIsKept(t *testing.T) {
	for _, old := range []bool{false, true} {
		var lines, want []string
		lines = append(lines, headerOf(old), strings.Replace(say("a", "", 1), `"main"`, `"l1"`, 1))
		for i, w := range []string{
			`{"kind":"value","op":"set","seq":%d,"namespace":"pi.result","key":"k","value":{"a":1.50}}`, `{"kind":"value","op":"delete","seq":%d,"namespace":"x","key":"k"}`,
			`{"kind":"value","op":"set","seq":%d,"namespace":"pi.lane.config","key":"l1","value":{"model":7}}`, `{"kind":"value","op":"delete","seq":%d,"namespace":"pi.branch.tip","key":"l1"}`,
			`{"kind":"value","op":"set","seq":%d,"namespace":"pi.entry.label","key":7,"value":"x"}`, `{"kind":"value","op":"set","seq":%d,"namespace":"pi.session.name","key":"","value":[]}`,
			`{"kind":"list","op":"append","seq":%d,"namespace":"n","key":"k","value":[null]}`, `{"kind":"list","op":"delete","seq":%d,"namespace":"n","key":"k"}`,
			`{"kind":"record","id":"r","lane":"l1","type":"tool_started","seq":%d,"timestamp":1}`, `{"kind":"lane","seq":%d,"lane":"l1","leafId":7}`, `{"kind":"fact","fact":"x","seq":%d}`,
			`{"kind":"other","seq":%d}`, `{"seq":%d}`,
		} {
			w = fmt.Sprintf(w, i+3)
			lines, want = append(lines, w), append(want, w)
		}
		s := read(t, lf(lines...))
		var got []string
		for _, e := range s.path(s.ordinal("a", s.laneEnd("l1"))) {
			var f struct {
				CustomType string
				Data       json.RawMessage
			}
			if e.Type == "custom" && e.Decode(&f) == nil && strings.HasPrefix(f.CustomType, "pi-harness.") && f.CustomType != "pi-harness.header" && f.CustomType != "pi-harness.branch" {
				got = append(got, string(f.Data))
			}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("old %v: %s\n%s", old, diff, s.outline())
		}
	}
}

// ordinal returns at, if the path to it contains the entry over.
func (s session) ordinal(over string, at int64) int64 {
	for _, e := range s.path(at) {
		if e.ID == over {
			return at
		}
	}
	return -1
}

// An entry of a transaction that could not be held does not cut the lane off.
func TestSizeLostTransaction(t *testing.T) {
	testutil.SkipLong(t)
	long := strings.Replace(say("b", "a", 3), `"b","timestamp":1}`, `"`+strings.Repeat("x", 65<<20)+`","timestamp":1}`, 1)
	s := read(t, lf(headerOf(false), say("a", "", 1), long, say("c", "b", 5), say("d", "c", 7)))
	if got := says(s.context()); !cmp.Equal(got, []string{"user: a", "user: c", "user: d"}) {
		t.Errorf("%q\n%v", got, s.found)
	}
	entry := long[1 : strings.Index(long, `},{"kind":"value"`)+1]
	s = read(t, lf(headerOf(false), say("a", "", 1), entry, say("c", "b", 5)))
	if got := says(s.context()); !cmp.Equal(got, []string{"user: a", "user: c"}) {
		t.Errorf("of a single entry: %q\n%v", got, s.found)
	}
}
