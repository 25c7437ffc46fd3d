package codex

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"

	"github.com/klauspost/compress/zstd"

	"github.com/coppice-go/coppice/interop"
	"github.com/coppice-go/coppice/interop/internal/jsonl"
)

// maxWindow bounds the window of a compressed file, which the reader holds in memory.
const maxWindow = 32 << 20

// zstdMagic is the beginning of a compressed file.
var zstdMagic = []byte{0x28, 0xb5, 0x2f, 0xfd}

// rolloutStream is an open file, decompressed if necessary.
type rolloutStream struct {
	io.Reader
	file io.Closer
	zst  *zstd.Decoder
}

// Close closes the file.
func (s *rolloutStream) Close() error {
	if s.zst != nil {
		s.zst.Close()
	}
	return s.file.Close()
}

// openRollout opens a rollout. Its content and not its name decides whether it is compressed.
func openRollout(src interop.Source) (*rolloutStream, error) {
	f, err := src.Open()
	if err != nil {
		return nil, err
	}
	in := bufio.NewReaderSize(f, 1<<16)
	head, err := in.Peek(len(zstdMagic))
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, errors.Join(fmt.Errorf("read %s: %w", src.Name, err), f.Close())
	}
	if !bytes.Equal(head, zstdMagic) {
		return &rolloutStream{Reader: in, file: f}, nil
	}
	z, err := unpack(in)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("%s: %w", src.Name, err), f.Close())
	}
	return &rolloutStream{Reader: z, file: f, zst: z}, nil
}

// unpack decompresses a file without goroutines.
func unpack(in io.Reader) (*zstd.Decoder, error) {
	return zstd.NewReader(in, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true),
		zstd.WithDecoderMaxWindow(maxWindow))
}

// newScanner splits a file into objects. After damage it resumes at the next object of Codex.
func newScanner(in io.Reader) *jsonl.Scanner {
	s := jsonl.NewScanner(in)
	s.Accepts = func(object []byte) bool { return readRolloutLine(object).Form != formUnknown }
	return s
}
