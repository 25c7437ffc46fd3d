// Package harness reads and continues the session files of pi's agent-core harness, version 4, in both
// of their forms: lines with lanes, records and facts (0.84), and transactions of entries, usage rows,
// values and lists (0.85 to 0.99).
//
// What it guarantees of a file that it reads:
//
//   - Entries keep their ids and parents. A compaction is followed by the messages that it retained,
//     as messages that the model sees; what the harness leaves out of a context (turns that failed) is
//     left out by an entry of type context_edit. So the context of a branch is the harness's.
//   - The configuration of a lane becomes changes of model, thinking level and tools on its branch,
//     before the next entry there. Name and labels become entries. The last entry leads to the tip of
//     the lane "main".
//   - What the transcript cannot express is kept as it is, in entries of type custom named
//     "pi-harness.<kind>", in the order of the file, each on the lane that it speaks of.
//
// Append writes what was added to a session as the harness would have written it: with the next
// numbers, on the lane "main", below entries that the file has. The harness loads the result. Nothing
// is written after a file that the harness would refuse as it is.
//
// A file is read once. A reader holds one line of at most 64 MiB (of a longer one the first 64 KiB and
// a stub), 256 lanes, and 65,536 pairs of ids: of compactions and left-out turns with what hangs after
// them.
package harness

import (
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/coppice-go/coppice/internal/rawjson"
	"github.com/coppice-go/coppice/interop"
	"github.com/coppice-go/coppice/interop/internal/jsonl"
	"github.com/coppice-go/coppice/transcript"
)

const (
	maxRefused = 1000 // lines without any of the harness's, and the file is given up
	maxPairs   = 1 << 16
	maxLanes   = 256
	maxName    = 256 // bytes of an id or a lane's name that is remembered
	maxDepth   = rawjson.MaxDepth - 2
	maxBatch   = 64 // writes of a transaction that are read once only
)

// made begins the ids of entries that the file does not have.
const made = "ph-"

// hasMadeID reports whether an id is that of an entry that the reader made and the file does not have.
func hasMadeID(id string) bool { return strings.HasPrefix(id, made) }

// fileState is what a file ends with.
type fileState struct {
	Old                              bool   // the form of the file is that of 0.84
	Seq                              int64  // the last number that a write has
	Tip                              string // of the main lane; "" = before the first entry
	Provider, Model, Thinking, Tools string // its configuration; "" = not said. Tools is a list in JSON
}

// state returns what the file ends with, after io.EOF.
func (r *Reader) state() fileState {
	l := r.lanes[mainLane]
	return fileState{
		Old: r.old, Seq: max(r.seq, r.next-1), Tip: l.tip,
		Provider: l.want.provider, Model: l.want.model, Thinking: l.want.thinking, Tools: l.want.tools,
	}
}

// Reader reads one file. It implements interop.Reader. Not safe for concurrent use.
type Reader struct {
	src    interop.Source
	o      interop.Options
	file   io.Closer
	in     *jsonl.LineReader
	header interop.Header
	old    bool  // the file's form is that of 0.84
	ended  bool  // no more lines
	err    error // sticky
	bad    int
	said   jsonl.OnceFilter
	diag   transcript.DiagnosticList

	line  jsonl.Line
	rest  []byte  // of the line: what was not looked at
	batch []write // of the transaction that is being read: its first writes,
	done  int     // of which so many were taken,
	more  []byte  // and the others, as they lie
	extra write   // one of these
	tips  []tip   // that the transaction sets
	ids   int     // made of this line

	out  []transcript.Draft
	at   int
	last time.Time // of an entry: what has no time of its own gets it
	seq  int64     // of the last write
	next int64     // of the next one at least, as the header has it

	lanes  map[string]*lane
	lane   *lane             // spoken of last
	newest string            // the entry that was given last
	loose  string            // the end of the file's own entry that came last
	behind map[string]string // by id of an entry: the last of those that were put after it
	spent  spent
}

// NewReader reads src, which is opened once.
func NewReader(src interop.Source, o interop.Options) *Reader {
	return &Reader{
		src: src, o: o, lanes: map[string]*lane{}, behind: map[string]string{},
		batch: make([]write, 0, maxBatch),
	}
}

// Header reads as far as the file's header.
func (r *Reader) Header() (interop.Header, error) {
	if r.in == nil && r.err == nil {
		r.err = r.begin()
	}
	if r.header.Raw == nil {
		return interop.Header{}, r.err
	}
	return r.header, nil
}

// Next returns the next entry.
func (r *Reader) Next() (transcript.Draft, error) {
	if _, err := r.Header(); err != nil {
		return transcript.Draft{}, err
	}
	for r.at == len(r.out) {
		if r.err != nil {
			return transcript.Draft{}, r.err
		}
		clear(r.out)
		r.out, r.at = r.out[:0], 0
		r.err = r.advance()
	}
	r.at++
	return r.out[r.at-1], nil
}

// advance takes one write in, or one line; io.EOF = there was none.
func (r *Reader) advance() error {
	if w := r.nextWrite(); w != nil {
		r.take(w)
		return nil
	}
	switch {
	case len(r.rest) > 0:
		r.piece()
		return nil
	case r.ended:
		return io.EOF
	}
	err := r.nextLine()
	if errors.Is(err, io.EOF) {
		r.ended = true
		r.finish()
		return r.release()
	}
	if err == nil && r.line.Part() {
		r.oversize()
	}
	return err
}

func (r *Reader) release() error {
	if r.file == nil {
		return nil
	}
	f := r.file
	r.file = nil
	if err := f.Close(); err != nil {
		return fmt.Errorf("close %s: %w", r.src.Name, err)
	}
	return nil
}

func (r *Reader) note(kind, detail string, bad int) {
	r.bad += bad
	r.diag.Add("", uint64(r.line.Number), kind, detail)
}

// once is note for what is said of a file only the first time.
func (r *Reader) once(kind, detail string) { r.remark(jsonl.RemarkOnce(r.line.Number, kind, detail)) }

func (r *Reader) remark(m jsonl.Remark) {
	if r.said.First(m) {
		r.note(m.Kind, m.Detail, m.Bad)
	}
}

// newID makes an id that is the same each time the file is read.
func (r *Reader) newID() string {
	r.ids++
	return made + strconv.Itoa(r.line.Number) + "." + strconv.Itoa(r.ids)
}

// Verbatim is false: no line of the file is one of pi's version 3.
func (r *Reader) Verbatim() bool { return false }

// BadLines counts the lines of which bytes were passed over.
func (r *Reader) BadLines() int { return r.bad }

// Diagnostics returns what was found so far, at most 100 and then a count.
func (r *Reader) Diagnostics() []transcript.Diagnostic { return r.diag.All() }

// Close releases what the reader holds.
func (r *Reader) Close() error {
	if r.in == nil || r.ended {
		return r.release()
	}
	r.ended, r.err = true, errClosed
	r.out, r.at = nil, 0
	return r.release()
}

var errClosed = errors.New("pi harness: reader is closed")
