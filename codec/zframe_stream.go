package codec

import (
	"bytes"
	"fmt"
	"io"

	"github.com/klauspost/compress/zstd"
)

// Unpack is Decompress into a writer, piece by piece: it takes the memory of a window, at most 8 MiB, whatever size the
// frame declares.
func Unpack(w io.Writer, src []byte, limit int) error {
	if _, err := frameContentSize(src, limit); err != nil {
		return fmt.Errorf("zstd: %w", err)
	}
	d, err := zstd.NewReader(bytes.NewReader(src),
		zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true), zstd.WithDecoderMaxWindow(maxWindow))
	if err != nil {
		return fmt.Errorf("zstd frame: %w: %w", ErrFormat, err)
	}
	defer d.Close()
	out := &sink{w: w}
	if _, err := d.WriteTo(out); err != nil {
		if out.err != nil {
			return out.err
		}
		return fmt.Errorf("zstd frame: %w: %w", ErrFormat, err)
	}
	return nil
}

// sink keeps the error of a writer, which is not damage of the frame.
type sink struct {
	w   io.Writer
	err error
}

func (s *sink) Write(p []byte) (n int, err error) {
	n, s.err = s.w.Write(p)
	return n, s.err
}
