package transcript

import (
	"bufio"
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/coppice-go/coppice/codec"
	"github.com/coppice-go/coppice/internal/testutil"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// golden compares got with testdata/name, or writes it under -update.
func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	testutil.Golden(t, *update, filepath.Join("testdata", name), got)
}

func flagNames(flags uint8) string {
	var names []string
	for _, f := range []struct {
		bit  uint8
		name string
	}{
		{codec.FlagText, "text"},
		{codec.FlagCalls, "calls"},
		{codec.FlagFailed, "failed"},
		{codec.FlagCommit, "commit"},
		{codec.FlagOrphan, "orphan"},
		{codec.FlagDiagnosed, "diagnosed"},
		{codec.FlagVisible, "visible"},
		{codec.FlagAmend, "amend"},
	} {
		if flags&f.bit != 0 {
			names = append(names, f.name)
		}
	}
	return strings.Join(names, ",")
}

// TestRowGolden shows the row of one line of every kind.
func TestRowGolden(t *testing.T) {
	p, err := os.ReadFile(filepath.Join("testdata", "rows.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	var rows []codec.Row
	s := bufio.NewScanner(bytes.NewReader(p))
	for s.Scan() {
		l, err := ParseLine(bytes.Clone(s.Bytes()))
		if err != nil {
			t.Fatalf("%s: %v", s.Bytes(), err)
		}
		r := RowOf(l, int64(len(rows))-1)
		fmt.Fprintf(&out, "%s %s/%s [%s] %q", r.ID, r.Type, r.Role, flagNames(r.Flags), r.Preview)
		if r.Target != "" {
			fmt.Fprintf(&out, " -> %s", r.Target)
		}
		out.WriteByte('\n')
		rows = append(rows, r)
	}
	golden(t, "rows.golden", out.Bytes())

	// A skeleton takes every row and returns it.
	sk, err := codec.EncodeSkeleton(0, rows)
	if err != nil {
		t.Fatal(err)
	}
	dec, err := codec.DecodeSkeleton(sk)
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range rows {
		if d := cmp.Diff(want, dec.Row(i)); d != "" {
			t.Errorf("row %d: -want +got\n%s", i, d)
		}
	}
}

func TestRowFields(t *testing.T) {
	raw := []byte(`{"type":"message","id":"i","parentId":"p","timestamp":"2026-01-01T00:00:00.500Z","message":{"role":"user","content":"hi"}}`)
	l, err := ParseLine(raw)
	if err != nil {
		t.Fatal(err)
	}
	want := codec.Row{
		ID: "i", Parent: 7, Type: "message", Role: "user", Flags: codec.FlagText | codec.FlagVisible,
		Size: uint32(len(raw)), Time: 1767225600500, Preview: "hi",
	}
	if d := cmp.Diff(want, RowOf(l, 7)); d != "" {
		t.Errorf("-want +got\n%s", d)
	}
	skill := []byte(`{"type":"custom_message","id":"i","customType":"skill-prompt","content":"Do it as follows.",` +
		`"display":true,"details":{"prompt":"/skill:do it"},"attribution":"user"}`)
	for raw, want := range map[string]string{
		string(skill): "user /skill:do it",
		string(bytes.Replace(skill, []byte(`"prompt"`), []byte(`"name"`), 1)): "user Do it as follows.",
		string(bytes.Replace(skill, []byte(`"user"`), []byte(`"agent"`), 1)):  " Do it as follows.",
	} {
		if r := RowOf(Line{Type: "custom_message", Raw: []byte(raw)}, 0); r.Role+" "+r.Preview != want {
			t.Errorf("%s: %q %q, want %q", raw, r.Role, r.Preview, want)
		}
	}
	if r := RowOf(Line{Type: "leaf"}, codec.NoParent); r.Time != 0 || r.Parent != -1 {
		t.Errorf("no time, no parent: got %+v", r)
	}
	long := strings.Repeat("t", nameMax+1)
	for _, raw := range []string{`{"targetId":"` + long + `"}`, `{"message":{"role":"` + long + `"}}`} {
		for _, typ := range []string{"label", "message"} {
			if r := RowOf(Line{Type: typ, Raw: []byte(raw)}, 0); r.Target != "" || r.Role != "" {
				t.Errorf("%s: an endless name was kept", typ)
			}
		}
	}
}
