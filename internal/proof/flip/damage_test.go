package flip

import (
	"bytes"
	"fmt"
	"iter"
)

// sector is the smallest unit that a disk writes.
const sector = 512

// damage is one way to damage an object; it can be repeated on the same object.
type damage struct {
	kind string
	a, b int
	peer string // key of the object that contributes the rest
}

func (d damage) String() string { return fmt.Sprintf("%s %d %d %s", d.kind, d.a, d.b, d.peer) }

// flips yields the object with each of its bits flipped in turn. The bytes are valid until the next step.
func flips(p []byte) iter.Seq2[damage, []byte] {
	return func(yield func(damage, []byte) bool) {
		q := bytes.Clone(p)
		for bit := range 8 * len(p) {
			q[bit/8] ^= 1 << (bit % 8)
			if !yield(damage{kind: "bit", a: bit}, q) {
				return
			}
			q[bit/8] ^= 1 << (bit % 8)
		}
	}
}

// cuts yields every prefix of the object.
func cuts(p []byte) iter.Seq2[damage, []byte] {
	return func(yield func(damage, []byte) bool) {
		for n := range len(p) {
			if !yield(damage{kind: "cut", a: n}, p[:n:n]) {
				return
			}
		}
	}
}

// sectors yields the object with each sector zeroed, each pair swapped, and each copied over each other.
func sectors(p []byte) iter.Seq2[damage, []byte] {
	n := (len(p) + sector - 1) / sector
	at := func(q []byte, i int) []byte { return q[i*sector : min(len(q), (i+1)*sector)] }
	return func(yield func(damage, []byte) bool) {
		try := func(kind string, i, j int, change func(q []byte)) bool {
			q := bytes.Clone(p)
			change(q)
			return bytes.Equal(p, q) || yield(damage{kind: kind, a: i, b: j}, q)
		}
		for i := range n {
			if !try("zero sector", i, 0, func(q []byte) { clear(at(q, i)) }) {
				return
			}
			for j := range n {
				if i < j && !try("swap sectors", i, j, func(q []byte) {
					copy(at(q, i), at(p, j))
					copy(at(q, j), at(p, i))
				}) {
					return
				}
				if i != j && !try("copy sector over", i, j, func(q []byte) { copy(at(q, j), at(p, i)) }) {
					return
				}
			}
		}
	}
}

// splices yields prefixes of the object followed by bytes of another object of its kind: at every length, from the same
// offset of the other, and with its end at the end.
func splices(p []byte, peer string, other []byte) iter.Seq2[damage, []byte] {
	return func(yield func(damage, []byte) bool) {
		for n := 1; n < min(len(p), len(other)); n++ {
			for kind, from := range [2]int{n, len(other) - min(len(other)-1, len(p)-n)} {
				q := append(bytes.Clone(p[:n]), other[from:]...)
				if bytes.Equal(q, p) || bytes.Equal(q, other) {
					continue
				}
				if !yield(damage{[2]string{"splice", "splice to the end"}[kind], n, from, peer}, q) {
					return
				}
			}
		}
	}
}

// peers returns other contents of the object's kind: other objects, and earlier contents.
func peers(s *stored, key string) map[string][]byte {
	kind := kindOf(s, key)
	out := map[string][]byte{}
	for k, p := range s.objects {
		if k != key && (kindOf(s, k) == kind || isLog(s, k) && isLog(s, key)) {
			out[k] = p
		}
	}
	if p, ok := s.older[key]; ok {
		out["older "+key] = p
	}
	return out
}

func isLog(s *stored, key string) bool {
	kind := kindOf(s, key)
	return kind == "active log" || kind == "plain segment"
}

// coarse yields every damage except bit flips.
func coarse(s *stored, key string) iter.Seq2[damage, []byte] {
	p := s.objects[key]
	return func(yield func(damage, []byte) bool) {
		for _, seq := range []iter.Seq2[damage, []byte]{cuts(p), sectors(p)} {
			for d, q := range seq {
				if !yield(d, q) {
					return
				}
			}
		}
		for peer, other := range peers(s, key) {
			for d, q := range splices(p, peer, other) {
				if !yield(d, q) {
					return
				}
			}
		}
	}
}
