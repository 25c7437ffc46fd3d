package scenarios_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/coppice-go/coppice"
	"github.com/coppice-go/coppice/backend"
	"github.com/coppice-go/coppice/checkpoint"
	"github.com/coppice-go/coppice/entry"
	"github.com/coppice-go/coppice/internal/testutil"
	"github.com/coppice-go/coppice/transcript"
)

// nested returns an object of a depth.
func nested(depth int) json.RawMessage {
	return json.RawMessage(strings.Repeat(`{"a":`, depth) + "1" + strings.Repeat("}", depth))
}

// nesting is one way to store nested JSON. around is the number of levels that a line of the log has around it.
type nesting struct {
	name   string
	around int
	write  func(ctx context.Context, s *coppice.Session, first string, p json.RawMessage) error
}

func nestings() []nesting {
	turn := func(make func(p json.RawMessage) coppice.Turn) func(
		context.Context, *coppice.Session, string, json.RawMessage,
	) error {
		return func(ctx context.Context, s *coppice.Session, _ string, p json.RawMessage) error {
			_, err := s.Commit(ctx, make(p))
			return err
		}
	}
	own := func(d transcript.Draft) coppice.Turn { return coppice.Turn{Entries: []transcript.Draft{d}} }
	message := func(p json.RawMessage) transcript.Draft {
		return entry.Message(json.RawMessage(`{"role":"user","content":"deep","more":` + string(p) + `}`))
	}
	return []nesting{
		{"state", 3, turn(func(p json.RawMessage) coppice.Turn { return coppice.Turn{State: p} })},
		{"manager", 3, turn(func(p json.RawMessage) coppice.Turn { return coppice.Turn{Manager: p} })},
		{"document", 4, turn(func(p json.RawMessage) coppice.Turn {
			return coppice.Turn{Docs: map[string]any{"d": p}}
		})},
		{"message", 2, turn(func(p json.RawMessage) coppice.Turn { return own(message(p)) })},
		{"custom", 1, turn(func(p json.RawMessage) coppice.Turn { return own(entry.Custom("k", p)) })},
		{"line", 1, turn(func(p json.RawMessage) coppice.Turn {
			return own(entry.Line([]byte(`{"type":"custom","id":"own","parentId":null,"x":` + string(p) + `}`)))
		})},
		{"amendment", 4, func(ctx context.Context, s *coppice.Session, first string, p json.RawMessage) error {
			_, err := s.Amend(ctx, first, message(p))
			return err
		}},
		{"context", 6, func(ctx context.Context, s *coppice.Session, _ string, p json.RawMessage) error {
			err := s.SetContext(ctx, itemOf(`{"role":"user","content":"deep","more":`+string(p)+`}`))
			if err != nil {
				return err
			}
			_, err = s.Commit(ctx, coppice.Turn{})
			return err
		}},
	}
}

// Every acknowledged commit can be read, however deep its JSON is; JSON that is too deep is refused before anything is
// stored, and the handle stays usable. The bound is that of a line, minus the levels around the value.
func TestNesting(t *testing.T) {
	testutil.SkipLong(t)
	for _, n := range nestings() {
		t.Run(n.name, func(t *testing.T) {
			onEach(t, func(t *testing.T, store *coppice.Store) {
				bound := checkpoint.MaxDepth - n.around
				for depth := bound - 3; depth <= bound+3; depth++ {
					// A small document is stored in the line whole, a large one as a patch, if possible.
					for size, note := range []string{"", strings.Repeat("x", 32<<10)} {
						nestingHolds(t, store, strings.Repeat("s", depth-bound+4)+string(rune('0'+size)), note, n, depth, bound)
					}
				}
			})
		})
	}
}

func nestingHolds(t *testing.T, store *coppice.Store, id, note string, n nesting, depth, bound int) {
	t.Helper()
	s := create(t, store, id, nil)
	first := say(t, s, "u1", "a1")[0]
	must(s.Commit(bg, coppice.Turn{
		State: state{Turns: 1}, Manager: note, Docs: map[string]any{"other": note},
	}))(t)
	before := s.Head()
	err := n.write(bg, s, first, nested(depth))
	switch {
	case depth > bound && err == nil:
		t.Errorf("depth %d of %d: stored", depth, bound)
	case depth <= bound && err != nil:
		t.Errorf("depth %d of %d: %v", depth, bound, err)
	case err != nil:
		if !errors.Is(err, backend.ErrTooLarge) && !errors.Is(err, transcript.ErrLine) {
			t.Errorf("depth %d: error %v", depth, err)
		}
		same(t, "head after a refusal", s.Head(), before)
		same(t, "stored after a refusal", must(store.Open(bg, id, nil))(t).Head(), before)
	}
	must(s.Commit(bg, coppice.Turn{Entries: []transcript.Draft{entry.User("u2")}, State: nested(1)}))(t)
	must(s.Branch(bg, first, &coppice.BranchOptions{Name: "again"}))(t)
	ok(t, s.Close())
	nestingReads(t, store, id, depth)
}

// nestingReads reads everything in a session.
func nestingReads(t *testing.T, store *coppice.Store, id string, depth int) {
	t.Helper()
	s := open(t, store, id)
	for _, p := range []coppice.Page{{}, {All: true}, {All: true, Reverse: true}} {
		for _, err := range s.Page(bg, p) {
			if err != nil {
				t.Errorf("depth %d: page %+v: %v", depth, p, err)
			}
		}
	}
	collect(t, s.Entries(bg))
	collect(t, s.Originals(bg))
	for c, err := range s.Log(bg, coppice.Target{}) {
		ok(t, err)
		v := must(s.At(bg, coppice.Target{Commit: c.Commit}))(t)
		must(v.Context(bg))(t)
		collect(t, v.Path(bg))
	}
	for _, p := range must(store.Verify(bg, id, true))(t).Problems {
		t.Errorf("depth %d: %v", depth, p)
	}
}
