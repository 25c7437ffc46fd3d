package provider

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strconv"
	"strings"
)

// References to images whose bytes are elsewhere: ours, and omp's.
const (
	ownRef = "coppice-blob:sha256:"
	ompRef = "blob:sha256:"
)

// refSum returns the SHA-256 that an image's data refers to; "" = these are its bytes.
func refSum(data string) string {
	rest, ok := strings.CutPrefix(data, ownRef)
	if !ok {
		if rest, ok = strings.CutPrefix(data, ompRef); !ok {
			return ""
		}
	}
	const hexDigits = 64
	if len(rest) < hexDigits {
		return rest
	}
	return rest[:hexDigits]
}

// restore puts back the images of a turn that the context only refers to. What the API does not take is in words.
func (c *converter) restore(ctx context.Context, t *turn, blocks []*block) error {
	for _, b := range blocks {
		if b.result != nil {
			if err := c.restore(ctx, t, b.result.content); err != nil {
				return err
			}
		}
		if b.kind != image {
			continue
		}
		why := ""
		if sum := refSum(b.image.data); sum != "" {
			data, gone, err := c.blob(ctx, sum)
			if err != nil {
				return err
			}
			b.raw, why = nil, gone
			b.image = &picture{mime: b.image.mime, data: base64.StdEncoding.EncodeToString(data)}
		}
		if why == "" {
			why = c.fault(b.image)
		}
		if why != "" {
			c.leaveOut(t, b, why)
			continue
		}
		c.size -= len(b.image.data)
	}
	return nil
}

// fault returns why the API does not take an image; "" = it does.
func (c *converter) fault(p *picture) (why string) {
	switch {
	case p.url == "":
		p.size, why = c.rules.images.Fault(p.mime, p.data)
	case c.rules.noAddress:
		why = "at an address, where the API takes only bytes"
	case c.rules.secure && !strings.HasPrefix(p.url, "https://"):
		why = "at an address that is not https"
	}
	return why
}

// leaveOut names an image in words.
func (c *converter) leaveOut(t *turn, b *block, why string) {
	b.kind, b.raw, b.typ, b.asIs, b.text, b.image = other, nil, "", false, "[image left out: "+why+"]", nil
	c.lose(t, LostImage, why)
}

// fitImages leaves out the images past those that a request may hold: those that are too large for a request of many,
// and of the others the oldest.
func (c *converter) fitImages() {
	const slack = 1 << 20 // for what the caller adds: instructions and tools
	limits := c.rules.images
	var kept []*shownImage
	room := limits.Request - slack - c.size
	for _, in := range slices.Backward(c.shownImages()) {
		switch room -= len(in.block.image.data); {
		case len(kept) == limits.Count:
			c.drop(in, "more than "+strconv.Itoa(limits.Count)+" in a request")
		case room < 0 && in.block.image.data != "":
			room += len(in.block.image.data)
			c.drop(in, "the request would be over its limit of bytes")
		default:
			kept = append(kept, in)
		}
	}
	n := len(kept)
	for _, in := range slices.Backward(kept) {
		if over := in.block.image.size.Over(limits.ManySide); over != "" && limits.Many > 0 && n > limits.Many {
			c.drop(in, over+" in a request of more than "+strconv.Itoa(limits.Many)+" images")
			n--
		}
	}
}

// shownImage is an image that is to be sent, and the result that it is in; nil = none.
type shownImage struct {
	turn          *turn
	result, block *block
}

func (c *converter) drop(in *shownImage, why string) {
	in.turn.touch()
	if in.result != nil {
		in.result.asIs = false
	}
	c.leaveOut(in.turn, in.block, why)
}

// shownImages returns the images of all turns in their order.
func (c *converter) shownImages() (list []*shownImage) {
	for _, t := range c.turns {
		for _, b := range t.blocks {
			if b.kind == image {
				list = append(list, &shownImage{turn: t, block: b})
			}
			if b.kind != result {
				continue
			}
			for _, in := range b.result.content {
				if in.kind == image {
					list = append(list, &shownImage{turn: t, result: b, block: in})
				}
			}
		}
	}
	return list
}

// blob reads an image; nil = it is to be named in words, and why.
func (c *converter) blob(ctx context.Context, sum string) (data []byte, why string, err error) {
	if c.opts.Blob == nil {
		return nil, "its bytes are not here", nil
	}
	most, all := c.opts.MaxImage, c.opts.MaxImages
	if most == 0 {
		most = DefaultMaxImage
	}
	if all == 0 {
		all = DefaultMaxImages
	}
	if c.images >= all {
		return nil, "over the limit of all images", nil
	}
	data, err = c.opts.Blob(ctx, sum)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, "its bytes are gone", nil
	case err != nil:
		return nil, "", fmt.Errorf("%w %s: %w: nothing was converted; repeat it, or leave Blob out", ErrImage, sum, err)
	case len(data) > most:
		return nil, fmt.Sprintf("%d bytes, over the limit", len(data)), nil
	case c.images+len(data) > all:
		return nil, "over the limit of all images", nil
	}
	c.images += len(data)
	return data, "", nil
}

// address returns an image as an address, which is how OpenAI has it.
func (p *picture) address() string {
	if p.url != "" {
		return p.url
	}
	return "data:" + p.mime + ";base64," + p.data
}
