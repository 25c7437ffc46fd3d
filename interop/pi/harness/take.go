package harness

import (
	"strconv"

	"github.com/coppice-go/coppice/transcript"
)

// take turns one write into entries.
func (r *Reader) take(w *write) {
	if len(w.raw) == 0 || w.raw[0] != '{' {
		r.note(transcript.DiagBadLine, "a write that is no object", 1)
		return
	}
	if string(w.kind) == `"header"` {
		r.note(transcript.DiagBadLine, "another header: skipped", 1)
		return
	}
	if w.lane != nil || w.fact != nil {
		r.old = true // also if the header is lost
	}
	r.order(w.seq)
	switch string(w.kind) {
	case `"entry"`:
		r.entry(w)
	case `"usage"`:
		r.usage(w)
	case `"value"`:
		r.value(w)
	case `"list"`:
		r.custom(r.lane, "list", w.raw)
	case `"record"`:
		r.record(w)
	case `"lane"`:
		r.moved(w)
	case `"fact"`:
		r.fact(w)
	default:
		r.custom(r.lane, "line", w.raw)
	}
}

// order checks the sequence of writes: 0.84 counts without gaps; in later versions the numbers only increase.
func (r *Reader) order(seq []byte) {
	n, err := strconv.ParseInt(string(seq), 10, 64)
	switch {
	case err != nil:
		r.once(transcript.DiagNoted, "a write without a sequence number")
		return
	case n <= r.seq:
		r.note(transcript.DiagNoted,
			"sequence number "+strconv.FormatInt(n, 10)+" comes after "+strconv.FormatInt(r.seq, 10),
			0)
	case r.old && n != r.seq+1:
		r.note(transcript.DiagNoted,
			"sequence numbers from "+strconv.FormatInt(r.seq+1, 10)+" to "+strconv.FormatInt(n-1,
				10)+" are missing", 0)
	}
	r.seq = max(r.seq, n)
}
