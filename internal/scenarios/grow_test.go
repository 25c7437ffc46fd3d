package scenarios_test

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"testing"

	"github.com/coppice-go/coppice"
	"github.com/coppice-go/coppice/backend"
	"github.com/coppice-go/coppice/entry"
	"github.com/coppice-go/coppice/transcript"
)

// Grow adds new lines, notifies watchers, and does nothing if it cannot.
func TestGrow(t *testing.T) {
	onEachBackend(t, func(t *testing.T, b backend.Backend) {
		told := 0
		store := newStore(t, b, &coppice.Options{Hooks: coppice.Hooks{AfterCommit: func(*coppice.Session, coppice.Receipt) { told++ }}})
		grow := func(id string, raw []byte) (int, error) {
			lines, o := fileLines(raw)
			o.ID = id
			s, added, err := store.Grow(bg, lines, o)
			if err == nil {
				same(t, "entries", int(s.Info().Entries), added+3)
				err = s.Close()
			}
			return added, err
		}
		lines, o := fileLines(fileOf("say", 3))
		o.ID = "s"
		must(store.Import(bg, lines, o))(t)
		for _, c := range []struct {
			id    string
			raw   []byte
			added int
			err   error
		}{
			{"s", fileOf("say", 3), 0, nil},
			{"other", fileOf("say", 5), 0, fs.ErrNotExist},
			{"s", fileOf("tell", 5), 0, fs.ErrExist},
			{"s", fileOf("say", 2), 0, fs.ErrExist},
			{"s", fileOf("say", 5), 2, nil},
			{"s", fileOf("say", 3), 0, fs.ErrExist},
		} {
			added, err := grow(c.id, c.raw)
			var e *coppice.Error
			if !errors.Is(err, c.err) || added != c.added || err != nil && (!errors.As(err, &e) || e.Op != "grow" || e.Session != c.id) {
				t.Errorf("%s: %d, %v: want %d, %v", c.id, added, err, c.added, c.err)
			}
		}
		if _, _, err := store.Grow(bg, lines, nil); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("no session: %v", err)
		}
		same(t, "told", told, 2)
		same(t, "head", open(t, store, "s").Head().Entry, "m4")
	})
}

// A session whose entries have random ids of an earlier release grows without duplicates, and the parents of new
// entries are the ids that it has.
func TestGrowRandomIDs(t *testing.T) {
	v1 := func(n int) []byte {
		raw := []byte(`{"type":"session","id":"s","timestamp":"2026-01-01T00:00:00.000Z","cwd":"/w"}` + "\n")
		for i := range n {
			raw = fmt.Appendf(raw, `{"type":"message","timestamp":"2026-01-01T00:00:0%d.000Z",`+
				`"message":{"role":"user","content":"say %d","timestamp":1}}`+"\n", i, i)
		}
		return raw
	}
	onEachBackend(t, func(t *testing.T, b backend.Backend) {
		store := newStore(t, b, nil)
		lines, o := fileLines(v1(3))
		o.ID = "s"
		drawn := map[string]string{}
		must(store.Import(bg, func(yield func(transcript.Draft, error) bool) {
			for d, err := range lines {
				raw := string(d.Raw)
				if l := must(transcript.ParseLine(bytes.TrimSpace(d.Raw)))(t); l.Type != "session" {
					drawn[l.ID] = fmt.Sprintf("%s000-8000-%012d", l.ID[:15], len(drawn))
				}
				for made, id := range drawn {
					raw = strings.ReplaceAll(raw, made, id)
				}
				if !yield(entry.Line([]byte(raw)), err) {
					return
				}
			}
		}, o))(t)
		lines, o = fileLines(v1(5))
		o.ID = "s"
		s, added, err := store.Grow(bg, lines, o)
		if err != nil || added != 2 {
			t.Fatalf("%d entries added, %v", added, err)
		}
		up := ""
		for e, err := range s.Entries(bg) {
			if err != nil || e.ParentID != up {
				t.Errorf("entry %s hangs on %q, not on %q: %v", e.ID, e.ParentID, up, err)
			}
			up = e.ID
		}
		same(t, "entries", int(s.Info().Entries), 5)
	})
}
