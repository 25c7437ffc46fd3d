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
	fault  []byte // why, a string; nil = that is not in the file
	cost   spent
	held   []heldLine // lines that came while it was collected
	size   int
}

// heldLine is what follows the answer: a line, or a picture that the model drew.
type heldLine struct {
	at   position
	kind string
	raw  []byte
	said bool // it is content
}

// The bounds of an answer in bytes: what follows it, and what it is made of before the rest is another
// answer (over 4 MiB a stub replaces it in any case).
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

// hold keeps a line until the answer is complete. full: it is time to end it.
func (w *answer) hold(a position, kind string, raw []byte, said bool) (full bool) {
	w.held = append(w.held, heldLine{at: a.Kept(), kind: kind, raw: bytes.Clone(raw), said: said})
	w.size += len(raw)
	return w.size+len(w.blocks) > maxHeld
}
