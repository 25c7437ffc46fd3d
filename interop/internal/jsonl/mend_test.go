package jsonl

import (
	"strings"
	"testing"

	"github.com/coppice-go/coppice/transcript"
)

func TestRemainsOf(t *testing.T) {
	for _, tt := range []struct{ piece, id, parent string }{
		{`{"type":"message","id":"a","parentId":"b","message":{"content":***}}`, `"a"`, `"b"`},
		{`{"type": "message", "id": "a", "parentId": null, "message": {"content": ***}}`, `"a"`, `null`},
		{`***"type":"message","id":"a","parentId":"b","message":{"id":"c"}}`, `"a"`, `"b"`},
		{`***{"message":{"id":"c"},"parentId":"b"}`, ``, `"b"`},
		{`{"id":"a","message":{"text":"\"parentId\":\"c\"`, `"a"`, ``},
		{`{"id":"` + strings.Repeat("a", 300) + `","parentId":"b"***`, ``, `"b"`},
		{`{"id":"","parentId":7***`, ``, ``},
		{`{"id":"a","parentId":"b`, `"a"`, ``},
		{`"parentId"`, ``, ``},
		{``, ``, ``},
	} {
		r := RemainsOf([]byte(tt.piece), "id", "parentId", false)
		if string(r.ID) != tt.id || string(r.Parent) != tt.parent {
			t.Errorf("%.80s: id %s, parent %s", tt.piece, r.ID, r.Parent)
		}
	}
	r := RemainsOf([]byte(`{"parentUuid":"b","x":***{"uuid":"c"},"uuid":"a"}`), "uuid", "parentUuid", true)
	if string(r.ID) != `"a"` || string(r.Parent) != `"b"` {
		t.Errorf("id %s, parent %s", r.ID, r.Parent)
	}
}

// TestMend: an entry takes the place of a damaged line only where another one hangs on it.
func TestMend(t *testing.T) {
	const a, b, c = `{"type":"m","id":"a","parentId":null}`, `{"type":"m","id":"b","parentId":"a"}`,
		`{"type":"m","id":"c","parentId":"b"}`
	broken := strings.Replace(b, "}", " ***}", 1)
	for name, tt := range map[string]struct{ file, want string }{
		"named":                      {a + "\n" + broken + "\n" + c + "\n", "a b:a c:b"},
		"not named":                  {a + "\n" + broken + "\n" + strings.ReplaceAll(b, `"b"`, `"c"`) + "\n", "a c:a"},
		"at the end":                 {a + "\n" + broken + "\n", "a"},
		"written again":              {a + "\n" + broken + "\n" + b + "\n" + c + "\n", "a b:a c:b"},
		"without a place":            {a + "\n***\n" + c + "\n", "a b:a c:b"},
		"without a place, not named": {a + "\n***\n" + b + "\n" + c + "\n", "a b:a c:b"},
		"without a parent":           {a + "\n" + `{"type":"m","id":"b"***` + "\n" + c + "\n", "a b:a c:b"},
		"two": {
			a + "\n" + broken + "\n***\n" + `{"type":"m","id":"d","parentId":"c"}` + "\n", "a b:a c:b d:c",
		},
		"no damage":         {a + "\n" + c + "\n", "a c:b"},
		"before everything": {"***\n" + c + "\n", "b c:b"},
	} {
		isEntry := func(l transcript.Line) bool { return l.ID != "" }
		s := NewEntryScanner(strings.NewReader(tt.file), "parentId", isEntry)
		var got []string
		for {
			e, err := s.Next()
			if err != nil {
				break
			}
			if e.Raw == nil {
				continue
			}
			if e.ParentID != "" {
				e.ID += ":" + e.ParentID
			}
			got = append(got, e.ID)
		}
		if strings.Join(got, " ") != tt.want {
			t.Errorf("%s: %v, want %s", name, got, tt.want)
		}
	}
}
