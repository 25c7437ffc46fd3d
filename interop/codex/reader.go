// Package codex reads and writes the rollouts of the Codex command line: .jsonl and .jsonl.zst, of every version. Write
// and Continue document what they write.
//
// Guarantees of the reader:
//
//   - The items of one answer of the model (reasoning, text, calls, and calls that the provider answers itself) are one
//     entry. Outputs are results of their calls. An image that the model drew is an image in its answer.
//   - A rollback starts a branch at the place it went back to; the entries it removed stay in the tree. The context is
//     the one that Codex itself computes from the file, with one exception: if a message was sent to a turn after a
//     compaction in that turn, and only that message is rolled back, the compaction stays in force.
//   - A compaction is an entry of type compaction. The items with which Codex replaced the history follow it, as
//     messages that the model sees and that neither the user nor the model wrote. A compaction of 2025 has no such
//     items; the user's messages take their place. An encrypted summary is kept unchanged, and the entry's summary is a
//     note about it.
//   - Messages of other agents to an agent are user messages in its session: the first one is its task. In a session
//     that the user began they are shown as a custom_message of type "codex.agent_message".
//   - Each answer has its own token count, wherever the file has it; counts that belong to no answer are entries of
//     type usage. Their sum is the total of the file's last count, except for a beginning that is not read. "origin"
//     names the response: it is the same in files to which Codex copied the answer. There "inherited" is true if the
//     turn began before the thread.
//   - Events that repeat an item are dropped and counted. Lines that the transcript cannot express are kept unchanged,
//     in entries of type custom named "codex.<type>", in file order.
//   - A fork without a copy of its history (history_base) begins with the entries of its base, up to the place that it
//     names. The base is searched in the same folder, in the folder of the day on which its thread began, and among the
//     archived sessions. Its entry IDs begin with "cx-b1-", those of its own base with "cx-b2-", and so on, for at most
//     16 files. A base that is missing is a diagnostic, and the file is read without it.
//   - A session's title is the name of its thread in session_index.jsonl, in Codex's home, or else in the file. The
//     header of a thread that an agent or Codex itself began has "internal" and "agent".
//
// A file is read once, the first line of a base twice, and at most 8 MiB of the list of names. Bounds of memory:
//
//   - the feed: at most 7 batches of 512 KiB, two lines of at most 64 MiB, and the results for them;
//   - an answer of up to 16 MiB;
//   - 4 MiB each of lines after the answer, of events that wait for their item, and of entries after an answer whose
//     count may still come;
//   - calls without an output, and the positions needed for rollbacks;
//   - 32 MiB more for a compressed file.
//
// A line over 64 MiB becomes a stub. Three goroutines work in addition to the caller of Next, from the first call to
// the end of the file or Close.
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

// maxRefused is the number of lines without any of Codex's after which a file is rejected.
const maxRefused = 1000

// Reader reads one rollout. It implements interop.Reader. It is not safe for concurrent use.
type Reader struct {
	src    interop.Source
	o      interop.Options
	in     *rolloutStream
	s      *jsonl.Scanner
	header interop.Header
	first  *rolloutPiece // the line with the header, or an item before it
	feed   *pieceFeed    // of the current file; nil = the next one must be opened
	from   *part         // the current file
	chain  []*part       // files whose entries precede the file's own, the oldest one last
	traced bool          // chain was computed
	err    error         // sticky
	bad    int
	diag   transcript.DiagnosticList

	out  []transcript.Draft
	at   int
	last time.Time

	tip      string // parent of the next entry
	line     turnTracker
	model    string
	provider string
	effort   string
	agent    bool // an agent or Codex itself began the session
	paged    bool
	answer   answer
	costs    costs
	calls    map[string]string // calls without an output: tool name by call ID
	failed   string            // ID of the last failed call over MCP; its output follows
	echoes   echoFilter
	typed    typedFilter
	over     bool

	resting restPlace // last place where a reader can resume; Entry "" = none yet
	next    restPlace // candidate for a later place
	untold  bool      // next has no entry yet
	noted   int       // last line with a finding
	ends    int64     // offset of the last line
	unknown error     // with Options.From: the meaning of a line depends on lines before From
}

// NewReader returns a reader of src, which it opens once.
func NewReader(src interop.Source, o interop.Options) *Reader {
	return &Reader{src: src, o: o, calls: map[string]string{}}
}

// Header reads up to the session's first line.
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

// advance reads one line. It returns io.EOF at the end.
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

// addNotes adds the findings of a scanner.
func (r *Reader) addNotes(n lineNotes) {
	r.bad += n.Bad
	for _, f := range n.List {
		r.noted = max(r.noted, f.Line)
		r.note("", f.Line, f.Kind, f.Detail)
	}
	r.diag.AddMore(n.More)
}

// note adds a diagnostic for a line, with the name of the file if it is a base.
func (r *Reader) note(entry string, number int, kind, detail string) {
	r.noted = max(r.noted, number)
	if r.from.depth > 0 {
		detail = r.from.name + ": " + detail
	}
	r.diag.Add(entry, uint64(number), kind, detail)
}

// end flushes everything after the last line.
func (r *Reader) end() error {
	r.over = true
	r.finish()
	r.feed.Close()
	if err := r.in.Close(); err != nil {
		return fmt.Errorf("close %s: %w", r.src.Name, err)
	}
	return nil
}

// finish flushes pending lines and counts.
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

// Verbatim returns false: no line of the file is in pi's format.
func (r *Reader) Verbatim() bool { return false }

// BadLines returns the number of lines of which bytes were skipped.
func (r *Reader) BadLines() int { return r.bad }

// Diagnostics returns at most 100 findings, and a count of the others.
func (r *Reader) Diagnostics() []transcript.Diagnostic { return r.diag.All() }

// Close releases all resources and waits for the goroutines.
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
