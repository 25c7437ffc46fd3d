package codex

import (
	"bytes"
	"hash/maphash"
	"slices"
	"strconv"
	"strings"

	"github.com/coppice-go/coppice/internal/rawjson"
)

// answer collects the items of one answer of the model.
type answer struct {
	at     entryAt
	blocks []byte // of the content, with commas between; nil = no answer
	called bool
	usage  []byte
	held   []aside // lines that came while it was collected
	size   int
}

// aside is a line that comes behind the answer, or an event that may say what an item says.
type aside struct {
	at   entryAt
	kind string
	raw  []byte
	hash uint64
}

// maxHeld bounds what comes behind an answer, in bytes.
const maxHeld = 4 << 20

func (w *answer) begin(a entryAt, room int) {
	if w.blocks == nil {
		a.stamp = bytes.Clone(a.stamp)
		w.at, w.blocks = a, make([]byte, 0, room+64)
	}
}

func (w *answer) add(block []byte) {
	if len(w.blocks) > 0 {
		w.blocks = append(w.blocks, ',')
	}
	w.blocks = append(w.blocks, block...)
}

// text adds what the model said.
func (w *answer) text(content, id []byte) {
	put := func(text []byte) {
		block := append([]byte(`{"type":"text","text":`), text...)
		if rawjson.IsString(id) && len(id) > 2 {
			block = append(append(block, `,"textSignature":`...), id...)
		}
		w.add(append(block, '}'))
	}
	if rawjson.IsString(content) {
		put(content)
	}
	for m := rawjson.Walk(content); m.Closing == ']' && m.Next(); {
		text := rawjson.Field(m.Val, "text")
		if !rawjson.IsString(text) {
			text = rawjson.Field(m.Val, "refusal")
		}
		switch {
		case rawjson.IsString(text):
			put(text)
		case m.Val[0] == '{':
			w.add(m.Val)
		}
	}
}

// hold keeps a line until the answer is complete. full: it is time to end it.
func (w *answer) hold(a entryAt, kind string, raw []byte) (full bool) {
	a.stamp = bytes.Clone(a.stamp)
	w.held = append(w.held, aside{at: a, kind: kind, raw: bytes.Clone(raw)})
	w.size += len(raw)
	return w.size+len(w.blocks) > maxHeld
}

// appendContent appends a message's content as pi has it.
func appendContent(dst, content []byte) []byte {
	if rawjson.IsString(content) {
		return append(dst, content...)
	}
	dst = append(dst, '[')
	for m := rawjson.Walk(content); m.Closing == ']' && m.Next(); {
		if dst[len(dst)-1] != '[' {
			dst = append(dst, ',')
		}
		dst = appendBlock(dst, m.Val)
	}
	return append(dst, ']')
}

func appendBlock(dst, block []byte) []byte {
	if block[0] != '{' {
		if !rawjson.IsString(block) {
			block = rawjson.AppendString(nil, string(block))
		}
		return append(append(append(dst, `{"type":"text","text":`...), block...), '}')
	}
	if text := rawjson.Field(block, "text"); rawjson.IsString(text) {
		return append(append(append(dst, `{"type":"text","text":`...), text...), '}')
	}
	url := rawjson.Field(block, "image_url")
	if mime, data, ok := bytes.Cut(bytes.TrimPrefix(url, []byte(`"data:`)), []byte(";base64,")); ok && bytes.HasPrefix(url, []byte(`"data:image/`)) && bytes.IndexByte(url, '\\') < 0 {
		dst = append(append(dst, `{"type":"image","data":"`...), data...)
		return append(append(append(dst, `,"mimeType":"`...), mime...), `"}`...)
	}
	return append(dst, block...)
}

// plainText gives the text of a content.
func plainText(content []byte) string {
	if rawjson.IsString(content) {
		return rawjson.Text(content)
	}
	var parts []string
	for m := rawjson.Walk(content); m.Closing == ']' && m.Next(); {
		if t := rawjson.Text(rawjson.Field(m.Val, "text")); t != "" {
			parts = append(parts, t)
		}
	}
	return strings.Join(parts, "\n")
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
func (r *Reader) heard(content []byte) {
	if rawjson.IsString(content) {
		r.hear(content)
		return
	}
	parts := 0
	for m := rawjson.Walk(content); m.Closing == ']' && m.Next(); parts++ {
		r.hear(rawjson.Field(m.Val, "text"))
	}
	if parts > 1 {
		r.hear(rawjson.AppendString(nil, plainText(content)))
		r.hear(rawjson.AppendString(nil, strings.ReplaceAll(plainText(content), "\n", "")))
	}
}

func (r *Reader) hear(text []byte) {
	if !rawjson.IsString(text) {
		return
	}
	e, hash := &r.echoes, maphash.Bytes(r.seed, text)
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

// echo drops an event if an item says the same, or keeps it until one does.
func (r *Reader) echo(a entryAt, kind string, text, raw []byte) {
	e, hash := &r.echoes, maphash.Bytes(r.seed, text)
	if rawjson.IsString(text) {
		if slices.Contains(e.heard[:min(e.n, len(e.heard))], hash) {
			e.dropped++
			return
		}
	}
	a.stamp = bytes.Clone(a.stamp)
	e.waiting = append(e.waiting, aside{a, kind, bytes.Clone(raw), hash})
	e.size += len(raw)
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
