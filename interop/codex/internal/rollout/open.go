package rollout

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

// maxWindow is how far back a compressed file may refer: what a reader holds of it.
const maxWindow = 32 << 20

// Magic is how a compressed file begins.
var Magic = []byte{0x28, 0xb5, 0x2f, 0xfd}

// Stream is an opened file, unpacked where it is compressed.
type Stream struct {
	io.Reader
	file io.Closer
	zst  *zstd.Decoder
}

// Close closes the file.
func (s *Stream) Close() error {
	if s.zst != nil {
		s.zst.Close()
	}
	return s.file.Close()
}

// Open opens a rollout, .jsonl or .jsonl.zst: by its content, whatever it is called.
func Open(src interop.Source) (*Stream, error) {
	f, err := src.Open()
	if err != nil {
		return nil, err
	}
	in := bufio.NewReaderSize(f, 1<<16)
	head, err := in.Peek(len(Magic))
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, errors.Join(fmt.Errorf("read %s: %w", src.Name, err), f.Close())
	}
	if !bytes.Equal(head, Magic) {
		return &Stream{Reader: in, file: f}, nil
	}
	z, err := Unpack(in)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("%s: %w", src.Name, err), f.Close())
	}
	return &Stream{Reader: z, file: f, zst: z}, nil
}

// Unpack unpacks a compressed file, on no goroutine of its own.
func Unpack(in io.Reader) (*zstd.Decoder, error) {
	return zstd.NewReader(in, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true), zstd.WithDecoderMaxWindow(maxWindow))
}

// NewScanner cuts a file into objects, and finds those of Codex's behind damage.
func NewScanner(in io.Reader) *jsonl.Scanner {
	s := jsonl.NewScanner(in)
	s.Accepts = func(object []byte) bool { return ReadLine(object).Form != Unknown }
	return s
}
