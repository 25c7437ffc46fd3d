package codec

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"math"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/klauspost/compress/zstd"
	"pgregory.net/rapid"
)

func smallSegment(t testing.TB) (SegmentSpec, []byte) {
	t.Helper()
	raw, rows := session(11, 40, 6, 80)
	raw = append([]byte(`{"type":"session","version":3}`+"\n"+`{"type":"custom","customType":"coppice.segment"}`+"\n"), raw...)
	spec := SegmentSpec{Raw: raw, Prelude: 2, First: 40, FirstSeq: 9, Rows: rows}
	p, err := EncodeSegment(spec)
	if err != nil {
		t.Fatal(err)
	}
	return spec, p
}

// linesSpec makes a segment of lines of these lengths, newline included; the first prelude of them have no row.
func linesSpec(seed uint64, prelude int, lengths ...int) SegmentSpec {
	r := newRand(seed)
	s := SegmentSpec{Prelude: prelude, First: 1000}
	for i, n := range lengths {
		line := []byte(strings.Repeat(words(r, 500)+" ", n/400+1)[:n-1])
		s.Raw = append(append(s.Raw, line...), '\n')
		if i >= prelude {
			s.Rows = append(s.Rows, Row{ID: uuid7(r, int64(i)), Parent: NoParent, Type: "message", Size: uint32(n - 1)})
		}
	}
	return s
}

func TestSegmentRoundTrip(t *testing.T) {
	spec, p := smallSegment(t)
	raw, idx, err := DecodeSegment(golden(t, "segment.jsonl.zst", p), 1<<20)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(raw, spec.Raw) || idx.First != 40 || idx.Count != 6 || idx.FirstSeq != 9 || idx.Prelude != 2 ||
		idx.RawBytes != int64(len(raw)) || idx.Bytes != int64(len(p)) {
		t.Errorf("index is %+v", idx)
	}
	s, err := idx.Skeleton()
	if err != nil {
		t.Fatal(err)
	}
	checkRows(t, s, 40, spec.Rows)
	if b, err := EncodeSkeleton(40, spec.Rows); err != nil || !bytes.Equal(b, idx.SkeletonBytes()) {
		t.Errorf("skeleton of %d bytes instead of %d: %v", len(idx.SkeletonBytes()), len(b), err)
	}
}

// Segments of earlier releases were compressed at zstd's "better" level.
func TestSegmentOfAnotherLevel(t *testing.T) {
	spec, _ := smallSegment(t)
	p, err := os.ReadFile("testdata/segment-better.jsonl.zst")
	if err != nil {
		t.Fatal(err)
	}
	if raw, _, err := DecodeSegment(p, 1<<20); err != nil || !bytes.Equal(raw, spec.Raw) {
		t.Errorf("%d bytes: %v", len(raw), err)
	}
}

// Any reader of zstd prints exactly the lines.
func TestSegmentIsPlainZstd(t *testing.T) {
	spec := linesSpec(12, 1, 90, 300_000, 10, 131_000, 73, 131_072, 5)
	p, err := EncodeSegment(spec)
	if err != nil {
		t.Fatal(err)
	}
	r, err := zstd.NewReader(bytes.NewReader(p))
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if got, err := io.ReadAll(r); err != nil || !bytes.Equal(got, spec.Raw) {
		t.Errorf("klauspost: %d bytes of %d, %v", len(got), len(spec.Raw), err)
	}
	tool, err := exec.LookPath("zstd")
	if err != nil {
		t.Skip("no zstd program here; the library above read the same bytes")
	}
	cmd := exec.Command(tool, "-dc")
	cmd.Stdin = bytes.NewReader(p)
	if got, err := cmd.Output(); err != nil || !bytes.Equal(got, spec.Raw) {
		t.Errorf("zstd -dc: %d bytes of %d, %v", len(got), len(spec.Raw), err)
	}
	cmd = exec.Command(tool, "-t")
	cmd.Stdin = bytes.NewReader(p)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("zstd -t: %v: %s", err, out)
	}
}

func TestSegmentFrames(t *testing.T) {
	const target = 128 << 10
	tests := []struct {
		name    string
		lengths []int
		want    []int64 // raw bytes of the frames
	}{
		{"one line", []int{10}, []int64{10}},
		{"exactly the target", []int{target - 10, 10}, []int64{target}},
		{"one byte over", []int{target - 10, 11}, []int64{target - 10, 11}},
		{"a line of the target", []int{5, target, 5}, []int64{5, target, 5}},
		{"a longer line", []int{5, target + 1, 5, 5}, []int64{5, target + 1, 10}},
		{"three longer lines", []int{200_000, 3_000_000, 200_000}, []int64{200_000, 3_000_000, 200_000}},
		{"greedy", []int{60_000, 60_000, 60_000, 60_000, 60_000}, []int64{120_000, 120_000, 60_000}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			p, err := EncodeSegment(linesSpec(13, 0, tt.lengths...))
			if err != nil {
				t.Fatal(err)
			}
			_, idx, err := DecodeSegment(p, 1<<23)
			if err != nil {
				t.Fatal(err)
			}
			var got []int64
			for i := range idx.Frames() {
				got = append(got, idx.FrameRaw(i))
			}
			if d := cmp.Diff(tt.want, got); d != "" {
				t.Error(d)
			}
		})
	}
}

// One suffix read returns the index, one range read an entry.
func TestSegmentRangeReads(t *testing.T) {
	spec := linesSpec(14, 2, 90, 40, 50_000, 60_000, 70_000, 200_000, 10, 20, 130_000, 5_000)
	p, err := EncodeSegment(spec)
	if err != nil {
		t.Fatal(err)
	}
	size := int64(len(p))
	idx, need, err := DecodeSegmentIndex(p[size-10:], size)
	if idx != nil || err != nil || need <= 10 {
		t.Fatalf("from 10 bytes: need %d, %v", need, err)
	}
	_, need, err = DecodeSegmentIndex(p[size-20:], size)
	if err != nil || need <= 20 || need > 2000 {
		t.Fatalf("from the footer alone: need %d, %v", need, err)
	}
	for _, n := range []int64{need, need + 1, size} {
		if idx, again, err := DecodeSegmentIndex(p[size-n:], size); err != nil || again != 0 || idx.Count != 8 {
			t.Fatalf("from %d bytes: need %d, %v", n, again, err)
		}
	}
	idx, _, err = DecodeSegmentIndex(p[size-need:], size)
	if err != nil {
		t.Fatal(err)
	}
	lines := bytes.SplitAfter(spec.Raw, []byte{'\n'})
	for ordinal := spec.First; ordinal < spec.First+8; ordinal++ {
		i := idx.Locate(ordinal)
		off, n := idx.FrameRange(i)
		raw, first, err := idx.DecodeFrame(i, p[off:off+n])
		if err != nil {
			t.Fatal(err)
		}
		line := int(ordinal-spec.First) + spec.Prelude
		if got := bytes.SplitAfter(raw, []byte{'\n'})[line-first]; !bytes.Equal(got, lines[line]) {
			t.Errorf("entry %d: line %d of frame %d is another", ordinal, line-first, i)
		}
	}
	for _, ordinal := range []uint64{0, spec.First - 1, spec.First + 8, math.MaxUint64} {
		if i := idx.Locate(ordinal); i != -1 {
			t.Errorf("entry %d in frame %d, it is not here", ordinal, i)
		}
	}
	off, n := idx.FrameRange(0)
	if _, _, err := idx.DecodeFrame(0, p[off:off+n-1]); !errors.Is(err, ErrFormat) {
		t.Errorf("a frame cut off: %v", err)
	}
	if _, _, err := idx.DecodeFrame(1, p[off:off+n]); !isOurs(err) {
		t.Errorf("another frame: %v", err)
	}
	if _, _, err := DecodeSegment(p, int64(len(spec.Raw))-1); !errors.Is(err, ErrLimit) {
		t.Errorf("over the limit: %v", err)
	}
}

func TestSegmentProperty(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		lengths := rapid.SliceOfN(rapid.OneOf(rapid.IntRange(1, 50), rapid.IntRange(1, 140_000)), 1, 4).Draw(rt, "lengths")
		spec := linesSpec(15, rapid.IntRange(0, len(lengths)).Draw(rt, "prelude"), lengths...)
		spec.FirstSeq = rapid.Uint64().Draw(rt, "first seq")
		p, err := EncodeSegment(spec)
		if err != nil {
			rt.Fatal(err)
		}
		raw, idx, err := DecodeSegment(p, int64(len(spec.Raw)))
		if err != nil || !bytes.Equal(raw, spec.Raw) || idx.FirstSeq != spec.FirstSeq {
			rt.Fatalf("%d bytes back of %d: %v", len(raw), len(spec.Raw), err)
		}
		if again, _ := EncodeSegment(spec); !bytes.Equal(again, p) {
			rt.Fatal("equal specs, other bytes")
		}
	})
}

func TestSegmentRefusesSpecs(t *testing.T) {
	rows := []Row{{ID: "a", Parent: NoParent}}
	tests := []struct {
		name string
		spec SegmentSpec
		want error
	}{
		{"nothing", SegmentSpec{}, ErrFormat},
		{"half a line", SegmentSpec{Raw: []byte("a"), Rows: rows}, ErrFormat},
		{"a line and a half", SegmentSpec{Raw: []byte("a\nb"), Rows: rows}, ErrFormat},
		{"more lines than rows", SegmentSpec{Raw: []byte("a\nb\n"), Rows: rows}, ErrFormat},
		{"more rows than lines", SegmentSpec{Raw: []byte("a\n"), Prelude: 1, Rows: rows}, ErrFormat},
		{"prelude below zero", SegmentSpec{Raw: []byte("a\n"), Prelude: -1, Rows: make([]Row, 2)}, ErrFormat},
		{"a row that cannot be", SegmentSpec{Raw: []byte("a\n"), Rows: []Row{{Parent: 0}}}, ErrFormat},
	}
	for _, tt := range tests {
		if _, err := EncodeSegment(tt.spec); !errors.Is(err, tt.want) {
			t.Errorf("%s: %v, want %v", tt.name, err, tt.want)
		}
	}
}

// rebuild makes an index with correct checksums and hostile content after the frames of a segment.
func rebuild(frames []byte, head [6]uint64, table []byte, skeleton []byte) []byte {
	p := binary.LittleEndian.AppendUint32(bytes.Clone(frames), skippableMagic)
	p = append(p, 0, 0, 0, 0)
	for _, n := range head {
		p = binary.AppendUvarint(p, n)
	}
	p = append(append(p, table...), skeleton...)
	size := uint32(len(p) - len(frames) + segmentFooter)
	binary.LittleEndian.PutUint32(p[len(frames)+4:], size-8)
	p = append(p, 1, 0, 0, 0)
	p = binary.LittleEndian.AppendUint32(p, size)
	p = binary.LittleEndian.AppendUint32(p, CRC(p[len(frames):]))
	return append(p, segmentMagic...)
}

func seekEntry(frame []byte, raw, lines uint64) []byte {
	p := binary.AppendUvarint(nil, uint64(len(frame)))
	p = binary.AppendUvarint(binary.AppendUvarint(p, raw), lines)
	return binary.LittleEndian.AppendUint32(p, CRC(frame))
}

// Wrong indexes with correct checksums: they are errors, and nothing is allocated.
func TestSegmentIndexLies(t *testing.T) {
	frame := Compress(nil, []byte("a\nb\n"), Default)
	bomb := frameHead(false, 0x38, 1<<28)
	for i := range 2048 {
		bomb = append(bomb, block(i == 2047, 1, 128<<10, '\n')...)
	}
	skel, _ := EncodeSkeleton(3, []Row{{ID: "a", Parent: NoParent}, {ID: "b", Parent: 3}})
	n := uint64(len(skel))
	head := [6]uint64{3, 2, 0, 0, 1, n}
	with := func(i int, v uint64) [6]uint64 { h := head; h[i] = v; return h }
	entry := seekEntry(frame, 4, 2)
	if _, _, err := DecodeSegment(rebuild(frame, head, entry, skel), 4); err != nil {
		t.Fatalf("the base of the table is not valid: %v", err)
	}
	tests := []struct {
		name string
		p    []byte
		want error
	}{
		{"first ordinal is another", rebuild(frame, with(0, 4), entry, skel), ErrFormat},
		{"first ordinal of 2^63", rebuild(frame, with(0, 1<<63), entry, skel), ErrLimit},
		{"count is another", rebuild(frame, with(1, 3), entry, skel), ErrFormat},
		{"prelude is another", rebuild(frame, with(3, 1), entry, skel), ErrFormat},
		{"2^40 frames", rebuild(frame, with(4, 1<<40), entry, skel), ErrLimit},
		{"no frames", rebuild(frame, with(4, 0), entry, skel), ErrFormat},
		{"skeleton over the rest", rebuild(frame, with(5, n+1), entry, skel), ErrFormat},
		{"a byte too many", rebuild(frame, head, entry, append(bytes.Clone(skel), 0)), ErrFormat},
		{"frame over the object", rebuild(frame, head, seekEntry(append(bytes.Clone(frame), 1), 4, 2), skel), ErrLimit},
		{"frame shorter than the object", rebuild(append([]byte{1}, frame...), head, entry, skel), ErrFormat},
		{"frame of no lines", rebuild(frame, head, seekEntry(frame, 4, 0), skel), ErrFormat},
		{"frame of more lines than bytes", rebuild(frame, head, seekEntry(frame, 4, 5), skel), ErrLimit},
		{"long frame of two lines", rebuild(frame, head, seekEntry(frame, 128<<10+1, 2), skel), ErrFormat},
		{"frame declares less", rebuild(frame, head, seekEntry(frame, 3, 2), skel), ErrFormat},
		{"frame declares more", rebuild(frame, head, seekEntry(frame, 5, 2), skel), ErrFormat},
		{"frame of over 1 GiB", rebuild(frame, head, seekEntry(frame, 1<<31, 1), skel), ErrLimit},
		{"other lines", rebuild(Compress(nil, []byte("aaa\n"), Default), head, seekEntry(Compress(nil, []byte("aaa\n"), Default), 4, 2), skel), ErrFormat},
		{"no line feed at the end", rebuild(Compress(nil, []byte("a\n\nb"), Default), head, seekEntry(Compress(nil, []byte("a\n\nb"), Default), 4, 2), skel), ErrFormat},
		{"skeleton damaged", rebuild(frame, head, entry, append(skel[:n-1:n-1], skel[n-1]^1)), ErrChecksum},
		{"bomb over the limit", rebuild(bomb, with(1, 1), seekEntry(bomb, 1<<28, 1), skel), ErrLimit},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var err error
			taken := allocated(func() { _, _, err = DecodeSegment(tt.p, 1<<20) })
			if !errors.Is(err, tt.want) || !isOurs(err) {
				t.Errorf("%v, want %v", err, tt.want)
			}
			if taken > 64<<10+decoderMemory {
				t.Errorf("%d bytes allocated", taken)
			}
		})
	}
	for _, tt := range []struct {
		tail string
		size int64
	}{{"", 0}, {"", 10}, {"abc", 2}, {strings.Repeat("x", 20), 20}, {strings.Repeat("x", 100), 100}} {
		if _, need, err := DecodeSegmentIndex([]byte(tt.tail), tt.size); !errors.Is(err, ErrFormat) || need != 0 {
			t.Errorf("tail of %d in %d: need %d, %v", len(tt.tail), tt.size, need, err)
		}
	}
}

// A changed footer or head with a correct checksum.
func TestSegmentFooter(t *testing.T) {
	_, whole := smallSegment(t)
	size := int64(len(whole))
	_, need, err := DecodeSegmentIndex(whole[size-segmentFooter:], size)
	if err != nil {
		t.Fatal(err)
	}
	start := int(size - need)
	tests := []struct {
		name string
		at   int
		want error
	}{
		{"newer format", len(whole) - segmentFooter, ErrVersion},
		{"reserved byte", len(whole) - segmentFooter + 2, ErrFormat},
		{"magic of the skippable frame", start, ErrFormat},
		{"size of the skippable frame", start + 4, ErrFormat},
	}
	for _, tt := range tests {
		p := bytes.Clone(whole)
		p[tt.at] += 2
		binary.LittleEndian.PutUint32(p[len(p)-12:], CRC(p[start:len(p)-12]))
		if _, _, err := DecodeSegment(p, 1<<20); !errors.Is(err, tt.want) || !isOurs(err) {
			t.Errorf("%s: %v, want %v", tt.name, err, tt.want)
		}
	}
}
