// Package codex reads and writes the rollouts of the Codex command line: .jsonl and .jsonl.zst, of
// every age. Write and Continue say what they write.
//
// What it guarantees of a file that it reads:
//
//   - The items of one answer of the model (reasoning, text, calls, and those that the provider
//     answers itself) are one entry; outputs are results of their calls. A picture that the model drew
//     is an image in its answer.
//   - A rollback starts a branch where it went back to; what it undid stays. The context is what
//     Codex itself makes of the file, with one difference: where a message was sent to a turn after a
//     compaction of its own, and is taken back alone, the compaction still counts.
//   - A compaction is an entry of type compaction, with what Codex put in place of the history after
//     it, as messages that the model sees and that neither the user nor the model said. Of a
//     compaction of 2025, which brings no history, that is what the user had said. A summary that is
//     encrypted is kept as it is, and the entry says so.
//   - What other agents say to an agent is what the user says in its session: its task is the first of
//     it. In a session that the user began it is a custom_message of type "codex.agent_message",
//     shown.
//   - Each answer has the count of tokens that is its own, wherever that is; counts that are no
//     answer's are entries of type usage. The sum is what the file's last count says of all, but for a
//     beginning that is not read. "origin" names the response: it is the same in files to which Codex
//     copied the answer, where "inherited" is true if the turn began before the thread.
//   - Events that repeat an item are left out and counted. What the transcript cannot
//     express is kept as it is, in entries of type custom named "codex.<type>", in the order of the
//     file.
//   - A fork that copied nothing (history_base) has the entries of the file that it continues from
//     first, up to the place that it names, if that file lies beside it: in the same folder, in that
//     of the day on which the thread began, or among the archived ones. Their ids begin with "cx-b1-",
//     those of that file's own base with "cx-b2-", and so on, at most 16 files. What cannot be found
//     is said, and the file is read without it.
//   - A session's title is the name that its thread has in session_index.jsonl, in Codex's home, or
//     else in the file. The header of a thread that an agent began, or Codex for its own ends, has
//     "internal" and "agent".
//
// A file is read once, the first line of a base twice, and of the list of names at most 8 MiB. A reader
// holds what the feed has under way (at most 7 batches of 512 KiB, two lines of at most 64 MiB, and
// what is made of them), an answer of up to 16 MiB, 4 MiB each of lines after it, of events that wait
// for their item, and of entries after an answer whose count may still come, the calls without an
// output, and what has to be known to take turns back; of a compressed file 32 MiB more. A line over 64
// MiB becomes a stub. Three goroutines work beside the one that calls Next, from the first call to the
// end of the file or Close.
package codex

import (
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/coppice-go/coppice/interop"
	"github.com/coppice-go/coppice/interop/internal/jsonl"
	"github.com/coppice-go/coppice/transcript"
)

// maxRefused lines without any of Codex's, and the file is given up.
const maxRefused = 1000

// Reader reads one rollout. It implements interop.Reader. Not safe for concurrent use.
type Reader struct {
	src    interop.Source
	o      interop.Options
	in     *rolloutStream
	s      *jsonl.Scanner
	header interop.Header
	first  *rolloutPiece // the line that the header is made of, or an item that came before any
	feed   *pieceFeed    // of the file that is being read; nil = the next one is to be opened
	from   *part         // what feed reads
	chain  []*part       // whose entries come before the file's own, the first ones last
	traced bool          // chain was looked for
	err    error         // sticky
	bad    int
	diag   transcript.DiagnosticList

	out  []transcript.Draft
	at   int
	last time.Time

	tip      string // the entry on which the next one hangs
	line     turnTracker
	model    string
	provider string
	effort   string
	agent    bool // an agent began the session, or Codex
	paged    bool
	answer   answer
	costs    costs
	calls    map[string]string // by id of a call without an output: the tool
	failed   string            // id of the last call over MCP that failed; its output follows
	echoes   echoFilter
	typed    typedFilter
	over     bool

	resting restPlace // the last place with which a reader could begin; Entry "" = none yet
	next    restPlace // a later one,
	untold  bool      // of which the first entry is still to come
	noted   int       // the last line that something was found in
	ends    int64     // offset of the last line
	unknown error     // with Options.From: what a line means is not known
}

// NewReader reads src, which is opened once.
func NewReader(src interop.Source, o interop.Options) *Reader {
	return &Reader{src: src, o: o, calls: map[string]string{}}
}

// Header reads as far as the session's first line.
func (r *Reader) Header() (interop.Header, error) {
	if r.in == nil && r.err == nil {
		r.err = r.begin()
	}
	if r.header.Raw == nil {
		return interop.Header{}, r.err
	}
	return r.header, nil
}

func (r *Reader) begin() (err error) {
	if r.in, err = openRollout(r.src); err != nil {
		return err
	}
	r.s = newScanner(r.in)
	if r.o.From != nil {
		return r.resume()
	}
	r.s.Note = func(number int, kind, detail string, bad int) {
		r.bad += bad
		r.diag.Add("", uint64(number), kind, detail)
	}
	for range maxRefused {
		o, err := r.s.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return err
		}
		p := makePiece(o)
		l := readRolloutLine(p.Raw)
		switch {
		case l.Form == formUnknown || l.Form == formState:
			r.bad++
			r.diag.Add("", uint64(o.Number), transcript.DiagBadLine,
				"before the session's first line, and none of Codex's")
			continue
		case l.Form == formEnvelope && string(l.Type) == `"session_meta"`, l.Form == formHead:
			r.first = p
			return r.setHeader(l)
		}
		r.first = p
		r.diag.Add("", uint64(o.Number), transcript.DiagNoHeader,
			"the file does not begin with a session's line: a header was made")
		return r.setHeader(rolloutLine{Stamp: l.Stamp})
	}
	return fmt.Errorf("%w: none of its first %d lines is one of Codex's", interop.ErrNotSession, r.s.Number())
}

// Next returns the next entry.
func (r *Reader) Next() (transcript.Draft, error) {
	if _, err := r.Header(); err != nil {
		return transcript.Draft{}, err
	}
	for r.at == r.ready() {
		if r.err != nil {
			return transcript.Draft{}, r.err
		}
		r.given()
		if r.err = r.advance(); r.err != nil {
			r.costs.due = dueCount{}
		}
	}
	r.at++
	return r.out[r.at-1], nil
}

// advance takes one line in; io.EOF = there was none.
func (r *Reader) advance() error {
	if r.over {
		return io.EOF
	}
	if r.feed == nil {
		r.nextFile()
		return nil
	}
	from := r.from
	p, found, err := r.feed.Next()
	beyond := p != nil && from.isBeyondFork(p)
	if beyond || err != nil {
		r.decide()
	}
	switch {
	case beyond:
		r.leave(errBeyond)
	case p != nil:
		r.rest(p)
		r.ends = p.Offset
		r.hear(p)
		return r.unknown
	case err == nil:
		r.addNotes(found)
	case from.depth > 0 && errors.Is(err, io.EOF):
		r.leave(nil)
	case from.depth > 0:
		r.leave(err)
	case errors.Is(err, io.EOF):
		return r.end()
	default:
		return fmt.Errorf("%s: %w", r.src.Name, err)
	}
	return nil
}

// addNotes takes over the notes of a scanner.
func (r *Reader) addNotes(n lineNotes) {
	r.bad += n.Bad
	for _, f := range n.List {
		r.noted = max(r.noted, f.Line)
		r.note("", f.Line, f.Kind, f.Detail)
	}
	r.diag.AddMore(n.More)
}

// note says something of a line, with the name of the file if it is not the session's own.
func (r *Reader) note(entry string, number int, kind, detail string) {
	r.noted = max(r.noted, number)
	if r.from.depth > 0 {
		detail = r.from.name + ": " + detail
	}
	r.diag.Add(entry, uint64(number), kind, detail)
}

// end returns what was held, after the last line.
func (r *Reader) end() error {
	r.over = true
	r.finish()
	r.feed.Close()
	if err := r.in.Close(); err != nil {
		return fmt.Errorf("close %s: %w", r.src.Name, err)
	}
	return nil
}

// finish returns what was held.
func (r *Reader) finish() {
	r.flush("")
	r.closeCounts()
	for _, e := range r.echoes.Drain() {
		r.custom(e.At, e.Kind, e.Raw)
	}
	if n := r.echoes.Dropped; n > 0 && r.o.From == nil {
		r.diag.Add("", 0, transcript.DiagNoted, fmt.Sprintf("events that repeat an item, left out: %d", n))
	}
}

// Verbatim is false: no line of the file is one of pi's.
func (r *Reader) Verbatim() bool { return false }

// BadLines counts the lines of which bytes were passed over.
func (r *Reader) BadLines() int { return r.bad }

// Diagnostics returns what was found so far, at most 100 and then a count.
func (r *Reader) Diagnostics() []transcript.Diagnostic { return r.diag.All() }

// Close releases what the reader holds; every goroutine that it started has ended then.
func (r *Reader) Close() error {
	if r.over {
		return nil
	}
	r.over = true
	r.out, r.at, r.costs.due = nil, 0, dueCount{}
	if r.err == nil {
		r.err = errClosed
	}
	if r.in == nil {
		return nil
	}
	var err error
	if r.feed != nil {
		if r.feed.Close(); r.from.in != nil {
			err = r.from.in.Close()
		}
	}
	if err := errors.Join(err, r.in.Close()); err != nil {
		return fmt.Errorf("close %s: %w", r.src.Name, err)
	}
	return nil
}

var errClosed = errors.New("codex: reader is closed")
