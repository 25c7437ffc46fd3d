package piwriter

import (
	"bytes"
	"slices"
	"strconv"
	"strings"

	"github.com/coppice-go/coppice/internal/rawjson"
)

// Losses of blocks.
const (
	LostDocument = "documents, recordings and films: named in words, without their bytes"
	LostForm     = "documents that are text, or elsewhere: kept as text"
	LostImage    = "images of which only a reference to a blob is there: named in words"
)

// opening and closing are what follows a quote, or precedes one, in every line with such a block. Other lines may
// contain them too.
var (
	opening = []string{
		`document"`, `input_audio"`, `audio"`, `video"`, `resource`, `container_upload"`, `blob:sha256:`,
	}
	closing = []string{`file`, `nlineData`, `nline_data`, `ileData`, `ile_data`}
)

// mayHold reports whether a line must be parsed: most need not.
func mayHold(line []byte) bool {
	for before, rest, ok := bytes.Cut(line, quote); ok; before, rest, ok = bytes.Cut(rest, quote) {
		n := len(before)
		if n > 0 && (before[n-1] == 'e' || before[n-1] == 'a') && slices.ContainsFunc(closing, func(end string) bool {
			return n >= len(end) && string(before[n-len(end):]) == end
		}) {
			return true
		}
		if len(rest) > 0 && slices.ContainsFunc(opening, func(begin string) bool {
			return rest[0] == begin[0] && len(rest) >= len(begin) && string(rest[:len(begin)]) == begin
		}) {
			return true
		}
	}
	return false
}

var quote = []byte{'"'}

// message returns a message with all blocks in a form that the target supports; the same slice if nothing changed.
func (f Preparer) message(raw []byte, lose func(kind string)) []byte {
	switch rawjson.Text(rawjson.Field(raw, "role")) {
	case "custom", "hookMessage", "toolResult", "tool", "function":
		f.Audio = false
	}
	for _, name := range []string{"content", "parts", "contents"} {
		was := rawjson.Field(raw, name)
		if is := f.blocks(was, lose); !same(is, was) {
			raw = rawjson.WithField(raw, name, is)
		}
	}
	return raw
}

// blocks returns a list of blocks with replacements, also within tool results.
func (f Preparer) blocks(list []byte, lose func(kind string)) []byte {
	return f.list(list, lose, maxInside)
}

// maxInside bounds the nesting of results and of texts of documents.
const maxInside = 4

func (f Preparer) list(list []byte, lose func(kind string), deep int) []byte {
	if deep == 0 {
		return list
	}
	return replaceEach(list, func(b []byte) []byte { return f.block(b, lose, deep) })
}

// block returns a block, or its replacement.
func (f Preparer) block(b []byte, lose func(kind string), deep int) []byte {
	if len(b) == 0 || b[0] != '{' {
		return b
	}
	typ := rawjson.Text(rawjson.Field(b, "type"))
	switch {
	case typ == "text", typ == "thinking", typ == "toolCall", f.Audio && typ == "audio" &&
		rawjson.Field(b, "audio") != nil:
		return b
	case typ == "image" && !f.Blobs && bytes.HasPrefix(rawjson.Field(b, "data"), []byte(`"blob:sha256:`)):
		lose(LostImage)
		return textBlockOf("[image: " + rawjson.Text(rawjson.Field(b, "data")) + "]")
	case strings.HasSuffix(typ, "tool_result"):
		return f.inside(b, lose, deep)
	case typ == "" && rawjson.Field(b, "toolResult") != nil:
		was := rawjson.Field(b, "toolResult")
		if is := f.inside(was, lose, deep); !same(is, was) {
			return rawjson.WithField(b, "toolResult", is)
		}
		return b
	}
	if d, ok := documentOf(typ, b); ok {
		if heard := heardIn(typ, b); f.Audio && heard != nil {
			return rawjson.Object("type", []byte(`"audio"`), "audio", append(append([]byte("["), heard...), ']'))
		}
		return d.words(lose)
	}
	return b
}

// heardIn returns the data of an audio block, as JSON, or nil.
func heardIn(typ string, b []byte) []byte {
	switch typ {
	case "input_audio":
		b = rawjson.Field(b, "input_audio")
	case "audio":
	default:
		return nil
	}
	if data := rawjson.Field(b, "data"); rawjson.IsString(data) {
		return data
	}
	return nil
}

func (f Preparer) inside(result []byte, lose func(kind string), deep int) []byte {
	was := rawjson.Field(result, "content")
	f.Audio = false
	if is := f.list(was, lose, deep-1); !same(is, was) {
		return rawjson.WithField(result, "content", is)
	}
	return result
}

func textBlockOf(s string) []byte {
	return rawjson.Object("type", []byte(`"text"`), "text", rawjson.AppendString(nil, s))
}

// document describes a document.
type document struct {
	kind, name, mime, place, text string
	size                          int // in bytes; 0 = the data is not in the block
}

// kinds are the types of blocks for documents of all providers, and the names of fields that contain a document without
// a type.
var kinds = []string{
	"document", "file", "input_file", "input_audio", "audio", "video", "resource",
	"container_upload", "resource_link",
}

var untyped = []string{"inlineData", "inline_data", "fileData", "file_data", "document", "video", "audio"}

// documentOf returns the document in a block, or false.
func documentOf(typ string, b []byte) (document, bool) {
	d := document{kind: typ}
	switch {
	case slices.Contains(kinds, typ):
		d.read(b, maxInside)
	case typ == "":
		for _, name := range untyped {
			if inner := rawjson.Field(b, name); len(inner) > 0 && inner[0] == '{' {
				if d.kind = name; strings.Contains(strings.ToLower(name), "data") {
					d.kind = "file"
				}
				d.read(inner, maxInside)
				break
			}
		}
	}
	known := d.name != "" || d.mime != "" || d.place != "" || d.text != "" || d.size > 0
	return d, known && !strings.HasPrefix(d.mime, "image/")
}

// read reads the fields of a document and of nested objects.
func (d *document) read(b []byte, deep int) {
	first := func(to *string, val []byte) {
		if s := rawjson.Text(val); *to == "" && s != "" && rawjson.IsString(val) {
			*to = s[:min(len(s), maxName)]
		}
	}
	for m := rawjson.Walk(b); m.Closing == '}' && m.Next(); {
		switch key := string(m.Key); {
		case m.Val[0] == '{' && deep > 0:
			d.read(m.Val, deep-1)
		case key == "title", key == "filename", key == "file_name", key == "displayName", key == "display_name",
			key == "name":
			first(&d.name, m.Val)
		case key == "media_type", key == "mimeType", key == "mime_type", key == "mediaType", key == "format":
			first(&d.mime, m.Val)
		case key == "url", key == "uri", key == "fileUri", key == "file_uri", key == "file_url", key == "file_id":
			first(&d.place, m.Val)
		case key == "data", key == "file_data", key == "bytes", key == "blob":
			d.take(m.Val, string(rawjson.Field(b, "type")) == `"text"`)
		case key == "audio" && m.Val[0] == '[': // operator's
			for v := rawjson.Walk(m.Val); v.Next(); {
				d.take(v.Val, false)
			}
		case key == "text" && rawjson.IsString(m.Val):
			d.text = rawjson.Text(m.Val)
		case key == "content" && m.Val[0] == '[':
			d.texts(m.Val)
		case key == "content" && rawjson.IsString(m.Val):
			d.text = rawjson.Text(m.Val)
		}
	}
}

// maxName bounds a name, a type and a place, in bytes.
const maxName = 1 << 10

// take reads a document's data: its text, or base64, of which only the size matters.
func (d *document) take(val []byte, plain bool) {
	if !rawjson.IsString(val) {
		return
	}
	if plain {
		d.text = rawjson.Text(val)
		return
	}
	coded := val[1 : len(val)-1]
	if head, _, ok := bytes.Cut(coded[:min(len(coded), maxName)], []byte(";base64,")); ok {
		if mime, ok := bytes.CutPrefix(head, []byte("data:")); ok && d.mime == "" {
			d.mime = string(mime)
		}
		coded = coded[len(head)+len(";base64,"):]
	}
	coded = bytes.TrimRight(coded, "=")
	d.size += len(coded) * 3 / 4 // base64
}

// texts reads the text of a document that is a list of blocks.
func (d *document) texts(list []byte) {
	var all []string
	for m := rawjson.Walk(list); m.Next(); {
		if t := rawjson.Field(m.Val, "text"); rawjson.IsString(t) {
			all = append(all, rawjson.Text(t))
		}
	}
	d.text = strings.Join(all, "\n")
}

// words returns the block that replaces a document: its whole text, if it is text, else a description.
func (d document) words(lose func(kind string)) []byte {
	said := []string{d.kind}
	if d.name != "" {
		said = []string{d.kind + ": " + d.name}
	}
	if d.mime != "" {
		said = append(said, d.mime)
	}
	if d.size > 0 {
		said = append(said, strconv.Itoa(d.size)+" bytes, not in this file")
	} else if d.place != "" {
		said = append(said, d.place)
	}
	head := "[" + strings.Join(said, ", ") + "]"
	if d.size > 0 {
		lose(LostDocument)
	} else {
		lose(LostForm)
	}
	if d.text != "" {
		head += "\n" + d.text
	}
	return textBlockOf(head)
}
