package codex

import (
	"bytes"
)

// answer collects the items of one answer of the model.
type answer struct {
	open   bool
	at     position
	blocks []byte // of the content, with commas between
	called bool
	failed bool
	fault  []byte // the error message, a JSON string; nil = not in the file
	cost   spent
	held   []heldLine // lines read while the answer was collected
	size   int
}

// heldLine is output that follows the answer: a line, or an image that the model drew.
type heldLine struct {
	at   position
	kind string
	raw  []byte
	said bool // raw is content
}

// Bounds of an answer in bytes: of the lines after it, and of its own blocks. At the bound the answer ends and the rest
// becomes another answer. (A stub replaces an entry over 4 MiB in any case.)
const (
	maxHeld   = 4 << 20
	maxAnswer = 16 << 20
)

func (w *answer) begin(a position) {
	if !w.open {
		w.at, w.open = a.Kept(), true
	}
}

func (w *answer) add(blocks []byte) {
	if len(w.blocks) > 0 && len(blocks) > 0 {
		w.blocks = append(w.blocks, ',')
	}
	w.blocks = append(w.blocks, blocks...)
}

// hold keeps a line until the answer is complete. It reports whether the answer is full and must end.
func (w *answer) hold(a position, kind string, raw []byte, said bool) (full bool) {
	w.held = append(w.held, heldLine{at: a.Kept(), kind: kind, raw: bytes.Clone(raw), said: said})
	w.size += len(raw)
	return w.size+len(w.blocks) > maxHeld
}
