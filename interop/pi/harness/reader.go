// Package harness reads and continues the session files of pi's agent-core harness, version 4, in both of their forms:
// lines with lanes, records and facts (0.84), and transactions of entries, usage rows, values and lists (0.85 to 0.99).
//
// Guarantees of the reader:
//
//   - Entries keep their IDs and parents. A compaction is followed by the messages that it retained, as messages that
//     the model sees. An entry of type context_edit removes messages that the harness omits from a context (failed
//     turns). So the context of a branch is the harness's.
//   - The configuration of a lane becomes changes of model, thinking level and tools on its branch, before the next
//     entry there. Name and labels become entries. The last entry moves the head to the tip of the lane "main".
//   - Writes that the transcript cannot express are kept unchanged, in entries of type custom named
//     "pi-harness.<kind>", in file order, each on its lane.
//
// Append writes the entries that were added to a session as the harness would have written them: with the next numbers,
// on the lane "main", below entries of the file. The harness loads the result. Append refuses a file that the harness
// would refuse.
//
// A file is read once. A reader holds one line of at most 64 MiB (of a longer one the first 64 KiB and a stub), 256
// lanes, and 65,536 pairs of IDs: compactions and omitted turns, with the entries after them.
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
	maxRefused = 1000 // lines without any of the harness's after which a file is rejected
	maxPairs   = 1 << 16
	maxLanes   = 256
	maxName    = 256 // bytes of an ID or a lane's name that is remembered
	maxDepth   = rawjson.MaxDepth - 2
	maxBatch   = 64 // writes of a transaction that are parsed once; later ones are parsed twice
)

// made begins the IDs of entries that the file does not have.
const made = "ph-"

// hasMadeID reports whether an ID belongs to an entry that the reader made.
func hasMadeID(id string) bool { return strings.HasPrefix(id, made) }

// fileState is the state at the end of a file.
type fileState struct {
	Old                              bool   // the file has the form of 0.84
	Seq                              int64  // last number of a write
	Tip                              string // of the main lane; "" = before the first entry
	Provider, Model, Thinking, Tools string // configuration of the lane; "" = unknown. Tools is a JSON list
}

// state returns the state at the end of the file, after io.EOF.
func (r *Reader) state() fileState {
	l := r.lanes[mainLane]
	return fileState{
		Old: r.old, Seq: max(r.seq, r.next-1), Tip: l.tip,
		Provider: l.want.provider, Model: l.want.model, Thinking: l.want.thinking, Tools: l.want.tools,
	}
}

// Reader reads one file. It implements interop.Reader. It is not safe for concurrent use.
type Reader struct {
	src    interop.Source
	o      interop.Options
	file   io.Closer
	in     *jsonl.LineReader
	header interop.Header
	old    bool  // the file has the form of 0.84
	ended  bool  // no more lines
	err    error // sticky
	bad    int
	said   jsonl.OnceFilter
	diag   transcript.DiagnosticList

	line  jsonl.Line
	rest  []byte  // of the line: the part not parsed yet
	batch []write // first writes of the current transaction
	done  int     // number of writes taken from batch
	more  []byte  // the other writes, not parsed
	extra write   // a write from more
	tips  []tip   // set by the transaction
	ids   int     // number of IDs made for this line

	out  []transcript.Draft
	at   int
	last time.Time // of an entry; the time of entries without one
	seq  int64     // of the last write
	next int64     // lower bound for the next write, from the header

	lanes     map[string]*lane
	lane      *lane             // the lane named last
	newest    string            // the last entry returned
	loose     string            // end after the last entry of the file
	lastAfter map[string]string // by ID of an entry: the last entry that the reader put after it
	spent     spent
}

// NewReader returns a reader of src, which it opens once.
func NewReader(src interop.Source, o interop.Options) *Reader {
	return &Reader{
		src: src, o: o, lanes: map[string]*lane{}, lastAfter: map[string]string{},
		batch: make([]write, 0, maxBatch),
	}
}

// Header reads up to the file's header.
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

// advance handles one write, or reads one line. It returns io.EOF at the end.
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

// once is note for a finding that is reported only the first time in a file.
func (r *Reader) once(kind, detail string) { r.remark(jsonl.RemarkOnce(r.line.Number, kind, detail)) }

func (r *Reader) remark(m jsonl.Remark) {
	if r.said.First(m) {
		r.note(m.Kind, m.Detail, m.Bad)
	}
}

// newID returns an ID that is the same each time the file is read.
func (r *Reader) newID() string {
	r.ids++
	return made + strconv.Itoa(r.line.Number) + "." + strconv.Itoa(r.ids)
}

// Verbatim returns false: no line of the file is of pi's version 3.
func (r *Reader) Verbatim() bool { return false }

// BadLines returns the number of lines of which bytes were skipped.
func (r *Reader) BadLines() int { return r.bad }

// Diagnostics returns at most 100 findings, and a count of the others.
func (r *Reader) Diagnostics() []transcript.Diagnostic { return r.diag.All() }

// Close releases all resources.
func (r *Reader) Close() error {
	if r.in == nil || r.ended {
		return r.release()
	}
	r.ended, r.err = true, errClosed
	r.out, r.at = nil, 0
	return r.release()
}

var errClosed = errors.New("pi harness: reader is closed")
