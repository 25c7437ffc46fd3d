package pi

import (
	"bytes"
	"fmt"
	"strconv"
	"time"

	"github.com/coppice-go/coppice/internal/rawjson"
	"github.com/coppice-go/coppice/interop"
	"github.com/coppice-go/coppice/interop/internal/jsonl"
	"github.com/coppice-go/coppice/transcript"
)

func (f *Reader) setHeader(l jsonl.Entry) error {
	h := &f.header
	h.Raw, h.Version, h.ID, h.Created = bytes.Clone(l.Raw), 1, l.ID, l.Time
	h.Cwd = rawjson.Text(rawjson.Field(l.Raw, "cwd"))
	if !f.slotted { // the title line is newer
		h.Title = rawjson.Text(rawjson.Field(l.Raw, "title"))
	}
	if h.Parent = rawjson.Text(rawjson.Field(l.Raw, "parentSession")); h.Parent == "" {
		h.Parent = rawjson.Text(rawjson.Field(l.Raw, "branchedFrom"))
	}
	if v := rawjson.Field(l.Raw, "version"); v != nil {
		s := rawjson.Text(v)
		if rawjson.IsNumber(v) {
			s = string(v)
		}
		n, err := strconv.ParseFloat(s, 64)
		if err != nil || n != n {
			n = currentVersion
			f.in.Note(l, transcript.DiagConverted, fmt.Sprintf("version %.40s read as %d", v, currentVersion))
		}
		h.Version = int(min(max(n, 0), 1<<30))
	}
	if l.Part {
		return fmt.Errorf("%w: its header has %d bytes, over the limit of %d", ErrNotSession, l.Size, jsonl.MaxLine)
	}
	if h.ID == "" {
		id := jsonl.MadeID(l.Time, l.Raw, 0)
		h.ID, h.Raw = id, rawjson.WithField(h.Raw, "id", rawjson.AppendString(nil, id))
		f.in.Note(l, transcript.DiagConverted, "the header has no id: one was made")
	}
	if h.Version < currentVersion {
		rest := rawjson.WithField(rawjson.WithField(h.Raw, "type", nil), "version", nil)
		h.Raw = append([]byte(`{"type":"session","version":3,`), rest[1:]...)
		f.in.Note(l, transcript.DiagConverted, fmt.Sprintf("version %d converted to %d", h.Version, currentVersion))
	}
	f.ids = append(f.ids, "")
	f.started = true
	return nil
}

// makeHeader makes a header for a file without one.
func (f *Reader) makeHeader(l jsonl.Entry) error {
	at := f.stamp(l)
	id := jsonl.MadeID(l.Time, l.Raw, 0)
	version := currentVersion
	if l.ID == "" {
		version = 1
	}
	f.header = interop.Header{
		Version: version, ID: id, Title: f.header.Title, Created: at, Made: true,
		Raw: fmt.Appendf(nil, `{"type":"session","version":3,"id":%q,"timestamp":%q,"cwd":""}`, id,
			at.UTC().Format("2006-01-02T15:04:05.000Z")),
	}
	f.in.Note(l, transcript.DiagNoHeader, "the file has no session header: one was made")
	f.started = true
	return nil
}

// stamp returns the line's time, or now.
func (f *Reader) stamp(l jsonl.Entry) time.Time {
	if y := l.Time.Year(); l.Time.IsZero() || y < 1970 || y > 9999 {
		return f.now
	}
	return l.Time
}

func (f *Reader) notSession() error {
	switch {
	case f.in.Lines() == 0 || f.in.Bad() == 0 && !f.anything:
		return fmt.Errorf("%w: it is empty", ErrNotSession)
	case f.anything:
		return fmt.Errorf("%w: lines of JSON, but no session header and no entries", ErrNotSession)
	}
	return fmt.Errorf("%w: none of its first %d lines is a JSON object with a type; JSONL has one object a line",
		ErrNotSession, f.in.Lines())
}

// looksLikeEntry reports whether a line of a file without a header is an entry, and not a line of another log.
func looksLikeEntry(l transcript.Line) bool {
	if l.Type == "message" && bytes.HasPrefix(rawjson.Field(l.Raw, "message"), []byte("{")) {
		return true
	}
	return l.Type != "" && l.ID != "" && (rawjson.Field(l.Raw, "parentId") != nil || !l.Time.IsZero())
}
