package zframe

import (
	"bytes"
	"fmt"
	"io"

	"github.com/klauspost/compress/zstd"

	"github.com/coppice-go/coppice/codec/internal/wire"
)

// Stream writes the content of the one frame that src is to w, in pieces: what it takes is bounded by the
// window, not by what the frame declares, which must be at most limit. An error of w is given as it is.
func Stream(w io.Writer, src []byte, limit int) error {
	if _, err := Size(src, limit); err != nil {
		return fmt.Errorf("zstd: %w", err)
	}
	d, err := zstd.NewReader(bytes.NewReader(src),
		zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true), zstd.WithDecoderMaxWindow(maxWindow))
	if err != nil {
		return fmt.Errorf("zstd frame: %w: %w", wire.ErrFormat, err)
	}
	defer d.Close()
	out := &sink{w: w}
	if _, err := d.WriteTo(out); err != nil {
		if out.err != nil {
			return out.err
		}
		return fmt.Errorf("zstd frame: %w: %w", wire.ErrFormat, err)
	}
	return nil
}

// sink remembers the error of a writer, which is no damage of the frame.
type sink struct {
	w   io.Writer
	err error
}

func (s *sink) Write(p []byte) (n int, err error) {
	n, s.err = s.w.Write(p)
	return n, s.err
}
