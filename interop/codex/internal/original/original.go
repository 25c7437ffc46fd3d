// Package original reads a rollout on its way to where it is written again, for what has to be known of it before
// something stands behind it. Its bytes stay as they are.
//
// Bounds (I15): what a scanner of package jsonl holds, of a compressed file 32 MiB more, and 16 MiB of calls.
package original

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"hash/maphash"
	"io"
	"strconv"

	"github.com/klauspost/compress/zstd"

	"github.com/coppice-go/coppice/internal/rawjson"
	"github.com/coppice-go/coppice/interop"
	"github.com/coppice-go/coppice/interop/codex/internal/rollout"
)

// End is what is to be known of a rollout before something stands behind it.
type End struct {
	Paged  bool   // its lines have ordinals
	Next   uint64 // that of the next one
	Packed bool   // it is compressed
	Torn   bool   // its last line has no end
	Broken error  // it cannot be unpacked: nothing can stand behind it

	seed  maphash.Seed
	texts map[uint64]bool // ids of calls whose input is a text
}

// maxCalls bounds the calls that are known for such: 16 MiB of memory.
const maxCalls = 1 << 19

// Custom tells a call whose input is a text by its id: custom_tool_call.
func (e *End) Custom(id string) bool { return e.texts[maphash.String(e.seed, id)] }

// Copy writes the bytes of a rollout as they are, and reads it on the way.
func Copy(w io.Writer, original io.Reader) (end End, err error) {
	through := &copier{r: original, w: w}
	in := bufio.NewReaderSize(through, 1<<16)
	head, _ := in.Peek(len(rollout.Magic))
	end.Packed = bytes.Equal(head, rollout.Magic)
	end.seed, end.texts = maphash.MakeSeed(), map[uint64]bool{}
	if err := end.read(in, through); err != nil {
		return end, err
	}
	if _, err := io.Copy(io.Discard, in); err != nil {
		return end, fmt.Errorf("copy the original: %w", err)
	}
	return end, nil
}

// read reads a rollout to its end. What is wrong with the frame of a compressed one is no error.
func (e *End) read(in io.Reader, through *copier) (err error) {
	text, err := rollout.Open(interop.Source{Name: "the original", Open: func() (io.ReadCloser, error) { return io.NopCloser(in), nil }})
	if err == nil {
		last := &lastByte{r: text}
		err = errors.Join(e.lines(last), text.Close())
		e.Torn = last.any && last.b != '\n'
	}
	switch {
	case through.err != nil:
		return fmt.Errorf("copy the original: %w", through.err)
	case err != nil && e.Packed:
		e.Broken = err
	case err != nil:
		return err
	}
	return nil
}

func (e *End) lines(in io.Reader) error {
	s := rollout.NewScanner(in)
	begun := false
	for {
		o, err := s.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if o.Part {
			continue
		}
		l := rollout.ReadLine(o.Raw)
		if l.Form != rollout.Envelope {
			continue
		}
		if !begun && string(l.Type) == `"session_meta"` {
			begun = true
			e.Paged = string(rawjson.Field(l.Payload, "history_mode")) == `"paginated"`
		}
		if n, err := strconv.ParseUint(string(l.Ordinal), 10, 64); err == nil && n+1 > e.Next {
			e.Next = n + 1
		}
		if l.Kind == "custom_tool_call" && len(e.texts) < maxCalls {
			e.texts[maphash.String(e.seed, rawjson.Text(l.Fields.CallID))] = true
		}
	}
}

// copier writes what is read of it.
type copier struct {
	r   io.Reader
	w   io.Writer
	err error // of either; sticky
}

func (c *copier) Read(p []byte) (int, error) {
	if c.err != nil {
		return 0, c.err
	}
	n, err := c.r.Read(p)
	if n > 0 {
		if _, werr := c.w.Write(p[:n]); werr != nil {
			c.err = werr
			return 0, werr
		}
	}
	if err != nil && !errors.Is(err, io.EOF) {
		c.err = err
	}
	return n, err
}

type lastByte struct {
	r   io.Reader
	b   byte
	any bool
}

func (l *lastByte) Read(p []byte) (int, error) {
	n, err := l.r.Read(p)
	if n > 0 {
		l.b, l.any = p[n-1], true
	}
	return n, err
}

// Behind gives where what stands behind an original is written: the first byte ends a line that is torn, and begins a
// frame of its own where the original is compressed. Close ends that frame.
func (e *End) Behind(w io.Writer) io.WriteCloser { return &behind{w: w, end: e} }

type behind struct {
	w   io.Writer
	end *End
	zst *zstd.Encoder
	any bool
}

func (b *behind) Write(p []byte) (int, error) {
	if !b.any && len(p) > 0 {
		b.any = true
		if b.end.Packed {
			zst, err := zstd.NewWriter(b.w, zstd.WithEncoderConcurrency(1))
			if err != nil {
				return 0, err
			}
			b.zst, b.w = zst, zst
		}
		if b.end.Torn {
			if _, err := b.w.Write([]byte("\n")); err != nil {
				return 0, err
			}
		}
	}
	return b.w.Write(p)
}

func (b *behind) Close() error {
	if b.zst == nil {
		return nil
	}
	return b.zst.Close()
}
