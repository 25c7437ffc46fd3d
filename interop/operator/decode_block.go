package operator

import (
	"bytes"

	"github.com/coppice-go/coppice/internal/rawjson"
)

// Types of blocks that keep their fields, under other names. The values are JSON.
const (
	textBlock     = `"text"`
	thinkingBlock = `"thinking"`
	callBlock     = `"tool_call"`
)

// typeOf returns the type of the block at a cursor, as JSON, or nil. It is nearly always the first member.
func typeOf(c cursor) []byte {
	first := c
	if first.enter('{') && first.more() && string(first.key()) == "type" {
		return first.value()
	}
	return rawjson.Field(c.value(), "type")
}

// blocks appends pi's blocks for the list of operator's blocks at the cursor.
func (m *decodedMessage) blocks(dst []byte, c *cursor) []byte {
	for from := len(dst); c.more(); {
		dst = m.block(dst, from, c, typeOf(*c))
	}
	return dst
}

// block appends pi's blocks for one of operator's, each with a leading comma, except at from.
func (m *decodedMessage) block(dst []byte, from int, c *cursor, typ []byte) []byte {
	start, notes, block := len(dst), len(m.Notes), *c
	var twice string
	switch string(typ) {
	case textBlock, thinkingBlock, callBlock:
		dst, twice = m.fields(comma(dst, from), c, typ)
	case `"image"`:
		dst, twice = m.images(dst, from, c)
	default:
		return append(comma(dst, from), c.value()...)
	}
	if twice == "" {
		return dst
	}
	m.Notes = m.Notes[:notes]
	again := cursor{p: withoutTwice(block.value(), twice)}
	return m.block(dst[:start], from, &again, typeOf(again))
}

// withoutTwice returns an object without a duplicate member: the first one gets the value of the last, which is the one
// that counts.
func withoutTwice(object []byte, name string) []byte {
	return rawjson.WithField(object, name, rawjson.Field(object, name))
}

// comma appends a comma unless nothing was appended since from.
func comma(dst []byte, from int) []byte {
	if len(dst) > from {
		return append(dst, ',')
	}
	return dst
}

// closeObject ends an object whose members begin at from, each with a leading comma.
func closeObject(dst []byte, from int) []byte {
	if len(dst) == from {
		return append(dst, '{', '}')
	}
	dst[from] = '{'
	return append(dst, '}')
}

// Fields that determine the form of a block or of the field itself. A duplicate of one makes the block invalid.
const (
	typeField = 1 << iota
	theSignature
	theKind
	theMetadata
)

// fieldOf returns pi's name of a block's field, "" = the same, and which of the fields above it is.
func fieldOf(typ, key []byte) (to string, which int) {
	switch string(key) {
	case "type":
		return "", typeField
	case "content":
		switch string(typ) {
		case textBlock:
			return "text", 0
		case thinkingBlock:
			return "thinking", 0
		}
	case "signature":
		if string(typ) == thinkingBlock {
			return "thinkingSignature", theSignature
		}
	case "args", "kind", "metadata":
		switch {
		case string(typ) != callBlock:
		case key[0] == 'a':
			return "arguments", 0
		case key[0] == 'k':
			return "", theKind
		default:
			return "", theMetadata
		}
	}
	return "", 0
}

// empty reports whether a value is a default.
func empty(which int, val []byte) bool {
	switch which {
	case theSignature:
		return string(val) == `""`
	case theKind, theMetadata:
		return string(val) == "null" || string(val) == "{}"
	}
	return false
}

// fields appends a block that keeps its fields. twice names a duplicate of the fields above; then the appended bytes
// are invalid.
func (m *decodedMessage) fields(dst []byte, c *cursor, typ []byte) (out []byte, twice string) {
	from, seen := len(dst), 0
	isCall, call := string(typ) == callBlock, callNote{At: noteIsCall}
	for c.enter('{'); c.more(); {
		key := c.key()
		to, which := fieldOf(typ, key)
		if seen&which != 0 {
			twice = string(key)
		}
		seen |= which
		val := c.value()
		switch {
		case empty(which, val):
		case to != "":
			dst = appendMember(dst, to, val)
		case isCall && which == typeField:
			dst = append(dst, `,"type":"toolCall"`...)
		default:
			dst = c.member(dst, key, val)
		}
		if isCall && string(key) == "id" {
			call.ID = val
		} else if isCall && string(key) == "name" {
			call.Name = val
		}
	}
	if isCall {
		m.note(call)
	}
	return closeObject(dst, from), twice
}

// images appends a block for each image of a block. A block without a list of images is appended unchanged.
func (m *decodedMessage) images(dst []byte, from int, c *cursor) (out []byte, twice string) {
	start, block, typed, listed := len(dst), *c, false, false
	for c.enter('{'); c.more(); {
		switch string(c.key()) {
		case "type":
			if typed {
				twice = "type"
			}
			typed = true
			c.value()
		case "images":
			if listed {
				twice = "images"
			}
			if listed = true; !c.enter('[') {
				c.value()
				listed = false
				continue
			}
			for c.more() {
				if val := c.value(); len(dst) < maxSpread {
					dst = appendImage(comma(dst, from), val)
				} else {
					m.Over = true
				}
			}
		default:
			c.value()
		}
	}
	if !listed && twice == "" {
		dst = append(comma(dst[:start], from), block.value()...)
	}
	return dst, twice
}

// imageSignatures are the first bytes of images in base64.
var imageSignatures = []struct{ start, mime string }{
	{"iVBOR", "image/png"}, {"/9j/", "image/jpeg"}, {"R0lG", "image/gif"}, {"UklG", "image/webp"},
}

// imageType returns the type of an image by its base64 text; "" = unknown.
func imageType(text []byte) (mime string) {
	for _, k := range imageSignatures {
		if bytes.HasPrefix(text, []byte(k.start)) {
			return k.mime
		}
	}
	return ""
}

// appendImage appends a block for one image: base64 text, or its address.
func appendImage(dst, val []byte) []byte {
	s, plain := stringBytes(val)
	if head, data, ok := bytes.Cut(s, []byte(";base64,")); ok && bytes.HasPrefix(head, []byte("data:")) {
		return imageBlock(dst, data, head[len("data:"):], plain)
	}
	if mime := imageType(s); mime != "" {
		return imageBlock(dst, s, []byte(mime), plain)
	}
	dst = append(dst, `{"type":"image_url","image_url":{"url":`...)
	return append(append(dst, val...), '}', '}')
}

func imageBlock(dst, data, mime []byte, plain bool) []byte {
	dst = appendText(append(dst, `{"type":"image","data":`...), data, plain)
	return append(appendText(append(dst, `,"mimeType":`...), mime, plain), '}')
}
