package codex

import (
	"bytes"
	"slices"
)

const (
	maxWaitingEvents = 64
	maxWaitingSize   = 4 << 20 // bytes of the waiting events
	maxWaitingItems  = 40      // items that repeat no event, while an event waits for its item
)

// waitingEvent is an event that no item has repeated yet.
type waitingEvent struct {
	At   position
	Kind string
	Raw  []byte
	hash uint64
	seen int // items since the event
}

// echoFilter finds events that repeat the text of an item, in either order. It remembers the last 256 texts. Up to 64
// events, at most 4 MiB, wait for their item, which comes in the same turn and before 40 items that repeat nothing. So
// the place of an event that no item repeats does not depend on the end of the file. A filter serves one file.
type echoFilter struct {
	Dropped int         // events that an item repeats
	heard   [256]uint64 // hashes of the last items' texts
	n       int
	waiting []waitingEvent
	size    int
	repeats bool // the last item repeats a waiting event
}

// Heard records the texts of an item.
func (e *echoFilter) Heard(texts []uint64) {
	e.repeats = false
	for _, hash := range texts {
		for i, w := range e.waiting {
			if w.hash == hash {
				e.size -= len(w.Raw)
				e.waiting = append(e.waiting[:i], e.waiting[i+1:]...)
				e.Dropped++
				e.repeats = true
				break
			}
		}
		e.heard[e.n%len(e.heard)] = hash
		e.n++
	}
}

// Event drops an event whose text an item has, or keeps it until one does. It returns the events that waited too long.
func (e *echoFilter) Event(p *rolloutPiece) (late []waitingEvent) {
	hash := p.Texts[0]
	if slices.Contains(e.heard[:min(e.n, len(e.heard))], hash) {
		e.Dropped++
		return nil
	}
	e.waiting = append(e.waiting, waitingEvent{At: p.At.Kept(), Kind: p.Kind, Raw: bytes.Clone(p.Raw), hash: hash})
	e.size += len(p.Raw)
	for len(e.waiting) > maxWaitingEvents || e.size > maxWaitingSize {
		late = append(late, e.waiting[0])
		e.size -= len(e.waiting[0].Raw)
		e.waiting = e.waiting[1:]
	}
	return late
}

// Item counts an item whose texts were recorded. It returns the events that waited too long.
func (e *echoFilter) Item() (late []waitingEvent) {
	if e.repeats {
		return nil
	}
	for i := range e.waiting {
		e.waiting[i].seen++
	}
	for len(e.waiting) > 0 && e.waiting[0].seen >= maxWaitingItems {
		late = append(late, e.waiting[0])
		e.size -= len(e.waiting[0].Raw)
		e.waiting = e.waiting[1:]
	}
	return late
}

// Begun returns the waiting events of the last turn when another turn begins. Messages of the user keep waiting: they
// may precede the beginning of their turn.
func (e *echoFilter) Begun() (late []waitingEvent) {
	stay := e.waiting[:0:0]
	for _, w := range e.waiting {
		if w.Kind == "user_message" {
			stay = append(stay, w)
			continue
		}
		late = append(late, w)
		e.size -= len(w.Raw)
	}
	e.waiting = stay
	return late
}

// Drain returns all waiting events.
func (e *echoFilter) Drain() []waitingEvent {
	w := e.waiting
	e.waiting, e.size = nil, 0
	return w
}
