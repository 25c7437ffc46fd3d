package lifecycle_test

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"testing"

	"github.com/coppice-go/coppice"
	"github.com/coppice-go/coppice/backend/memory"
	"github.com/coppice-go/coppice/codec"
	"github.com/coppice-go/coppice/entry"
	"github.com/coppice-go/coppice/transcript"
)

// latin is text that is not UTF-8: its fourth byte is not.
const latin = "caf\xe9"

var latinJSON = json.RawMessage(`{"a":"` + latin + `"}`)

// textDoor is a call with text that is stored.
type textDoor struct {
	name, what string // the name in the error
	offset     int64
	call       func(s *coppice.Session, id string) error
}

// textDoors are all such calls of a session. id is that of an entry.
var textDoors = []textDoor{
	{"append a string", "message.content", 3, textAppend(entry.User(latin))},
	{"append JSON", "message", 9, textAppend(entry.Message(latinJSON))},
	{"append a line", "line", 12, textAppend(entry.Line([]byte(`{"type":"` + latin + `","id":"x"}`)))},
	{"append a body", "body", 9, textAppend(transcript.Draft{Type: "x", Body: latinJSON})},
	{"append an id", "id", 3, textAppend(transcript.Draft{Type: "x", ID: latin})},
	{"append a parent", "parent", 3, textAppend(transcript.Draft{Type: "x", Parent: latin})},
	{"append a type", "type", 3, textAppend(transcript.Draft{Type: latin})},
	{"the second of two", "message.content", 3, textAppend(entry.User("fine"), entry.User(latin))},
	{"turn: entries", "message", 9, textCommit(coppice.Turn{Entries: []transcript.Draft{entry.Message(latinJSON)}})},
	{"turn: state", "state.note", 3, textCommit(coppice.Turn{State: struct {
		Note string `json:"note"`
	}{latin}})},
	{"turn: state as JSON", "state", 9, textCommit(coppice.Turn{State: latinJSON})},
	{"turn: manager", "manager", 9, textCommit(coppice.Turn{Manager: latinJSON})},
	{"turn: document", `document "d"`, 9, textCommit(coppice.Turn{Docs: map[string]any{"d": latinJSON}})},
	{"turn: key", "idempotency key", 3, textCommit(coppice.Turn{Key: latin})},
	{"edit", "message.content", 3, func(s *coppice.Session, id string) error {
		_, err := s.Edit(bg, id, entry.User(latin))
		return err
	}},
	{"move: key", "idempotency key", 3, func(s *coppice.Session, id string) error {
		_, err := s.Edit(bg, id, entry.User("fine"), coppice.WithKey(latin))
		return err
	}},
	{"amend", "body", 20, func(s *coppice.Session, id string) error {
		body := json.RawMessage(`{"message":{"text":"` + latin[3:] + `"}}`)
		_, err := s.Amend(bg, id, transcript.Draft{Type: "message", Body: body})
		return err
	}},
	{"branch: name", "branch name", 3, textBranch(coppice.BranchOptions{Name: latin})},
	{"branch: summary", "branch summary", 3, textBranch(coppice.BranchOptions{Name: "b", Summary: latin})},
	{"branch: details", "body", -1, textBranch(coppice.BranchOptions{Name: "b", Summary: "fine", Details: latinJSON})},
	{"label", "label", 3, func(s *coppice.Session, id string) error {
		_, err := s.Label(bg, id, latin)
		return err
	}},
	{"title", "title", 3, textInfo(coppice.InfoChange{Title: new(latin)})},
	{"directory", "working directory", 3, textInfo(coppice.InfoChange{Cwd: new(latin)})},
	{"metadata", "metadata k", 3, textInfo(coppice.InfoChange{Meta: map[string]*string{"k": new(latin)}})},
	{"context", "item 1", 9, func(s *coppice.Session, id string) error {
		return s.SetContext(bg, itemFor(id), itemOf(string(latinJSON)))
	}},
	{"partial output", "partial", 9, func(s *coppice.Session, _ string) error { return s.Partial(bg, latinJSON) }},
	{"snapshot", "tag", 3, func(s *coppice.Session, _ string) error {
		_, err := s.Snapshot(bg, latin)
		return err
	}},
}

func textAppend(d ...transcript.Draft) func(*coppice.Session, string) error {
	return func(s *coppice.Session, _ string) error {
		_, err := s.Append(bg, d...)
		return err
	}
}

func textCommit(turn coppice.Turn) func(*coppice.Session, string) error {
	return func(s *coppice.Session, _ string) error {
		_, err := s.Commit(bg, turn)
		return err
	}
}

func textBranch(o coppice.BranchOptions) func(*coppice.Session, string) error {
	return func(s *coppice.Session, id string) error {
		_, err := s.Branch(bg, id, &o)
		return err
	}
}

func textInfo(c coppice.InfoChange) func(*coppice.Session, string) error {
	return func(s *coppice.Session, _ string) error {
		_, err := s.SetInfo(bg, c)
		return err
	}
}

// notText checks the error of such a call.
func notText(t *testing.T, door, what string, offset int64, err error) {
	t.Helper()
	e, typed := errors.AsType[*coppice.Error](err)
	text, named := errors.AsType[*codec.TextError](err)
	if !typed || !named || !errors.Is(err, codec.ErrText) {
		t.Errorf("%s: %v, want codec.ErrText", door, err)
		return
	}
	if e.Object != what || e.Object != text.What || e.Offset != text.Offset || offset >= 0 && e.Offset != offset {
		t.Errorf("%s: %s at %d, want %s at %d: %v", door, e.Object, e.Offset, what, offset, err)
	}
	same(t, door+": there is a hint", e.Hint != "", true)
}

// Text that is not UTF-8 is refused by every call of a session, before anything is written: store and handle are as
// they were, and the handle stays usable.
func TestTextIsRefused(t *testing.T) {
	for name, openBackend := range backends {
		t.Run(name, func(t *testing.T) {
			b := openBackend(t)
			store := newStore(t, b, nil)
			s := create(t, store, "s", nil)
			id := must(s.Append(bg, entry.User("fine")))(t)[0]
			commit(t, s, state{Turns: 1})
			before := objects(t, b)
			for _, door := range textDoors {
				notText(t, door.name, door.what, door.offset, door.call(s, id))
			}
			same(t, "nothing was written", maps.Equal(objects(t, b), before), true)
			same(t, "nothing is pending", len(collect(t, s.Entries(bg))), 1)
			same(t, "the handle goes on", commit(t, s, state{Turns: 2}).Seq, 2)
			same(t, "and has what is its own", stateOf(t, s).Turns, 2)
		})
	}
}

// It is also refused in the input of a new session: options, imported lines and headers, forks, the name of the writer,
// and the results of hooks.
func TestTextOfNewSessionsIsRefused(t *testing.T) {
	b := memory.New()
	store := newStore(t, b, nil)
	s := create(t, store, "s", nil)
	must(s.Append(bg, entry.User("fine"), entry.Assistant("well")))(t)
	commit(t, s, nil)
	before := objects(t, b)
	for what, o := range map[string]coppice.SessionOptions{
		"title": {Title: latin}, "working directory": {Cwd: latin}, "parent": {Parent: latin},
		"metadata k": {Meta: map[string]string{"k": latin}},
	} {
		_, err := store.Create("n", &o)
		notText(t, "create", what, 3, err)
		_, err = store.Import(bg, textLines(`{"type":"session","version":3,"id":"x"}`), &o)
		notText(t, "import", what, 3, err)
		if o.Parent == "" { // the parent of a fork is the session
			_, err = s.Fork(bg, coppice.Target{}, "f", &o)
			notText(t, "fork", what, 3, err)
		}
	}
	const header, line = `{"type":"session","id":"` + latin + `"}`, `{"type":"x","id":"` + latin + `"}`
	_, err := store.Import(bg, textLines(header), nil)
	notText(t, "import", "header", 27, err)
	_, err = store.Import(bg, textLines(`{"type":"x","id":"1"}`, line), nil)
	notText(t, "import", "line", 21, err)
	same(t, "nothing was written", maps.Equal(objects(t, b), before), true)

	_, err = coppice.New(b, &coppice.Options{Writer: latin})
	notText(t, "new", "writer", 3, err)

	o := fixedOptions()
	o.Hooks.BeforeAppend = func(_ context.Context, d *transcript.Draft) error {
		d.Body = json.RawMessage(`{"message":` + string(latinJSON) + `}`)
		return nil
	}
	hooked := open(t, newStore(t, b, o), "s")
	_, err = hooked.Append(bg, entry.User("fine"))
	notText(t, "hook of an append", "body", 20, err)
	same(t, "nothing was written", maps.Equal(objects(t, b), before), true)
}

// textLines yields lines.
func textLines(lines ...string) func(yield func(transcript.Draft, error) bool) {
	return func(yield func(transcript.Draft, error) bool) {
		for _, line := range lines {
			if !yield(entry.Line([]byte(line)), nil) {
				return
			}
		}
	}
}
