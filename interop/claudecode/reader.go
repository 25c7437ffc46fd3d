// Package claudecode reads and writes the session files of Claude Code.
//
// What it guarantees of a file that it reads:
//
//   - Every line that says something is in the transcript, and can be reached from its end or is on
//     a branch that a user or an agent made. The file's own links lead to little more than half of it.
//   - A message of the model is one entry, however many lines it is written in; the results of its
//     calls follow it, whatever lines they hang on in the file.
//   - What the user typed while the model worked is in attachments. It is a message like others.
//     What the program writes with role user is a custom_message: "claude-code.meta" where the line
//     is marked so, else "claude-code.inserted". Errors that it writes as answers have no content.
//   - A compaction keeps what Claude Code keeps when it loads the file, and what Claude Code hangs
//     after it continues from it, whatever rows of before it the file names.
//   - What the transcript cannot express is kept as it is, in entries of type custom named
//     "claude-code.<type>", in the order of the file. Fields of a line that pi does not have stand in
//     its entry's field "claudeCode".
//   - What tools gave that was too long for a line, and lies in files beside the session, is kept in
//     entries of type custom named "claude-code.tool-output" with {"file","bytes","text"} ("base64"
//     where it is no text) as data, on a branch of their own: 4 MiB of each and 64 MiB of all; files
//     over that are named in a diagnostic.
//   - An entry's id is the uuid of the last line that it is made of: new lines of Claude Code can
//     hang on it.
//
// A file is read twice: first for an index of some 200 bytes a line, then line by line. Either reading
// works on two batches of lines at once and holds at most five, of 256 KiB and one line each; only one
// at a time has more than 1 MiB, at most a line of 64 MiB and what it becomes. Beside them and the
// index a reader holds the pieces of messages that lie at most 32 MiB apart, and at most 64 MiB of
// lines that come before their parents. A longer line becomes a stub.
package claudecode

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/coppice-go/coppice/internal/rawjson"
	"github.com/coppice-go/coppice/interop"
	"github.com/coppice-go/coppice/interop/internal/jsonl"
	"github.com/coppice-go/coppice/transcript"
)

// Reader reads one file: a session, or the transcript of an agent that one started. It implements
// interop.Family: children are the sidechains in the file, and the transcripts of agents beside it that
// the file speaks of or that say themselves that they are the session's. Not safe for concurrent use.
type Reader struct {
	src    interop.Source
	o      interop.Options
	x      *index
	header interop.Header
	in     io.ReadCloser // while entries are read
	e      *emitter
	files  *outputFiles // of tools, to be given after the first entry; nil = no more
	begun  bool         // the first entry was given
	spare  chan *batch  // to be filled again
	err    error        // sticky
}

// NewReader reads src, which is opened twice, and once or twice more for children. What was opened is read ahead,
// from another goroutine than the caller's, until the end or Close.
func NewReader(src interop.Source, o interop.Options) *Reader { return &Reader{src: src, o: o} }

// Header reads the whole file once, for what is said of a session may stand anywhere in it.
func (r *Reader) Header() (interop.Header, error) {
	if r.x == nil && r.err == nil {
		r.err = r.begin()
	}
	if r.x == nil {
		return interop.Header{}, r.err
	}
	return r.header, nil
}

func (r *Reader) begin() error {
	if r.o.From != nil {
		return r.resume()
	}
	x, err := scanFile(r.src, nil, nil)
	if err != nil {
		return err
	}
	h := interop.Header{ID: x.Session, Cwd: x.Cwd, Title: x.Title(), Created: x.Created, Version: 1}
	if x.AgentID != "" {
		h.ID, h.Parent = "agent-"+strings.TrimPrefix(x.AgentID, "agent-"), x.Session
	} else if x.Begun != x.Session {
		h.Parent = x.Begun // whose lines a resumed session begins with
	}
	stamp := x.Created
	if stamp.IsZero() {
		stamp = r.o.Now
	}
	if h.ID == "" {
		var first lineKey
		if len(x.Rows) > 0 {
			first = x.Rows[0].Key
		}
		h.ID, h.Made = jsonl.MadeID(x.Created, first[:], 0), true
	}
	h.Raw = headerLine(h, jsonl.AppendTime(nil, stamp), x.AgentID)
	r.header, r.x, r.spare = h, x, make(chan *batch, 2*scanLanes+1)
	return nil
}

// headerLine makes the header. A session of an agent ("" = none) is internal: users do not continue with it.
func headerLine(h interop.Header, stamp []byte, agent string) []byte {
	var internal, relation []byte
	if agent != "" {
		internal = []byte("true")
	} else if h.Parent != "" {
		relation = []byte(`{"relation":"fork"}`)
	}
	text := func(s string) []byte {
		if s == "" {
			return nil
		}
		return rawjson.AppendString(nil, s)
	}
	return rawjson.Object("type", []byte(`"session"`), "version", []byte("3"), "id", text(h.ID), "timestamp", stamp,
		"cwd", rawjson.AppendString(nil, h.Cwd), "title", text(h.Title), "parentSession", text(h.Parent), "internal",
		internal, "agent", text(agent), "coppice", relation)
}

// Next returns the next entry, parents first.
func (r *Reader) Next() (transcript.Draft, error) {
	if _, err := r.Header(); err != nil {
		return transcript.Draft{}, err
	}
	if r.err != nil {
		return transcript.Draft{}, r.err
	}
	if r.in == nil {
		in, err := r.src.Open()
		if err != nil {
			r.err = err
			return transcript.Draft{}, err
		}
		r.in = in
		if r.x.AgentID == "" && r.o.From == nil {
			r.files = r.search().Outputs(rawjson.Field(r.header.Raw, "timestamp"))
		}
		lines, order := newTape(r.x, in), newOrder(r.x, 0, r.o.Now, nil)
		if order.fetch = lines.get; r.o.From != nil {
			lines.start(r.o.From)
			order.resume(r.x.resumed)
		}
		r.e = newPipe(r.x, order, r.spare)
	}
	if r.begun && r.files != nil {
		if raw := r.files.Next(); raw != nil {
			return transcript.Draft{Raw: raw}, nil
		}
		r.files = nil
	}
	d, err := r.e.next()
	r.begun = true
	if err != nil {
		if r.err = err; errors.Is(err, io.EOF) {
			if err = r.release(); err != nil {
				r.err = err
			}
		}
	}
	return d, r.err
}

// Verbatim is false: no line of the file is one of pi's.
func (r *Reader) Verbatim() bool { return false }

// BadLines counts the lines of which bytes were passed over.
func (r *Reader) BadLines() int {
	if r.x == nil {
		return 0
	}
	return r.x.Bad
}

// Diagnostics returns what was found, at most 100 and then a count.
func (r *Reader) Diagnostics() []transcript.Diagnostic {
	if r.x == nil {
		return nil
	}
	return r.x.Diag.All()
}

// Close releases what the reader holds. Children cannot be read after it.
func (r *Reader) Close() error {
	err := r.release()
	if r.e, r.spare = nil, nil; r.x != nil {
		r.x = &index{Bad: r.x.Bad, Diag: r.x.Diag}
	}
	r.err = errClosed
	return err
}

var errClosed = errors.New("claudecode: reader is closed")

func (r *Reader) release() error {
	if r.in == nil {
		return nil
	}
	in := r.in
	r.in = nil
	r.e.close()
	if err := in.Close(); err != nil {
		return fmt.Errorf("close %s: %w", r.src.Name, err)
	}
	return nil
}
