// Package codex reads the rollouts of the Codex command line: .jsonl and .jsonl.zst, of every age.
//
// What it guarantees of a file that it reads:
//
//   - The items of one answer of the model (reasoning, text, calls) are one entry; outputs are results of their
//     calls. A rollback starts a branch where it went back to; what it undid stays.
//   - A compaction is an entry of type compaction, with what Codex put in the place of the history behind it,
//     as messages that the model sees and that nobody said.
//   - Events that say again what an item says are left out and counted. What the transcript cannot express is
//     kept as it is, in entries of type custom named "codex.<type>", in the order of the file.
//
// A file is read once. A reader holds one line of at most 64 MiB (a longer one gives a stub), one answer, and
// the calls without an output.
package codex

import (
	"errors"
	"fmt"
	"hash/maphash"
	"io"
	"strings"
	"time"

	"github.com/coppice-go/coppice/internal/diag"
	"github.com/coppice-go/coppice/internal/rawjson"
	"github.com/coppice-go/coppice/interop"
	"github.com/coppice-go/coppice/interop/claudecode/jsonl"
	"github.com/coppice-go/coppice/transcript"
)

// maxRefused lines without any of Codex's, and the file is given up.
const maxRefused = 1000

// Reader reads one rollout. It implements interop.Reader. Not safe for concurrent use.
type Reader struct {
	src    interop.Source
	o      interop.Options
	in     *stream
	s      *jsonl.Scanner
	header interop.Header
	first  *pending // an item that came before any header
	err    error    // sticky
	bad    int
	diag   diag.List

	out  []transcript.Draft
	at   int
	last time.Time

	tip      string   // the entry on which the next one hangs
	turns    []string // by turn of the user on the way to tip: what it hangs on
	model    string
	provider string
	effort   string
	answer   answer
	calls    map[string]string // by id of a call without an output: the tool
	echoes   echoes
	seed     maphash.Seed
	over     bool
}

// pending is an object that is kept beyond the next one.
type pending struct {
	raw    []byte
	number int
	part   bool
	size   int64
}

// NewReader reads src, which is opened once.
func NewReader(src interop.Source, o interop.Options) *Reader {
	r := &Reader{src: src, o: o, calls: map[string]string{}, seed: maphash.MakeSeed()}
	return r
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
	if r.in, err = openSource(r.src); err != nil {
		return err
	}
	r.s = jsonl.NewScanner(r.in)
	r.s.Accepts = func(object []byte) bool { return readLine(object).form != formUnknown }
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
		l := readLine(o.Raw)
		switch {
		case l.form == formUnknown || l.form == formState:
			r.bad++
			r.diag.Add("", uint64(o.Number), diag.BadLine, "before the session's first line, and none of Codex's")
			continue
		case l.form == formEnvelope && string(l.typ) == `"session_meta"`, l.form == formHeader:
			return r.setHeader(l, o)
		}
		r.first = &pending{append([]byte(nil), o.Raw...), o.Number, o.Part, o.Size}
		r.diag.Add("", uint64(o.Number), diag.NoHeader, "the file does not begin with a session's line: a header was made")
		return r.setHeader(line{stamp: l.stamp}, o)
	}
	return fmt.Errorf("%w: none of its first %d lines is one of Codex's", interop.ErrNotSession, r.s.Number())
}

// setHeader takes what is known of the session from its first line.
func (r *Reader) setHeader(l line, o jsonl.Object) error {
	p := l.payload
	h := interop.Header{ID: rawjson.Text(rawjson.Field(p, "id")), Cwd: rawjson.Text(rawjson.Field(p, "cwd")), Version: 1, Made: p == nil}
	for _, name := range []string{"forked_from_id", "parent_thread_id"} {
		if h.Parent == "" {
			h.Parent = rawjson.Text(rawjson.Field(p, name))
		}
	}
	stamp := r.o.Now
	for _, val := range [][]byte{l.stamp, rawjson.Field(p, "timestamp")} {
		if t, ok := jsonl.Stamp(val); ok {
			stamp, h.Created = t, t
		}
	}
	r.last = stamp
	if h.ID == "" {
		id, err := transcript.NewID(stamp, r.o.Rand)
		if err != nil {
			return err
		}
		h.ID = id
	}
	text := func(s string) []byte {
		if s == "" {
			return nil
		}
		return rawjson.AppendString(nil, s)
	}
	h.Raw = rawjson.Object("type", []byte(`"session"`), "version", []byte("3"), "id", text(h.ID), "timestamp", jsonl.AppendTime(nil, stamp),
		"cwd", rawjson.AppendString(nil, h.Cwd), "parentSession", text(h.Parent))
	r.header = h
	if r.provider = rawjson.Text(rawjson.Field(p, "model_provider")); r.provider == "" {
		r.provider = "openai"
	}
	if base := rawjson.Text(rawjson.Field(rawjson.Field(p, "history_base"), "thread_id")); base != "" {
		r.diag.Add("", uint64(o.Number), diag.Noted, fmt.Sprintf("its beginning stands in the file of thread %.80q, which is not read", base))
	}
	if p != nil {
		r.custom(entryAt{o.Number, 0, l.stamp}, "session_meta", o.Raw)
	}
	return nil
}

// Next gives the next entry.
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

// advance takes one line in; io.EOF = there was none.
func (r *Reader) advance() error {
	if f := r.first; f != nil {
		r.first = nil
		r.take(jsonl.Object{Raw: f.raw, Number: f.number, Part: f.part, Size: f.size})
		return nil
	}
	if r.over {
		return io.EOF
	}
	o, err := r.s.Next()
	if errors.Is(err, io.EOF) {
		r.over = true
		r.finish()
		if err := r.in.Close(); err != nil {
			return fmt.Errorf("close %s: %w", r.src.Name, err)
		}
		return nil
	}
	if err != nil {
		return fmt.Errorf("%s: %w", r.src.Name, err)
	}
	r.take(o)
	return nil
}

// finish gives what was held.
func (r *Reader) finish() {
	r.flush("")
	for _, e := range r.echoes.drain() {
		r.custom(e.at, e.kind, e.raw)
	}
	if n := r.echoes.dropped; n > 0 {
		r.diag.Add("", 0, diag.Noted, fmt.Sprintf("%d events say again what an item says: left out", n))
	}
}

// Verbatim is false: no line of the file is one of pi's.
func (r *Reader) Verbatim() bool { return false }

// BadLines counts the lines of which bytes were passed over.
func (r *Reader) BadLines() int { return r.bad }

// Diagnostics gives what was found so far, at most 100 and then a count.
func (r *Reader) Diagnostics() []transcript.Diagnostic { return r.diag.All() }

// Close releases what the reader holds.
func (r *Reader) Close() error {
	if r.in == nil || r.over {
		return nil
	}
	r.over, r.err = true, errClosed
	r.out, r.at = nil, 0
	if err := r.in.Close(); err != nil {
		return fmt.Errorf("close %s: %w", r.src.Name, err)
	}
	return nil
}

var errClosed = errors.New("codex: reader is closed")

// contextual tells what Codex says in the user's name from what the user says.
func contextual(text string) bool {
	text = strings.TrimSpace(text)
	for _, mark := range []string{
		"<environment_context>", "<user_instructions>", "# AGENTS.md instructions", "<INSTRUCTIONS>", "<skill>",
		"<user_shell_command>", "<turn_aborted>", "<permissions instructions>", "<collaboration_mode>", "<subagent_notification>", "<ide_context>",
	} {
		if strings.HasPrefix(text, mark) {
			return true
		}
	}
	return false
}
