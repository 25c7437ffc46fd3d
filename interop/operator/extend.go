package operator

import (
	"io"
	"iter"

	"github.com/coppice-go/coppice/internal/rawjson"
	"github.com/coppice-go/coppice/interop"
	"github.com/coppice-go/coppice/interop/internal/piwriter"
	"github.com/coppice-go/coppice/transcript"
)

// Extend writes the entries added to a session as lines to append to its original file, which ends with a newline.
// entries are all of the session's in order; the reader returned the first known of them.
//
// The parents of added entries are entries of the file: the whole entry if the reader split it, and never a leaf entry
// but its target, as operator itself continues. (In the file, the parent of a leaf entry is the abandoned line; an
// entry below it would continue that line.)
//
// If the last line is not at head ("" = before the first entry), a leaf entry that moves there follows.
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

// LostWithin is the loss of a head at one of the messages of an entry that is not the last.
const LostWithin = "the place where the session stands, among the results of tools in one entry: the file opens " +
	"behind them all"

// filePlaces maps entries of the session to the file's. parts has the whole entry for each part, moves the target of
// each leaf entry ("" = none), and ends the last part of each whole entry.
type filePlaces struct{ parts, moves, ends map[string]string }

// whole returns the ID of the file's entry.
func (s filePlaces) whole(id string) string {
	if of, ok := s.parts[id]; ok {
		return of
	}
	return id
}

// hook returns the ID of the entry that can be a parent.
func (s filePlaces) hook(id string) string {
	if to, ok := s.moves[id]; ok {
		return to
	}
	return s.whole(id)
}

// known records an entry of the file.
func (s filePlaces) known(l transcript.Line) {
	delete(s.parts, l.ID)
	if of := rawjson.Text(rawjson.Field(l.Raw, partOf)); of != "" && l.Type == "message" {
		s.parts[l.ID], s.ends[of] = of, l.ID
	}
	s.move(l)
}

// move records the target of a leaf entry: its parent, because the reader put it there.
func (s filePlaces) move(l transcript.Line) {
	if l.Type == "leaf" {
		s.moves[l.ID] = s.hook(l.ParentID)
	} else {
		delete(s.moves, l.ID)
	}
}

// added returns the line of an entry that is not in the file.
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
