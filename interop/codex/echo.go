package codex

import (
	"bytes"
	"slices"
)

const (
	maxWaitingEvents = 64
	maxWaitingSize   = 4 << 20 // bytes of the events that wait
	maxWaitingItems  = 40      // that repeat no event, while one waits for its item
)

// waitingEvent is an event whose text no item has had yet.
type waitingEvent struct {
	At   position
	Kind string
	Raw  []byte
	hash uint64
	seen int // items since
}

// echoFilter finds events that repeat what an item says, whichever comes first: the last 256 texts are known, and 64
// events of at most 4 MiB wait for their item, which comes in the same turn, and before 40 items
// that repeat nothing. So where an event that no
// item repeats is kept does not depend on where the file ends. It is for one file.
type echoFilter struct {
	Dropped int         // events that an item says too
	heard   [256]uint64 // texts of the last items
	n       int
	waiting []waitingEvent
	size    int
	repeats bool // the last item repeats an event that waited
}

// Heard notes the texts of an item.
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

// Event drops an event if an item says the same, or keeps it until one does. late are those that waited too long.
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

// Item counts an item whose texts were heard. late are the events that waited too long.
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

// Begun returns the events of the turn before, when another one begins. What the user says may come before that.
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

// Drain returns those that wait.
func (e *echoFilter) Drain() []waitingEvent {
	w := e.waiting
	e.waiting, e.size = nil, 0
	return w
}
