package blob

import (
	"bytes"
	"slices"

	"github.com/coppice-go/coppice/internal/rawjson"
)

// span is a part of a line.
type span struct{ from, to int }

// imageScan finds long base64 text in a line, in one pass over its tokens. Whether an object is an image is known only
// after all of its fields: its candidates are held until it closes.
type imageScan struct {
	open  []imageObject
	found []span
}

type imageObject struct {
	object, image bool
	key           []byte // of the next value; nil = a key is expected
	waiting       []span
}

// findImages returns the positions of base64 text in a line, in order. A line that is not JSON has none.
func findImages(line []byte) []span {
	s := imageScan{}
	if !rawjson.Visit(line, &s) {
		return nil
	}
	slices.SortFunc(s.found, func(a, b span) int { return a.from - b.from })
	return s.found
}

// Open starts an object or an array.
func (s *imageScan) Open(object bool) { s.open = append(s.open, imageObject{object: object}) }

// Text handles a string: a key or a value.
func (s *imageScan) Text(from, to int, lit []byte, escaped bool) {
	if len(s.open) == 0 {
		return
	}
	o := &s.open[len(s.open)-1]
	if o.object && o.key == nil {
		o.key = lit
		return
	}
	if len(lit) >= minText && !escaped {
		if url, ok := dataURL(lit); ok {
			s.found = append(s.found, span{from + url, to})
		} else if string(o.key) == "data" || string(o.key) == "bytes" {
			o.waiting = append(o.waiting, span{from, to})
		}
	}
	switch string(o.key) {
	case "type":
		o.image = o.image || string(lit) == "image" || string(lit) == "base64"
	case "mimeType", "mime_type", "mediaType", "media_type", "format":
		o.image = true
	}
	s.Scalar()
}

// Scalar ends a value: a key is expected next.
func (s *imageScan) Scalar() {
	if len(s.open) > 0 {
		s.open[len(s.open)-1].key = nil
	}
}

// Close ends an object or an array.
func (s *imageScan) Close() {
	o := s.open[len(s.open)-1]
	s.open = s.open[:len(s.open)-1]
	if o.image {
		s.found = append(s.found, o.waiting...)
	} else if n := len(s.open) - 1; n >= 0 && string(s.open[n].key) == "source" { // Bedrock
		s.open[n].waiting = append(s.open[n].waiting, o.waiting...)
	}
	s.Scalar()
}

// dataURL returns the position of the base64 text in a data: URL that is long enough.
func dataURL(lit []byte) (at int, ok bool) {
	const headMax = 256
	if !bytes.HasPrefix(lit, []byte("data:")) {
		return 0, false
	}
	i := bytes.Index(lit[:min(len(lit), headMax)], []byte(";base64,"))
	if at = i + len(";base64,"); i < 0 || len(lit)-at < minText {
		return 0, false
	}
	return at, true
}
