package formats

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/coppice-go/coppice/internal/testutil"
	"github.com/coppice-go/coppice/interop"
	"github.com/coppice-go/coppice/interop/operator"
	"github.com/coppice-go/coppice/transcript"
)

// Lines of the pi family stay unchanged, whatever their type.
func TestVerbatim(t *testing.T) {
	for _, f := range []interop.Format{interop.Pi, interop.Omp, interop.Atomic} {
		for _, full := range []bool{true, false} {
			data := lf(everyType(f, full)...)
			s := read(t, f, []byte(data))
			if !s.reader.Verbatim() || s.rebuilt() != data || s.reader.BadLines() != 0 {
				t.Errorf("%s, full %v: verbatim %v, diagnostics %v", f, full, s.reader.Verbatim(), s.found)
			}
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		f := rapid.SampledFrom([]interop.Format{interop.Pi, interop.Omp, interop.Atomic}).Draw(t, "format")
		data := lf(genFile(f, rapidDraw{t}, rapid.IntRange(0, 30).Draw(t, "n"))...)
		if s := read(t, f, []byte(data)); !s.reader.Verbatim() || s.rebuilt() != data {
			t.Fatalf("%s: %v", f, s.found)
		}
	})
}

func write(t fataler, f interop.Format, s session, head string) (string, interop.Losses) {
	t.Helper()
	var out bytes.Buffer
	losses, err := Write(&out, f, s.header, s.seq(), head)
	if err != nil {
		t.Fatalf("write as %s: %v", f, err)
	}
	if err := checkLoads(f, out.String()); err != nil {
		t.Fatalf("%s would not load it: %v\n%s", f, err, out.String())
	}
	return out.String(), losses
}

// A file of any format can be written in any other: the target loads it, no entry is lost, and the tree and the context
// at its head are the same.
func TestWriteAnyAsAny(t *testing.T) {
	testutil.SkipLong(t)
	check := func(t fataler, from, to interop.Format, lines []string) {
		s := read(t, from, []byte(lf(lines...)))
		head := s.last()
		text, losses := write(t, to, s, head)
		back := read(t, to, []byte(text))
		if from == to && from != interop.Operator && len(losses) == 0 && !strings.HasPrefix(text, lf(lines...)) {
			t.Fatalf("%s as itself, nothing lost, and yet it is not the same:\n%s\n%s", from, lf(lines...), text)
		}
		for _, e := range s.entries {
			if back.ordinal(e.ID) < 0 {
				t.Fatalf("%s as %s: entry %s is gone", from, to, e.ID)
			}
		}
		sameTree(t, s, back)
	}
	for _, from := range written {
		for _, to := range written {
			for _, full := range []bool{true, false} {
				check(t, from, to, everyType(from, full))
			}
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		from, to := rapid.SampledFrom(written).Draw(t, "from"), rapid.SampledFrom(written).Draw(t, "to")
		check(t, from, to, genFile(from, rapidDraw{t}, rapid.IntRange(0, 25).Draw(t, "n")))
	})
}

// sameTree: children of an entry stay its children, apart from split entries and markers.
func sameTree(t fataler, was, is session) {
	t.Helper()
	up := func(s session, at int64) string {
		for at = s.parents[at]; at >= 0; at = s.parents[at] {
			if was.ordinal(s.entries[at].ID) >= 0 {
				return s.entries[at].ID
			}
		}
		return ""
	}
	for i, e := range was.entries {
		at := is.ordinal(e.ID)
		if at < 0 || was.ordinal(e.ID) != int64(i) || e.Type == "leaf" {
			continue
		}
		if got, want := up(is, at), up(was, int64(i)); got != want {
			t.Fatalf("%s hangs on %q, and hung on %q", e.ID, got, want)
		}
	}
}

// plain are entries that every format can express.
func plain(d draw, n int) []string {
	types := []schema{
		{"thinking_level_change", []string{`thinkingLevel="high"`}},
		{"model_change", []string{`provider="openai"`, `modelId="gpt-4o"`}},
		{"branch_summary", []string{`fromId=%k`, `summary="BRANCH"`}},
		{"custom", []string{`customType="ext"`, `data?={"n":1.0}`}},
		{"custom_message", []string{`customType="ext"`, `content="injected"`, `display=false`}},
		{"label", []string{`targetId=%k`, `label?="here"`}},
		{"session_info", []string{`name="A name"`}},
		{"compaction", []string{`summary="SUM"`, `firstKeptEntryId=%k`, `tokensBefore=1000`}},
	}
	lines := []string{headers[interop.Pi][0]}
	quoted := []string{"null"}
	for i := range n {
		s := schema{"message", []string{"message=" + piMessages[d.n("message", 6)]}}
		if pick := d.n("type", 2*len(types)); pick < len(types) {
			s = types[pick]
		}
		kept := quoted[d.n("kept", len(quoted))]
		if kept == "null" {
			kept = `"nobody"`
		}
		lines = append(lines, oneLine(interop.Pi, s, d, fmt.Sprintf("%08x", i+1), parentOf(d, quoted), kept, i))
		quoted = append(quoted, fmt.Sprintf("%q", fmt.Sprintf("%08x", i+1)))
	}
	return lines
}

// The context at any head is the same after a round trip through any other format.
func TestContextSurvives(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		to := rapid.SampledFrom(written).Draw(t, "to")
		s := read(t, interop.Pi, []byte(lf(plain(rapidDraw{t}, rapid.IntRange(1, 25).Draw(t, "n"))...)))
		at := rapid.IntRange(-1, len(s.entries)-1).Draw(t, "head")
		head := ""
		if at >= 0 {
			head = s.entries[at].ID
		}
		text, losses := write(t, to, s, head)
		for kind := range losses {
			if !strings.HasPrefix(kind, "compactions that atomic") && !strings.HasPrefix(kind, "images in results") && kind != operator.LostField {
				t.Fatalf("%s: lost %v", to, losses)
			}
		}
		back := read(t, to, []byte(text))
		want, got := transcript.BuildContext(s.path(int64(at)), transcript.Coppice), back.context(transcript.Coppice)
		if diff := cmp.Diff(said(want), said(got)); diff != "" {
			t.Fatalf("as %s (-was +is):\n%s\n%s", to, diff, text)
		}
		model := want.Settings.Model
		if to == interop.Operator && !strings.Contains(text, "model_change") {
			model = got.Settings.Model // its messages name no provider to pi
		}
		if want.Settings.ThinkingLevel != got.Settings.ThinkingLevel || model != got.Settings.Model {
			t.Fatalf("as %s: settings %+v, were %+v", to, got.Settings, want.Settings)
		}
		if s.header.ID != back.header.ID || s.header.Cwd != back.header.Cwd || !s.header.Created.Equal(back.header.Created) {
			t.Fatalf("as %s: header %+v, was %+v", to, back.header, s.header)
		}
	})
}

// The context of what operator writes is the same in its own words and in pi's, and after a way back.
func TestOperatorThereAndBack(t *testing.T) {
	testutil.SkipLong(t)
	rapid.Check(t, func(t *rapid.T) {
		s := read(t, interop.Operator, []byte(lf(genFile(interop.Operator, rapidDraw{t}, rapid.IntRange(0, 25).Draw(t, "n"))...)))
		text, _ := write(t, interop.Operator, s, s.last())
		back := read(t, interop.Operator, []byte(text))
		want, got := s.context(transcript.Operator), back.context(transcript.Operator)
		if diff := cmp.Diff(said(want), said(got)); diff != "" {
			t.Fatalf("(-was +is):\n%s", diff)
		}
		if want.Settings != got.Settings {
			t.Fatalf("settings %+v, were %+v", got.Settings, want.Settings)
		}
		for i, e := range s.entries {
			if at := back.ordinal(e.ID); at < 0 || !back.entries[at].Time.Equal(e.Time) {
				t.Fatalf("entry %d: time %v", i, e.Time)
			}
		}
	})
}

// Entries added after an import follow the original's bytes, with the same parents.
func TestContinue(t *testing.T) {
	added := []string{
		`{"type":"message","id":"01941f29-7c00-7000-8000-0000000000a1","parentId":%s,"timestamp":"2026-02-01T00:00:00.000Z","message":{"role":"user","content":"more"}}`,
		`{"type":"model_change","id":"b2","parentId":"01941f29-7c00-7000-8000-0000000000a1","timestamp":"2026-02-01T00:00:01.000Z","provider":"p","modelId":"m"}`,
		`{"type":"custom","id":"commit","parentId":"b2","timestamp":"2026-02-01T00:00:01.000Z","customType":"coppice.commit","data":{}}`,
		`{"type":"message","id":"b3","parentId":"commit","timestamp":"2026-02-01T00:00:02.000Z","message":{"role":"assistant","content":"done"}}`,
	}
	for _, f := range written {
		for _, end := range []string{"\n", "", "\n{\"type\":\"mess"} {
			original := strings.TrimSuffix(lf(everyType(f, true)...), "\n") + end
			s := read(t, f, []byte(original))
			leaf := s.last()
			seq := func(yield func(transcript.Draft, error) bool) {
				for _, d := range s.drafts {
					if !yield(d, nil) {
						return
					}
				}
				for i, line := range added {
					if i == 0 {
						line = fmt.Sprintf(line, fmt.Sprintf("%q", leaf))
					}
					if !yield(transcript.Draft{Raw: []byte(line)}, nil) {
						return
					}
				}
			}
			var out bytes.Buffer
			if _, err := Continue(&out, f, strings.NewReader(original), s.header, len(s.drafts), seq, "b3"); err != nil {
				t.Fatalf("%s: %v", f, err)
			}
			if !strings.HasPrefix(out.String(), original) {
				t.Fatalf("%s: the original's bytes are others", f)
			}
			if added := out.String()[len(original):]; (added[0] == '\n') != (end != "\n") || strings.Count(added, "\n\n") > 0 {
				t.Errorf("%s, end %q: the first addition begins with %.20q", f, end, added)
			}
			back := read(t, f, out.Bytes())
			want := append(said(s.context(transcript.Coppice)), "more", "done")
			if diff := cmp.Diff(want, said(back.context(transcript.Coppice))); diff != "" {
				t.Errorf("%s, end %q: %s", f, end, diff)
			}
			if got := back.context(profiles[f]).Settings.Model; !strings.Contains(out.String(), `"p/m"`) && got != "p/m" && f != interop.Pi && f != interop.Atomic {
				t.Errorf("%s: model %s", f, got)
			}
		}
	}
	none := func(func(transcript.Draft, error) bool) {}
	for f, original := range map[interop.Format]string{
		interop.Pi:       `{"type":"session","id":"s"}`,
		interop.Operator: `{"type":"metadata","id":"s","created_at":"2026-01-01T00:00:00","metadata":{}}`,
	} {
		var out bytes.Buffer
		if _, err := Continue(&out, f, strings.NewReader(original), interop.Header{}, 0, none, ""); !errors.Is(err, ErrNoAppend) || out.Len() > 0 {
			t.Errorf("%s without ids: %v, %d bytes", f, err, out.Len())
		}
	}
}

// Entries appended to a file of operator that ends with a leaf entry continue from its target, for operator too, which
// uses the IDs in the file. Results without the name of their tool get it from the file.
func TestContinueBehindWhatTheFileSays(t *testing.T) {
	next := func(parent, message string) string {
		return `{"type":"message","id":"x","parentId":"` + parent + `","timestamp":"2026-02-01T00:00:00.000Z","message":` + message + `}`
	}
	user := `{"role":"user","content":"more"}`
	said := `{"type":"message","id":"%s","parent_id":%s,"timestamp":1.0,"message":{"role":"user","contents":[],"timestamp":1}}`
	call := `{"type":"message","id":"c","parentId":null,"timestamp":"2026-01-01T00:00:00.000Z","message":{"role":"assistant","content":[{"type":"toolCall","id":"k","name":"ls","arguments":{}}]}}`
	for _, tt := range []struct {
		f            interop.Format
		file         []string
		added, wants string
	}{
		{interop.Operator, []string{fmt.Sprintf(said, "a", "null"), fmt.Sprintf(said, "b", `"a"`), `{"type":"leaf","id":"f","parent_id":"b","timestamp":2.0,"target_id":"a"}`}, next("f", user), `"parent_id":"a"`},
		{interop.Omp, []string{call}, next("c", `{"role":"tool","tool_call_id":"k","content":"r"}`), `"toolName":"ls"`},
		{interop.Atomic, []string{call}, next("c", `{"role":"tool","tool_call_id":"k","content":"r"}`), `"toolName":"ls"`},
		{interop.Pi, []string{call}, next("c", `{"role":"tool","tool_call_id":"k","content":"r"}`), `"toolName":"ls"`},
	} {
		original := lf(append([]string{headers[tt.f][0]}, tt.file...)...)
		s := read(t, tt.f, []byte(original))
		var out bytes.Buffer
		seq := transcript.Drafts(append(s.drafts, transcript.Draft{Raw: []byte(tt.added)})...)
		if _, err := Continue(&out, tt.f, strings.NewReader(original), s.header, len(s.drafts), seq, "x"); err != nil {
			t.Fatal(err)
		}
		if added, ok := strings.CutPrefix(out.String(), original); !ok || !strings.Contains(added, tt.wants) {
			t.Errorf("%s: %q, want %s", tt.f, added, tt.wants)
		}
	}
}

// A session with a title that is written as pi's or atomic's is none of omp's when it comes back.
func TestTitlesAreNoMark(t *testing.T) {
	s := read(t, interop.Pi, []byte(lf(strings.Replace(headers[interop.Pi][0], `"cwd"`, `"title":"T","cwd"`, 1), `{"type":"message","id":"a","parentId":null,"timestamp":"2026-01-01T00:00:00.000Z","message":`+piMessages[0]+`}`)))
	for f, want := range map[interop.Format]interop.Format{interop.Pi: interop.Pi, interop.Atomic: interop.Pi, interop.Omp: interop.Omp, interop.Operator: interop.Operator} {
		text, losses := write(t, f, s, s.last())
		if told := Detect([]byte(text), ""); told != want || len(losses) > 0 {
			t.Errorf("%s is told as %s, %v\n%s", f, told, losses, text)
		}
		title := false
		for _, e := range read(t, f, []byte(text)).entries {
			name, ok := e.Title()
			title = title || ok && name == "T"
		}
		if title == (f == interop.Omp) {
			t.Errorf("%s: the title is an entry: %v\n%s", f, title, text)
		}
	}
}

// A file of Claude Code continues from the head, wherever that is.
func TestWriteClaudeCode(t *testing.T) {
	user := `{"type":"message","id":"%s","parentId":%s,"timestamp":"2026-01-01T00:00:0%s.000Z","message":{"role":"user","content":"%s","timestamp":1}}`
	s := read(t, interop.Pi, []byte(lf(headers[interop.Pi][0], fmt.Sprintf(user, "a", "null", "1", "first"), fmt.Sprintf(user, "b", `"a"`, "2", "left"), fmt.Sprintf(user, "c", `"a"`, "3", "right"))))
	for head, want := range map[string][]string{"b": {"first", "left"}, "c": {"first", "right"}, "a": {"first"}} {
		var out bytes.Buffer
		if _, err := Write(&out, interop.ClaudeCode, s.header, s.seq(), head); err != nil {
			t.Fatal(err)
		}
		if f := Detect(out.Bytes(), ""); f != interop.ClaudeCode {
			t.Errorf("told as %q", f)
		}
		back := read(t, interop.ClaudeCode, out.Bytes())
		if diff := cmp.Diff(want, said(back.context(transcript.Coppice))); diff != "" {
			t.Errorf("head %s:\n%s\n%s", head, diff, out.String())
		}
	}
}

// Others' formats are told and opened by the packages that they belong to.
func TestOthersAreTold(t *testing.T) {
	for data, want := range map[string]interop.Format{
		lf(`{"timestamp":"2026-01-01T00:00:00.000Z","type":"session_meta","payload":{"id":"x","timestamp":"2026-01-01T00:00:00.000Z","cwd":"/w"}}`):                                                                                                               interop.Codex,
		lf(`{"type":"user","uuid":"4f0a4b1e-0000-4000-8000-000000000001","parentUuid":null,"sessionId":"s","timestamp":"2026-01-01T00:00:00.000Z","version":"2.0","cwd":"/w","isSidechain":false,"userType":"external","message":{"role":"user","content":"q"}}`): interop.ClaudeCode,
	} {
		if got := Detect([]byte(data), ""); got != want {
			t.Errorf("told as %q, want %q", got, want)
		}
		if s := read(t, "", []byte(data)); s.header.ID == "" {
			t.Errorf("%s: no id", want)
		}
	}
}
