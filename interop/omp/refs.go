package omp

import (
	"bytes"
	"slices"

	"github.com/coppice-go/coppice/internal/rawjson"
)

// refSpan is the place of a reference in a line, without its quotes.
type refSpan struct {
	from, to int
	url      bool // the blob holds a data URL, not the image's bytes
}

// refScan looks for references where omp puts them, in one pass over a line's tokens: the data of an image,
// the result of a generated one, an image's URL. Whether an object is an image is known only when all of its
// fields have been seen: its candidates wait until it closes.
type refScan struct {
	line  []byte
	open  []refObject
	found []refSpan
}

type refObject struct {
	object, image, generated bool
	key                      []byte // of the value that comes next; nil = a key comes next
	data, result             []refSpan
}

// findRefs gives the references of a line, in order; none if it is no JSON.
func findRefs(line []byte) []refSpan {
	s := refScan{line: line}
	for i := rawjson.Space(line, 0); i < len(line); i = rawjson.Space(line, i) {
		switch c := line[i]; c {
		case '{', '[':
			if len(s.open) >= rawjson.MaxDepth {
				return nil
			}
			s.open = append(s.open, refObject{object: c == '{'})
			i++
		case '}', ']':
			if len(s.open) == 0 {
				return nil
			}
			s.close()
			i++
		case ',', ':':
			i++
		case '"':
			end, _, err := rawjson.StringEnd(line, i)
			if err != nil {
				return nil
			}
			s.text(i+1, end-1)
			i = end
		default:
			end, err := rawjson.ScalarEnd(line, i)
			if err != nil {
				return nil
			}
			s.valueDone()
			i = end
		}
	}
	slices.SortFunc(s.found, func(a, b refSpan) int { return a.from - b.from })
	return s.found
}

// text takes a string: a key, or a value.
func (s *refScan) text(from, to int) {
	if len(s.open) == 0 {
		return
	}
	o := &s.open[len(s.open)-1]
	lit := s.line[from:to]
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
	s.valueDone()
}

func (s *refScan) valueDone() {
	if len(s.open) > 0 {
		s.open[len(s.open)-1].key = nil
	}
}

func (s *refScan) close() {
	o := s.open[len(s.open)-1]
	if o.image {
		s.found = append(s.found, o.data...)
	}
	if o.generated {
		s.found = append(s.found, o.result...)
	}
	s.open = s.open[:len(s.open)-1]
	s.valueDone()
}
