package transcript

import (
	"crypto/sha256"
	"encoding/binary"
	"math"
	"slices"

	"github.com/coppice-go/coppice/internal/rawjson"
)

// Where a window that has passed its bound begins is a function of the path that ends at its leaf. A place to begin at
// is a message of the user, or else a message before which every call of the same turn has its result. Its size is what
// a cut there leaves: the entries from it on, and the summaries before it. Of the places between 3/8 of the bound and
// the bound, those of the user first, the one with the highest hash of its id is the front; if there is none, the
// earliest place that fits, else the last one.
//
// The path only grows at its end, so that each place comes into this range once and leaves it once: the front moves
// when it leaves, or when a better place comes in. Both are known in advance as a number of bytes (front.due), and no
// place before the front can become the better one. So the front stays where it is for about a quarter of the bound,
// which is what prompt caches live on, and a push reads nothing but the entry that is pushed.

// scan reads entries of a path one by one. It knows which calls are open.
type scan struct {
	total int      // bytes of the entries that a context may read
	loose int      // of these, the bytes that a cut takes away
	quiet int      // bytes of the other entries
	open  []string // calls since the user spoke that have no result so far; never changed in place
	lost  bool     // calls before the first entry may be open
}

// place is where a window may begin.
type place struct {
	at    int    // bytes that a cut here takes away, of all that the scan has read
	index int    // of the entry in the window
	turn  bool   // the user speaks here
	rank  uint64 // hash of the entry's id
}

// beats reports whether p is the better place of two that are in range.
func (p place) beats(q place) bool {
	if p.turn != q.turn {
		return p.turn
	}
	return p.rank > q.rank
}

// read takes in the next entry of the path. ok: a window may begin with it.
func (s *scan) read(r rules, e Entry, stays bool) (p place, ok bool) {
	p.at = s.loose
	if r.silent(e.Type) {
		s.quiet += len(e.Raw)
		return p, false
	}
	s.total += len(e.Raw)
	if !stays {
		s.loose += len(e.Raw)
	}
	if !speaks(e) {
		return p, false
	}
	b := contextBuilder{rules: r}
	b.entry(e)
	if len(b.messages) == 0 {
		return p, false
	}
	l := b.links[0]
	p.turn = b.messages[0].Role == "user" && len(l.Results) == 0
	if p.turn {
		s.open, s.lost = nil, false
	}
	ok = len(s.open) == 0 && len(l.Results) == 0 && !s.lost
	for _, id := range l.Results {
		if i := slices.Index(s.open, id); i >= 0 {
			s.open = slices.Concat(s.open[:i], s.open[i+1:])
		}
	}
	for _, c := range l.Calls {
		s.open = append(slices.Clip(s.open), c.ID)
	}
	if ok {
		sum := sha256.Sum256([]byte(e.ID))
		p.rank = binary.BigEndian.Uint64(sum[:])
	}
	return p, ok
}

// speaks reports whether an entry belongs to the context as a message of its own, which a cut may take away.
func speaks(e Entry) bool { return e.Type == "message" || e.Type == "custom_message" }

// front is where a window begins, and up to when.
type front struct {
	place
	known bool // all entries of the window were read
	scan  scan // of these
	due   int  // scan.total from which on the window may have to begin elsewhere
}

// never is a scan.total that no path reaches.
const never = math.MaxInt

// follow takes in an entry that is about to be pushed. An edit may be of a summary: then all is read again.
func (w *WorkingContext) follow(e Entry) {
	f := &w.front
	if f.known = f.known && e.Type != "context_edit"; !f.known {
		return
	}
	p, ok := f.scan.read(w.rules, e, e.Type == "branch_summary")
	switch {
	case !ok:
	case f.scan.total-f.at > w.max:
		f.due = 0
	case p.beats(f.place):
		f.due = min(f.due, p.at+w.low())
	}
}

// low is the least size that the place is given at which a window begins, if there are such places.
func (w *WorkingContext) low() int { return w.max / 8 * 3 }

// trim moves the front of the window to where it has to be.
func (w *WorkingContext) trim() {
	if w.max < 0 || !w.front.known && w.omitted == 0 && w.bytes <= w.max {
		return
	}
	if f := &w.front; !f.known || f.scan.total >= f.due {
		w.merge()
		w.cutFront(scan{})
	}
	if w.bytes > w.max && w.front.scan.quiet > w.max/8 {
		w.merge()
		w.dropSilent()
		w.front.scan.quiet = 0
	}
}

// cutFront reads the whole window, chooses its front, and removes what is before it. It returns the size of the
// earliest place where a cut is possible, in bytes; 0 = none.
func (w *WorkingContext) cutFront(s scan) (most int) {
	stays := w.staying()
	first := place{at: math.MinInt / 2, turn: true, rank: math.MaxUint64} // where nothing is cut; no place beats it
	var places []place
	for i, e := range w.entries {
		if speaks(e) && first.at < 0 {
			first.at, first.index = s.loose, i
		}
		if p, ok := s.read(w.rules, e, stays[i]); ok {
			p.index = i
			places = append(places, p)
		}
	}
	f := front{place: first, known: true, scan: s, due: never}
	if len(places) > 0 && (w.omitted > 0 || s.total-first.at > w.max) {
		f.place = w.best(places, s.total)
		w.cutAt(f.index, stays)
	}
	if s.total-f.at <= w.max {
		f.due = f.at + w.max + 1
		for _, p := range places {
			if p.at > f.at && p.beats(f.place) {
				f.due = min(f.due, p.at+w.low())
			}
		}
	}
	if w.front = f; len(places) == 0 {
		return 0
	}
	return s.total - places[0].at
}

// best returns the place at which a path of so many bytes has to begin.
func (w *WorkingContext) best(places []place, total int) (best place) {
	fit := -1
	for _, p := range places {
		is := w.fit(p, total)
		if is > fit || is == fit && (is == tooLong || is >= groupFits && p.rank > best.rank) {
			best, fit = p, is
		}
	}
	return best
}

// How a place fits, the worst first.
const (
	tooLong = iota
	tooShort
	groupFits
	turnFits
)

func (w *WorkingContext) fit(p place, total int) int {
	switch size := total - p.at; {
	case size > w.max:
		return tooLong
	case size < w.low():
		return tooShort
	case p.turn:
		return turnFits
	}
	return groupFits
}

// cutAt lets go of what is in front of index n, but for what stays, and counts it.
func (w *WorkingContext) cutAt(n int, stays []bool) {
	gone := 0
	for _, e := range w.entries[:n] {
		if speaks(e) {
			gone++
		}
	}
	if gone > 0 {
		w.keep(n, stays)
		w.omitted += gone
	}
}

// staying returns which entries no cut takes away: the latest boundary, branch summaries, and later edits of these.
func (w *WorkingContext) staying() []bool {
	latest, summaries := w.latest(), map[string]bool{}
	stays := make([]bool, len(w.entries))
	for i, e := range w.entries {
		switch {
		case i == latest, e.Type == "branch_summary":
			stays[i], summaries[e.ID] = true, true
		case e.Type == "context_edit":
			stays[i] = summaries[rawjson.Text(rawjson.Field(e.Raw, "targetId"))]
		}
	}
	return stays
}

// RestoreEnd is RestoreWorkingContext of a whole path of which only a part is given: its end, and of what is before
// that the entries that no cut takes away, which are the latest compaction and the branch summaries. base are the
// settings in force before the end, omitted counts the entries in front of it whose messages are not given; the path
// has no context_edit. false: more of the end has to be given, for the whole path may begin elsewhere.
func RestoreEnd(
	p Profile, maxBytes int, base Settings, omitted int, stay, end []Entry,
) (w *WorkingContext, ok bool) {
	w = NewWorkingContext(p, maxBytes)
	w.base, w.omitted = base, omitted
	for _, list := range [...][]Entry{stay, end} {
		for _, e := range list {
			w.entries = append(w.entries, headOnly(w.rules, e))
			w.bytes += len(w.entries[len(w.entries)-1].Raw)
		}
	}
	if w.max < 0 || omitted == 0 {
		return nil, false
	}
	// What is not given is longer than the bound. Of the calls in it none is open once the user has spoken.
	if most := w.cutFront(scan{lost: true}); w.front.scan.total <= w.max || most < w.low() {
		return nil, false
	}
	w.trim()
	return w, true
}
