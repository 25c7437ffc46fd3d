package harness

import (
	"errors"
	"fmt"
	"io"
	"strconv"

	"github.com/coppice-go/coppice/internal/rawjson"
	"github.com/coppice-go/coppice/interop"
	"github.com/coppice-go/coppice/interop/internal/jsonl"
	"github.com/coppice-go/coppice/transcript"
)

// headerLine is the header of a file.
type headerLine struct {
	old                                            bool
	id, cwd, created, parent, path, metadata, next []byte
}

func readHeader(raw []byte) headerLine {
	var h headerLine
	for m := rawjson.Walk(raw); m.Closing == '}' && m.Next(); {
		switch string(m.Key) {
		case "version":
			h.old = true
		case "id":
			h.id = m.Val
		case "cwd":
			h.cwd = m.Val
		case "createdAt":
			h.created = m.Val
		case "parentSessionId":
			h.parent = m.Val
		case "legacyParentSessionPath":
			h.path = m.Val
		case "metadata":
			h.metadata = m.Val
		case "nextSeq":
			h.next = m.Val
		}
	}
	return h
}

func (h headerLine) parentText() string {
	if id := rawjson.Text(h.parent); id != "" {
		return id
	}
	return rawjson.Text(h.path)
}

// begin finds the header, or the first write of a file without one.
func (r *Reader) begin() error {
	f, err := r.src.Open()
	if err != nil {
		return err
	}
	r.file, r.in = f, jsonl.NewLineReader(f)
	for range maxRefused {
		err := r.nextLine()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return err
		}
		if len(r.rest) == 0 && !r.line.Part() {
			continue
		}
		head := r.rest
		if r.line.Part() {
			head = r.line.Bytes
		}
		switch kindOf(head) {
		case aHeader:
			if r.line.Part() {
				return fmt.Errorf("%w: its header has %d bytes, over the limit of %d", interop.ErrNotSession,
					r.line.Size, jsonl.MaxLine)
			}
			if end, err := rawjson.ValueEnd(head, 0, maxDepth); err == nil {
				r.rest = jsonl.Trim(head[end:])
				return r.setHeader(head[:end])
			}
		case aWrite:
			r.note(transcript.DiagNoHeader, "the file has no header: one was made", 0)
			return r.setHeader(nil)
		case aStranger:
		}
		r.rest = nil
		r.note(transcript.DiagBadLine, "before the header, and none of the harness's", 1)
	}
	return fmt.Errorf("%w: none of its first %d lines is one of pi's harness", interop.ErrNotSession, r.in.Number())
}

// setHeader sets the header; nil = the file has none.
func (r *Reader) setHeader(raw []byte) error {
	v := readHeader(raw)
	r.old = v.old
	if n, err := strconv.ParseInt(string(v.next), 10, 64); err == nil {
		r.next = n
	}
	h := interop.Header{
		ID: rawjson.Text(v.id), Cwd: rawjson.Text(v.cwd), Parent: v.parentText(), Version: 4,
		Made: raw == nil,
	}
	r.last = r.o.Now
	if t, ok := jsonl.Stamp(v.created); ok {
		r.last, h.Created = t, t
	}
	if h.ID == "" {
		h.ID = jsonl.MadeID(h.Created, raw, 0)
	}
	var parent, metadata []byte
	if h.Parent != "" {
		parent = rawjson.AppendString(nil, h.Parent)
	}
	if len(v.metadata) > 0 && v.metadata[0] == '{' {
		metadata = v.metadata
	}
	h.Raw = rawjson.Object("type", []byte(`"session"`), "version", []byte("3"), "id", rawjson.AppendString(nil, h.ID),
		"timestamp", jsonl.AppendTime(nil, r.last),
		"cwd", rawjson.AppendString(nil, h.Cwd), "parentSession", parent, "metadata", metadata)
	r.header = h
	r.lane = r.laneNamed(mainLane)
	if raw != nil {
		r.custom(r.lane, "header", raw)
	}
	return nil
}
