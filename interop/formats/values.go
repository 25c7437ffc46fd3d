package formats

import (
	"bytes"
	"maps"
	"strings"

	"github.com/coppice-go/coppice/internal/message"
	"github.com/coppice-go/coppice/internal/rawjson"
	"github.com/coppice-go/coppice/interop"
	"github.com/coppice-go/coppice/transcript"
)

// Losses of values that the API of a program would refuse in every later request.
const (
	lostText  = "halves of surrogate pairs: replaced by U+FFFD"
	lostImage = "images that the program's API does not take: named in words"
)

// checker replaces values of entries that the API of a program refuses.
type checker struct {
	limits message.ImageLimits
	known  int // number of first entries, which the file has: their losses do not count
	losses interop.Losses
}

// newChecker returns a checker for a format's program. A program with several APIs has the limits of all.
func newChecker(f Format, known int) *checker {
	c := &checker{limits: message.AnyImages, known: known, losses: interop.Losses{}}
	if f.images != nil {
		c.limits = *f.images
	}
	return c
}

// lines returns entries with refused values replaced. The losses are those of the last pass.
func (c *checker) lines(entries lines) lines {
	return func(yield func(transcript.Draft, error) bool) {
		clear(c.losses)
		n := 0
		for d, err := range entries {
			if d.Raw != nil {
				d.Raw = c.line(d.Raw)
			}
			if n++; n == c.known {
				clear(c.losses)
			}
			if !yield(d, err) {
				return
			}
		}
	}
}

// line returns one entry with refused values replaced.
func (c *checker) line(raw []byte) []byte {
	raw, n := message.Whole(raw)
	c.count(lostText, n)
	if !bytes.Contains(raw, []byte("image")) {
		return raw
	}
	if list := rawjson.Field(raw, "content"); list != nil { // of a message that a program wrote
		raw = c.field(raw, "content", maxInside)
	}
	if was := message.Object(raw, "message"); was != nil {
		is := was
		for _, name := range message.Contents() {
			is = c.field(is, name, maxInside)
		}
		if &is[0] != &was[0] {
			raw = rawjson.WithField(raw, "message", is)
		}
	}
	return raw
}

// maxInside bounds the nesting of lists of blocks.
const maxInside = 4

// field checks a field of an object that may be a list of blocks.
func (c *checker) field(object []byte, name string, deep int) []byte {
	list := rawjson.Field(object, name)
	if len(list) == 0 || list[0] != '[' || deep == 0 {
		return object
	}
	var out [][]byte
	changed := false
	for m := rawjson.Walk(list); m.Next(); {
		is := c.block(m.Val, deep)
		changed = changed || &is[0] != &m.Val[0]
		out = append(out, is)
	}
	if !changed {
		return object
	}
	return rawjson.WithField(object, name, rawjson.List(out))
}

// block returns a block, or a text in place of a refused image.
func (c *checker) block(raw []byte, deep int) []byte {
	blocks := message.Content(rawjson.List([][]byte{raw}))
	if !blocks.Next() || raw[0] != '{' {
		return raw
	}
	b := &blocks.Block
	if b.Kind != message.Attached {
		raw = c.field(c.field(raw, "content", deep-1), "output", deep-1)
		if was := message.Object(raw, "toolResult"); was != nil {
			if is := c.field(was, "content", deep-1); &is[0] != &was[0] {
				raw = rawjson.WithField(raw, "toolResult", is)
			}
		}
		return raw
	}
	media := b.Media()
	isImage := strings.HasPrefix(media.Mime, "image") || b.Type == "image"
	if !isImage || media.Data == "" && media.Name != "" || strings.Contains(media.Data, "blob:sha256:") {
		return raw
	}
	if media.Mime == "image/jpg" { // no API accepts this name
		media.Mime, raw = "image/jpeg", bytes.ReplaceAll(raw, []byte("image/jpg"), []byte("image/jpeg"))
	}
	_, why := c.limits.Fault(media.Mime, media.Data)
	if why == "" {
		return raw
	}
	c.count(lostImage, 1)
	typ := []byte(`"text"`)
	switch b.Type {
	case "":
		typ = nil
	case "input_image":
		typ = []byte(`"input_text"`)
	}
	return rawjson.Object("type", typ, "text", rawjson.AppendString(nil, "[image left out: "+why+"]"))
}

func (c *checker) count(kind string, n int) {
	if n > 0 {
		c.losses[kind] += n
	}
}

// plus returns the sum of two losses.
func plus(losses, more interop.Losses) interop.Losses {
	sum := maps.Clone(losses)
	for kind, n := range more {
		if sum == nil {
			sum = interop.Losses{}
		}
		sum[kind] += n
	}
	return sum
}
