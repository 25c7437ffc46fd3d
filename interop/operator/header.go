package operator

import (
	"bytes"
	"fmt"
	"math"
	"strconv"

	"github.com/coppice-go/coppice/internal/rawjson"
	"github.com/coppice-go/coppice/interop"
	"github.com/coppice-go/coppice/interop/internal/jsonl"
	"github.com/coppice-go/coppice/interop/internal/piwriter"
	"github.com/coppice-go/coppice/transcript"
)

const sessionVersion = 3

func (r *Reader) setHeader(o jsonl.Entry) error {
	if o.Part {
		return fmt.Errorf("%w: its header has %d bytes, over the limit of %d", interop.ErrNotSession, o.Size,
			jsonl.MaxLine)
	}
	out := rawjson.Object("type", []byte(`"session"`), "version", []byte("3"))
	h := &r.header
	h.Version, h.ID, h.Created = sessionVersion, o.ID, o.Time
	for m := rawjson.Walk(o.Raw); m.Closing == '}' && m.Next(); {
		switch string(m.Key) {
		case "type":
		case "version":
			if n, err := strconv.ParseFloat(string(m.Val), 64); err == nil && !math.IsNaN(n) {
				h.Version = int(min(max(n, 0), 1<<30))
			}
		case "timestamp":
			out = piwriter.AddField(out, "timestamp", isoTime(m.Val))
		case "cwd":
			h.Cwd = rawjson.Text(m.Val)
			out = piwriter.AddField(out, "cwd", m.Val)
		case "parent_session":
			if h.Parent = rawjson.Text(m.Val); h.Parent != "" {
				out = piwriter.AddField(out, "parentSession", m.Val)
			}
		default:
			out = piwriter.AddField(out, string(m.Key), m.Val)
		}
	}
	return r.begun(o, out)
}

// setOldHeader reads the metadata line of the older form.
func (r *Reader) setOldHeader(o jsonl.Entry) error {
	if o.Part {
		return fmt.Errorf("%w: its header has %d bytes, over the limit of %d", interop.ErrNotSession, o.Size,
			jsonl.MaxLine)
	}
	created := rawjson.Field(o.Raw, "created_at")
	meta := rawjson.Field(o.Raw, "metadata")
	h := &r.header
	h.Version, h.ID, h.Created = 1, o.ID, oldTime(created)
	h.Cwd = rawjson.Text(rawjson.Field(meta, "cwd"))
	h.Title = rawjson.Text(rawjson.Field(meta, "title"))
	at := isoTime(created)
	if !h.Created.IsZero() {
		at = isoOf(h.Created)
	}
	out := rawjson.Object("type", []byte(`"session"`), "version", []byte("3"), "id", nonEmpty(h.ID), "timestamp", at,
		"cwd", rawjson.AppendString(nil, h.Cwd), "updatedAt", rawjson.Field(o.Raw, "updated_at"), "metadata", meta)
	return r.begun(o, out)
}

func (r *Reader) makeHeader(o jsonl.Entry) error {
	at := r.stamp(o)
	r.header = interop.Header{Version: sessionVersion, Created: at, Made: true}
	r.in.Note(o, transcript.DiagNoHeader, "the file has no session header: one was made")
	return r.begun(jsonl.Entry{Line: transcript.Line{Time: o.Time}, Number: o.Number},
		rawjson.Object("type", []byte(`"session"`), "version", []byte("3"), "timestamp", isoOf(at),
			"cwd", []byte(`""`)))
}

// begun completes the header with an ID, a time and a directory.
func (r *Reader) begun(o jsonl.Entry, raw []byte) error {
	h := &r.header
	if h.ID == "" {
		id := jsonl.MadeID(o.Time, o.Raw, 0)
		if h.ID, raw = id, rawjson.WithField(raw, "id", rawjson.AppendString(nil, id)); !h.Made {
			r.in.Note(o, transcript.DiagConverted, "the header has no id: one was made")
		}
	}
	h.Raw = bytes.Clone(raw)
	r.started = true
	return nil
}

func nonEmpty(s string) []byte {
	if s == "" {
		return nil
	}
	return rawjson.AppendString(nil, s)
}
