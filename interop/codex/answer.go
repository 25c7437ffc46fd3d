package codex

import (
	"bytes"
	"slices"
	"strconv"

	"github.com/coppice-go/coppice/internal/rawjson"
	"github.com/coppice-go/coppice/interop/codex/internal/rollout"
)

// answer collects the items of one answer of the model.
type answer struct {
	open   bool
	at     rollout.At
	blocks []byte // of the content, with commas between
	called bool
	usage  []byte
	held   []aside // lines that came while it was collected
	size   int
}

// aside is a line that comes behind the answer, or an event that may say what an item says.
type aside struct {
	at   rollout.At
	kind string
	raw  []byte
	hash uint64
}

// The bounds of an answer in bytes: what comes behind it, and what it is made of before the rest is another
// answer (over 4 MiB a stub stands in its place in any case).
const (
	maxHeld   = 4 << 20
	maxAnswer = 16 << 20
)

func (w *answer) begin(a rollout.At) {
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
func (w *answer) hold(a rollout.At, kind string, raw []byte) (full bool) {
	w.held = append(w.held, aside{at: a.Kept(), kind: kind, raw: bytes.Clone(raw)})
	w.size += len(raw)
	return w.size+len(w.blocks) > maxHeld
}

// appendUsage appends what was counted, in pi's words: input without what came from the cache.
func appendUsage(dst, usage []byte) []byte {
	count := func(name string) int64 {
		n, err := strconv.ParseInt(string(rawjson.Field(usage, name)), 10, 64)
		if err != nil || n < 0 || n > 1<<50 {
			return 0
		}
		return n
	}
	in, cached, out := count("input_tokens"), count("cached_input_tokens"), count("output_tokens")
	cached = min(cached, in)
	dst = strconv.AppendInt(append(dst, `{"input":`...), in-cached, 10)
	dst = strconv.AppendInt(append(dst, `,"output":`...), out, 10)
	dst = strconv.AppendInt(append(dst, `,"cacheRead":`...), cached, 10)
	if r := count("reasoning_output_tokens"); r > 0 {
		dst = strconv.AppendInt(append(dst, `,"reasoning":`...), r, 10)
	}
	dst = strconv.AppendInt(append(dst, `,"cacheWrite":0,"totalTokens":`...), in+out, 10)
	return append(dst, `,"cost":{"input":0,"output":0,"cacheRead":0,"cacheWrite":0,"total":0}}`...)
}

// echoes finds events that say again what an item says, whichever comes first.
type echoes struct {
	heard   [256]uint64 // texts of the last items
	n       int
	waiting []aside // events whose item may still come
	size    int
	dropped int
}

// heard notes the texts of an item.
func (r *Reader) heard(texts []uint64) {
	e := &r.echoes
	for _, hash := range texts {
		for i, w := range e.waiting {
			if w.hash == hash {
				e.size -= len(w.raw)
				e.waiting = append(e.waiting[:i], e.waiting[i+1:]...)
				e.dropped++
				break
			}
		}
		e.heard[e.n%len(e.heard)] = hash
		e.n++
	}
}

// echo drops an event if an item says the same, or keeps it until one does.
func (r *Reader) echo(p *rollout.Piece) {
	e, hash := &r.echoes, p.Texts[0]
	if slices.Contains(e.heard[:min(e.n, len(e.heard))], hash) {
		e.dropped++
		return
	}
	e.waiting = append(e.waiting, aside{p.At.Kept(), p.Kind, bytes.Clone(p.Raw), hash})
	e.size += len(p.Raw)
	const most = 64
	for len(e.waiting) > most || e.size > maxHeld {
		w := e.waiting[0]
		e.waiting, e.size = e.waiting[1:], e.size-len(w.raw)
		r.aside(w.at, w.kind, w.raw)
	}
}

func (e *echoes) drain() []aside {
	w := e.waiting
	e.waiting, e.size = nil, 0
	return w
}
