package provider

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io/fs"
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

// restore puts back the images of a turn that the context only refers to; what cannot be had is in words.
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
		sum := refSum(b.image.data)
		if sum == "" {
			continue
		}
		data, why, err := c.blob(ctx, sum)
		if err != nil {
			return err
		}
		b.raw = nil
		if data == nil {
			b.kind, b.text, b.image = other, "[image, "+b.image.mime+": "+why+"]", nil
			c.lose(t, LostImage, sum+": "+why)
			continue
		}
		b.image = &picture{mime: b.image.mime, data: base64.StdEncoding.EncodeToString(data)}
	}
	return nil
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

// photo reports a kind of image that every one of the APIs takes.
func photo(mime string) bool {
	switch mime {
	case "image/jpeg", "image/png", "image/gif", "image/webp":
		return true
	}
	return false
}

// dataURL returns an image as an address, which is how OpenAI has it.
func (p *picture) address() string {
	if p.url != "" {
		return p.url
	}
	return "data:" + p.mime + ";base64," + p.data
}
