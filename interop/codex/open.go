package codex

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"

	"github.com/klauspost/compress/zstd"

	"github.com/coppice-go/coppice/interop"
)

// maxWindow is how far back a compressed file may refer: what a reader holds of it.
const maxWindow = 32 << 20

var magic = []byte{0x28, 0xb5, 0x2f, 0xfd}

// stream is an opened file, unpacked where it is compressed.
type stream struct {
	io.Reader
	file io.Closer
	zst  *zstd.Decoder
}

func (s *stream) Close() error {
	if s.zst != nil {
		s.zst.Close()
	}
	return s.file.Close()
}

// openSource opens a rollout, .jsonl or .jsonl.zst: by its content, whatever it is called.
func openSource(src interop.Source) (*stream, error) {
	f, err := src.Open()
	if err != nil {
		return nil, err
	}
	in := bufio.NewReaderSize(f, 1<<16)
	head, err := in.Peek(len(magic))
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, errors.Join(fmt.Errorf("read %s: %w", src.Name, err), f.Close())
	}
	if !bytes.Equal(head, magic) {
		return &stream{Reader: in, file: f}, nil
	}
	z, err := unpack(in)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("%s: %w", src.Name, err), f.Close())
	}
	return &stream{Reader: z, file: f, zst: z}, nil
}

func unpack(in io.Reader) (*zstd.Decoder, error) {
	return zstd.NewReader(in, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true), zstd.WithDecoderMaxWindow(maxWindow))
}
