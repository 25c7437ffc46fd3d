package codec

import (
	"bytes"
	"testing"

	"github.com/coppice-go/coppice/internal/testutil"
)

// object is one small object of each kind, and the decoder that has to detect any damage to it.
type object struct {
	name   string
	p      []byte
	decode func([]byte) error
}

func objects(t testing.TB) []object {
	t.Helper()
	_, segment := smallSegment(t)
	_, _, index := smallIndex(t)
	skeleton, err := EncodeSkeleton(100, mixedRows())
	if err != nil {
		t.Fatal(err)
	}
	return []object{
		{"container", smallContainer(t), func(p []byte) error { _, _, err := DecodeContainer(p, KindCheckpoint, 1<<20); return err }},
		{"skeleton", skeleton, func(p []byte) error { _, err := DecodeSkeleton(p); return err }},
		{"segment", segment, func(p []byte) error { _, _, err := DecodeSegment(p, 1<<20); return err }},
		{"index", index, func(p []byte) error { _, _, err := DecodeIndex(p); return err }},
		{"ids", encodedIDs(t, mustIDs(t, 7, "a", "b", "commit-c")), func(p []byte) error { _, err := DecodeIDs(p); return err }},
	}
}

// TestEveryBit flips each bit of each object: none may pass, none may panic.
func TestEveryBit(t *testing.T) {
	testutil.SkipLong(t)
	for _, o := range objects(t) {
		if err := o.decode(o.p); err != nil {
			t.Fatalf("%s: %v", o.name, err)
		}
		p := bytes.Clone(o.p)
		for bit := range 8 * len(p) {
			p[bit/8] ^= 1 << (bit % 8)
			if err := o.decode(p); !isOurs(err) {
				t.Fatalf("%s: bit %d of byte %d flipped: %v", o.name, bit%8, bit/8, err)
			}
			p[bit/8] ^= 1 << (bit % 8)
		}
		t.Logf("%s: %d bits, all noticed", o.name, 8*len(p))
	}
}

// TestEveryLength cuts each object at each length, from either end, and lengthens it.
func TestEveryLength(t *testing.T) {
	for _, o := range objects(t) {
		for n := range o.p {
			if err := o.decode(o.p[:n]); !isOurs(err) {
				t.Fatalf("%s cut to %d: %v", o.name, n, err)
			}
			if err := o.decode(o.p[n+1:]); !isOurs(err) {
				t.Fatalf("%s from %d on: %v", o.name, n+1, err)
			}
		}
		for _, more := range []string{"\x00", "\n", "x"} {
			if err := o.decode(append(bytes.Clone(o.p), more...)); !isOurs(err) {
				t.Fatalf("%s and a byte: %v", o.name, err)
			}
			if err := o.decode(append([]byte(more), o.p...)); !isOurs(err) {
				t.Fatalf("a byte and %s: %v", o.name, err)
			}
		}
	}
}

// TestBlocksAndSplices zeroes, repeats and swaps blocks, as disks do, and joins two valid objects.
func TestBlocksAndSplices(t *testing.T) {
	all := objects(t)
	for _, o := range all {
		for _, size := range []int{16, 64, 512} {
			for at := 0; at < len(o.p); at += size {
				end := min(at+size, len(o.p))
				zeroed := bytes.Clone(o.p)
				clear(zeroed[at:end])
				swapped := bytes.Clone(o.p)
				copy(swapped[at:end], o.p)
				for name, p := range map[string][]byte{
					"zeroed": zeroed, "overwritten": swapped,
					"dropped":  append(bytes.Clone(o.p[:at]), o.p[end:]...),
					"repeated": append(bytes.Clone(o.p[:end]), o.p[at:]...),
				} {
					if err := o.decode(p); err == nil && !bytes.Equal(p, o.p) || err != nil && !isOurs(err) {
						t.Fatalf("%s: block of %d at %d %s: %v", o.name, size, at, name, err)
					}
				}
			}
		}
		for _, other := range all {
			for cut := 0; cut < len(o.p); cut += 13 {
				p := append(bytes.Clone(o.p[:cut]), other.p[min(cut, len(other.p)):]...)
				if err := o.decode(p); err == nil && !bytes.Equal(p, o.p) || err != nil && !isOurs(err) {
					t.Fatalf("%s spliced with %s at %d: %v", o.name, other.name, cut, err)
				}
			}
		}
	}
}

// TestFrameDamage flips each bit of each frame that is read alone.
func TestFrameDamage(t *testing.T) {
	_, p := smallSegment(t)
	_, idx, err := DecodeSegment(p, 1<<20)
	if err != nil {
		t.Fatal(err)
	}
	for i := range idx.Frames() {
		off, n := idx.FrameRange(i)
		frame := bytes.Clone(p[off : off+n])
		for bit := range 8 * len(frame) {
			frame[bit/8] ^= 1 << (bit % 8)
			if _, _, err := idx.DecodeFrame(i, frame); !isOurs(err) {
				t.Fatalf("frame %d, bit %d flipped: %v", i, bit, err)
			}
			frame[bit/8] ^= 1 << (bit % 8)
		}
	}
}

// TestSegmentTailDamage flips each bit of an index that is read alone, and decodes every tail with every size.
func TestSegmentTailDamage(t *testing.T) {
	_, p := smallSegment(t)
	size := int64(len(p))
	_, need, err := DecodeSegmentIndex(p[size-20:], size)
	if err != nil {
		t.Fatal(err)
	}
	tail := bytes.Clone(p[size-need:])
	for bit := range 8 * len(tail) {
		tail[bit/8] ^= 1 << (bit % 8)
		// A damaged length may ask for more bytes; those do not verify either.
		_, more, err := DecodeSegmentIndex(tail, size)
		if err == nil && more > 0 {
			damaged := append(bytes.Clone(p[:size-need]), tail...)
			_, more, err = DecodeSegmentIndex(damaged[size-more:], size)
		}
		if !isOurs(err) || more != 0 {
			t.Fatalf("bit %d flipped: need %d, %v", bit, more, err)
		}
		tail[bit/8] ^= 1 << (bit % 8)
	}
	for n := range p {
		idx, more, err := DecodeSegmentIndex(p[size-int64(n):], size)
		if ok := idx != nil; err != nil || ok != (int64(n) >= need) || !ok && (more <= int64(n) || more > size) {
			t.Fatalf("tail of %d: need %d, %v", n, more, err)
		}
		if _, _, err := DecodeSegmentIndex(tail, need+int64(n)); need+int64(n) != size && !isOurs(err) {
			t.Fatalf("size of %d instead of %d: %v", need+int64(n), size, err)
		}
	}
}
