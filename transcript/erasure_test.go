package transcript

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"
)

// A stub has nothing of what the entry held, and is an entry that every reader can show.
func TestErase(t *testing.T) {
	at := time.Date(2026, 11, 28, 10, 0, 0, 0, time.UTC)
	var out bytes.Buffer
	cases := map[string]struct{ line, want string }{
		"user": {
			`{"type":"message","id":"a","parentId":"p","timestamp":"2026-01-01T00:00:00.000Z","message":` +
				`{"role":"user","content":[{"type":"text","text":"zorb"},{"type":"image","data":"zorb"}],"zorb":1}}`,
			`"message":{"role":"user","content":"[erased]"}`,
		},
		"assistant": {
			`{"type":"message","id":"a","parentId":"p","timestamp":"2026-01-01T00:00:00.000Z","message":` +
				`{"role":"assistant","content":[{"type":"thinking","thinking":"zorb"},{"type":"toolCall","id":"t",` +
				`"name":"Bash","arguments":{"zorb":"zorb"}}],"model":"m","usage":{"input":3,"cost":{"total":0.5}},` +
				`"errorMessage":"zorb"}}`,
			`"message":{"role":"assistant","content":[{"type":"text","text":"[erased]"},{"type":"toolCall","id":"t",` +
				`"name":"Bash","arguments":{}}],"model":"m","usage":{"input":3,"cost":{"total":0.5}}}`,
		},
		"result": {
			`{"type":"message","id":"a","parentId":"p","timestamp":"2026-01-01T00:00:00.000Z","message":` +
				`{"role":"toolResult","toolCallId":"t","toolName":"Bash","content":[{"type":"text","text":"zorb"}],` +
				`"details":{"x":"zorb"},"isError":true}}`,
			`"message":{"role":"toolResult","toolCallId":"t","toolName":"Bash","content":` +
				`[{"type":"text","text":"[erased]"}],"isError":false}`,
		},
		"results": {
			`{"type":"message","id":"a","parentId":"p","timestamp":"2026-01-01T00:00:00.000Z","message":` +
				`{"role":"user","content":[{"type":"tool_result","tool_use_id":"t","content":"zorb"},` +
				`{"type":"tool_result","tool_use_id":"u","content":"zorb"}]}}`,
			`{"type":"tool_result","tool_use_id":"u","content":"[erased]"}`,
		},
		"another role": {
			`{"type":"message","id":"a","parentId":"p","timestamp":"2026-01-01T00:00:00.000Z","message":` +
				`{"role":"bashExecution","command":"zorb"}}`,
			`{"type":"custom","id":"a","parentId":"p","timestamp":"2026-01-01T00:00:00.000Z",` +
				`"customType":"coppice.erased"`,
		},
		"compaction": {
			`{"type":"compaction","id":"a","parentId":"p","timestamp":"2026-01-01T00:00:00.000Z","summary":"zorb",` +
				`"firstKeptEntryId":"k","tokensBefore":12,"details":"zorb"}`,
			`"summary":"[erased]","firstKeptEntryId":"k","tokensBefore":12`,
		},
		"amendment": {
			`{"type":"custom","id":"a","parentId":"p","timestamp":"2026-01-01T00:00:00.000Z",` +
				`"customType":"coppice.amend","targetId":"b","data":{"type":"message","body":{"zorb":1}}}`,
			`"customType":"coppice.erased"`,
		},
	}
	for _, name := range slices.Sorted(maps.Keys(cases)) {
		c := cases[name]
		l, err := ParseLine([]byte(c.line))
		if err != nil {
			t.Fatal(name, err)
		}
		stub, err := l.Entry(3).Erase("asked", at)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		got := string(stub)
		out.WriteString(got + "\n")
		if strings.Contains(got, "zorb") || !strings.Contains(got, c.want) {
			t.Errorf("%s: %s", name, got)
		}
		is, err := ParseLine(stub)
		s, erased := is.Entry(3).Erased()
		if err != nil || is.ID != "a" || is.ParentID != "p" || !is.Time.Equal(l.Time) || !erased ||
			s.Type != l.Type || s.Reason != "asked" || !s.Time.Equal(at) {
			t.Errorf("%s: %s: %+v, %v, %v", name, got, s, erased, err)
		}
		if again, err := is.Entry(3).Erase("other", at); err != nil || string(again) != got {
			t.Errorf("%s: a stub became %s, %v", name, again, err)
		}
	}
	d, err := Erasure{
		Entries: []string{"a"}, States: []string{"", "/plan/3"}, Docs: []string{"notes"}, Reason: "asked",
	}.Draft()
	if err != nil {
		t.Fatal(err)
	}
	record, err := d.Parsed("e", "p", at)
	if err != nil {
		t.Fatal(err)
	}
	fmt.Fprintf(&out, "%s\n", record.Raw)
	if r, ok := record.Entry(4).Erasure(); !ok || len(r.States) != 2 || r.Docs[0] != "notes" {
		t.Errorf("%s: %+v", record.Raw, r)
	}
	golden(t, "erasure.golden", out.Bytes())
	for _, line := range []string{
		`{"type":"custom","id":"a","customType":"coppice.lost"}`, `{"type":"model_change","id":"a","modelId":"m"}`,
		`{"type":"leaf","id":"a","targetId":"b"}`,
	} {
		l, _ := ParseLine([]byte(line))
		if _, err := l.Entry(0).Erase("", at); !errors.Is(err, ErrNotErasable) {
			t.Errorf("%s: %v", line, err)
		}
	}
}

func TestErasure(t *testing.T) {
	d, err := Erasure{Entries: []string{"a", "b"}, Reason: "asked"}.Draft()
	if err != nil {
		t.Fatal(err)
	}
	l, err := d.Parsed("c", "b", time.Unix(0, 0))
	if err != nil {
		t.Fatal(err)
	}
	r, ok := l.Entry(1).Erasure()
	if !ok || len(r.Entries) != 2 || r.Reason != "asked" {
		t.Errorf("%+v, %v of %s", r, ok, l.Raw)
	}
}
