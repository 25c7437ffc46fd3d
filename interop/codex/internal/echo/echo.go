// Package echo finds events that say again what an item says, whichever comes first: the last 256 texts are known, and
// 64 events of at most 4 MiB wait for their item.
package echo

import (
	"bytes"
	"slices"

	"github.com/coppice-go/coppice/interop/codex/internal/rollout"
)

const (
	most    = 64
	maxSize = 4 << 20 // bytes of the events that wait
)

// Event is one that no item has said yet.
type Event struct {
	At   rollout.At
	Kind string
	Raw  []byte
	hash uint64
}

// Echoes are those of one file.
type Echoes struct {
	Dropped int         // events that an item says too
	heard   [256]uint64 // texts of the last items
	n       int
	waiting []Event
	size    int
}

// Heard notes the texts of an item.
func (e *Echoes) Heard(texts []uint64) {
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
func (e *Echoes) Event(p *rollout.Piece) (late []Event) {
	hash := p.Texts[0]
	if slices.Contains(e.heard[:min(e.n, len(e.heard))], hash) {
		e.Dropped++
		return nil
	}
	e.waiting = append(e.waiting, Event{p.At.Kept(), p.Kind, bytes.Clone(p.Raw), hash})
	e.size += len(p.Raw)
	for len(e.waiting) > most || e.size > maxSize {
		late = append(late, e.waiting[0])
		e.size -= len(e.waiting[0].Raw)
		e.waiting = e.waiting[1:]
	}
	return late
}

// Drain gives those that wait.
func (e *Echoes) Drain() []Event {
	w := e.waiting
	e.waiting, e.size = nil, 0
	return w
}
