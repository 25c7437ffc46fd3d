package operator

import (
	"bytes"
	"errors"
	"testing"

	"github.com/coppice-go/coppice/interop"
	"github.com/coppice-go/coppice/transcript"
)

// FuzzReader: for any bytes, reading ends and returns only valid lines, and the result can be written and read again.
func FuzzReader(f *testing.F) {
	for _, s := range []string{
		"", lf(head), lf(head, `{"type":"leaf","id":"l","parent_id":"l","timestamp":1e9,"target_id":"l"}`),
		lf(head, `{"type":"message","id":"a","parent_id":null,"timestamp":1.5,"message":{"role":"tool","contents":[{"type":"tool_result","id":"k"},{"type":"tool_result"}]}}`),
		lf(`{"type":"metadata","id":"s","created_at":5,"metadata":[]}`, `{"role":"human","contents":[7,"x",{"type":"image","images":[null,"data:image/png;base64,AA"]}]}`),
		lf(head, `{"type":"message","id":"a","message":{"role":"assistant","usage":[],"stop_reason":{},"contents":{"type":"text"}}}`, `{"type":"custom_message","id":"b","content":[{"type":"tool_call","args":"x"}]}`),
		lf(head, `{"type":"compaction","id":"c","first_kept_entry_id":7,"tokens_before":"x"}`, `{"type":"label","id":"l"}`, `{"type":"channel","id":"h","name":5}`),
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		Detect(data)
		h, lines, err := readAll(open(data))
		if err != nil {
			if !errors.Is(err, interop.ErrNotSession) {
				t.Fatal(err)
			}
			return
		}
		var drafts []transcript.Draft
		for i, l := range lines {
			if l.Type == "" || l.ID == "" || bytes.IndexByte(l.Raw, '\n') >= 0 {
				t.Fatalf("line %d: %q", i, l.Raw)
			}
			drafts = append(drafts, transcript.Draft{Raw: l.Raw})
		}
		transcript.ResolveParents(lines)
		transcript.BuildContext(entriesOf(lines), transcript.Operator)
		var out bytes.Buffer
		seq := transcript.Drafts(drafts...)
		last := ""
		if n := len(lines); n > 0 {
			last = lines[n-1].ID
		}
		if _, err := Write(&out, h, seq, last); err != nil {
			t.Fatal(err)
		}
		_, again, err := readAll(open(out.Bytes()))
		if err != nil || len(again) < len(lines) {
			t.Fatalf("%d lines, there were %d: %v\n%s", len(again), len(lines), err, out.Bytes())
		}
	})
}
