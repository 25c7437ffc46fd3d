package operator

import (
	"io"
	"iter"

	"github.com/coppice-go/coppice/internal/rawjson"
	"github.com/coppice-go/coppice/interop"
	"github.com/coppice-go/coppice/interop/internal/piwriter"
	"github.com/coppice-go/coppice/transcript"
)

// Extend writes what was added to a session as lines that go after the last one of the file that it
// came from, which ends with a newline. entries are all of the session's in their order, the first
// known of which the reader gave.
//
// What is added hangs on entries that the file has: on the whole where the reader made several of one,
// and never on a leaf entry but on what it moved the head to, as operator itself continues. In the file
// a leaf entry hangs on the line that was left, and an entry below it would bring that line back.
//
// A leaf entry after them leads to head, "" = before the first entry, where the last line does not.
func Extend(
	w io.Writer, _ interop.Header, known int, entries iter.Seq2[transcript.Draft, error], head string,
) (interop.Losses, error) {
	s := filePlaces{parts: map[string]string{}, moves: map[string]string{}, ends: map[string]string{}}
	losses, err := preparer.Append(w, known, entries, head, target,
		piwriter.Existing{See: s.known, Fit: s.added, Place: s.hook})
	if end, ok := s.ends[s.whole(head)]; err == nil && ok && end != head {
		losses[LostWithin]++
	}
	return losses, err
}

// LostWithin is the kind of loss of a head that is one of the messages of an entry, and not the last.
const LostWithin = "the place where the session stands, among the results of tools in one entry: the file opens " +
	"behind them all"

// filePlaces has the file's entries for those of the session: for parts of an entry the whole, and for a move of
// the head, on which nothing is to hang, the entry that it leads to, "" = none. ends has the last part of a whole.
type filePlaces struct{ parts, moves, ends map[string]string }

// whole returns the id of the entry that the file has.
func (s filePlaces) whole(id string) string {
	if of, ok := s.parts[id]; ok {
		return of
	}
	return id
}

// hook returns the id of the entry to hang on.
func (s filePlaces) hook(id string) string {
	if to, ok := s.moves[id]; ok {
		return to
	}
	return s.whole(id)
}

// known takes an entry that the file has.
func (s filePlaces) known(l transcript.Line) {
	delete(s.parts, l.ID)
	if of := rawjson.Text(rawjson.Field(l.Raw, partOf)); of != "" && l.Type == "message" {
		s.parts[l.ID], s.ends[of] = of, l.ID
	}
	s.move(l)
}

// move notes that a leaf entry leads to what it hangs on: the reader put it below its target.
func (s filePlaces) move(l transcript.Line) {
	if l.Type == "leaf" {
		s.moves[l.ID] = s.hook(l.ParentID)
	} else {
		delete(s.moves, l.ID)
	}
}

// added returns the line of an entry that the file does not have yet.
func (s filePlaces) added(l transcript.Line) []byte {
	raw := l.Raw
	for _, name := range []string{"parentId", "targetId", "firstKeptEntryId", "fromId"} {
		was := rawjson.Text(rawjson.Field(raw, name))
		is := s.whole(was)
		if name == "parentId" || name == "targetId" && l.Type == "leaf" {
			is = s.hook(was)
		}
		if is != was {
			raw = rawjson.WithField(raw, name, piwriter.OrNull(is))
		}
	}
	s.move(l)
	return raw
}
