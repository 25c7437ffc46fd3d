package codec

import (
	"bytes"
	"encoding/binary"
	"errors"
	"runtime"
	"testing"

	"github.com/klauspost/compress/zstd"
	"pgregory.net/rapid"

	"github.com/coppice-go/coppice/internal/testutil"
)

// isOurs reports whether err wraps exactly one of the four kinds.
func isOurs(err error) bool {
	n := 0
	for _, kind := range []error{ErrFormat, ErrChecksum, ErrLimit, ErrVersion} {
		if errors.Is(err, kind) {
			n++
		}
	}
	return n == 1
}

// allocated returns the bytes that f allocates, the smallest of three runs: the pools of encoders and decoders fill at
// the first.
func allocated(f func()) uint64 {
	best := ^uint64(0)
	for range 3 {
		best = min(best, testutil.Allocated(f))
	}
	return best
}

// decoderMemory is the maximum memory of a fresh zstd decoder in addition to its output.
const decoderMemory = 1 << 20

func TestCRC(t *testing.T) {
	p := []byte("123456789")
	if got := CRC(p); got != 0xe3069283 {
		t.Errorf("crc32c of the check string is %08x, the standard says e3069283", got)
	}
	for i := range p {
		if got := CRC(p[:i], p[i:]); got != CRC(p) {
			t.Errorf("split at %d: %08x", i, got)
		}
	}
}

func TestCompressRoundTrip(t *testing.T) {
	r := newRand(1)
	for _, n := range []int{0, 1, 2, 255, 256, 257, 1000, 1024, 1025, 65_791, 65_792, 128 << 10, 128<<10 + 1, 2 << 20, 2<<20 + 1} {
		text := bytes.Repeat([]byte(words(r, 1000)+"\n"), n/1000+1)[:n]
		for _, l := range []Level{Default, Fast} {
			p := Compress([]byte("before"), text, l)
			if !bytes.HasPrefix(p, []byte("before")) {
				t.Fatalf("%d bytes: what stood before is gone", n)
			}
			got, err := Decompress([]byte("kept"), p[6:], n)
			if err != nil || string(got) != "kept"+string(text) {
				t.Fatalf("%d bytes at level %d: %d back, %v", n, l, len(got), err)
			}
			if n > 0 {
				if out, err := Decompress(nil, p[6:], n-1); !errors.Is(err, ErrLimit) || out != nil {
					t.Errorf("%d bytes against a limit of %d: %v", n, n-1, err)
				}
			}
		}
	}
}

// The earlier use of an encoder does not affect its output.
func TestCompressIsDeterministic(t *testing.T) {
	r := newRand(2)
	texts := [][]byte{[]byte(words(r, 700)), []byte(words(r, 40_000)), []byte(words(r, 150_000)), nil}
	for _, l := range []Level{Default, Fast} {
		var want [][]byte
		for _, text := range texts {
			want = append(want, Compress(nil, text, l))
		}
		for range 24 {
			i := r.IntN(len(texts))
			Compress(nil, []byte(words(r, 1+r.IntN(5000))), l)
			if r.IntN(10) == 0 {
				runtime.GC() // empties the pools
				runtime.GC()
			}
			if got := Compress(nil, texts[i], l); !bytes.Equal(got, want[i]) {
				t.Fatalf("text %d at level %d: %d bytes, then %d others", i, l, len(want[i]), len(got))
			}
		}
	}
}

// frameHead returns the head of a zstd frame: a window descriptor unless single, an 8-byte size.
func frameHead(single bool, window byte, size uint64) []byte {
	p := []byte{0x28, 0xb5, 0x2f, 0xfd, 0xc0}
	if single {
		p[4] |= 0x20
	} else {
		p = append(p, window)
	}
	return binary.LittleEndian.AppendUint64(p, size)
}

// block returns a zstd block: kind 0 raw, 1 repeated byte, 2 compressed.
func block(last bool, kind, size uint32, payload ...byte) []byte {
	head := size<<3 | kind<<1
	if last {
		head |= 1
	}
	return append([]byte{byte(head), byte(head >> 8), byte(head >> 16)}, payload...)
}

func TestDecompressRefuses(t *testing.T) {
	testutil.SkipLong(t)
	good := Compress(nil, []byte("some text that is compressed"), Default)
	var streamed bytes.Buffer
	w, err := zstd.NewWriter(&streamed, zstd.WithEncoderConcurrency(1))
	if err != nil {
		t.Fatal(err)
	}
	_, _ = w.Write([]byte("a"))
	_ = w.Flush()
	_, _ = w.Write([]byte("stream does not know its size"))
	_ = w.Close()
	repeated := func(n int) (p []byte) {
		for i := range n {
			p = append(p, block(i == n-1, 1, 128<<10, 'x')...)
		}
		return p
	}
	const mib = 1 << 20
	tests := []struct {
		name string
		p    []byte
		want error
	}{
		{"nothing", nil, ErrFormat},
		{"text", []byte("plain text, no frame"), ErrFormat},
		{"cut off", good[:len(good)-1], ErrFormat},
		{"a byte after it", append(bytes.Clone(good), 0), ErrFormat},
		{"two frames", append(bytes.Clone(good), good...), ErrFormat},
		{"a skippable frame", []byte{0x50, 0x2a, 0x4d, 0x18, 1, 0, 0, 0, 0}, ErrFormat},
		{"no declared size", streamed.Bytes(), ErrFormat},
		{"a dictionary", []byte{0x28, 0xb5, 0x2f, 0xfd, 0x21, 9, 1, 1, 0, 0}, ErrFormat},
		{"reserved block", append(frameHead(true, 0, 1), block(true, 3, 1, 0)...), ErrFormat},
		{"block over 128 KiB", append(frameHead(true, 0, 1), block(true, 1, 128<<10+1, 0)...), ErrFormat},
		{"raw block cut off", append(frameHead(true, 0, 9), block(true, 0, 9, 1, 2, 3)...), ErrFormat},
		{"no last block", append(frameHead(true, 0, 9), block(false, 0, 1, 1)...), ErrFormat},
		{"declares 2^63", append(frameHead(false, 0, 1<<63), repeated(1)...), ErrLimit},
		{"declares 4 GiB", append(frameHead(false, 0, 1<<32), repeated(1)...), ErrLimit},
		{"declares more than its blocks hold", append(frameHead(false, 0x38, 64*mib), repeated(10)...), ErrFormat},
		{"declares less than its blocks hold", append(frameHead(false, 0x38, mib), repeated(20)...), ErrFormat},
		{"bomb over the limit", append(frameHead(false, 0x38, 65*mib), repeated(520)...), ErrLimit},
		{"window of 16 MiB", append(frameHead(false, 14<<3, mib), repeated(8)...), ErrLimit},
		{"window of 9 MiB", append(frameHead(false, 13<<3|1, mib), repeated(8)...), ErrLimit},
		{"window of 2 TiB", append(frameHead(false, 31<<3|7, mib), repeated(8)...), ErrLimit},
		{"single segment over the window", append(frameHead(true, 0, 9*mib), repeated(72)...), ErrLimit},
		{"window under the block", append(frameHead(false, 0, 128<<10), block(true, 2, 4, 1, 2, 3, 4)...), ErrFormat},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var err error
			bytesTaken := allocated(func() { _, err = Decompress(nil, tt.p, 64*mib) })
			if !errors.Is(err, tt.want) || !isOurs(err) {
				t.Errorf("%v, want %v", err, tt.want)
			}
			if bytesTaken > 2*mib+decoderMemory {
				t.Errorf("%d bytes allocated for %d", bytesTaken, len(tt.p))
			}
		})
	}
	if out, err := Decompress(nil, append(frameHead(false, 0x38, 64*mib), repeated(512)...), 64*mib); err != nil || len(out) != 64*mib {
		t.Errorf("64 MiB within the limit: %d bytes, %v", len(out), err)
	}
	if _, err := Decompress(nil, good, -1); !errors.Is(err, ErrLimit) {
		t.Errorf("a negative limit: %v", err)
	}
}

// A frame with a flipped bit never decodes to other content: the content checksum detects it.
func TestDecompressBitFlips(t *testing.T) {
	text := []byte(words(newRand(3), 900))
	p := Compress(nil, text, Default)
	for i := range 8 * len(p) {
		p[i/8] ^= 1 << (i % 8)
		if got, err := Decompress(nil, p, 1<<20); err == nil && !bytes.Equal(got, text) {
			t.Fatalf("bit %d flipped: other content", i)
		} else if err != nil && !isOurs(err) {
			t.Fatalf("bit %d flipped: %v", i, err)
		}
		p[i/8] ^= 1 << (i % 8)
	}
	for n := range p {
		if _, err := Decompress(nil, p[:n], 1<<20); !isOurs(err) {
			t.Fatalf("cut to %d: %v", n, err)
		}
	}
}

func TestCompressProperty(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := rapid.SliceOfN(rapid.Byte(), 0, 4000).Draw(t, "p")
		got, err := Decompress(nil, Compress(nil, p, Default), len(p))
		if err != nil || !bytes.Equal(got, p) {
			t.Fatalf("%d bytes back of %d: %v", len(got), len(p), err)
		}
	})
}
