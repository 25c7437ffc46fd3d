package checkpoint

import (
	"errors"
	"fmt"

	"github.com/coppice-go/coppice/checkpoint/internal/body"
	"github.com/coppice-go/coppice/checkpoint/internal/canon"
	"github.com/coppice-go/coppice/codec"
	"github.com/coppice-go/coppice/transcript"
)

// Object is checkpoint_latest, or a snapshot: everything that a resume needs, in one body.
//
// No two objects of a session are equal: Summary has a fresh commit id and a growing seq (I5).
// docs/format/checkpoint.md has the tables.
type Object struct {
	Summary  Summary // Snapshot set = this is a snapshot, whose Segments, Plain and Tail are empty
	Document []byte  // the output of Document.Encode
	Header   []byte  // the session header line; empty = none
	Lineage  []Commit
	HeadOrd  int64 // ordinal of Summary.Entry; -1 = none
	Branches []BranchRef
	Window   WindowState
	// lines of the window by ordinal, cut to their head if they are never part of a context
	Pool     map[uint64][]byte
	Blobs    map[string][]byte // small images inside the object, by hex SHA-256
	Tail     TailState         // durable lines that are in no segment yet (replace strategy)
	Segments SegmentMap        // sealed segments
	IDs      []codec.Ref       // runs of the id index, oldest first, for sealed lines
	// segments that are still plain text, oldest first, the active one last (append strategy)
	Plain    []PlainRef
	Key      uint64     // of the commit lines of Tail, or of the active segment
	Prev     uint32     // Self of the last commit line
	CAS      bool       // the store was found to honour conditions
	Original string     // hex SHA-256 of the imported bytes; "" = the lines are the original
	Claimed  uint64     // seq of the newest claim
	SinceKey int        // commits since the last keyframe
	Opening  bool       // the next commit is the first of its segment
	LastLine int64      // bytes of the last commit line with its newline; 0 = none in the active segment
	Keys     []KeyRef   // the newest idempotency keys, oldest first
	Meta     MetaChange // of the metadata since the header line; never empty, nil = none
	Source   *Source    // of the newest import; a tombstone keeps it; nil = none
	Since    uint64     // first epoch of the session; 0 = no session with its id was deleted before it
	Erased   uint64     // seq of the newest commit that erased entries; 0 = none did

	shown [][]byte // the lines of Window.Ords, which ascend, if Show set them; then Pool is nil

	memo *body.Memo // compressed data that Encode keeps, see Reuse; nil = none
}

// WindowState is a stored transcript.WorkingContext; its lines are in the pool.
type WindowState struct {
	Profile  string
	MaxBytes int
	Base     transcript.Settings
	Omitted  int
	Ords     []uint64 // root first
	Known    bool     // false = unknown: to be built from the whole path

	// Entries whose line in the pool is the body of an amendment instead of the stored one, in the order of Ords; the
	// line of a hidden one is the head of a custom entry. AmendedBy are the ids of the amendments.
	Amended   []uint64
	AmendedBy []string
}

// TailState holds consecutive lines, commit lines among them: line i has the ordinal First+i.
type TailState struct {
	First    uint64
	FirstSeq uint64 // of the first commit in it
	Lines    [][]byte
}

// PlainRef refers to a segment that is not sealed.
type PlainRef struct {
	Name     string `msgpack:"name"`
	First    uint64 `msgpack:"first"` // ordinal of its first entry
	Count    uint64 `msgpack:"count"` // entries up to Bytes
	FirstSeq uint64 `msgpack:"seq"`
	Bytes    int64  `msgpack:"bytes"` // committed length at the time of this object
	Epoch    uint64 `msgpack:"epoch"`
	Key      uint64 `msgpack:"key"`
	Self     uint32 `msgpack:"self"` // of the commit line that ends at Bytes
}

// Reuse makes Encode of o compress only what changed since Encode of prev, an earlier state of the same session; o can
// be prev of the next one. The body is then several frames with the same bytes. prev may be nil. The lines of both must
// not change any more.
func (o *Object) Reuse(prev *Object) {
	o.memo = &body.Memo{}
	if prev != nil && prev.memo != nil {
		o.memo = prev.memo
	}
}

// Show sets the entries of the window by their ordinals, root first, and the pool to their lines. If the ordinals
// ascend Encode uses the slices, and Pool stays nil: filling a map for every commit costs more than the rest of its
// body.
func (o *Object) Show(ords []uint64, lines [][]byte) {
	o.Window.Ords, o.Pool, o.shown = ords, nil, lines
	if ascending(ords) {
		return
	}
	o.Pool, o.shown = make(map[uint64][]byte, len(ords)), nil
	for i, ord := range ords {
		o.Pool[ord] = lines[i]
	}
}

func ascending(ords []uint64) bool {
	for i := 1; i < len(ords); i++ {
		if ords[i] <= ords[i-1] {
			return false
		}
	}
	return true
}

// Encode packs o into one container: a summary that is readable within the first 4 KiB, and a compressed body. Errors
// are a *codec.LimitError, which for MaxObject and MaxBody names the largest part, or wrap codec.ErrFormat if o
// contradicts itself.
func (o *Object) Encode() ([]byte, error) {
	if err := o.check(); err != nil {
		return nil, err
	}
	if total, largest := o.weigh(); total > MaxBody {
		return nil, &codec.LimitError{
			What: "checkpoint (largest part: " + largest.String() + ")", Limit: MaxBody,
			Value: int64(total),
		}
	}
	wire := o.Summary.wire()
	summary := appendMap(nil, &wire)
	b, err := o.pack()
	defer b.Done()
	if err != nil {
		return nil, err
	}
	if err := canon.AtMost("checkpoint before compression", b.Bytes, MaxBody); err != nil {
		return nil, err
	}
	o.memo = b.Memo
	p, err := o.kind().Container(summary, b.Frames)
	if err != nil {
		return nil, fmt.Errorf("checkpoint: %w", err)
	}
	if len(p) > MaxObject {
		_, largest := o.weigh()
		return nil, &codec.LimitError{
			What: "checkpoint (largest part: " + largest.String() + ")", Limit: MaxObject,
			Value: int64(len(p)),
		}
	}
	return p, nil
}

func (o *Object) kind() codec.Kind {
	if o.Summary.Snapshot != "" {
		return codec.KindSnapshot
	}
	return codec.KindCheckpoint
}

// part is a part of an object that can be large, with its raw bytes.
type part struct {
	name string
	size int
}

func (p part) String() string { return fmt.Sprintf("%s, %d bytes", p.name, p.size) }

// weigh adds up the raw bytes of the parts that can grow large, and returns the largest one.
func (o *Object) weigh() (total int, largest part) {
	parts := [4]part{
		{name: "document", size: len(o.Document)},
		{name: "working context"},
		{name: "images"},
		{name: "unsealed tail"},
	}
	for _, line := range o.Pool {
		parts[1].size += len(line)
	}
	for _, line := range o.shown {
		parts[1].size += len(line)
	}
	for _, blob := range o.Blobs {
		parts[2].size += len(blob)
	}
	for _, line := range o.Tail.Lines {
		parts[3].size += len(line)
	}
	largest = parts[0]
	for _, part := range parts {
		total += part.size
		if part.size > largest.size {
			largest = part
		}
	}
	return total, largest
}

// check checks o against its limits and for contradictions; Encode and DecodeObject both call it.
func (o *Object) check() error {
	s := &o.Summary
	if err := checkNames(s.Branch, "", "", ""); err != nil {
		return err
	}
	if err := errors.Join(canon.AtMost("title", len(s.Title), MaxText),
		canon.AtMost("working directory", len(s.Cwd), MaxText)); err != nil {
		return err
	}
	for _, f := range [...]struct{ what, value string }{
		{"tag", s.Tag},
		{"session id", s.ID},
		{"parent session id", s.Parent},
		{"snapshot id", s.Snapshot},
		{"commit id", s.Commit},
		{"reason", s.Reason},
		{"segment name", s.LogName},
	} {
		if err := canon.AtMost(f.what, len(f.value), MaxName); err != nil {
			return err
		}
	}
	if err := errors.Join(canon.AtMost("lineage", len(o.Lineage), MaxLineage), checkBranches(o.Branches),
		o.Segments.check(),
		canon.AtMost("unsealed segments", len(o.Plain), maxLevelRefs), o.checkIDs()); err != nil {
		return err
	}
	total := 0
	for sum, blob := range o.Blobs {
		if err := canon.AtMost("image "+sum, len(blob), MaxBlob); err != nil {
			return err
		}
		total += len(blob)
	}
	if err := canon.AtMost("images", total, MaxBlobs); err != nil {
		return err
	}
	if s.Snapshot != "" && len(o.Segments.Levels)+len(o.IDs)+len(o.Plain)+len(o.Tail.Lines) > 0 {
		return canon.Malformed("snapshot %s names segments or holds a tail", s.Snapshot)
	}
	for i, ord := range o.Window.Ords {
		if i < len(o.shown) {
			continue
		}
		if _, ok := o.Pool[ord]; !ok {
			return canon.Malformed("window: entry %d is not in the pool", ord)
		}
	}
	if n, by := len(o.Window.Amended), len(o.Window.AmendedBy); n != by {
		return canon.Malformed("window: %d amended entries, %d amendments", n, by)
	}
	for i, line := range o.Tail.Lines {
		if len(line) == 0 {
			return canon.Malformed("tail: line %d is empty", i)
		}
	}
	return nil
}

// checkIDs checks the runs of the id index against the lines that they cover.
func (o *Object) checkIDs() error {
	next := uint64(0)
	for _, ref := range o.IDs {
		if ref.First != next || ref.Count == 0 || ref.Bytes < 0 {
			return canon.Malformed("id index: run %d+%d where ordinal %d comes next", ref.First, ref.Count, next)
		}
		next += uint64(ref.Count)
	}
	if next > o.Segments.Next() {
		return canon.Malformed("id index: it covers %d lines, %d are sealed", next, o.Segments.Next())
	}
	return canon.AtMost("runs of the id index", len(o.IDs), MaxRuns)
}

// DecodeObject decodes an object of either kind. Everything is checked: checksums, sizes before allocation (MaxObject,
// MaxBody), counts, references. Errors wrap one of codec's or are a *codec.LimitError. Lines and blobs of the result
// share memory and must not be changed.
func DecodeObject(p []byte) (*Object, error) {
	if err := canon.AtMost("checkpoint", len(p), MaxObject); err != nil {
		return nil, err
	}
	summary, raw, err := codec.DecodeContainer(p, kindOf(p), MaxBody)
	if err != nil {
		return nil, fmt.Errorf("checkpoint: %w", err)
	}
	o := &Object{}
	if o.Summary, err = summaryFrom(summary, kindOf(p)); err != nil {
		return nil, err
	}
	var w body.Body
	if err := codec.Unmarshal(raw, &w); err != nil {
		return nil, fmt.Errorf("checkpoint: body: %w", err)
	}
	if err := o.fill(&w); err != nil {
		return nil, err
	}
	if err := o.check(); err != nil {
		return nil, err
	}
	if o.Summary.MetaElsewhere {
		_, meta := HeaderRelation(o.Header)
		o.Summary.Meta = o.Meta.Apply(meta)
		o.Summary.MetaElsewhere = false
	}
	return o, nil
}

// DecodeSummary reads the summary of a checkpoint or snapshot from its first 4 KiB, without checking the rest. An entry
// id of more than 256 bytes is truncated there.
func DecodeSummary(prefix []byte) (Summary, error) {
	p, err := codec.DecodeSummary(prefix, kindOf(prefix))
	if err != nil {
		return Summary{}, fmt.Errorf("checkpoint: %w", err)
	}
	return summaryFrom(p, kindOf(prefix))
}

// kindOf returns which of the two kinds the header of a container names.
func kindOf(p []byte) codec.Kind {
	if len(p) >= 12 && codec.Kind(p[8:12]) == codec.KindSnapshot {
		return codec.KindSnapshot
	}
	return codec.KindCheckpoint
}
