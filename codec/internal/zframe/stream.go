package zframe

import (
	"bytes"
	"fmt"
	"io"

	"github.com/klauspost/compress/zstd"

	"github.com/coppice-go/coppice/codec/internal/wire"
)

// Stream writes the content of the one frame that src is to w, in pieces: what it takes is bounded by the
// window, not by what the frame declares, which must be at most limit.
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
	if _, err := d.WriteTo(w); err != nil {
		return fmt.Errorf("zstd frame: %w: %w", wire.ErrFormat, err)
	}
	return nil
}
