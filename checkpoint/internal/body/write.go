package body

import (
	"sync"

	"github.com/coppice-go/coppice/checkpoint/internal/canon"
)

// maxElements is the limit of codec.Unmarshal for one value.
const maxElements = 1 << 20

// Parts are the lists of a body.
type Parts struct {
	Lineage   []Commit
	Ords      []uint64 // of the window
	Amended   []uint64 // of the window's entries that are amended
	AmendedBy []string
	PoolOrds  []uint64 // ascending
	Pool      [][]byte
	BlobSums  []string // ascending
	Blobs     [][]byte
	Tail      [][]byte // nil = the pool has the line
}

// Packed is a body's frames. They are valid until Done.
type Packed struct {
	Frames []byte
	Bytes  int   // of the body before compression
	Memo   *Memo // what the next body can use

	room *room
}

// room is the buffers of one body, reused for the next.
type room struct{ loose, out, lineage []byte }

var idle = sync.Pool{New: func() any { return &room{} }}

// Done returns the buffers of the frames for reuse.
func (p *Packed) Done() {
	if p.room != nil {
		idle.Put(p.room)
	}
	*p = Packed{}
}

// Pack writes a body. memo is that of the previous body; nil = the body is one frame, and nothing is kept.
func Pack(b *Body, parts *Parts, memo *Memo) (Packed, error) {
	r := idle.Get().(*room)
	var lineage [][]byte
	lineage, r.lineage = encodeLineage(r.lineage, parts.Lineage)
	p := packer{Body: b, Parts: parts, lineage: lineage, out: NewPacker(memo, r.loose, r.out)}
	p.write()
	p.w.Begin(p.out.Loose)
	p.write()
	p.out.Loose = p.w.B
	packed := Packed{room: r}
	packed.Frames, packed.Memo = p.out.Frames()
	packed.Bytes = p.out.Bytes
	r.loose, r.out = p.out.Loose, packed.Frames
	return packed, canon.AtMost("numbers in a checkpoint", p.w.Elements, maxElements)
}

type packer struct {
	*Body
	*Parts
	lineage [][]byte // its header, and each commit
	w       Writer
	out     *Packer
}

// lines writes bytes that are the lines of a list, end to end.
func (p *packer) lines(list int, keys []uint64, lines [][]byte) {
	p.out.Loose = p.w.B
	p.out.Lines(list, keys, lines)
	p.w.B = p.out.Loose
}

// write writes the fields of Body, or makes the writer count them.
func (p *packer) write() {
	w := &p.w
	w.OptText("entry", p.Entry)
	w.Int("ord", p.HeadOrd)
	w.Bytes("doc", p.Document)
	w.OptBytes("header", p.Header)
	if w.Open("lineage", size(p.lineage)) {
		p.lines(Lineage, p.seqs(), p.lineage)
	}
	w.Bytes("branches", p.Branches)
	w.OptByteLists("levels", p.Levels)
	w.OptBytes("ids", p.IDs)
	w.Bytes("plain", p.Plain)
	w.Uint("key", p.Key)
	w.Uint("prev", uint64(p.Prev))
	w.OptTrue("cas", p.CAS)
	w.OptText("original", p.Original)
	w.OptUint("claimed", p.Claimed)
	w.Int("sinceKey", int64(p.SinceKey))
	w.OptTrue("opening", p.Opening)
	w.Int("lastLine", p.LastLine)
	w.OptBytes("keys", p.Keys)
	w.OptBytes("meta", p.Meta)
	w.OptBytes("source", p.Source)
	w.OptUint("since", p.Since)
	w.OptUint("erased", p.Erased)
	w.OptText("title", p.Title)
	w.OptText("cwd", p.Cwd)

	w.OptText("profile", p.Profile)
	w.Int("window", int64(p.MaxBytes))
	w.Texts("base", p.Base[:]...)
	w.OptInt("omitted", int64(p.Omitted))
	w.OptDifferences("ords", p.Parts.Ords)
	w.OptTrue("known", p.Known)
	w.OptDifferences("amended", p.Parts.Amended)
	w.OptTexts("amendedBy", p.Parts.AmendedBy)

	w.OptDifferences("poolOrds", p.Parts.PoolOrds)
	w.OptSizes("poolSizes", p.Parts.Pool)
	if w.Open("pool", size(p.Parts.Pool)) {
		p.lines(Pool, p.Parts.PoolOrds, p.Parts.Pool)
	}
	w.OptTexts("blobSums", p.Parts.BlobSums)
	w.OptSizes("blobSizes", p.Parts.Blobs)
	if w.OptOpen("blobs", size(p.Parts.Blobs)) {
		p.lines(Blobs, dense(0, len(p.Parts.Blobs)), p.Parts.Blobs)
	}
	w.Uint("tailFirst", p.TailFirst)
	w.Uint("tailSeq", p.TailSeq)
	w.OptSizes("tailSizes", p.Parts.Tail)
	if w.OptOpen("tail", size(p.Parts.Tail)) {
		p.lines(Tail, dense(p.TailFirst, len(p.Parts.Tail)), p.Parts.Tail)
	}
}

func size(lines [][]byte) int {
	n := 0
	for _, line := range lines {
		n += len(line)
	}
	return n
}

// dense returns n consecutive keys from first.
func dense(first uint64, n int) []uint64 {
	keys := make([]uint64, n)
	for i := range keys {
		keys[i] = first + uint64(i)
	}
	return keys
}

// seqs returns the keys of the encoded lineage: that of its header, then those of its commits.
func (p *packer) seqs() []uint64 {
	keys := make([]uint64, 1, len(p.lineage))
	keys[0] = 1<<64 - 1
	for i := range p.Parts.Lineage {
		keys = append(keys, p.Parts.Lineage[i].Seq)
	}
	return keys
}

// encodeLineage writes a list of commits to b: the lines are its header, and each commit.
func encodeLineage(b []byte, commits []Commit) (lines [][]byte, room []byte) {
	ends := make([]int, 1, len(commits)+1)
	b = AppendArray(b[:0], len(commits))
	ends[0] = len(b)
	for i := range commits {
		var w Writer
		commits[i].write(&w)
		w.Begin(b)
		commits[i].write(&w)
		b = w.B
		ends = append(ends, len(b))
	}
	lines = make([][]byte, len(ends))
	start := 0
	for i, end := range ends {
		lines[i], start = b[start:end:end], end
	}
	return lines, b
}

// write writes the fields of c, or makes w count them.
func (c *Commit) write(w *Writer) {
	w.Uint("seq", c.Seq)
	w.Uint("epoch", c.Epoch)
	w.Text("id", c.ID)
	w.OptText("parent", c.Parent)
	w.OptText("entry", c.Entry)
	w.Int("ord", c.HeadOrd)
	w.OptText("branch", c.Branch)
	w.Text("reason", c.Reason)
	w.OptText("writer", c.Writer)
	w.OptText("snapshot", c.Snapshot)
	w.OptText("key", c.Key)
	w.OptText("kept", c.Kept)
	w.Int("time", c.Time)
	w.Int("entries", int64(c.Entries))
	w.OptTrue("keyframe", c.Keyframe)
	w.OptTrue("stateLost", c.StateLost)
}
