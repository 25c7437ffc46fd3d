package layout_test

import (
	"strings"
	"testing"

	"github.com/coppice-go/coppice/backend"
	"github.com/coppice-go/coppice/internal/layout"
)

// Whatever somebody calls a session: it is refused, or it has one name that is a key, that no file system
// folds together with another's, and that leads back to the id (I4).
func FuzzEscape(f *testing.F) {
	for _, id := range []string{
		"", "a", "A", "_", "_a", "__", "a.b", "..", ".a", "a.", "a/b", `a\b`, "a\x00b", "CON", "con.txt", "ä", "0192f3a0-0000-7000-8000-000000000001",
		strings.Repeat("A", 128), strings.Repeat("_", 128), strings.Repeat("A", 127) + "a", strings.Repeat("x", 129),
	} {
		f.Add(id, "a_")
	}
	f.Fuzz(func(t *testing.T, a, b string) {
		for _, id := range []string{a, b} {
			if layout.ValidID(id) != nil {
				continue
			}
			name := layout.Escape(id)
			if strings.ContainsAny(name, "/\\\x00") || strings.ToLower(name) != name || strings.HasPrefix(name, ".") || strings.HasSuffix(name, ".") {
				t.Fatalf("%q has the name %q", id, name)
			}
			for _, key := range []string{layout.CheckpointKey(id), layout.SessionPrefix(id) + "x"} {
				if err := backend.ValidKey(key); err != nil {
					t.Fatalf("%q: %v", id, err)
				}
			}
			if back, ok := layout.Unescape(name); !ok || back != id {
				t.Fatalf("%q came back as %q, %v", id, back, ok)
			}
		}
		if a != b && layout.ValidID(a) == nil && layout.ValidID(b) == nil && strings.EqualFold(layout.Escape(a), layout.Escape(b)) {
			t.Fatalf("%q and %q share a name", a, b)
		}
	})
}

// A name that is read is the one that is written for what was read: no object has two names (I4).
func FuzzNames(f *testing.F) {
	s := layout.Segment{First: 12, Epoch: 3, Rnd: "00ff00ff00ff00ff"}
	for _, name := range []string{
		s.Name(), s.PlainKey("s"), s.SealedKey("Id"), layout.IndexKey("s", 2, s), layout.CheckpointKey("A_b"), layout.TornKey("s", s, 7, s.Rnd),
		strings.ToUpper(s.Name()), "_." + strings.Repeat("a", 128), "99-" + s.Name(), "+1-" + s.Name(), "-1-" + s.Name(), "00-" + s.Name(), "",
	} {
		f.Add(name)
	}
	f.Fuzz(func(t *testing.T, name string) {
		last := name[strings.LastIndexByte(name, '/')+1:]
		if id, ok := layout.Unescape(name); ok && layout.Escape(id) != name {
			t.Fatalf("%q is read as %q, which has another name", name, id)
		}
		if s, ok := layout.ParseSegment(name); ok && s.Name() != name {
			t.Fatalf("%q is read as %q", name, s.Name())
		}
		if s, sealed, ok := layout.ParseSegmentKey(name); ok {
			want := s.PlainKey("x")
			if sealed {
				want = s.SealedKey("x")
			}
			if !strings.HasSuffix(want, "/"+last) {
				t.Fatalf("%q is read as %q", name, want)
			}
		}
		if level, s, ok := layout.ParseIndexKey(name); ok && !strings.HasSuffix(layout.IndexKey("x", level, s), "/"+last) {
			t.Fatalf("%q is read as %q", name, layout.IndexKey("x", level, s))
		}
	})
}
