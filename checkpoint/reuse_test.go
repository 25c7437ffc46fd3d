package checkpoint

import (
	"bytes"
	"fmt"
	"iter"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"

	"github.com/coppice-go/coppice/codec"
)

// bodyOf returns the content of the frames of an encoded object.
func bodyOf(t testing.TB, p []byte) []byte {
	t.Helper()
	_, body, err := codec.DecodeContainer(p, kindOf(p), MaxBody)
	if err != nil {
		t.Fatal(err)
	}
	return body
}

// The hand-written encoding equals that of codec.Marshal.
func TestBodyIsMarshalled(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for i := range 200 {
		o := testObject()
		wild(r, o)
		w, err := o.wire()
		if err != nil {
			t.Fatal(err)
		}
		want, err := codec.Marshal(w)
		if err != nil {
			t.Fatal(err)
		}
		if got := bodyOf(t, mustEncode(t, o)); !bytes.Equal(got, want) {
			t.Fatalf("object %d:\n got %x\nwant %x", i, got, want)
		}
	}
}

// wild sets numbers and lengths of o to all sizes.
func wild(r *rand.Rand, o *Object) {
	number := func() int64 { return r.Int64() >> r.IntN(64) }
	text := func() string { return string(bytes.Repeat([]byte{'x'}, r.IntN(1<<r.IntN(9)))) }
	if r.IntN(4) == 0 {
		*o = Object{Summary: Summary{ID: "s"}} // few fields: the shortest header of a map
	}
	o.HeadOrd, o.Key, o.Prev, o.LastLine = -number(), uint64(number()), uint32(number()), number()
	o.Claimed, o.SinceKey, o.Opening, o.CAS = uint64(number()), int(number()), r.IntN(2) == 0, r.IntN(2) == 0
	o.Document, o.Header, o.Original = bytes.Repeat([]byte{'d'}, r.IntN(1<<r.IntN(18))), []byte(text()), text()
	o.Summary.Entry, o.Window.MaxBytes, o.Window.Omitted, o.Window.Known = text(), int(-number()), int(number()), r.IntN(2) == 0
	if o.Pool == nil {
		return
	}
	next := uint64(30)
	for range r.IntN(1 << r.IntN(9)) {
		next += 1 + uint64(number())>>30
		o.Pool[next] = bytes.Repeat([]byte{'l'}, 1+r.IntN(300))
		o.Window.Ords = append(o.Window.Ords, next)
		o.Tail.Lines = append(o.Tail.Lines, []byte(text()+"t"))
	}
	if r.IntN(2) == 0 {
		slices.Sort(o.Window.Ords)
	}
	for i := range o.Lineage {
		c := &o.Lineage[i]
		c.Seq, c.Epoch, c.Branch, c.Writer, c.Entries, c.Kept = uint64(number()), uint64(number()), text()[:0], text(), int(number()), "k"
	}
}

// grown yields a session's objects as it grows: window and tail sometimes lose their oldest lines.
func grown(n int) iter.Seq2[int, *Object] {
	return func(yield func(int, *Object) bool) {
		r := rand.New(rand.NewPCG(3, 4))
		o := testObject()
		o.Segments, o.Plain, o.Pool, o.Window.Ords, o.Tail = SegmentMap{}, nil, map[uint64][]byte{}, nil, TailState{}
		var lines [][]byte
		window, tail := 0, 0
		for i := range n {
			for range 1 + r.IntN(3) {
				lines = append(lines, fmt.Appendf(nil, `{"id":%q,"text":"%x"}`, testID(len(lines)), make([]byte, r.IntN(1500))))
			}
			lines = append(lines, fmt.Appendf(nil, `{"type":"custom","id":%q,"seq":%d}`, testID(len(lines)), i))
			if r.IntN(20) == 0 {
				window += (len(lines) - window) / 2
			}
			if r.IntN(20) == 0 {
				tail = len(lines) - 3
			}
			if at := r.IntN(len(lines)); r.IntN(10) == 0 { // after a reload: other bytes under the same key
				lines[at] = bytes.ToUpper(lines[at])
			}
			next := *o
			next.Summary.Seq, next.Summary.Commit = uint64(i), testID(i)
			next.Document = fmt.Appendf(nil, `{"state":%d}`, i)
			next.Lineage = append(slices.Clone(o.Lineage), Commit{Head: next.Summary.Head, Reason: "turn", Time: testTime, Writer: testID(i)})
			next.Lineage = next.Lineage[max(0, len(next.Lineage)-MaxLineage):]
			next.Pool, next.Window.Ords = map[uint64][]byte{}, nil
			for ord := window; ord < len(lines); ord++ {
				next.Pool[uint64(ord)] = lines[ord]
				next.Window.Ords = append(next.Window.Ords, uint64(ord))
			}
			next.Tail = TailState{First: uint64(tail), FirstSeq: 1, Lines: slices.Clone(lines[tail:])}
			if o = &next; !yield(i, o) {
				return
			}
		}
	}
}

// An object that shares frames with the previous one has the same content as by itself.
func TestReuseHoldsTheSame(t *testing.T) {
	var prev *Object
	shared, frames := 0, map[string]bool{}
	for i, o := range grown(300) {
		alone := bodyOf(t, mustEncode(t, o))
		o.Reuse(prev)
		p := mustEncode(t, o)
		if !bytes.Equal(bodyOf(t, p), alone) {
			t.Fatalf("object %d: another body than by itself", i)
		}
		got, err := DecodeObject(p)
		if err != nil {
			t.Fatalf("object %d: %v", i, err)
		}
		plain := *o
		plain.memo = nil
		if !reflect.DeepEqual(got, &plain) {
			t.Fatalf("object %d:\n got %+v\nwant %+v", i, got, o)
		}
		if again := mustEncode(t, o); i%50 == 0 && !bytes.Equal(bodyOf(t, again), alone) {
			t.Fatalf("object %d: another body the second time", i)
		}
		for _, f := range bytes.SplitAfter(p, []byte{0x28, 0xb5, 0x2f, 0xfd}) {
			if len(f) > 200 && frames[string(f)] {
				shared++
			}
			frames[string(f)] = true
		}
		prev = o
	}
	if shared < 300 {
		t.Errorf("%d frames were used again in 300 objects", shared)
	}
}

// A body of several frames, as one that follows others has it: every later release must read it.
func TestGoldenFrames(t *testing.T) {
	var prev, last *Object
	for _, o := range grown(12) {
		o.Reuse(prev)
		p := mustEncode(t, o)
		prev, last = o, o
		if bytes.Count(p, []byte{0x28, 0xb5, 0x2f, 0xfd}) > 3 {
			plain := *last
			plain.memo = nil
			goldenObject(t, "frames.bin", p, &plain)
			return
		}
	}
	t.Fatal("no body of several frames")
}
