package codec

import (
	"bytes"
	"testing"
)

// seeds adds each object whole, halved, with a byte changed, and some bytes of no meaning.
func seeds(f *testing.F) {
	f.Helper()
	for _, o := range objects(f) {
		f.Add(o.p)
		f.Add(o.p[:len(o.p)/2])
		p := bytes.Clone(o.p)
		p[len(p)/3] ^= 0x40
		f.Add(p)
	}
	p, _ := Marshal(sampleValue())
	for _, more := range [][]byte{p, Compress(nil, []byte("text"), Default), frameHead(false, 0xff, 1<<63), []byte("\xdd\xff\xff\xff\xff\x00"), nil} {
		f.Add(more)
	}
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil && !isOurs(err) {
		t.Fatalf("an error that is not one of ours: %v", err)
	}
}

func FuzzDecompress(f *testing.F) {
	seeds(f)
	f.Fuzz(func(t *testing.T, p []byte) {
		out, err := Decompress(nil, p, 1<<20)
		if check(t, err); len(out) > 1<<20 {
			t.Fatalf("%d bytes over the limit", len(out))
		}
	})
}

func FuzzUnmarshal(f *testing.F) {
	seeds(f)
	f.Fuzz(func(t *testing.T, p []byte) {
		var v any
		check(t, Unmarshal(p, &v))
		var s sample
		check(t, Unmarshal(p, &s))
		var r []Ref
		check(t, Unmarshal(p, &r))
	})
}

// The checksums are recomputed, so that the fuzzer reaches the code after their check.

func FuzzDecodeContainer(f *testing.F) {
	seeds(f)
	f.Fuzz(func(t *testing.T, p []byte) {
		_, _, err := DecodeContainer(p, KindCheckpoint, 1<<20)
		check(t, err)
		_, err = DecodeSummary(p, KindCheckpoint)
		check(t, err)
		if len(p) >= containerHeader+4 {
			_, _, err = DecodeContainer(reseal(bytes.Clone(p)), KindCheckpoint, 1<<20)
			check(t, err)
		}
	})
}

func FuzzDecodeSkeleton(f *testing.F) {
	seeds(f)
	f.Fuzz(func(t *testing.T, p []byte) {
		_, err := DecodeSkeleton(p)
		check(t, err)
		if len(p) < 4 {
			return
		}
		s, err := DecodeSkeleton(sealSkeleton(bytes.Clone(p[:len(p)-4])))
		if check(t, err); err != nil {
			return
		}
		check(t, s.Verify())
		rows := make([]Row, s.Len())
		for i := range rows {
			rows[i] = s.Row(i)
			if rows[i].Parent < NoParent {
				t.Fatalf("row %d has parent %d", i, rows[i].Parent)
			}
			s.AppendPackedID(nil, i)
		}
	})
}

func FuzzDecodeSegment(f *testing.F) {
	seeds(f)
	f.Fuzz(func(t *testing.T, p []byte) {
		_, _, err := DecodeSegment(p, 1<<20)
		check(t, err)
		_, _, err = DecodeSegmentIndex(p, int64(len(p))+1000)
		check(t, err)
		// p as the content of an index with correct checksums
		frame := Compress(nil, []byte("a\n"), Default)
		whole := rebuild(frame, [6]uint64{3, 1, 0, 0, 1, uint64(len(p))}, seekEntry(frame, 2, 1), p)
		_, _, err = DecodeSegment(whole, 1<<20)
		check(t, err)
		whole = rebuild(p, [6]uint64{3, 1, 0, 0, 1, 0}, seekEntry(p, 2, 1), nil)
		_, _, err = DecodeSegment(whole, 1<<20)
		check(t, err)
	})
}

func FuzzDecodeIndex(f *testing.F) {
	seeds(f)
	f.Fuzz(func(t *testing.T, p []byte) {
		_, _, err := DecodeIndex(p)
		check(t, err)
		whole, err := packContainer(KindIndex, nil, appendStoredForTest(p))
		if err != nil {
			t.Fatal(err)
		}
		_, _, err = DecodeIndex(whole)
		check(t, err)
	})
}

// appendStoredForTest returns p as a frame, without the time for compression.
func appendStoredForTest(p []byte) []byte {
	out := frameHead(false, 0x38, uint64(len(p)))
	for {
		n := min(len(p), 128<<10)
		out = append(out, block(n == len(p), 0, uint32(n), p[:n]...)...)
		if p = p[n:]; len(p) == 0 {
			return out
		}
	}
}

// FuzzSegment seals arbitrary lines and expects them back.
func FuzzSegment(f *testing.F) {
	f.Add([]byte("one\ntwo\n"), 1)
	f.Add([]byte("\n\n\n"), 0)
	f.Fuzz(func(t *testing.T, lines []byte, prelude int) {
		raw := append(bytes.Clone(lines), '\n')
		n := bytes.Count(raw, []byte{'\n'})
		prelude = min(max(prelude, 0), n)
		rows := make([]Row, n-prelude)
		for i := range rows {
			rows[i] = Row{ID: string(lines[:min(i, len(lines))]), Parent: int64(i) - 1, Type: "t"}
		}
		p, err := EncodeSegment(SegmentSpec{Raw: raw, Prelude: prelude, Rows: rows})
		if err != nil {
			t.Fatal(err)
		}
		got, idx, err := DecodeSegment(p, int64(len(raw)))
		if err != nil || !bytes.Equal(got, raw) || idx.Count != len(rows) {
			t.Fatalf("%d bytes back of %d: %v", len(got), len(raw), err)
		}
	})
}
