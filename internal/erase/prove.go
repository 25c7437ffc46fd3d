package erase

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"

	"github.com/klauspost/compress/zstd"

	"github.com/coppice-go/coppice/backend"
)

// Proof is what a search for a text in all objects of a store found.
type Proof struct {
	Objects int      // that were read
	Bytes   int64    // as they are stored
	Found   []string // keys of those that have the text
}

// MinText is the shortest text that is looked for, in bytes: a shorter one is found by chance.
const MinText = 4

// Prove reads every object of a store and looks for a text: as it is, as JSON has it in a string, in base64, and
// all of that within frames of zstd, wherever in an object they begin. An object that goes meanwhile is passed
// over.
func Prove(ctx context.Context, b backend.Backend, text string) (p Proof, err error) {
	find, err := NewFinder(text)
	if err != nil {
		return p, err
	}
	for info, err := range b.List(ctx, backend.ListOptions{}) {
		if err != nil {
			return p, err
		}
		raw, _, err := b.Get(ctx, info.Key, backend.Range{})
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return p, err
		}
		p.Objects, p.Bytes = p.Objects+1, p.Bytes+int64(len(raw))
		if find.In(raw) {
			p.Found = append(p.Found, info.Key)
		}
	}
	return p, nil
}

// Finder looks for a text in bytes.
type Finder struct{ forms [][]byte }

// NewFinder returns what finds a text of at least MinText bytes.
func NewFinder(text string) (*Finder, error) {
	if len(text) < MinText {
		return nil, fmt.Errorf("text of %d bytes: at least %d are needed", len(text), MinText)
	}
	f := &Finder{}
	f.add([]byte(text))
	f.add(quoted(text, true))
	f.add(quoted(text, false))
	f.add(ascii(text))
	for _, form := range f.forms[:len(f.forms):len(f.forms)] { // base64 of a message has its text as JSON
		for shift := range 3 {
			for _, enc := range []*base64.Encoding{base64.RawStdEncoding, base64.RawURLEncoding} {
				f.add(inBase64(enc, form, shift))
			}
		}
	}
	return f, nil
}

func (f *Finder) add(form []byte) {
	for _, have := range f.forms {
		if bytes.Contains(form, have) { // it is found by that
			return
		}
	}
	if len(form) >= MinText {
		f.forms = append(f.forms, form)
	}
}

// Longest returns the length of the longest form of the text.
func (f *Finder) Longest() int {
	longest := 0
	for _, form := range f.forms {
		longest = max(longest, len(form))
	}
	return longest
}

// quoted returns a text as JSON has it, without its quotes.
func quoted(text string, html bool) []byte {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(html)
	if enc.Encode(text) != nil {
		return nil
	}
	return b.Bytes()[1 : b.Len()-2]
}

// ascii returns a text as JSON has it where only ASCII is written.
func ascii(text string) (out []byte) {
	for _, r := range string(quoted(text, false)) {
		switch {
		case r < 0x80:
			out = append(out, byte(r))
		case r > 0xffff:
			out = fmt.Appendf(out, `\u%04x\u%04x`, 0xd800+(r-0x10000)>>10, 0xdc00+(r-0x10000)&0x3ff)
		default:
			out = fmt.Appendf(out, `\u%04x`, r)
		}
	}
	return out
}

// inBase64 returns the characters that base64 of a text has, whatever comes before and after it: shift bytes of a
// group of three come before.
func inBase64(enc *base64.Encoding, text []byte, shift int) []byte {
	all := enc.EncodeToString(append(make([]byte, shift), text...))
	from := (shift*8 + 5) / 6
	end := (shift + len(text)) * 8 / 6
	if from >= end {
		return nil
	}
	return []byte(all[from:end])
}

const (
	frameMost  = 64 << 20 // bytes that are looked at of what was compressed
	framesDeep = 3        // frames within frames
)

var frameMagic = []byte{0x28, 0xb5, 0x2f, 0xfd}

// In reports whether bytes have the text.
func (f *Finder) In(p []byte) bool { return f.in(p, 0) }

func (f *Finder) in(p []byte, deep int) bool {
	for _, form := range f.forms {
		if bytes.Contains(p, form) {
			return true
		}
	}
	if deep == framesDeep {
		return false
	}
	for at := 0; ; {
		i := bytes.Index(p[at:], frameMagic)
		if i < 0 {
			return false
		}
		at += i
		if raw := unpacked(p[at:]); len(raw) > 0 && f.in(raw, deep+1) {
			return true
		}
		at += len(frameMagic)
	}
}

// unpacked returns what the frame at the start of p has, as far as it can be read.
func unpacked(p []byte) []byte {
	r, err := zstd.NewReader(bytes.NewReader(p), zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true),
		zstd.WithDecoderMaxMemory(frameMost), zstd.IgnoreChecksum(true))
	if err != nil {
		return nil
	}
	defer r.Close()
	var out bytes.Buffer
	_, _ = io.Copy(&out, io.LimitReader(r, frameMost)) // what follows the frame is an error, after its content
	return out.Bytes()
}
