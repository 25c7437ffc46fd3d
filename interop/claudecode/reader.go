// Package claudecode reads and writes the session files of Claude Code.
//
// Guarantees of the reader:
//
//   - Every line with content is in the transcript, on the path to its head or on a branch that a user or an agent
//     made. The file's own links reach little more than half of them.
//   - A message of the model is one entry, however many lines it has in the file. The results of its calls follow it,
//     whatever lines they are attached to in the file.
//   - A prompt that was typed while the model worked, which the file has as an attachment, is a normal message. A
//     message that the program writes with role user is a custom_message: "claude-code.meta" if the line has isMeta,
//     else "claude-code.inserted". Errors that the program writes as answers have no content.
//   - A compaction keeps the entries that Claude Code keeps when it loads the file. Rows that Claude Code places after
//     it continue from it, whatever earlier rows the file names.
//   - Lines that the transcript cannot express are kept unchanged, in entries of type custom named
//     "claude-code.<type>", in file order. Fields of a line that pi does not have are in the entry's field
//     "claudeCode".
//   - Long tool outputs, which Claude Code stores in separate files, are entries of type custom named
//     "claude-code.tool-output", with {"file","bytes","text"} as data ("base64" if the content is not text), on a
//     branch of their own. Bounds: 4 MiB per file and 64 MiB in total. A diagnostic names files over the bounds.
//   - An entry's ID is the uuid of the last of its lines, so that new lines of Claude Code can name it as their parent.
//
// A file is read twice: first for an index of about 200 bytes per line, then line by line. Either pass works on two
// batches of lines in parallel and holds at most five, of 256 KiB and one line each. Only one at a time has more than 1
// MiB: at most a line of 64 MiB and its entry. A reader also holds the index, the pieces of messages that are at most
// 32 MiB apart, and at most 64 MiB of lines that precede their parents. A longer line becomes a stub.
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

// Reader reads one file: a session, or the transcript of an agent that a session started. It implements interop.Family:
// its children are the sidechains in the file, and the transcripts of agents in other files, if the file names them or
// if they name the session. It is not safe for concurrent use.
type Reader struct {
	src    interop.Source
	o      interop.Options
	x      *index
	header interop.Header
	in     io.ReadCloser // while entries are read
	e      *emitter
	files  *outputFiles // outputs of tools, returned after the first entry; nil = no more
	begun  bool         // the first entry was returned
	spare  chan *batch  // for reuse
	err    error        // sticky
}

// NewReader returns a reader of src, which it opens twice, and up to twice more for children. Another goroutine reads
// ahead until the end or Close.
func NewReader(src interop.Source, o interop.Options) *Reader { return &Reader{src: src, o: o} }

// Header reads the whole file once, because any line may contain fields of the header.
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
		h.Parent = x.Begun // a resumed session begins with lines of this one
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

// headerLine makes the header. The session of an agent ("" = none) is internal: users do not continue it.
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

// Verbatim returns false: no line of the file is in pi's format.
func (r *Reader) Verbatim() bool { return false }

// BadLines returns the number of lines of which bytes were skipped.
func (r *Reader) BadLines() int {
	if r.x == nil {
		return 0
	}
	return r.x.Bad
}

// Diagnostics returns at most 100 findings, and a count of the others.
func (r *Reader) Diagnostics() []transcript.Diagnostic {
	if r.x == nil {
		return nil
	}
	return r.x.Diag.All()
}

// Close releases all resources. Children cannot be read after it.
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
