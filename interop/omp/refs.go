package omp

import (
	"bytes"
	"slices"

	"github.com/coppice-go/coppice/internal/rawjson"
)

// refSpan is a reference in a line, without its quotes.
type refSpan struct {
	from, to int
	url      bool // the blob holds a data URL, not the image's bytes
}

// refScan finds references where omp puts them, in one pass over a line's tokens: the data of an image, the result of a
// generated one, an image's URL. Whether an object is an image is known only at its end, so its candidates wait until
// then.
type refScan struct {
	open  []refObject
	found []refSpan
}

type refObject struct {
	object, image, generated bool
	key                      []byte // of the next value; nil = a key follows
	data, result             []refSpan
}

// findRefs returns the references of a line in order; none if it is not JSON.
func findRefs(line []byte) []refSpan {
	s := refScan{}
	if !rawjson.Visit(line, &s) {
		return nil
	}
	slices.SortFunc(s.found, func(a, b refSpan) int { return a.from - b.from })
	return s.found
}

// Open handles the start of an object or an array.
func (s *refScan) Open(object bool) { s.open = append(s.open, refObject{object: object}) }

// Text handles a string: a key or a value.
func (s *refScan) Text(from, to int, lit []byte, _ bool) {
	if len(s.open) == 0 {
		return
	}
	o := &s.open[len(s.open)-1]
	if o.object && o.key == nil {
		o.key = lit
		return
	}
	if bytes.HasPrefix(lit, []byte(refMark)) {
		switch string(o.key) {
		case "data":
			o.data = append(o.data, refSpan{from: from, to: to})
		case "result":
			o.result = append(o.result, refSpan{from: from, to: to})
		case "image_url", "url":
			s.found = append(s.found, refSpan{from: from, to: to, url: true})
		}
	}
	switch string(o.key) {
	case "type":
		o.image = o.image || string(lit) == "image"
		o.generated = string(lit) == "image_generation_call"
	case "mimeType":
		o.image = true
	}
	s.Scalar()
}

// Scalar handles the end of a value: a key follows.
func (s *refScan) Scalar() {
	if len(s.open) > 0 {
		s.open[len(s.open)-1].key = nil
	}
}

// Close handles the end of an object or an array.
func (s *refScan) Close() {
	o := s.open[len(s.open)-1]
	if o.image {
		s.found = append(s.found, o.data...)
	}
	if o.generated {
		s.found = append(s.found, o.result...)
	}
	s.open = s.open[:len(s.open)-1]
	s.Scalar()
}
