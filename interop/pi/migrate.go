package pi

import (
	"bytes"
	"fmt"
	"strconv"

	"github.com/coppice-go/coppice/internal/blob"
	"github.com/coppice-go/coppice/internal/rawjson"
	"github.com/coppice-go/coppice/interop/internal/jsonl"
	"github.com/coppice-go/coppice/transcript"
)

// convert returns the version 3 line of an object, or nil.
func (f *Reader) convert(l jsonl.Entry) []byte {
	if l.Type == "session" {
		f.in.Note(l, transcript.DiagBadLine, "another session header: skipped")
		f.index("")
		return nil
	}
	if isSlot(l) && f.dialect.Slots {
		f.index("")
		f.in.Change()
		return nil
	}
	raw := l.Raw
	if l.Part {
		raw = f.in.Stub(l, rawjson.Field(l.Raw, "parentId"), nil)
	} else if len(raw)+f.growth(l) > jsonl.MaxEntry {
		if stored, _ := blob.Externalise(raw); len(stored)+f.growth(l) > jsonl.MaxEntry {
			raw = f.in.Stub(l, rawjson.Field(l.Raw, "parentId"), jsonl.Shrink(raw, 8))
		}
	}
	id := l.ID
	if id == "" {
		id = jsonl.MadeID(l.Time, l.Raw, l.Number)
	}
	switch {
	case f.header.Version < oldestWithTree:
		raw = f.chain(raw, l, id)
	case l.ID == "":
		raw = placed(raw, id, rawjson.Field(raw, "parentId"))
		f.in.Note(l, transcript.DiagConverted, "an entry without an id: one was made")
	}
	f.index(id)
	if f.header.Version < currentVersion && l.Type == "message" {
		if m := rawjson.Field(raw, "message"); string(rawjson.Field(m, "role")) == `"hookMessage"` {
			raw = rawjson.WithField(raw, "message", rawjson.WithField(m, "role", []byte(`"custom"`)))
		}
	}
	if f.dialect.Entry == nil {
		return bytes.Clone(raw)
	}
	return f.spoken(l, id, raw)
}

// spoken returns the dialect's replacement of an entry.
func (f *Reader) spoken(l jsonl.Entry, id string, raw []byte) []byte {
	o := l
	o.ID, o.Raw = id, raw
	out := f.dialect.Entry(o.Line, func(kind, detail string) { f.in.Remark(o, kind, detail) })
	if len(out) == len(raw) && (len(raw) == 0 || &out[0] == &raw[0]) {
		return bytes.Clone(raw)
	}
	if len(out) > jsonl.MaxEntry {
		if stored, _ := blob.Externalise(out); len(stored) > jsonl.MaxEntry {
			f.in.Remark(o, transcript.DiagOversize,
				fmt.Sprintf("%d bytes with its images, over the limit of %d: the line "+
					"stays as it is", len(out), jsonl.MaxEntry))
			return bytes.Clone(raw)
		}
	}
	f.in.Change()
	return out
}

// growth bounds the bytes that ID and parent add to an entry.
func (f *Reader) growth(l jsonl.Entry) int {
	if l.ID != "" && f.header.Version >= oldestWithTree {
		return 0
	}
	return len(f.last) + maxPlace
}

// maxPlace bounds the fields of ID and parent, with an ID made by the reader.
const maxPlace = 256

// index records the ID of an object of a version 1 file under its index in the file.
func (f *Reader) index(id string) {
	if f.header.Version < oldestWithTree {
		f.ids = append(f.ids, id)
	}
}

// chain adds ID and parent to a version 1 entry: the parent is the entry before, unless the entry names one. It also
// converts the index of a compaction's first kept entry to an ID.
func (f *Reader) chain(raw []byte, l jsonl.Entry, id string) []byte {
	f.in.Change()
	parent := rawjson.Field(raw, "parentId")
	if l.ID == "" || parent == nil {
		if parent = nil; f.last != "" {
			parent = rawjson.AppendString(nil, f.last)
		}
		raw = placed(raw, id, parent)
	}
	f.last = id
	index := rawjson.Field(raw, "firstKeptEntryIndex")
	if l.Type != "compaction" || !rawjson.IsNumber(index) {
		return raw
	}
	raw = rawjson.WithField(raw, "firstKeptEntryIndex", nil)
	n, err := strconv.ParseFloat(string(index), 64)
	at := int64(min(max(n, -1), 1<<40))
	switch {
	case err == nil && float64(at) == n && at == int64(len(f.ids)):
		// The compaction itself: nothing before it is kept.
		return rawjson.WithField(raw, "firstKeptEntryId", rawjson.AppendString(nil, id))
	case err == nil && float64(at) == n && at >= 0 && at < int64(len(f.ids)) && f.ids[at] != "":
		return rawjson.WithField(raw, "firstKeptEntryId", rawjson.AppendString(nil, f.ids[at]))
	}
	f.in.Note(l, transcript.DiagKeptMissing,
		fmt.Sprintf("keeps from line object %.20s, which is no earlier entry: nothing "+
			"is kept", index))
	return raw
}

// placed sets ID and parent (nil = null) in our order: type, id, parentId, and the other fields unchanged.
func placed(raw []byte, id string, parent []byte) []byte {
	typ := rawjson.Field(raw, "type")
	rest := rawjson.WithField(rawjson.WithField(rawjson.WithField(raw, "type", nil), "id", nil), "parentId", nil)
	out := rawjson.Object("type", typ, "id", rawjson.AppendString(nil, id), "parentId", rawjson.OrNull(parent))
	if len(rest) > len("{}") {
		out = append(append(out[:len(out)-1], ','), rest[1:]...)
	}
	return out
}
