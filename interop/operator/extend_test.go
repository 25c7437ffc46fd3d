package operator

import (
	"bytes"
	"fmt"
	"iter"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/coppice-go/coppice/internal/rawjson"
	"github.com/coppice-go/coppice/interop"
	"github.com/coppice-go/coppice/transcript"
)

// walked is what operator itself shows at the end of a file: it goes up from where the last line leaves the head, by
// the ids in the file alone, and stops at one that is not there.
func walked(t testing.TB, data string) (ids []string, whole bool) {
	t.Helper()
	parents, at := map[string]string{}, ""
	for line := range strings.Lines(data) {
		l, err := transcript.ParseLine([]byte(strings.TrimSuffix(line, "\n")))
		if err != nil {
			t.Fatal(err)
		}
		if l.Type == "session" {
			continue
		}
		parents[l.ID] = rawjson.Text(rawjson.Field(l.Raw, "parent_id"))
		if at = l.ID; l.Type == "leaf" {
			at = rawjson.Text(rawjson.Field(l.Raw, "target_id"))
		}
	}
	for at != "" && len(ids) <= len(parents) {
		up, ok := parents[at]
		if !ok {
			return ids, false
		}
		ids = append(ids, at)
		at = up
	}
	return ids, true
}

// continued returns a file with the entries that were added to its session.
func continued(t testing.TB, data string, added ...string) (string, interop.Losses) {
	t.Helper()
	h, lines, err := readAll(open([]byte(data)))
	if err != nil {
		t.Fatal(err)
	}
	seq := func(yield func(transcript.Draft, error) bool) {
		for _, l := range lines {
			if !yield(transcript.Draft{Raw: l.Raw}, nil) {
				return
			}
		}
		for _, raw := range added {
			if !yield(transcript.Draft{Raw: []byte(raw)}, nil) {
				return
			}
		}
	}
	last := lines[len(lines)-1].ID
	if len(added) > 0 {
		last = rawjson.Text(rawjson.Field([]byte(added[len(added)-1]), "id"))
	}
	var out bytes.Buffer
	losses, err := Extend(&out, h, len(lines), iter.Seq2[transcript.Draft, error](seq), last)
	if err != nil {
		t.Fatal(err)
	}
	return data + out.String(), losses
}

func spoke(id, parent string) string {
	return fmt.Sprintf(`{"type":"message","id":%q,"parent_id":%s,"timestamp":1.5,"message":{"role":"user","contents":[{"type":"text","content":%q}],"timestamp":1.5}}`, id, parent, id)
}

func userSaid(id, parent string) string {
	return fmt.Sprintf(`{"type":"message","id":%q,"parentId":%s,"timestamp":"2026-01-01T00:00:00.000Z","message":{"role":"user","content":"x","timestamp":1}}`, id, parent)
}

// Operator continues an extended session where it continues here: a leaf entry does not restore the abandoned line, and
// a split entry is one entry in the file.
func TestExtend(t *testing.T) {
	left := []string{head, spoke("u", "null"), spoke("v", `"u"`), spoke("w", `"v"`)}
	leafTo := func(id, parent, target string) string {
		return fmt.Sprintf(`{"type":"leaf","id":%q,"parent_id":%q,"timestamp":2.0,"target_id":%s}`, id, parent, target)
	}
	results := []string{
		head, `{"type":"message","id":"c","parent_id":null,"timestamp":1.0,"message":{"role":"assistant","contents":[{"type":"tool_call","id":"k1","name":"ls","args":{}}],"timestamp":1}}`,
		`{"type":"message","id":"r","parent_id":"c","timestamp":2.0,"message":{"role":"tool","contents":[{"type":"tool_result","id":"k1","content":"1"},{"type":"tool_result","id":"k2","content":"2"}],"timestamp":2}}`,
	}
	own := []string{head, spoke("r", "null"), spoke("r.1", `"r"`)} // as coppice writes such an entry
	for _, tt := range []struct {
		name  string
		file  []string
		added []string
		want  []string
	}{
		{"on a leaf entry", append(left[:4:4], leafTo("f", "w", `"u"`)), []string{userSaid("x", `"f"`)}, []string{"x", "u"}},
		{"on its target", append(left[:4:4], leafTo("f", "w", `"u"`)), []string{userSaid("x", `"u"`)}, []string{"x", "u"}},
		{"on one in the middle", append(left[:3:3], leafTo("f", "v", `"u"`), spoke("w", `"u"`)), []string{userSaid("x", `"f"`), userSaid("y", `"x"`)}, []string{"y", "x", "u"}},
		{"on a leaf entry to nowhere", append(left[:4:4], leafTo("f", "w", "null")), []string{userSaid("x", `"f"`)}, []string{"x"}},
		{"on a leaf entry to a leaf entry", append(left[:4:4], leafTo("f", "w", `"u"`), leafTo("g", "u", `"f"`)), []string{userSaid("x", `"g"`)}, []string{"x", "u"}},
		{"on a leaf entry that was added", left, []string{`{"type":"leaf","id":"f","parentId":"v","timestamp":"2026-01-01T00:00:00.000Z","targetId":"v"}`, userSaid("x", `"f"`)}, []string{"x", "v", "u"}},
		{"a leaf entry that was added to one of the file", append(left[:4:4], leafTo("f", "w", `"u"`)), []string{`{"type":"leaf","id":"g","parentId":"u","timestamp":"2026-01-01T00:00:00.000Z","targetId":"f"}`}, []string{"u"}},
		{"on the last of several", results, []string{userSaid("x", `"r.1"`)}, []string{"x", "r", "c"}},
		{"a leaf entry to the last of several", append(results[:3:3], leafTo("f", "r", `"r"`)), []string{userSaid("x", `"f"`)}, []string{"x", "r", "c"}},
		{"on one that is called like a part", own, []string{userSaid("x", `"r.1"`)}, []string{"x", "r.1", "r"}},
	} {
		text, losses := continued(t, lf(tt.file...), tt.added...)
		got, whole := walked(t, text)
		if diff := cmp.Diff(tt.want, got); diff != "" || !whole || len(losses) > 0 {
			t.Errorf("%s: %v, parents are there: %v\n%s\n%s", tt.name, losses, whole, diff, text)
		}
		if strings.Count(text, "\n") != len(tt.file)+len(tt.added) {
			t.Errorf("%s: it ends there anyway\n%s", tt.name, text)
		}
	}
	text, _ := continued(t, lf(results...), `{"type":"compaction","id":"k","parentId":"r.1","timestamp":"2026-01-01T00:00:00.000Z","summary":"S","firstKeptEntryId":"r.1","tokensBefore":1}`,
		`{"type":"label","id":"l","parentId":"k","timestamp":"2026-01-01T00:00:00.000Z","targetId":"r.1","label":"x"}`)
	if !strings.Contains(text, `"first_kept_entry_id":"r"`) || !strings.Contains(text, `"target_id":"r"`) {
		t.Errorf("parts are named:\n%s", text)
	}
}

// A head among the results of one entry is after all of them in operator's file, and is a loss. A head at the last one
// is not, and a leaf entry moves there if the file ends elsewhere.
func TestExtendAmongResults(t *testing.T) {
	data := lf(head, `{"type":"message","id":"r","parent_id":null,"timestamp":2.0,"message":{"role":"tool","contents":[{"type":"tool_result","id":"k1","content":"1"},{"type":"tool_result","id":"k2","content":"2"}],"timestamp":2}}`, spoke("u", `"r"`))
	h, lines, err := readAll(open([]byte(data)))
	if err != nil {
		t.Fatal(err)
	}
	for at, lost := range map[string]int{"r": 1, "r.1": 0} {
		var out bytes.Buffer
		losses, err := Extend(&out, h, len(lines), func(yield func(transcript.Draft, error) bool) {
			for _, l := range lines {
				if !yield(transcript.Draft{Raw: l.Raw}, nil) {
					return
				}
			}
		}, at)
		if got, _ := walked(t, data+out.String()); err != nil || losses[LostWithin] != lost || !cmp.Equal(got, []string{"r"}) {
			t.Errorf("at %s: %v, %v, %v\n%s", at, got, losses, err, out.String())
		}
	}
}

// Whatever the moves in a file, what is added anywhere is seen by operator below just what is above it here.
func TestExtendAnywhere(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		lines, ids, at := []string{head}, []string{}, "null"
		for i := range rapid.IntRange(1, 12).Draw(rt, "n") {
			id := fmt.Sprintf("e%d", i)
			if len(ids) > 0 && rapid.IntRange(0, 2).Draw(rt, "leaf") == 0 {
				target := rapid.SampledFrom(ids).Draw(rt, "target")
				lines = append(lines, fmt.Sprintf(`{"type":"leaf","id":%q,"parent_id":%s,"timestamp":2.0,"target_id":%q}`, id, at, target))
				at = fmt.Sprintf("%q", target)
				continue
			}
			line := spoke(id, at)
			if rapid.Bool().Draw(rt, "several") {
				line = strings.Replace(line, `{"type":"text","content":"`+id+`"}`, `{"type":"tool_result","id":"a","content":"1"},{"type":"tool_result","id":"b","content":"2"}`, 1)
			}
			lines, at = append(lines, line), fmt.Sprintf("%q", id)
			ids = append(ids, id)
		}
		data := lf(lines...)
		_, have, err := readAll(open([]byte(data)))
		if err != nil {
			rt.Fatal(err)
		}
		below := rapid.SampledFrom(have).Draw(rt, "below")
		parents := map[string]transcript.Line{}
		for _, l := range have {
			parents[l.ID] = l
		}
		want := []string{"x"}
		for up := below.ID; up != ""; up = parents[up].ParentID {
			if l := parents[up]; l.Type == "message" && rawjson.Field(l.Raw, partOf) == nil {
				want = append(want, up)
			}
		}
		text, _ := continued(t, data, userSaid("x", fmt.Sprintf("%q", below.ID)))
		if got, whole := walked(t, text); !whole || cmp.Diff(want, got) != "" {
			rt.Fatalf("below %s: %v, want %v\n%s", below.ID, got, want, text)
		}
	})
}

// An image of any type is the same after a round trip, recognised by its first bytes or by a data URL.
func TestImagesThereAndBack(t *testing.T) {
	for _, image := range []string{`"data":"iVBORw0KGgo=","mimeType":"image/png"`, `"data":"AA==","mimeType":"image/png"`, `"data":"Qk0=","mimeType":"image/bmp"`} {
		block := `{"type":"image",` + image + `}`
		text, _ := continued(t, lf(head, spoke("u", "null")), strings.Replace(userSaid("x", `"u"`), `"x","timestamp"`, `[`+block+`],"timestamp"`, 1))
		_, lines, err := readAll(open([]byte(text)))
		if err != nil || len(lines) != 2 || !strings.Contains(string(lines[1].Raw), block) {
			t.Errorf("%s: %v\n%s", block, err, text)
		}
	}
}
