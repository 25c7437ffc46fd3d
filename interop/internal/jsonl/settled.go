package jsonl

// Holds are the beginnings of what a later line of a growing file can change. Offsets are in bytes.
type Holds struct {
	from, end int64 // of the line that is looked at
	Message   int64 // where an open message begins, plus 1; 0 = none is open
	Events    []HeldEvent
}

// HeldEvent is an event that waits for the item that repeats it.
type HeldEvent struct {
	At   int64
	Text uint64 // hash
	User bool   // the user's words
}

// Begin notes where the next line begins and ends, and reports whether lines before it were left out: nothing is open
// then.
func (h *Holds) Begin(from, end int64) (after bool) {
	if after = from > h.end; after {
		h.Message, h.Events = 0, nil
	}
	h.from, h.end = from, end
	return after
}

// From returns where the line begins.
func (h *Holds) From() int64 { return h.from }

// Open notes that a message begins with the line, unless one is open.
func (h *Holds) Open() {
	if h.Message == 0 {
		h.Message = h.from + 1
	}
}

// Turn forgets the events of the turn before, except the user's.
func (h *Holds) Turn() {
	var stay []HeldEvent
	for _, e := range h.Events {
		if e.User {
			stay = append(stay, e)
		}
	}
	h.Events = stay
}

// Settled returns how many bytes, from the beginning of the file, no later line can change.
func (h *Holds) Settled() int64 {
	n := h.end
	if h.Message > 0 {
		n = min(n, h.Message-1)
	}
	for _, e := range h.Events {
		n = min(n, e.At)
	}
	return n
}
