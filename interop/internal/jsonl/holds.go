package jsonl

// Holds are the starts of lines that a later line of a growing file can change. Offsets are in bytes.
type Holds struct {
	from, end int64 // of the current line
	Message   int64 // start of an open message, plus 1; 0 = none is open
	Events    []HeldEvent
}

// HeldEvent is an event that waits for the item that repeats it.
type HeldEvent struct {
	At   int64
	Text uint64 // hash
	User bool   // a message of the user
}

// Begin sets start and end of the next line, and reports whether lines before it were skipped: then nothing is open.
func (h *Holds) Begin(from, end int64) (after bool) {
	if after = from > h.end; after {
		h.Message, h.Events = 0, nil
	}
	h.from, h.end = from, end
	return after
}

// From returns the start of the current line.
func (h *Holds) From() int64 { return h.from }

// Open marks the line as the start of a message, unless one is open.
func (h *Holds) Open() {
	if h.Message == 0 {
		h.Message = h.from + 1
	}
}

// Turn drops the events of the turn before, except messages of the user.
func (h *Holds) Turn() {
	var stay []HeldEvent
	for _, e := range h.Events {
		if e.User {
			stay = append(stay, e)
		}
	}
	h.Events = stay
}

// Stable returns the length in bytes of the beginning of the file that no later line can change.
func (h *Holds) Stable() int64 {
	n := h.end
	if h.Message > 0 {
		n = min(n, h.Message-1)
	}
	for _, e := range h.Events {
		n = min(n, e.At)
	}
	return n
}
