package codec

import (
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/klauspost/compress/zstd"
)

const (
	// maxWindow is the largest window, in bytes, that a frame may require of a decoder.
	maxWindow = 8 << 20
	// encodeWindow is the window of our own frames: 2 MiB cover the largest usual checkpoint, and limit an encoder's
	// buffers to a few MiB.
	encodeWindow = 2 << 20
	// maxBlock is the maximum raw size of one block of any frame: a constant of zstd.
	maxBlock = 128 << 10
	// maxFrames is the maximum number of consecutive frames, where more than one is permitted.
	maxFrames = 64 << 10
	// maxFrame is the largest raw size of one frame that is decoded.
	maxFrame = 1 << 30
	// decodeSlack lets the decoder use its fast path up to the last byte.
	decodeSlack = 32
)

// idle is a pool: it always keeps one item, so that a program with steady work does not depend on the garbage
// collector's timing, and more as long as memory is plentiful.
type idle[T any] struct {
	one  atomic.Pointer[T]
	more sync.Pool
}

func (s *idle[T]) get() *T {
	if v := s.one.Swap(nil); v != nil {
		return v
	}
	v, _ := s.more.Get().(*T)
	return v
}

func (s *idle[T]) put(v *T) {
	if !s.one.CompareAndSwap(nil, v) {
		s.more.Put(v)
	}
}

// Idle encoders by level and by whether the source fits the window: a frame that does is a single segment, which always
// declares its size; a larger one declares it anyway. An encoder takes up to 8 MiB, a decoder less than one. None
// starts a goroutine, so a dropped one is collected.
var (
	encoders [levels][2]idle[zstd.Encoder]
	decoders idle[zstd.Decoder]
)

func newDecoder() *zstd.Decoder {
	d, err := zstd.NewReader(nil,
		zstd.WithDecoderConcurrency(1),
		zstd.WithDecoderLowmem(true),
		zstd.WithDecoderMaxMemory(maxFrame),
		zstd.WithDecoderMaxWindow(maxWindow),
		zstd.WithDecodeAllCapLimit(true))
	if err != nil {
		panic("codec: zstd decoder options: " + err.Error()) // constants: wrong in every run or in none
	}
	return d
}

// levels is the number of levels.
const levels = 2

var speeds = [levels]zstd.EncoderLevel{zstd.SpeedDefault, zstd.SpeedFastest}

func newEncoder(level Level, single bool) *zstd.Encoder {
	e, err := zstd.NewWriter(nil,
		zstd.WithEncoderLevel(speeds[level]),
		zstd.WithEncoderConcurrency(1),
		zstd.WithWindowSize(encodeWindow),
		zstd.WithLowerEncoderMem(true),
		zstd.WithEncoderCRC(true),
		zstd.WithZeroFrames(true),
		zstd.WithSingleSegment(single))
	if err != nil {
		panic("codec: zstd encoder options: " + err.Error())
	}
	return e
}

// Compress appends one zstd frame with the content src to dst, with declared size and content checksum. Equal arguments
// produce equal bytes. src may be empty and is not kept.
func Compress(dst, src []byte, level Level) []byte {
	fits := len(src) <= encodeWindow
	pool := &encoders[level][0]
	if fits {
		pool = &encoders[level][1]
	}
	e := pool.get()
	if e == nil {
		e = newEncoder(level, fits)
	}
	dst = e.EncodeAll(src, dst)
	pool.put(e)
	return dst
}

// Decompress appends the content of src, which has to be exactly one zstd frame, to dst. The frame must declare its
// size; a size over limit bytes or over 1 GiB, or a window over 8 MiB, is ErrLimit; bytes after the frame, a
// dictionary, and a declared size that its blocks cannot hold are ErrFormat: all are detected before anything is
// allocated. At most the declared size and a constant is allocated. On an error dst is returned unchanged.
func Decompress(dst, src []byte, limit int) ([]byte, error) {
	size, err := frameContentSize(src, limit)
	if err != nil {
		return dst, fmt.Errorf("zstd: %w", err)
	}
	return decodeFrame(dst, src, size)
}

// decompressAll is Decompress for one or more frames, at most 65,536, end to end: limit is for all of them together,
// and each has to follow the rules of Decompress.
func decompressAll(dst, src []byte, limit int) ([]byte, error) {
	size, rest := 0, src
	for count := 0; ; count++ {
		if count == maxFrames {
			return dst, fmt.Errorf("zstd: over %d frames: %w", maxFrames, ErrLimit)
		}
		n, after, err := frameSize(rest, limit-size)
		if err != nil {
			return dst, fmt.Errorf("zstd: frame at byte %d: %w", len(src)-len(rest), err)
		}
		size += n
		if rest = after; len(rest) == 0 {
			return decodeFrame(dst, src, size)
		}
	}
}

// decodeFrame decodes frames that were checked, and whose sizes add up to size bytes.
func decodeFrame(dst, src []byte, size int) ([]byte, error) {
	out := dst
	if cap(out)-len(out) < size {
		out = make([]byte, len(dst), len(dst)+size+decodeSlack)
		copy(out, dst)
	}
	d := decoders.get()
	if d == nil {
		d = newDecoder()
	}
	raw, err := d.DecodeAll(src, out[len(out):]) // never exceeds the capacity, so it stays in place
	decoders.put(d)
	if err != nil {
		return dst, fmt.Errorf("zstd: %w: %w", err, ErrFormat)
	}
	if len(raw) != size {
		return dst, fmt.Errorf("zstd: %d bytes instead of %d: %w", len(raw), size, ErrFormat)
	}
	return append(out, raw...), nil
}

// frameContentSize reads the headers of p, which has to be one frame, and returns its declared size.
func frameContentSize(p []byte, limit int) (int, error) {
	size, rest, err := frameSize(p, limit)
	if err == nil && len(rest) != 0 {
		return 0, fmt.Errorf("%d bytes after the frame: %w", len(rest), ErrFormat)
	}
	return size, err
}

// frameSize reads the headers of the frame at the start of p and returns its declared size, and the bytes after the
// frame.
func frameSize(p []byte, limit int) (size int, after []byte, err error) {
	var h zstd.Header
	rest, err := h.DecodeAndStrip(p)
	switch {
	case err != nil:
		return 0, nil, fmt.Errorf("no frame: %w: %w", err, ErrFormat)
	case h.Skippable:
		return 0, nil, fmt.Errorf("a skippable frame: %w", ErrFormat)
	case h.DictionaryID != 0:
		return 0, nil, fmt.Errorf("needs dictionary %d: %w", h.DictionaryID, ErrFormat)
	case !h.HasFCS:
		return 0, nil, fmt.Errorf("no declared size: %w", ErrFormat)
	}
	window := h.WindowSize
	if h.SingleSegment {
		window = h.FrameContentSize
	}
	if h.FrameContentSize > uint64(max(0, min(limit, maxFrame))) {
		return 0, nil, fmt.Errorf("%d bytes declared, at most %d are allowed: %w", h.FrameContentSize,
			min(limit, maxFrame), ErrLimit)
	}
	if window > maxWindow {
		return 0, nil, fmt.Errorf("a window of %d bytes, at most %d are allowed: %w", window, maxWindow, ErrLimit)
	}
	most, rest, err := walkBlocks(rest, min(window, maxBlock))
	if err != nil {
		return 0, nil, err
	}
	if h.HasCheckSum {
		if len(rest) < 4 {
			return 0, nil, fmt.Errorf("cut off in its checksum: %w", ErrFormat)
		}
		rest = rest[4:]
	}
	if h.FrameContentSize > most {
		return 0, nil,
			fmt.Errorf("%d bytes declared, its blocks hold at most %d: %w", h.FrameContentSize, most, ErrFormat)
	}
	return int(h.FrameContentSize), rest, nil
}

// walkBlocks skips the blocks of a frame and returns the maximum size of their content, and the bytes after the last
// one.
func walkBlocks(p []byte, blockMax uint64) (most uint64, rest []byte, err error) {
	for {
		if len(p) < 3 {
			return 0, nil, fmt.Errorf("cut off in a block header: %w", ErrFormat)
		}
		head := uint32(p[0]) | uint32(p[1])<<8 | uint32(p[2])<<16
		p = p[3:]
		size := uint64(head >> 3)
		stored := size
		switch head >> 1 & 3 {
		case 0: // raw
			most += size
		case 1: // one byte, repeated
			most += size
			stored = 1
		case 2: // compressed
			most += blockMax
		default:
			return 0, nil, fmt.Errorf("a block of a reserved type: %w", ErrFormat)
		}
		if size > maxBlock {
			return 0, nil, fmt.Errorf("a block of %d bytes, at most %d are allowed: %w", size, maxBlock, ErrFormat)
		}
		if stored > uint64(len(p)) {
			return 0, nil, fmt.Errorf("cut off in a block: %w", ErrFormat)
		}
		p = p[stored:]
		if head&1 == 1 {
			return most, p, nil
		}
	}
}

// appendStored appends a zstd frame with the content src without compressing it, for content that is compressed
// already: such a frame is read at the speed of memory. It has no checksum of its own, so it is used only inside
// objects that have one.
func appendStored(dst, src []byte) []byte {
	const magic, header = 0xFD2FB528, 0x80 // header: a content size of four bytes, no checksum
	n := uint32(len(src))
	dst = append(dst, magic&0xff, magic>>8&0xff, magic>>16&0xff, magic>>24, header, windowByte,
		byte(n), byte(n>>8), byte(n>>16), byte(n>>24))
	for {
		k := min(len(src), maxBlock)
		head := uint32(k) << 3
		if k == len(src) {
			head |= 1
		}
		dst = append(dst, byte(head), byte(head>>8), byte(head>>16))
		dst = append(dst, src[:k]...)
		src = src[k:]
		if head&1 == 1 {
			return dst
		}
	}
}

// windowByte is the window descriptor of a stored frame: 128 KiB, one block.
const windowByte = 7 << 3
