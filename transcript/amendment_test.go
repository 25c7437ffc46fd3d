package transcript

import (
	"bytes"
	"encoding/json"
	"errors"
	"testing"
	"time"

	"github.com/coppice-go/coppice/codec"
)

func parsed(t testing.TB, raw string) Entry {
	t.Helper()
	l, err := ParseLine([]byte(raw))
	if err != nil {
		t.Fatal(err)
	}
	return l.Entry(0)
}

// TestAmendmentGolden holds the lines of amendments, the lines that they make of the entries, and their rows.
func TestAmendmentGolden(t *testing.T) {
	at := time.Date(2026, 11, 23, 10, 0, 0, 0, time.UTC)
	user := parsed(t, `{"type":"message","id":"u","parentId":null,"timestamp":"2026-11-20T10:00:00.000Z",`+
		`"message":{"role":"user","content":"one"},"note":1}`)
	imported := parsed(t, `{ "id" : "i", "message" : {"role":"assistant","content":[]}, "type":"message", "timestamp":1767225600 }`)
	kept := parsed(t, `{"type":"compaction","id":"c","parentId":"u","timestamp":"2026-11-20T10:00:00.000Z",`+
		`"summary":"long","firstKeptEntryId":"u","tokensBefore":9}`)
	var out bytes.Buffer
	for _, a := range []struct {
		of    Entry
		body  string
		first bool
	}{
		{user, `{"message": {"role":"user", "content":"two \u00e9 1.50"}}`, true},
		{user, "", false},
		{imported, `{"message":{"role":"assistant","content":[{"type":"toolCall","id":"x","name":"bash"}]}}`, false},
		{imported, `{}`, false},
		{kept, `{"summary":"short","firstKeptEntryId":"u"}`, false},
	} {
		var body json.RawMessage
		if a.body != "" {
			body = json.RawMessage(a.body)
		}
		d, err := a.of.Amend(body, a.first)
		if err != nil {
			t.Fatal(err)
		}
		line, err := d.Line("a", "u", at)
		if err != nil {
			t.Fatal(err)
		}
		e := parsed(t, string(line))
		says, ok := e.Amendment()
		if !ok || says.ID != "a" || says.Target != a.of.ID || says.First != a.first {
			t.Errorf("%s: read as %+v", line, says)
		}
		now := a.of.Amended(says)
		row := RowOf(Line{Type: e.Type, ID: e.ID, Raw: e.Raw}, 0)
		out.Write(append(append(line, '\n'), append(now.Raw, '\n')...))
		out.WriteString(row.Role + "|" + flagNames(row.Flags) + "|" + row.Preview + "|" + row.Target + "\n")
		if now.AmendedBy != "a" || now.Hidden != (body == nil) || now.ID != a.of.ID {
			t.Errorf("%s: made %+v", line, now)
		}
	}
	golden(t, "amendments.golden", out.Bytes())
}

// An entry that is no amendment, or one that cannot apply, changes nothing.
func TestNoAmendment(t *testing.T) {
	for _, raw := range []string{
		`{"type":"custom","id":"a","customType":"other","targetId":"u","data":{"type":"message","hidden":true},"x":"coppice.amend"}`,
		`{"type":"message","id":"a","customType":"coppice.amend","targetId":"u","data":{"type":"message","hidden":true}}`,
		`{"type":"custom","id":"a","customType":"coppice.amend","data":{"type":"message","hidden":true}}`,
		`{"type":"custom","id":"a","customType":"coppice.amend","targetId":"u","data":{"type":"label","hidden":true}}`,
		`{"type":"custom","id":"a","customType":"coppice.amend","targetId":"u","data":{"type":"compaction","hidden":true}}`,
		`{"type":"custom","id":"a","customType":"coppice.amend","targetId":"u","data":{"type":"message"}}`,
		`{"type":"custom","id":"a","customType":"coppice.amend","targetId":"u","data":{"type":"message","body":[]}}`,
		`{"type":"custom","id":"a","customType":"coppice.amend","targetId":"u","data":{"type":"message","body":{"id":"v"}}}`,
		`{"type":"custom","id":"a","customType":"coppice.amend","targetId":"u","data":{"type":"custom","body":{"customType":"coppice.amend"}}}`,
	} {
		e := parsed(t, raw)
		if a, ok := e.Amendment(); ok {
			t.Errorf("%s: read as %+v", raw, a)
		}
		if RowOf(Line{Type: e.Type, ID: e.ID, Raw: e.Raw}, 0).Flags&codec.FlagAmend != 0 {
			t.Errorf("%s: its row is an amendment's", raw)
		}
	}
	kept := parsed(t, `{"type":"compaction","id":"c","summary":"s","firstKeptEntryId":"u"}`)
	if now := kept.Amended(Amendment{ID: "a", Target: "c", Type: "compaction", Body: json.RawMessage(`{"summary":"x"}`)}); now.AmendedBy != "" {
		t.Errorf("an amendment changed what a compaction keeps: %s", now.Raw)
	}
	if _, err := kept.Amend(json.RawMessage(`{"summary":"x"}`), false); !errors.Is(err, ErrNotAmendable) {
		t.Errorf("changing what a compaction keeps: %v", err)
	}
	for _, body := range []string{`[]`, `{"id":"x"}`, `{"a":1`, `{} {}`} {
		if d, err := parsed(t, `{"type":"message","id":"u"}`).Amend(json.RawMessage(body), false); err == nil {
			t.Errorf("body %s: %s", body, d.Body)
		}
	}
}

// FuzzAmended holds that an amended entry is a line of the same head, whatever the two lines hold.
func FuzzAmended(f *testing.F) {
	f.Add([]byte(`{"type":"message","id":"u","parentId":null,"message":{"role":"user","content":"x"}}`),
		[]byte(`{"type":"custom","id":"a","customType":"coppice.amend","targetId":"u","data":{"type":"message","body":{"message":{}}}}`))
	f.Add([]byte(`{"type":"message","id":"u","id":"v"}`),
		[]byte(`{"type":"custom","id":"a","customType":"coppice.amend","targetId":"v","data":{"type":"message","hidden":true}}`))
	f.Fuzz(func(t *testing.T, line, amendment []byte) {
		of, err := ParseLine(line)
		by, aerr := ParseLine(amendment)
		if err != nil || aerr != nil {
			return
		}
		a, ok := by.Entry(1).Amendment()
		if !ok {
			return
		}
		was := of.Entry(0)
		now := was.Amended(a)
		if now.AmendedBy == "" {
			return
		}
		l, err := ParseLine(now.Raw)
		if err != nil || l.ID != was.ID || l.Type != was.Type || l.ParentID != was.ParentID || !l.Time.Equal(was.Time) {
			t.Errorf("%s amended by %s is %s: %v", line, amendment, now.Raw, err)
		}
	})
}
