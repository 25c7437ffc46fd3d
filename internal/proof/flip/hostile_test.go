package flip

import (
	"bytes"
	"encoding/binary"
	"maps"
	"runtime"
	"slices"
	"testing"

	"github.com/coppice-go/coppice/codec"
	"github.com/coppice-go/coppice/internal/proof"
)

// lies yields objects in which a number is wrong, small and huge, at every offset of a header or a footer: as they are,
// and with recomputed checksums, so that no checksum protects the number.
func lies(s *stored, key string, step int, yield func(q []byte)) {
	const ends = 72
	p := s.objects[key]
	for at := range p {
		if at >= ends && at < len(p)-ends || at%step != 0 {
			continue
		}
		for _, width := range []int{1, 2, 4, 8} {
			if at+width > len(p) {
				continue
			}
			for _, fill := range []byte{0x00, 0x7f, 0xff} {
				q := bytes.Clone(p)
				for i := range width {
					q[at+i] = 0xff
				}
				q[at+width-1] = fill // the highest byte of a little-endian number; the end of a varint
				yield(q)
				if signed := sign(s, key, q); signed != nil {
					yield(signed)
				}
			}
		}
	}
}

// sign recomputes the checksums of damaged bytes, as an attacker would.
func sign(s *stored, key string, q []byte) []byte {
	q = bytes.Clone(q)
	trailer := func(from, at int) { binary.LittleEndian.PutUint32(q[at:], codec.CRC(q[from:at])) }
	switch kindOf(s, key) {
	case "checkpoint", "tombstone", "snapshot", "index", "run of ids":
		const head, sumAt = 32, 28
		if n := int(binary.LittleEndian.Uint32(q[16:])); n <= len(q)-head-4 && n >= 0 {
			binary.LittleEndian.PutUint32(q[sumAt:], codec.CRC(q[:sumAt], q[head:head+n]))
		}
		trailer(0, len(q)-4)
		return q
	case "sealed segment":
		const footer, sumBack = 20, 12 // version, reserved, length, checksum, magic
		n := int(binary.LittleEndian.Uint32(q[len(q)-footer+4:]))
		if n < footer || n > len(q) {
			return nil
		}
		trailer(len(q)-n, len(q)-sumBack)
		return q
	}
	return nil
}

// TestLies: a wrong number is an error, and costs no more memory than the length of the object justifies (I15).
func TestLies(t *testing.T) {
	for _, s := range built(t) {
		most := map[string]uint64{}
		for _, key := range slices.Sorted(maps.Keys(s.objects)) {
			kind := kindOf(s, key)
			if _, done := most[kind]; done {
				continue
			}
			decode := decoderOf(t, s, key)
			decode(s.objects[key]) // fills the pools
			if signed := sign(s, key, s.objects[key]); signed != nil && !bytes.Equal(signed, s.objects[key]) {
				t.Errorf("%s %s: the checksums are somewhere else", s.name, kind)
			}
			var before, after runtime.MemStats
			lies(s, key, proof.Pick(t, 9, 1, 1), func(q []byte) {
				runtime.ReadMemStats(&before)
				decode(q)
				runtime.ReadMemStats(&after)
				most[kind] = max(most[kind], after.TotalAlloc-before.TotalAlloc)
			})
			if limit := uint64(2<<20 + 64*len(s.objects[key])); most[kind] > limit {
				t.Errorf("%s %s: decoding %d bytes takes %d, more than %d", s.name, kind, len(s.objects[key]), most[kind], limit)
			}
			t.Logf("%s %-16s %6d bytes: at most %d allocated", s.name, kind, len(s.objects[key]), most[kind])
		}
	}
}
