package codex

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
)

// originalEnd is the state at the end of a rollout that determines how lines are appended to it.
type originalEnd struct {
	Paged  bool   // lines have ordinals
	Next   uint64 // next ordinal
	Packed bool   // the file is compressed
	Torn   bool   // the last line has no line feed
	Broken error  // decompression failed: nothing can be appended

	seed  maphash.Seed
	texts map[uint64]bool // IDs of calls whose input is a string
}

// maxTextCalls bounds the calls in texts: 16 MiB of memory.
const maxTextCalls = 1 << 19

// Custom reports whether a call has a string as its input: custom_tool_call.
func (e *originalEnd) Custom(id string) bool { return e.texts[maphash.String(e.seed, id)] }

// copyOriginal copies a rollout unchanged and reads it at the same time.
//
// Bounds (I15): the buffers of a jsonl.Scanner, 32 MiB more for a compressed file, and 16 MiB for call IDs.
func copyOriginal(w io.Writer, original io.Reader) (end originalEnd, err error) {
	through := &copyingReader{r: original, w: w}
	in := bufio.NewReaderSize(through, 1<<16)
	head, _ := in.Peek(len(zstdMagic))
	end.Packed = bytes.Equal(head, zstdMagic)
	end.seed, end.texts = maphash.MakeSeed(), map[uint64]bool{}
	if err := end.read(in, through); err != nil {
		return end, err
	}
	if _, err := io.Copy(io.Discard, in); err != nil {
		return end, fmt.Errorf("copy the original: %w", err)
	}
	return end, nil
}

// read reads a rollout to its end. A damaged frame of a compressed file is not an error.
func (e *originalEnd) read(in io.Reader, through *copyingReader) (err error) {
	err = e.readAll(in)
	switch {
	case through.err != nil:
		return fmt.Errorf("copy the original: %w", through.err)
	case err != nil && e.Packed:
		e.Broken = err
		return nil
	}
	return err
}

func (e *originalEnd) readAll(in io.Reader) error {
	text, err := openRollout(interop.Source{
		Name: "the original",
		Open: func() (io.ReadCloser, error) { return io.NopCloser(in), nil },
	})
	if err != nil {
		return err
	}
	last := &lastByteReader{r: text}
	err = errors.Join(e.lines(last), text.Close())
	e.Torn = last.any && last.b != '\n'
	return err
}

func (e *originalEnd) lines(in io.Reader) error {
	s := newScanner(in)
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
		l := readRolloutLine(o.Raw)
		if l.Form != formEnvelope {
			continue
		}
		if !begun && string(l.Type) == `"session_meta"` {
			begun = true
			e.Paged = string(rawjson.Field(l.Payload, "history_mode")) == `"paginated"`
		}
		if n, err := strconv.ParseUint(string(l.Ordinal), 10, 64); err == nil && n+1 > e.Next {
			e.Next = n + 1
		}
		if l.Kind == "custom_tool_call" && len(e.texts) < maxTextCalls {
			e.texts[maphash.String(e.seed, rawjson.Text(l.Fields.CallID))] = true
		}
	}
}

// copyingReader writes to w what it reads from r.
type copyingReader struct {
	r   io.Reader
	w   io.Writer
	err error // of either; sticky
}

func (c *copyingReader) Read(p []byte) (int, error) {
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

type lastByteReader struct {
	r   io.Reader
	b   byte
	any bool
}

func (l *lastByteReader) Read(p []byte) (int, error) {
	n, err := l.r.Read(p)
	if n > 0 {
		l.b, l.any = p[n-1], true
	}
	return n, err
}

// Appender returns a writer for lines that are appended to an original. The first byte written ends an incomplete line,
// and begins a new frame if the original is compressed. Close ends that frame.
func (e *originalEnd) Appender(w io.Writer) io.WriteCloser { return &appendWriter{w: w, end: e} }

type appendWriter struct {
	w   io.Writer
	end *originalEnd
	zst *zstd.Encoder
	any bool
}

func (b *appendWriter) Write(p []byte) (int, error) {
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

func (b *appendWriter) Close() error {
	if b.zst == nil {
		return nil
	}
	return b.zst.Close()
}
