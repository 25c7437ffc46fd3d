package claudecode

import (
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/coppice-go/coppice/internal/rawjson"
	"github.com/coppice-go/coppice/interop"
)

// Bounds of the places where a reader can resume.
const (
	maxResumed = 256 << 10 // bytes from the place to the end of the file
	maxMissing = 16        // rows and calls that lines name and that are not in the file
)

// resumeState is the state of a reader at a place in the file. One row represents the lines before it; it is the parent
// of the first line.
type resumeState struct {
	Version int             `json:"v"`
	Session string          `json:"session"`
	Env     json.RawMessage `json:"env"`
	Up      string          `json:"up"`              // parent of the first entry
	Names   string          `json:"names"`           // key that its line names as the parent
	Model   string          `json:"model,omitempty"` // model in force there
	Last    int64           `json:"last"`            // time of the line before
	Rank    int             `json:"rank,omitempty"`  // of the line that named the session
	Title   string          `json:"title,omitempty"`
	Missing []string        `json:"missing,omitempty"` // keys of missing rows that lines name
	Unmet   []string        `json:"unmet,omitempty"`   // keys of missing calls that lines answer
	Outputs string          `json:"outputs,omitempty"` // names and sizes of the files with tool outputs
}

const resumeVersion = 1

// begun starts an index with the row of a state.
func (s *resumeState) begun(x *index, line int64) error {
	names, err := hex.DecodeString(s.Names)
	if err != nil || len(names) != len(lineKey{}) || s.Version != resumeVersion {
		return fmt.Errorf("the state of another release: %w", interop.ErrWhole)
	}
	x.Session, x.Begun, x.genuine = s.Session, s.Session, 1
	x.Created = time.UnixMilli(s.Last)
	x.Env = envelope{}
	for _, m := range splitMembers(nil, s.Env) {
		x.Env = append(x.Env, m)
	}
	if s.Rank > 0 {
		x.named = foundTitle{row: noRow, rank: s.Rank, text: s.Title}
		x.namings = append(x.namings, x.named)
	}
	key, isUUID := makeKey([]byte(s.Up))
	if !isUUID {
		x.odd = map[lineKey]string{key: s.Up}
	}
	r := lineRow{
		Key: key, Line: int32(line), Kind: kindAssistant, Model: x.Models.of([]byte(s.Model)), parent: noRow,
		call: noRow, link: noRow, Up: noRow, end: noRow, tail: noRow,
	}
	x.pieces, x.entered = [][]lineRow{append(make([]lineRow, 0, rowsPerChunk), r)}, 1
	x.byKey[lineKey(names)] = 0
	x.resumed = s
	return nil
}

// onlyNow reports whether the lines have a meaning without the lines before them. It must be called before resolve.
func (x *index) onlyNow() bool {
	ok := len(x.unmet) == 0 && len(x.titles) == 0 && x.forked == (lineKey{}) && x.sessions == 0
	for _, key := range x.resumed.Unmet {
		for call := range x.Calls {
			ok = ok && hex.EncodeToString(call[:]) != key
		}
	}
	for _, key := range x.resumed.Missing {
		k, err := hex.DecodeString(key)
		if err != nil || len(k) != len(lineKey{}) {
			return false
		}
		_, came := x.byKey[lineKey(k)]
		ok = ok && !came
	}
	if _, here := x.byKey[x.explicit]; x.explicit != (lineKey{}) && !here {
		return false
	}
	return ok
}

// stays reports whether the rows after the first one are linked only among themselves, as they would be in the whole
// file.
func (x *index) stays() bool {
	if x.flat || x.Children > 0 || x.AgentID != "" || len(x.Rows) < 2 || x.Rows[0].Flags&flagPast != 0 {
		return false
	}
	for i := 1; i < len(x.Rows); i++ {
		r := &x.Rows[i]
		switch {
		case !x.resumable(r, &x.Rows[1]):
			return false
		case i == 1:
			if r.link != 0 || r.parent != 0 {
				return false
			}
		case r.Flags&flagNamed != 0 && r.parent < 1, r.Kind.Speaks() && r.link < 1:
			return false
		}
	}
	return true
}

// resumable reports whether a row may follow first, the row of the resume state.
func (x *index) resumable(r, first *lineRow) bool {
	switch {
	case r.Flags&(flagSide|flagPart) != 0, r.Kind == kindBoundary, r.Kind == kindSummary:
		return false
	case r.Kind.Speaks() && r.Flags&flagNamed == 0:
		return false
	case r.Key != (lineKey{}) && (r.Flags&flagTimed == 0 || r.Time < first.Time):
		return false // a row before the first one may be written again
	}
	return true
}

// findMark finds the last row where a reader of the grown file can resume.
func (x *index) findMark() {
	n := len(x.Rows)
	if x.flat || x.Children > 0 || x.AgentID != "" || len(x.titles) > 0 || x.forked != (lineKey{}) || n < 2 ||
		x.Session == "" || x.Env == nil || len(x.missing()) > maxMissing || len(x.lost) > maxMissing {
		return
	}
	after := n - 1 // rows from here on have no parent before it
	from, high := x.rowsNear()
	low := x.openCalls(from)
	times := int64(1<<63 - 1) // the smallest time of the rows after
	for i := n - 1; i > from; i-- {
		r := &x.Rows[i]
		if r.Flags&(flagSide|flagPart|flagPast) != 0 || r.Kind == kindBoundary || r.Kind == kindSummary ||
			int(r.Line) <= x.noted {
			return
		}
		if low >= i && after >= i && high[i-from-1] < int32(i) && times >= r.Time && x.beginsHere(int32(i)) {
			x.mark = int32(i)
			return
		}
		if r.Kind.Speaks() && r.Flags&flagNamed == 0 {
			return
		}
		for _, at := range x.refersTo(r) {
			after = min(after, int(at))
		}
		if r.Key != (lineKey{}) {
			if r.Flags&flagTimed == 0 {
				return
			}
			times = min(times, r.Time)
		}
	}
}

// rowsNear returns the last row before those near the end of the file. For each of these, high has the last row to
// which a row up to it refers.
func (x *index) rowsNear() (from int, high []int32) {
	n := len(x.Rows)
	end := x.Rows[n-1].Offset + int64(x.Rows[n-1].Size)
	for from = n - 1; from > 0 && end-x.Rows[from].Offset <= maxResumed; {
		from--
	}
	last := noRow
	for i := range n {
		for _, at := range x.refersTo(&x.Rows[i]) {
			last = max(last, at)
		}
		if i >= from {
			high = append(high, last)
		}
	}
	return from, high
}

// refersTo returns the rows to which a row refers; noRow = a missing one.
func (x *index) refersTo(r *lineRow) []int32 {
	list := make([]int32, 0, 6)
	if r.Flags&flagNamed != 0 {
		list = append(list, r.parent)
	}
	if r.Kind == kindAgain || r.Kind == kindNewer {
		list = append(list, r.parent)
	}
	if r.Kind.Speaks() {
		list = append(list, r.link, r.head, r.Unit)
	}
	up := r.Up
	if r.Kind.Speaks() { // all pieces of a message have the first one's place
		if up = noRow; &x.Rows[r.head] == r {
			up = x.Rows[r.Unit].Up
		}
	}
	for _, at := range [...]int32{r.call, up} {
		if at != noRow {
			list = append(list, at)
		}
	}
	return list
}

// openCalls returns the first row near the end of the file with a call that has no result yet.
func (x *index) openCalls(from int) int {
	low := len(x.Rows)
	for _, row := range x.open {
		if int(row) > from {
			low = min(low, int(x.Rows[row].head))
		}
	}
	return low
}

// beginsHere reports whether a row continues from the newest message before it, with an entry of its own.
func (x *index) beginsHere(i int32) bool {
	r := &x.Rows[i]
	if !r.Kind.Speaks() || r.Held > 0 || r.head != i || r.link == noRow || r.Flags&(flagNamed|flagTimed) !=
		flagNamed|flagTimed || r.parent == noRow || r.parent >= i || r.At > 0 || x.Rows[i-1].Line == r.Line {
		return false
	}
	for at := i - 1; at != r.link; at-- {
		if at < 0 || x.Rows[at].Kind.Speaks() {
			return false
		}
	}
	for at := i; at < r.Unit; at++ {
		if x.Rows[at].Unit != r.Unit {
			return false
		}
	}
	up := x.Rows[r.Unit].Up
	for up != noRow && !x.Rows[up].Kind.Speaks() {
		up = x.Rows[up].Up
	}
	return up != noRow && up < i && up == x.placeOf(x.onward(r.link, i))
}

// isMarked reports whether a row is the mark or a later one.
func (x *index) isMarked(row int32) bool { return x.mark != noRow && row >= x.mark }

// missing returns the keys of missing rows that lines name, at most maxMissing+1.
func (x *index) missing() (keys []lineKey) {
	if x.resumed != nil {
		return nil
	}
	for i := range x.Rows {
		r := &x.Rows[i]
		if r.Flags&flagNamed != 0 && r.parent == noRow && r.Kind != kindAgain && r.Kind != kindNewer {
			if keys = append(keys, r.names); len(keys) > maxMissing {
				break
			}
		}
	}
	return keys
}

// Mark returns the place where a reader of the grown file can resume.
func (r *Reader) Mark() *interop.Mark {
	x := r.x
	if x == nil || x.mark == noRow || x.first == "" || int(x.Rows[x.mark].Line) <= x.noted {
		return nil
	}
	row := &x.Rows[x.mark]
	place := x.placeOf(x.onward(row.link, x.mark))
	s := resumeState{
		Version: resumeVersion, Session: x.Session, Env: x.Env.Object(), Up: x.ID(x.Rows[row.Unit].Up),
		Names: hex.EncodeToString(row.names[:]), Model: x.Models.Text(x.Rows[place].Model), Last: x.markLast,
		Outputs: r.search().outputsNow(),
	}
	named := x.namedBefore(x.mark)
	s.Rank, s.Title = named.rank, named.text
	if old := x.resumed; old != nil {
		s.Missing, s.Unmet = old.Missing, old.Unmet
	}
	for _, k := range x.missing() {
		s.Missing = append(s.Missing, hex.EncodeToString(k[:]))
	}
	for _, k := range x.lost {
		s.Unmet = append(s.Unmet, hex.EncodeToString(k[:]))
	}
	state, err := json.Marshal(s)
	if err != nil {
		return nil
	}
	return &interop.Mark{Offset: row.Offset, Line: int64(row.Line - 1), Entry: x.first, State: string(state)}
}

// namedBefore returns the name of the session before a row.
func (x *index) namedBefore(row int32) (named foundTitle) {
	for _, t := range x.namings {
		if t.row < row {
			named = t
		}
	}
	return named
}

// outputsNow returns names and sizes of the files with tool outputs. If they change, the whole file must be imported
// again.
func (s *sidecar) outputsNow() string {
	if s.src.Beside == nil {
		return ""
	}
	var all strings.Builder
	for _, name := range s.list(s.folders(outputsFolder)) {
		size := int64(-1)
		if in, err := s.src.Beside(name); err == nil {
			if f, ok := in.(interface {
				Seek(int64, int) (int64, error)
			}); ok {
				size, err = f.Seek(0, io.SeekEnd)
			}
			if cerr := in.Close(); err != nil || cerr != nil {
				size = -1
			}
		}
		fmt.Fprintf(&all, "%s %d\n", name, size)
	}
	if all.Len() == 0 {
		return ""
	}
	k, _ := makeKey([]byte(all.String()))
	return hex.EncodeToString(k[:])
}

// resume makes the index of the lines from a mark on.
func (r *Reader) resume() error {
	var s resumeState
	if err := json.Unmarshal([]byte(r.o.From.State), &s); err != nil {
		return fmt.Errorf("%w: %w", interop.ErrWhole, err)
	}
	x, err := scanFile(r.src, r.o.From, &s)
	if err != nil {
		return err
	}
	r.x, r.spare, r.begun = x, make(chan *batch, 2*scanLanes+1), true
	if !x.stays() || r.search().outputsNow() != s.Outputs {
		r.x = nil
		return fmt.Errorf("%s: %w", r.src.Name, interop.ErrWhole)
	}
	return nil
}

// idOf returns the ID of an entry.
func idOf(raw []byte) string { return rawjson.Text(rawjson.Field(raw, "id")) }
