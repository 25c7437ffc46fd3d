package layout_test

import (
	"errors"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/coppice-go/coppice/backend"
	"github.com/coppice-go/coppice/internal/layout"
)

func TestValidID(t *testing.T) {
	for _, id := range []string{"a", "A", "0192f3a0-0000-7000-8000-000000000001", "a.b", "_", "-", strings.Repeat("x", 128)} {
		if err := layout.ValidID(id); err != nil {
			t.Errorf("%q: %v", id, err)
		}
	}
	for _, id := range []string{"", ".", "..", ".a", "a.", "a/b", `a\b`, "a b", " ", "ä", "a\x00", strings.Repeat("x", 129)} {
		if err := layout.ValidID(id); !errors.Is(err, layout.ErrID) {
			t.Errorf("%q: %v, want ErrID", id, err)
		}
	}
}

// Ids that differ stay apart even where the file system folds case, every name is a valid key, and
// the id comes back.
func TestEscapeKeepsIDsApart(t *testing.T) {
	gen := rapid.StringMatching(`[A-Za-z0-9_-][A-Za-z0-9._-]{0,126}[A-Za-z0-9_-]|[A-Z_]{128}|[A-C_]{1,3}`)
	rapid.Check(t, func(t *rapid.T) {
		a, b := gen.Draw(t, "a"), gen.Draw(t, "b")
		ea, eb := layout.Escape(a), layout.Escape(b)
		if a != b && strings.EqualFold(ea, eb) {
			t.Fatalf("%q and %q share the name %q", a, b, ea)
		}
		if err := backend.ValidKey(layout.CheckpointKey(a)); err != nil {
			t.Fatal(err)
		}
		if back, ok := layout.Unescape(ea); !ok || back != a {
			t.Fatalf("%q came back as %q, %v", a, back, ok)
		}
	})
}

func TestUnescapeRefusesForeignNames(t *testing.T) {
	for _, name := range []string{"", "A", "_", "_A", "_0", "_.abc", ".x", "a b"} {
		if id, ok := layout.Unescape(name); ok {
			t.Errorf("%q was read as %q", name, id)
		}
	}
}

func TestSegmentNames(t *testing.T) {
	s := layout.Segment{First: 12, Epoch: 3, Rnd: "00ff00ff00ff00ff"}
	for _, key := range []string{s.PlainKey("Id"), s.SealedKey("Id")} {
		got, sealed, ok := layout.ParseSegmentKey(key)
		if !ok || got != s || sealed != strings.HasSuffix(key, ".zst") {
			t.Errorf("%s: %+v %v %v", key, got, sealed, ok)
		}
		if err := backend.ValidKey(key); err != nil {
			t.Error(err)
		}
	}
	if want := "sessions/_id/transcript/00000000000000000012-00000000000000000003-00ff00ff00ff00ff.jsonl"; s.PlainKey("Id") != want {
		t.Errorf("got %s", s.PlainKey("Id"))
	}
	level, got, ok := layout.ParseIndexKey(layout.IndexKey("Id", 2, s))
	if level != 2 || got != s || !ok {
		t.Errorf("index: %d %+v %v", level, got, ok)
	}
	for _, bad := range []string{"x.jsonl", "1-2-3.jsonl", s.Name(), s.Name() + ".txt", strings.ToUpper(s.Name()) + ".jsonl"} {
		if _, _, ok := layout.ParseSegmentKey(bad); ok {
			t.Errorf("%s was read", bad)
		}
	}
}

// Ids that are derived from others never change: stores have sessions under them.
func TestDerivedIDs(t *testing.T) {
	for k, want := range []string{"s", "6b1641ff-3da4-83c4-a2d7-0bb73ce709b4"} {
		if got := layout.Apart("s", k); got != want {
			t.Errorf("session %d: %s, want %s", k, got, want)
		}
	}
}
