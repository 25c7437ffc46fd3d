package harness

import (
	"fmt"

	"github.com/coppice-go/coppice/internal/rawjson"
	"github.com/coppice-go/coppice/interop/internal/jsonl"
	"github.com/coppice-go/coppice/interop/internal/piwriter"
	"github.com/coppice-go/coppice/transcript"
)

// nextLine reads the next line and trims it.
func (r *Reader) nextLine() error {
	l, err := r.in.Next()
	if err != nil {
		return fmt.Errorf("%s: %w", r.src.Name, err)
	}
	r.line, r.ids, r.rest = l, 0, nil
	if l.Part() {
		return nil
	}
	if l.Bad > 0 {
		r.note(transcript.DiagConverted, l.BadText(), 0)
	}
	p := l.Bytes
	if n := len(p); l.Number > 1 && n > 0 && p[0] > ' ' && p[n-1] > ' ' {
		r.rest = p // the usual case
		return nil
	}
	r.rest, _ = jsonl.Clean(l.Number, p, false, r.remark)
	return nil
}

// piece handles the next piece of the line: one write, or one transaction of several.
func (r *Reader) piece() {
	p := r.rest
	r.rest = nil
	end, err := r.transaction(p)
	switch {
	case err != nil:
		r.batch, r.more = r.batch[:0], nil
		r.salvage(p, err)
	case end < len(p):
		if r.rest = jsonl.Trim(p[end:]); len(r.rest) > 0 {
			r.note(transcript.DiagConverted, "more than one transaction on the line", 0)
		}
	case !r.line.Ended:
		r.note(transcript.DiagConverted, "the last line has no newline", 0)
	}
}

// transaction parses the transaction at the start of p, and returns its end. Its first writes are then in batch and the
// others in more. The tips that it sets determine the lanes of its entries.
func (r *Reader) transaction(p []byte) (end int, err error) {
	r.batch, r.more, r.tips = r.batch[:0], nil, r.tips[:0]
	switch p[0] {
	case '{':
		r.batch = r.batch[:1]
		return r.batch[0].check(p)
	case '[':
	default:
		return 0, fmt.Errorf("no JSON object or array: %w", rawjson.SyntaxError(p, 0))
	}
	i := rawjson.Space(p, 1)
	if i < len(p) && p[i] == ']' {
		return i + 1, nil
	}
	for {
		w := &r.extra
		if n := len(r.batch); n < cap(r.batch) {
			r.batch = r.batch[:n+1]
			w = &r.batch[n]
		} else if r.more == nil {
			r.more = p[i:]
		}
		if i, err = w.element(p, i); err != nil {
			return 0, err
		}
		if l, id, ok := w.tip(); ok && len(r.tips) < maxLanes {
			r.tips = append(r.tips, tip{lane: l, id: id})
		}
		if i = rawjson.Space(p, i); i >= len(p) || p[i] != ',' {
			break
		}
		i = rawjson.Space(p, i+1)
	}
	if i >= len(p) || p[i] != ']' {
		return 0, rawjson.SyntaxError(p, i)
	}
	return i + 1, nil
}

// element parses the write at p[i], or whatever value is there.
func (w *write) element(p []byte, i int) (end int, err error) {
	if i < len(p) && p[i] == '{' {
		end, err = w.check(p[i:])
		return i + end, err
	}
	end, err = rawjson.ValueEnd(p, i, maxDepth-1)
	*w = write{raw: p[i:max(end, i)]}
	return end, err
}

// nextWrite returns the next write of the transaction, or nil. It is valid until the next call.
func (r *Reader) nextWrite() *write {
	if r.done < len(r.batch) {
		r.done++
		return &r.batch[r.done-1]
	}
	p := r.more
	if len(p) == 0 {
		r.batch, r.done, r.tips = r.batch[:0], 0, r.tips[:0]
		return nil
	}
	end, err := r.extra.element(p, 0)
	if err != nil { // it was parsed before
		r.more = nil
		return nil
	}
	if end = rawjson.Space(p, end); end < len(p) && p[end] == ',' {
		r.more = p[rawjson.Space(p, end+1):]
	} else {
		r.more = nil
	}
	return &r.extra
}

// salvage looks for an intact transaction at the end of a damaged line, appended after an incomplete one without a
// newline.
func (r *Reader) salvage(p []byte, cause error) {
	kind := transcript.DiagBadLine
	if !r.line.Ended {
		kind = transcript.DiagTornLine
	}
	r.note(kind, cause.Error(), 1)
	for _, mark := range []string{`[{"kind":"`, `{"kind":"`} {
		for from := range jsonl.CandidatesAfterDamage(p, mark) {
			if kindOf(p[from:]) != aWrite {
				continue
			}
			if end, err := r.transaction(p[from:]); err == nil && from+end == len(p) {
				r.note(transcript.DiagConverted, "a transaction was found behind the damage, on the same line", 0)
				return
			}
			r.batch, r.more = r.batch[:0], nil
		}
	}
}

// oversize returns a stub for a line that is too long. The place of an entry is kept, and so are the first writes of a
// transaction.
func (r *Reader) oversize() {
	p := jsonl.Trim(r.line.Bytes)
	r.note(transcript.DiagOversize, jsonl.OversizeDetail(r.line.Size, jsonl.MaxLine), 0)
	stub := fmt.Appendf(nil, `{"stub":{"bytes":%d,"limit":%d}}`, r.line.Size, jsonl.MaxLine)
	if len(p) > 0 && p[0] == '[' {
		for i := rawjson.Space(p, 1); i < len(p) && p[i] == '{'; {
			end, err := r.extra.check(p[i:])
			if err != nil {
				break // it continues after the held part
			}
			if l, id, ok := r.extra.tip(); ok {
				r.tips = append(r.tips[:0], tip{lane: l, id: id})
			}
			r.take(&r.extra)
			if i = rawjson.Space(p, i+end); i < len(p) && p[i] == ',' {
				i = rawjson.Space(p, i+1)
			}
		}
		r.tips = r.tips[:0]
		for _, l := range r.lanes {
			l.lost = true
		}
		r.custom(r.lane, "line", stub)
		return
	}
	w := readWrite(p)
	if string(w.kind) != `"entry"` || !rawjson.IsString(w.id) || len(w.id) > maxName {
		r.custom(r.lane, "line", stub)
		return
	}
	w.typ, w.stamp = []byte(`"custom"`), nil
	l := r.laneOf(w)
	if w.parent == nil && l != nil { // 0.84 writes the parent after the message
		w.parent = piwriter.OrNull(l.tip)
	}
	r.place(w, l, "custom", func(out []byte) []byte {
		return append(append(append(out, `,"customType":"pi-harness.entry","data":`...), stub...), '}')
	})
}
