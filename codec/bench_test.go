package codec

import (
	"runtime"
	"testing"
)

// BenchmarkSkeletons decodes the skeletons of 1,000,000 entries, in segments of 256, and reads the
// columns that a tree is built from.
func BenchmarkSkeletons(b *testing.B) {
	const per, segments = 256, 3906
	var packed [][]byte
	total := 0
	for i := range 16 {
		_, rows := session(uint64(i), uint64(i*per), per, 600)
		p, err := EncodeSkeleton(0, rootless(rows, i*per))
		if err != nil {
			b.Fatal(err)
		}
		packed = append(packed, p)
		total += len(p)
	}
	var sum int64
	b.ReportAllocs()
	for b.Loop() {
		for i := range segments {
			s, err := DecodeSkeleton(packed[i%len(packed)])
			if err != nil {
				b.Fatal(err)
			}
			var buf [64]byte
			for row := range s.Len() {
				sum += s.Parent(row) + int64(s.KindIndex(row)) + int64(s.Flags(row)) + int64(len(s.AppendPackedID(buf[:0], row)))
			}
		}
	}
	runtime.KeepAlive(sum)
	b.ReportMetric(float64(total)/(16*per), "B/row-stored")
	b.ReportMetric(float64(b.Elapsed().Milliseconds())/float64(b.N), "ms/1M")
}

func rootless(rows []Row, first int) []Row {
	for i := range rows {
		rows[i].Parent -= int64(first)
	}
	return rows
}

// BenchmarkSkeletonHeap reports what a decoded skeleton holds for a row, its bytes included.
func BenchmarkSkeletonHeap(b *testing.B) {
	const per, segments = 256, 400
	_, rows := session(1, 0, per, 600)
	p, err := EncodeSkeleton(0, rows)
	if err != nil {
		b.Fatal(err)
	}
	var perRow float64
	for b.Loop() {
		var before, after runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&before)
		all := make([]*Skeleton, segments)
		for i := range all {
			all[i], _ = DecodeSkeleton(append([]byte(nil), p...))
		}
		runtime.GC()
		runtime.ReadMemStats(&after)
		perRow = float64(after.HeapAlloc-before.HeapAlloc) / (segments * per)
		runtime.KeepAlive(all)
	}
	b.ReportMetric(perRow, "B/row")
}

func BenchmarkPreviews(b *testing.B) {
	_, rows := session(1, 0, 256, 600)
	p, err := EncodeSkeleton(0, rows)
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		s, _ := DecodeSkeleton(p)
		for i := range s.Len() {
			_ = s.Preview(i)
		}
	}
}

func BenchmarkEncodeSegment(b *testing.B) {
	raw, rows := session(1, 0, 256, 1000)
	b.SetBytes(int64(len(raw)))
	b.ReportAllocs()
	var p []byte
	for b.Loop() {
		p, _ = EncodeSegment(SegmentSpec{Raw: raw, Rows: rows})
	}
	b.ReportMetric(float64(len(p))/float64(len(raw)), "ratio")
}

func BenchmarkDecodeSegment(b *testing.B) {
	raw, rows := session(1, 0, 256, 1000)
	p, err := EncodeSegment(SegmentSpec{Raw: raw, Rows: rows})
	if err != nil {
		b.Fatal(err)
	}
	b.SetBytes(int64(len(raw)))
	for b.Loop() {
		if _, _, err := DecodeSegment(p, 1<<24); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkDecodeIndex(b *testing.B) {
	var refs []Ref
	var skeletons [][]byte
	size := 0
	for i := range 64 {
		_, rows := session(uint64(i), uint64(i)*256, 256, 600)
		p, err := EncodeSkeleton(uint64(i)*256, rows)
		if err != nil {
			b.Fatal(err)
		}
		refs, skeletons = append(refs, Ref{First: uint64(i) * 256, Count: 256, Rnd: "0123456789abcdef"}), append(skeletons, p)
		size += len(p)
	}
	p, err := EncodeIndex(refs, skeletons)
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		if _, _, err := DecodeIndex(p); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(len(p))/float64(size), "ratio")
}

func BenchmarkEncodeSmallSkeleton(b *testing.B) {
	_, rows := session(1, 0, 10, 600)
	b.ReportAllocs()
	for b.Loop() {
		_, _ = EncodeSkeleton(0, rows)
	}
}
