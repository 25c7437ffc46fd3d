package codec_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/coppice-go/coppice/codec"
)

// sealed returns a small sealed segment: a header line, and two entries from ordinal 10 on.
func sealed() []byte {
	lines := []string{
		`{"type":"session","version":3,"id":"s1"}`,
		`{"type":"message","id":"a","parentId":null,"message":{"role":"user","content":"Why is the sky blue?"}}`,
		`{"type":"message","id":"b","parentId":"a","message":{"role":"assistant","content":"Rayleigh scattering."}}`,
	}
	p, err := codec.EncodeSegment(codec.SegmentSpec{
		Raw: []byte(strings.Join(lines, "\n") + "\n"), Prelude: 1, First: 10, FirstSeq: 4,
		Rows: []codec.Row{
			{ID: "a", Parent: codec.NoParent, Type: "message", Role: "user", Size: uint32(len(lines[1])), Preview: "Why is the sky blue?"},
			{ID: "b", Parent: 10, Type: "message", Role: "assistant", Size: uint32(len(lines[2])), Preview: "Rayleigh scattering."},
		},
	})
	if err != nil {
		panic(err)
	}
	return p
}

// A sealed segment is read like an object in a store: its index from the end, then only the frame of an entry.
func ExampleDecodeSegmentIndex() {
	object := sealed()
	size := int64(len(object))

	// The first read guesses; if it is too short, need is the required length.
	idx, need, err := codec.DecodeSegmentIndex(object[size-16:], size)
	if idx == nil && err == nil {
		idx, _, err = codec.DecodeSegmentIndex(object[size-need:], size)
	}
	if err != nil {
		fmt.Println(err)
		return
	}

	frame := idx.Locate(11)
	off, n := idx.FrameRange(frame)
	raw, firstLine, err := idx.DecodeFrame(frame, object[off:off+n])
	if err != nil {
		fmt.Println(err)
		return
	}
	line := 11 - int(idx.First) + idx.Prelude // its number in the segment
	fmt.Printf("frame %d of %d, %v\n", frame, idx.Frames(), idx.FrameRaw(frame) == int64(len(raw)))
	fmt.Printf("%s\n", bytes.Split(raw, []byte("\n"))[line-firstLine])
	// Output:
	// frame 0 of 1, true
	// {"type":"message","id":"b","parentId":"a","message":{"role":"assistant","content":"Rayleigh scattering."}}
}

// Complete lines are sealed: zstdcat prints exactly the lines, and the end of the object indexes them.
func ExampleEncodeSegment() {
	line := `{"type":"message","id":"a","parentId":null,"message":{"role":"user","content":"Why is the sky blue?"}}`
	p, err := codec.EncodeSegment(codec.SegmentSpec{
		Raw: []byte(line + "\n"), First: 10, FirstSeq: 4,
		Rows: []codec.Row{{ID: "a", Parent: codec.NoParent, Type: "message", Role: "user", Size: uint32(len(line))}},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	raw, _, err := codec.DecodeSegment(p, 1<<20)
	fmt.Println(string(raw) == line+"\n", err)
	// Output:
	// true <nil>
}

// A whole segment is decoded at once to export or verify it. Every flipped bit is an error.
func ExampleDecodeSegment() {
	object := sealed()
	raw, idx, err := codec.DecodeSegment(object, 1<<20)
	fmt.Println(bytes.Count(raw, []byte("\n")), "lines,", idx.Count, "entries,", err)

	object[len(object)/2] ^= 1
	_, _, err = codec.DecodeSegment(object, 1<<20)
	fmt.Println("damaged:", errors.Is(err, codec.ErrChecksum) || errors.Is(err, codec.ErrFormat))
	// Output:
	// 3 lines, 2 entries, <nil>
	// damaged: true
}

// A skeleton has what a tree of the entries shows, without their lines.
func ExampleSkeleton() {
	_, idx, err := codec.DecodeSegment(sealed(), 1<<20)
	if err != nil {
		fmt.Println(err)
		return
	}
	sk, err := idx.Skeleton()
	if err != nil {
		fmt.Println(err)
		return
	}
	previews := sk.Previews()
	for i := range sk.Len() {
		typ, role := sk.Kind(i)
		fmt.Println(sk.First()+uint64(i), sk.ID(i), sk.Parent(i), typ, role, previews.At(i))
	}
	fmt.Println(sk.Kinds(), "kinds;", sk.Row(1).Role)
	// Output:
	// 10 a -1 message user Why is the sky blue?
	// 11 b 10 message assistant Rayleigh scattering.
	// 2 kinds; assistant
}

// Scans over many rows compare the index of a kind and the packed form of an id: nothing is allocated for a row.
func ExampleSkeleton_AppendPackedID() {
	p, err := codec.EncodeSkeleton(0, []codec.Row{
		{ID: "8a3f01bc", Parent: codec.NoParent, Type: "message", Role: "user", Flags: codec.FlagText | codec.FlagVisible},
		{ID: "8a3f01bd", Parent: 0, Type: "message", Role: "assistant", Flags: codec.FlagText | codec.FlagVisible},
		{ID: "8a3f01be", Parent: 1, Type: "message", Role: "user", Flags: codec.FlagVisible},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	sk, err := codec.DecodeSkeleton(p)
	if err != nil {
		fmt.Println(err)
		return
	}

	wanted := codec.Row{ID: "8a3f01be"}.AppendPackedID(nil)
	var id, packed []byte
	for i := range sk.Len() {
		_, role := sk.KindAt(sk.KindIndex(i))
		packed = sk.AppendPackedID(packed[:0], i)
		if bytes.Equal(packed, wanted) {
			id = sk.AppendID(id[:0], i) // the match is confirmed by the id itself
			fmt.Printf("%s is row %d, role %s, with text: %v\n", id, i, role, sk.Flags(i)&codec.FlagText != 0)
		}
	}
	// Output:
	// 8a3f01be is row 2, role user, with text: false
}

// An index object holds the references of many segments and their skeletons, so that a tree needs few reads.
func ExampleDecodeIndex() {
	object := sealed()
	_, idx, err := codec.DecodeSegment(object, 1<<20)
	if err != nil {
		fmt.Println(err)
		return
	}
	ref := codec.Ref{
		First: idx.First, Count: uint32(idx.Count), FirstSeq: idx.FirstSeq, RawBytes: idx.RawBytes,
		Epoch: 1, Rnd: "0123456789abcdef",
	}
	ref.Seal(object)
	p, err := codec.EncodeIndex([]codec.Ref{ref}, [][]byte{idx.SkeletonBytes()})
	if err != nil {
		fmt.Println(err)
		return
	}

	refs, skeletons, err := codec.DecodeIndex(p)
	if err != nil {
		fmt.Println(err)
		return
	}
	sk, err := codec.DecodeSkeleton(skeletons[0])
	fmt.Println(refs[0].First, refs[0].Count, sk.ID(1), err)
	fmt.Println("the segment is the one:", refs[0].Verify(object) == nil)
	// Output:
	// 10 2 b <nil>
	// the segment is the one: true
}

// A container holds a summary that listings read alone, and a body.
func ExampleDecodeContainer() {
	type summary struct {
		Title string `msgpack:"title"`
	}
	s, err := codec.Marshal(summary{Title: "Sky"})
	if err != nil {
		fmt.Println(err)
		return
	}
	p, err := codec.EncodeContainer(codec.KindSnapshot, s, []byte(`{"state":1}`), codec.Default)
	if err != nil {
		fmt.Println(err)
		return
	}

	var got summary
	head, err := codec.DecodeSummary(p[:min(len(p), 4096)], codec.KindSnapshot)
	if err == nil {
		err = codec.Unmarshal(head, &got)
	}
	fmt.Println(got.Title, err)

	_, body, err := codec.DecodeContainer(p, codec.KindSnapshot, 1<<20)
	fmt.Printf("%s %v\n", body, err)
	_, _, err = codec.DecodeContainer(p, codec.KindCheckpoint, 1<<20)
	fmt.Println("as another kind:", errors.Is(err, codec.ErrFormat))
	// Output:
	// Sky <nil>
	// {"state":1} <nil>
	// as another kind: true
}

// A body of several frames is compressed in parts; unchanged parts are kept.
func ExampleKind_Container() {
	first := codec.Compress(nil, []byte("kept from the time before; "), codec.Default)
	frames := codec.Compress(first, []byte("new"), codec.Fast)
	p, err := codec.KindCheckpoint.Container(nil, frames)
	if err != nil {
		fmt.Println(err)
		return
	}
	_, body, err := codec.DecodeContainer(p, codec.KindCheckpoint, 100)
	fmt.Printf("%s %v\n", body, err)
	_, _, err = codec.DecodeContainer(p, codec.KindCheckpoint, 10)
	fmt.Println("bounded:", errors.Is(err, codec.ErrLimit))
	// Output:
	// kept from the time before; new <nil>
	// bounded: true
}

// Declared sizes are checked against the caller's limit before memory is taken.
func ExampleDecompress() {
	frame := codec.Compress(nil, []byte(strings.Repeat("a line\n", 3)), codec.Default)
	text, err := codec.Decompress(nil, frame, 1<<10)
	fmt.Printf("%q %v\n", text, err)
	_, err = codec.Decompress(nil, frame, 10)
	fmt.Println(errors.Is(err, codec.ErrLimit))

	if err := codec.Unpack(os.Stdout, frame, 1<<10); err != nil { // piece by piece, for example into a file
		fmt.Println(err)
	}
	// Output:
	// "a line\na line\na line\n" <nil>
	// true
	// a line
	// a line
	// a line
}

func ExampleCRC() {
	fmt.Printf("%08x\n", codec.CRC([]byte("1234"), []byte("56789")))
	fmt.Println(codec.CRC([]byte("123456789")) == codec.CRC([]byte("1234"), []byte("56789")))
	// Output:
	// e3069283
	// true
}

// A run of the id index lists the lines of an id, or shows that there are none. Runs are merged as a session grows.
func ExampleIDs() {
	first, err := codec.NewIDs(0, []codec.IDRow{{Hash: codec.HashID("a"), Ord: 0}, {Hash: codec.HashID("b"), Ord: 1}})
	if err != nil {
		fmt.Println(err)
		return
	}
	next, err := codec.NewIDs(first.End(), []codec.IDRow{{Hash: codec.HashID("c"), Ord: 2}})
	if err != nil {
		fmt.Println(err)
		return
	}
	run, err := codec.MergeIDs(first, next)
	if err != nil {
		fmt.Println(err)
		return
	}
	object, err := run.Encode()
	if err != nil {
		fmt.Println(err)
		return
	}

	read, err := codec.DecodeIDs(object)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("lines from", read.First(), "to", read.End()-1)
	for _, row := range read.Find(codec.HashID("c")) {
		fmt.Println("c is line", row.Ord)
	}
	fmt.Println("d:", len(read.Find(codec.HashID("d"))))
	// Output:
	// lines from 0 to 2
	// c is line 2
	// d: 0
}
