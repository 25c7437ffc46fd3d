package importer

import (
	"testing"

	coppice "github.com/coppice-go/coppice"
	"github.com/coppice-go/coppice/entry"
	"github.com/coppice-go/coppice/interop"
)

// A file whose last entry is a leaf entry continues where that points: the head is there, what is appended has it as
// its parent, also after the session was opened again.
func TestALeafEntryAtTheEndMovesTheHead(t *testing.T) {
	const at = `"timestamp":"2026-01-01T00:00:00.000Z"`
	pi := func(id, parent string) string {
		return `{"type":"message","id":"` + id + `","parentId":` + parent + `,` + at + `,"message":{"role":"user","content":"` + id + `","timestamp":1}}` + "\n"
	}
	tree := `{"type":"session","version":3,"id":"s","cwd":"/w",` + at + `}` + "\n" + pi("a", "null") + pi("b", `"a"`) + pi("c", `"b"`) + pi("d", `"b"`)
	leaf := func(parent, target string) string {
		return `{"type":"leaf","id":"l","parentId":` + parent + `,` + at + `,"targetId":` + target + `}` + "\n"
	}
	speak := func(id, parent string) string {
		return `{"type":"message","id":"` + id + `",` + parent + `"timestamp":1.5,"message":{"role":"user","content":[{"type":"text","content":"` + id + `"}]}}` + "\n"
	}
	operator := `{"type":"session","version":3,"id":"s","timestamp":1.5,"cwd":"/w"}` + "\n" + speak("a", "") + speak("b", `"parent_id":"a",`) + speak("c", `"parent_id":"b",`) + speak("d", `"parent_id":"b",`)
	for _, c := range []struct{ name, file, head, says string }{
		{"another branch", tree + leaf(`"d"`, `"c"`), "c", "abc"},
		{"an entry of the way", tree + leaf(`"d"`, `"b"`), "b", "ab"},
		{"before the first", tree + leaf(`"d"`, "null"), "", ""},
		{"nowhere", tree + leaf(`"d"`, `"gone"`), "l", "abd"},
		{"not the last entry", tree + leaf(`"d"`, `"c"`) + pi("e", `"c"`), "e", "abce"},
		{"another after it", tree + leaf(`"d"`, `"c"`) + `{"type":"leaf","id":"l2","parentId":"c",` + at + `,"targetId":"d"}` + "\n", "d", "abd"},
		{"operator", operator + `{"type":"leaf","id":"l","parent_id":"d","timestamp":1.5,"target_id":"c"}` + "\n", "c", "abc"},
		{"operator, before the first", operator + `{"type":"leaf","id":"l","parent_id":"d","timestamp":1.5}` + "\n", "", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			st := newStore(t)
			r, err := Import(t.Context(), st, interop.Bytes("f", []byte(c.file)), options())
			if err != nil {
				t.Fatal(err)
			}
			s, err := st.Open(t.Context(), r.Session, nil)
			if err != nil {
				t.Fatal(err)
			}
			if got := s.Head().Entry; got != c.head || spoken(t, s) != c.says {
				t.Errorf("the head is at %q and says %q; want %q, %q", got, spoken(t, s), c.head, c.says)
			}
			if _, err := s.Append(t.Context(), entry.User("z")); err != nil {
				t.Fatal(err)
			}
			if _, err := s.Commit(t.Context(), coppice.Turn{}); err != nil {
				t.Fatal(err)
			}
			if got := spoken(t, s); got != c.says+"z" {
				t.Errorf("with more said it says %q, want %q", got, c.says+"z")
			}
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			again, err := st.Open(t.Context(), r.Session, nil)
			if err != nil {
				t.Fatal(err)
			}
			if got := spoken(t, again); got != c.says+"z" {
				t.Errorf("opened again it says %q, want %q", got, c.says+"z")
			}
		})
	}
}

// spoken returns the texts of the messages of the context.
func spoken(t *testing.T, s *coppice.Session) string {
	t.Helper()
	c, err := s.Context(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	said := ""
	for _, m := range c.Messages {
		said += m.Text()
	}
	return said
}
