package formats

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	coppice "github.com/coppice-go/coppice"
	"github.com/coppice-go/coppice/backend/memory"
	"github.com/coppice-go/coppice/entry"
	"github.com/coppice-go/coppice/internal/rawjson"
	"github.com/coppice-go/coppice/internal/testutil"
	"github.com/coppice-go/coppice/interop"
	"github.com/coppice-go/coppice/transcript"
)

// forked returns a file of each format with messages on two branches: a, b, c and, on a, d.
func forked() map[string]forkedFile {
	tree := func(line string, header ...string) string {
		lines := header
		for i, e := range []struct{ id, parent string }{{"a", "null"}, {"b", `"a"`}, {"c", `"b"`}, {"d", `"a"`}} {
			lines = append(lines, strings.NewReplacer("%i", e.id, "%p", e.parent, "%n", fmt.Sprint(i)).Replace(line))
		}
		return lf(lines...)
	}
	pi := `{"type":"message","id":"%i","parentId":%p,"timestamp":"2026-01-01T00:00:0%n.000Z","message":{"role":"user","content":"%i","timestamp":1}}`
	operator := `{"type":"message","id":"%i","parent_id":%p,"timestamp":%n.5,"message":{"role":"user","contents":[{"type":"text","content":"%i"}],"timestamp":1}}`
	uuids := strings.NewReplacer(`"a"`, `"aaaaaaaa-1111-4111-8111-111111111111"`, `"b"`, `"bbbbbbbb-1111-4111-8111-111111111111"`, `"c"`, `"cccccccc-1111-4111-8111-111111111111"`, `"d"`, `"dddddddd-1111-4111-8111-111111111111"`)
	claude := `{"parentUuid":%p,"isSidechain":false,"userType":"external","cwd":"/w","sessionId":"99999999-1111-4111-8111-111111111111","version":"2.1.0","type":"user","message":{"role":"user","content":"said %i"},"uuid":"%i","timestamp":"2026-01-01T00:00:0%n.000Z"}`
	v4 := `[{"kind":"entry","id":"%i","parentId":%p,"type":"message","message":{"role":"user","content":"%i","timestamp":1},"seq":1%n0,"timestamp":1767225600000},{"kind":"value","op":"set","seq":1%n1,"namespace":"pi.branch.tip","key":"main","value":"%i"}]`
	old := lf(
		`{"kind":"header","version":4,"id":"h2","createdAt":1767225600000,"cwd":"/w"}`,
		`{"kind":"entry","lane":"main","id":"a","type":"message","message":{"role":"user","content":"a","timestamp":1},"parentId":null,"seq":1,"timestamp":1767225600000}`,
		`{"kind":"entry","lane":"main","id":"b","type":"message","message":{"role":"user","content":"b","timestamp":1},"parentId":"a","seq":2,"timestamp":1767225600000}`,
		`{"kind":"entry","lane":"main","id":"c","type":"message","message":{"role":"user","content":"c","timestamp":1},"parentId":"b","seq":3,"timestamp":1767225600000}`,
		`{"kind":"lane","seq":4,"lane":"main","leafId":"a"}`,
		`{"kind":"entry","lane":"main","id":"d","type":"message","message":{"role":"user","content":"d","timestamp":1},"parentId":"a","seq":5,"timestamp":1767225600000}`)
	short := []string{"a", "b", "c", "d"}
	long := strings.Fields(strings.ReplaceAll(uuids.Replace(`"a" "b" "c" "d"`), `"`, ""))
	return map[string]forkedFile{
		"pi":                    {interop.Pi, tree(pi, headers[interop.Pi][0]), short},
		"pi 2":                  {interop.Pi, tree(pi, strings.Replace(headers[interop.Pi][0], `"version":3`, `"version":2`, 1)), short},
		"pi, back at the end":   {interop.Pi, tree(pi, headers[interop.Pi][0]) + lf(`{"type":"leaf","id":"l","parentId":"d","timestamp":"2026-01-01T00:00:09.000Z","targetId":"c"}`), short},
		"omp":                   {interop.Omp, tree(pi, `{"type":"title","v":1,"title":"T","updatedAt":"2026-01-01T00:00:00.000Z","pad":"  "}`, headers[interop.Omp][0]), short},
		"atomic":                {interop.Atomic, tree(pi, headers[interop.Atomic][0]), short},
		"operator":              {interop.Operator, tree(operator, headers[interop.Operator][0]), short},
		"operator, back at end": {interop.Operator, tree(operator, headers[interop.Operator][0]) + lf(`{"type":"leaf","id":"l","parent_id":"d","timestamp":9.0,"target_id":"c"}`), short},
		"claude-code":           {interop.ClaudeCode, uuids.Replace(tree(claude)), long},
		"harness":               {interop.Pi, tree(v4, `{"v":4,"kind":"header","id":"h1","storageVersion":1,"createdAt":1767225600000,"cwd":"/w"}`), short},
		"harness 0.84":          {interop.Pi, old, short},
	}
}

type forkedFile struct {
	format interop.Format
	data   string
	ids    []string
}

// stored is an imported file and its head in the store.
type stored struct {
	st    *coppice.Store
	s     *coppice.Session
	known []transcript.Draft
	h     interop.Header
}

func inStore(t *testing.T, f interop.Format, data string) stored {
	t.Helper()
	st, err := coppice.New(memory.New(), nil)
	if err != nil {
		t.Fatal(err)
	}
	s, err := st.Open(context.Background(), importFile(t, st, f, []byte(data)), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := errors.Join(s.Close(), st.Close()); err != nil {
			t.Error(err)
		}
	})
	is := read(t, f, []byte(data))
	return stored{st, s, is.drafts, is.header}
}

// entries are the session's own, which has what was added to the file behind it.
func (m stored) entries(t *testing.T) iter.Seq2[transcript.Draft, error] {
	t.Helper()
	var all []transcript.Draft
	for e, err := range m.s.Entries(context.Background()) {
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, transcript.Draft{Raw: e.Raw})
	}
	return transcript.Drafts(all...)
}

// at returns the context at the head, and which of the given entries are on the path to it.
func (m stored) at(t *testing.T, ids []string) (words, on []string) {
	t.Helper()
	c, err := m.s.Context(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	if m.s.Head().Entry == "" {
		return said(c), nil
	}
	for e, err := range m.s.Path(context.Background(), m.s.Head().Entry) {
		if err != nil {
			t.Fatal(err)
		}
		for _, id := range ids {
			if e.ID == id {
				on = append(on, id)
			}
		}
	}
	return said(c), on
}

func (m stored) branch(t *testing.T, head string) {
	t.Helper()
	if _, err := m.s.Branch(context.Background(), head, nil); err != nil {
		t.Fatal(err)
	}
}

func (m stored) say(t *testing.T, text string) {
	t.Helper()
	if _, err := m.s.Append(context.Background(), entry.User(text)); err != nil {
		t.Fatal(err)
	}
	if _, err := m.s.Commit(context.Background(), coppice.Turn{}); err != nil {
		t.Fatal(err)
	}
}

// goOn writes the file behind the original of a session.
func (m stored) goOn(t *testing.T, f interop.Format, data string) (string, interop.Losses) {
	t.Helper()
	var out bytes.Buffer
	losses, err := Continue(&out, f, strings.NewReader(data), m.h, len(m.known), m.entries(t), m.s.Head().Entry)
	if err != nil || !strings.HasPrefix(out.String(), data) {
		t.Fatalf("%v\n%s", err, out.String())
	}
	return out.String(), losses
}

// places counts the losses of the head.
func places(losses interop.Losses) (n int) {
	for kind, of := range losses {
		if strings.HasPrefix(kind, "the place where the session stands") {
			n += of
		}
	}
	return n
}

// Wherever the head of an imported session is, its file opens there, with and without added entries. A head in the
// place where an import puts it changes nothing.
func TestContinueAtTheHead(t *testing.T) {
	testutil.SkipLong(t)
	t.Parallel()
	for name, f := range forked() {
		for _, tt := range []struct {
			name string
			more []int // where something is added: before a, on a, ... = -1, 0, ...
			head int   // index of the head: -2 = unchanged, -1 = before the first entry
		}{
			{"untouched", nil, -2},
			{"on the other branch", nil, 2},
			{"on the other one", nil, 3},
			{"in the middle", nil, 1},
			{"where both begin", nil, 0},
			{"before all", nil, -1},
			{"what was added", []int{2}, -2},
			{"left again", []int{2}, 3},
			{"left for one in the middle", []int{2}, 1},
			{"at what was added before", []int{2, 3}, 100},
			{"a new root", []int{-1}, -2},
			{"a new root, left", []int{-1}, 2},
			{"left for no entry", []int{2}, -1},
		} {
			t.Run(name+", "+tt.name, func(t *testing.T) {
				m := inStore(t, f.format, f.data)
				added := ""
				for i, at := range tt.more {
					if at < 0 {
						m.branch(t, "")
					} else {
						m.branch(t, f.ids[at])
					}
					m.say(t, fmt.Sprintf("more %d", i))
					if i == 0 {
						added = m.s.Head().Entry
					}
				}
				switch {
				case tt.head == 100:
					m.branch(t, added)
				case tt.head == -1:
					m.branch(t, "")
				case tt.head >= 0:
					m.branch(t, f.ids[tt.head])
				}
				text, losses := m.goOn(t, f.format, f.data)
				if tt.name == "untouched" && text != f.data {
					t.Fatalf("added:\n%s", text[len(f.data):])
				}
				words, on := m.at(t, f.ids)
				back := inStore(t, f.format, text)
				if f.format == interop.ClaudeCode && tt.head == -1 {
					if places(losses) != 1 {
						t.Errorf("losses %v", losses)
					}
					return
				}
				got, way := back.at(t, f.ids)
				if diff := cmp.Diff(words, got) + cmp.Diff(on, way); diff != "" || places(losses) > 0 {
					t.Errorf("%v\n%s\n%s", losses, diff, text[len(f.data):])
				}
				// The same again, with the written file as the original.
				back.branch(t, f.ids[1])
				back.say(t, "once more")
				back.branch(t, f.ids[2])
				again, _ := back.goOn(t, f.format, text)
				twice := inStore(t, f.format, again)
				words, on = back.at(t, f.ids)
				got, way = twice.at(t, f.ids)
				if diff := cmp.Diff(words, got) + cmp.Diff(on, way); diff != "" {
					t.Errorf("the second time\n%s\n%s", diff, again[len(f.data):])
				}
				for _, found := range read(t, f.format, []byte(again)).found {
					if found.Kind != transcript.DiagConverted { // version 2
						t.Errorf("the second time: %v\n%s", found, again[len(f.data):])
					}
				}
			})
		}
	}
}

// The same holds for generated files, with entries without content and moves of the head.
func TestContinueAtAnyHead(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		f := rapid.SampledFrom(written).Draw(rt, "format")
		data := lf(genFile(f, rapidDraw{rt}, rapid.IntRange(1, 20).Draw(rt, "n"))...)
		s := read(rt, f, []byte(data))
		at := rapid.IntRange(0, len(s.entries)-1).Draw(rt, "head")
		head := s.entries[at].ID
		var out bytes.Buffer
		losses, err := Continue(&out, f, strings.NewReader(data), s.header, len(s.entries), s.seq(), head)
		if err != nil {
			rt.Fatal(err)
		}
		if places(losses) > 0 { // among the messages of one entry: the file opens after the last
			for ; at+1 < len(s.entries) && strings.HasPrefix(s.entries[at+1].ID, s.entries[at].ID[:8]+"."); at++ {
			}
		}
		if last := at == len(s.entries)-1; last && out.String() != data {
			rt.Fatalf("untouched, and yet: %s", out.String()[len(data):])
		}
		back := read(rt, f, out.Bytes())
		opens := int64(len(back.entries)) - 1
		if last := back.entries[opens]; last.Type == "leaf" && last.ID != head {
			opens = back.ordinal(rawjson.Text(rawjson.Field(last.Raw, "targetId"))) // as an import has it
		}
		// In pi, a head that is a leaf entry stays at that entry.
		want := said(transcript.BuildContext(s.path(int64(at)), profiles[f]))
		if diff := cmp.Diff(want, said(transcript.BuildContext(back.path(opens), profiles[f]))); diff != "" {
			rt.Fatalf("at %s\n%s\n%s", head, diff, out.String())
		}
	})
}

// If a message becomes several entries in the file, its head is the last of them, and a line that moves the head names
// that one.
func TestContinueBehindSeveral(t *testing.T) {
	t.Parallel()
	const results = `{"type":"message","id":"x","parentId":"c","timestamp":"2026-02-01T00:00:00.000Z","message":{"role":"user","content":[{"type":"tool_result","tool_use_id":"k1","content":"one"},{"type":"tool_result","tool_use_id":"k2","content":"two"}]}}`
	const other = `{"type":"custom","id":"y","parentId":"a","timestamp":"2026-02-01T00:00:00.000Z","customType":"ext"}`
	for name, f := range forked() {
		if f.format == interop.ClaudeCode { // results share a line there
			continue
		}
		s := read(t, f.format, []byte(f.data))
		known := len(s.entries)
		for i, added := range []string{results, other} {
			s.drafts = append(s.drafts, transcript.Draft{Raw: []byte(added)})
			var out bytes.Buffer
			if _, err := Continue(&out, f.format, strings.NewReader(f.data), s.header, known, s.seq(), "x"); err != nil {
				t.Fatal(err)
			}
			back := inStore(t, f.format, out.String())
			words, _ := back.at(t, nil)
			if want := []string{"a", "b", "c", "one result:k1", "two result:k2"}; !cmp.Equal(words, want) {
				t.Errorf("%s: it says %q\n%s", name, words, out.String()[len(f.data):])
			}
			if lines := strings.Count(out.String()[len(f.data):], "\n"); i == 0 && lines != 2 && !strings.HasPrefix(name, "harness") {
				t.Errorf("%s: %d lines\n%s", name, lines, out.String()[len(f.data):])
			}
		}
	}
}

// A file of the harness without a lane main opens before its first entry; an import opens it on the lane that it names,
// and that alone appends nothing.
func TestContinueOtherLane(t *testing.T) {
	t.Parallel()
	f := forked()["harness"]
	data := strings.ReplaceAll(f.data, `"key":"main"`, `"key":"scout"`)
	m := inStore(t, f.format, data)
	if text, _ := m.goOn(t, f.format, data); text != data {
		t.Errorf("added: %s", text[len(data):])
	}
	m.branch(t, "c")
	text, _ := m.goOn(t, f.format, data)
	if words, _ := inStore(t, f.format, text).at(t, nil); !cmp.Equal(words, []string{"a", "b", "c"}) {
		t.Errorf("it says %q\n%s", words, text[len(data):])
	}
}

// A file that ends with a move of the head to a missing entry opens at its last line.
func TestContinueMovedToNobody(t *testing.T) {
	t.Parallel()
	for name, line := range map[string]string{
		"pi":       `{"type":"leaf","id":"l","parentId":"d","timestamp":"2026-01-01T00:00:09.000Z","targetId":"nobody"}`,
		"operator": `{"type":"leaf","id":"l","parent_id":"d","timestamp":9.0,"target_id":"nobody"}`,
	} {
		f := forked()[name]
		data := f.data + lf(line)
		m := inStore(t, f.format, data)
		if text, _ := m.goOn(t, f.format, data); text != data {
			t.Errorf("%s, untouched, added: %s", name, text[len(data):])
		}
	}
}

// A file to which nothing can be appended gets no head either.
func TestContinueNoHead(t *testing.T) {
	t.Parallel()
	pi := `{"type":"message","timestamp":"2026-01-01T00:00:00.000Z","message":{"role":"user","content":"q"}}`
	for f, data := range map[interop.Format]string{
		interop.Pi: lf(`{"type":"session","id":"s","timestamp":"2026-01-01T00:00:00.000Z","cwd":"/w"}`, pi, pi),
	} {
		s := read(t, f, []byte(data))
		if _, err := Continue(io.Discard, f, strings.NewReader(data), s.header, len(s.entries), s.seq(), ""); !errors.Is(err, ErrNoAppend) {
			t.Errorf("%s: %v", f, err)
		}
	}
}
