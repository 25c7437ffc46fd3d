package codex

import (
	"bytes"
	"slices"
)

const (
	maxWaitingEvents = 64
	maxWaitingSize   = 4 << 20 // bytes of the events that wait
)

// waitingEvent is an event whose text no item has had yet.
type waitingEvent struct {
	At   position
	Kind string
	Raw  []byte
	hash uint64
}

// echoFilter finds events that repeat what an item says, whichever comes first: the last 256 texts are known, and 64
// events of at most 4 MiB wait for their item. It is for one file.
type echoFilter struct {
	Dropped int         // events that an item says too
	heard   [256]uint64 // texts of the last items
	n       int
	waiting []waitingEvent
	size    int
}

// Heard notes the texts of an item.
func (e *echoFilter) Heard(texts []uint64) {
	for _, hash := range texts {
		for i, w := range e.waiting {
			if w.hash == hash {
				e.size -= len(w.Raw)
				e.waiting = append(e.waiting[:i], e.waiting[i+1:]...)
				e.Dropped++
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
	e.waiting = append(e.waiting, waitingEvent{p.At.Kept(), p.Kind, bytes.Clone(p.Raw), hash})
	e.size += len(p.Raw)
	for len(e.waiting) > maxWaitingEvents || e.size > maxWaitingSize {
		late = append(late, e.waiting[0])
		e.size -= len(e.waiting[0].Raw)
		e.waiting = e.waiting[1:]
	}
	return late
}

// Drain returns those that wait.
func (e *echoFilter) Drain() []waitingEvent {
	w := e.waiting
	e.waiting, e.size = nil, 0
	return w
}
