package checkpoint

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/coppice-go/coppice/checkpoint/internal/body"
	"github.com/coppice-go/coppice/checkpoint/internal/canon"
	"github.com/coppice-go/coppice/codec"
	"github.com/coppice-go/coppice/transcript"
)

// The msgpack shapes. Lists of structs are msgpack values of their own inside a byte string, so that
// their length is known before one element is decoded (I15); times are Unix milliseconds, 0 = none.

type wireSummary struct {
	ID        string `msgpack:"id"`
	Seq       uint64 `msgpack:"seq"`
	Epoch     uint64 `msgpack:"epoch"`
	Commit    string `msgpack:"commit"`
	Entry     string `msgpack:"entry,omitempty"`
	Branch    string `msgpack:"branch,omitempty"`
	Title     string `msgpack:"title,omitempty"`
	Cwd       string `msgpack:"cwd,omitempty"`
	Parent    string `msgpack:"parent,omitempty"`
	Preview   string `msgpack:"preview,omitempty"`
	Created   int64  `msgpack:"created"`
	Updated   int64  `msgpack:"updated"`
	Entries   uint64 `msgpack:"entries"`
	Bytes     int64  `msgpack:"bytes"`
	First     string `msgpack:"first,omitempty"`
	Status    string `msgpack:"status,omitempty"`
	Relation  string `msgpack:"relation,omitempty"`
	Meta      string `msgpack:"meta,omitempty"` // a JSON object of texts, keys in order
	MetaOver  bool   `msgpack:"metaOver,omitempty"`
	Internal  bool   `msgpack:"internal,omitempty"`
	Tombstone bool   `msgpack:"gone,omitempty"`
	Snapshot  string `msgpack:"snapshot,omitempty"`
	Tag       string `msgpack:"tag,omitempty"`
	Reason    string `msgpack:"reason,omitempty"`
	LogName   string `msgpack:"log,omitempty"`
	LogBytes  int64  `msgpack:"logBytes,omitempty"`
}

// Bounds of texts in a summary, in bytes: a summary has 4 KiB. The body has them whole.
const (
	summaryTitle = 256
	summaryCwd   = 1 << 10
	summaryMeta  = 1 << 10 // of JSON
)

func (s Summary) wire() wireSummary {
	meta, over := "", s.MetaElsewhere
	if len(s.Meta) > 0 {
		if p, err := json.Marshal(s.Meta); err == nil && len(p) <= summaryMeta {
			meta, over = string(p), false
		} else {
			over = true
		}
	}
	return wireSummary{
		Relation: s.Relation, Meta: meta, MetaOver: over,
		ID: s.ID, Seq: s.Seq, Epoch: s.Epoch, Commit: s.Commit, Entry: body.Cut(s.Entry, 256), Branch: s.Branch,
		Title: body.Cut(s.Title, summaryTitle), Cwd: body.Cut(s.Cwd, summaryCwd), Parent: s.Parent,
		Preview: body.Cut(s.Preview, 200),
		Created: millis(s.Created), Updated: millis(s.Updated), Entries: s.Entries, Bytes: s.Bytes,
		First: body.Cut(s.First, 200), Status: s.Status, Internal: s.Internal, Tombstone: s.Tombstone,
		Snapshot: s.Snapshot, Tag: s.Tag, Reason: s.Reason, LogName: s.LogName, LogBytes: s.LogBytes,
	}
}

func summaryFrom(p []byte, kind codec.Kind) (Summary, error) {
	var w wireSummary
	if err := codec.Unmarshal(p, &w); err != nil {
		return Summary{}, fmt.Errorf("checkpoint: summary: %w", err)
	}
	if (w.Snapshot != "") != (kind == codec.KindSnapshot) {
		return Summary{}, canon.Malformed("summary: snapshot %q in a container of kind %q", w.Snapshot, kind[:])
	}
	var meta map[string]string
	if w.Meta != "" {
		if err := json.Unmarshal([]byte(w.Meta), &meta); err != nil || len(w.Meta) > summaryMeta {
			return Summary{}, canon.Malformed("summary: metadata of %d bytes is no object of texts", len(w.Meta))
		}
	}
	return Summary{
		Relation: w.Relation, Meta: meta, MetaElsewhere: w.MetaOver,
		Head: Head{Seq: w.Seq, Epoch: w.Epoch, Commit: w.Commit, Entry: w.Entry, Branch: w.Branch},
		ID:   w.ID, Title: w.Title, Cwd: w.Cwd, Parent: w.Parent, Preview: w.Preview,
		Created: fromMillis(w.Created), Updated: fromMillis(w.Updated), Entries: w.Entries, Bytes: w.Bytes,
		First: w.First, Status: w.Status, Internal: w.Internal, Tombstone: w.Tombstone, Snapshot: w.Snapshot,
		Tag: w.Tag, Reason: w.Reason, LogName: w.LogName, LogBytes: w.LogBytes,
	}, nil
}

func millis(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixMilli()
}

func fromMillis(ms int64) time.Time {
	if ms == 0 {
		return time.Time{}
	}
	return time.UnixMilli(ms).UTC()
}

// pack writes the body of o.
func (o *Object) pack() (body.Packed, error) {
	b := &body.Body{
		Entry: o.Summary.Entry, HeadOrd: o.HeadOrd, Document: o.Document, Header: o.Header, Key: o.Key, Prev: o.Prev,
		CAS:     o.CAS,
		Profile: o.Window.Profile, MaxBytes: o.Window.MaxBytes, Omitted: o.Window.Omitted, Known: o.Window.Known,
		Base:      [3]string{o.Window.Base.Model, o.Window.Base.ThinkingLevel, o.Window.Base.Mode},
		TailFirst: o.Tail.First, TailSeq: o.Tail.FirstSeq,
		Original: o.Original, Claimed: o.Claimed, SinceKey: o.SinceKey, Opening: o.Opening, LastLine: o.LastLine,
		Keys: encodeKeys(o.Keys), Meta: encodeMeta(o.Meta), Source: encodeSource(o.Source), Since: o.Since,
		Erased: o.Erased,
	}
	if len(o.Summary.Title) > summaryTitle {
		b.Title = o.Summary.Title
	}
	if len(o.Summary.Cwd) > summaryCwd {
		b.Cwd = o.Summary.Cwd
	}
	b.Branches, b.Plain = appendMaps(o.Branches), appendMaps(o.Plain)
	for _, level := range o.Segments.Levels {
		b.Levels = append(b.Levels, appendRefs(level))
	}
	if len(o.IDs) > 0 {
		b.IDs = appendRefs(o.IDs)
	}
	return body.Pack(b, o.parts(), o.memo)
}

// parts returns the lists of a body.
func (o *Object) parts() *body.Parts {
	p := &body.Parts{
		Ords: o.Window.Ords, Amended: o.Window.Amended, AmendedBy: o.Window.AmendedBy,
		Lineage: make([]body.Commit, len(o.Lineage)),
	}
	p.PoolOrds, p.Pool = o.pool()
	for i := range o.Lineage {
		c := &o.Lineage[i]
		p.Lineage[i] = body.Commit{
			Seq: c.Seq, Epoch: c.Epoch, ID: c.Commit, Parent: c.Parent, Entry: c.Entry, HeadOrd: c.HeadOrd,
			Branch: c.Branch,
			Reason: c.Reason, Writer: c.Writer, Snapshot: c.Snapshot, Key: c.Key, Kept: c.Kept,
			Time: millis(c.Time), Entries: c.Entries, Keyframe: c.Keyframe, StateLost: c.StateLost,
		}
	}
	p.BlobSums = slices.Sorted(maps.Keys(o.Blobs))
	for _, sum := range p.BlobSums {
		p.Blobs = append(p.Blobs, o.Blobs[sum])
	}
	p.Tail = make([][]byte, len(o.Tail.Lines))
	at := 0
	for i, line := range o.Tail.Lines {
		ord := o.Tail.First + uint64(i)
		for at < len(p.PoolOrds) && p.PoolOrds[at] < ord {
			at++
		}
		if at == len(p.PoolOrds) || p.PoolOrds[at] != ord || !bytes.Equal(p.Pool[at], line) {
			p.Tail[i] = line // else it is in the pool
		}
	}
	return p
}

// pool returns the lines of the pool by their ordinals, ascending: mostly those of the window, which are in it.
func (o *Object) pool() (ords []uint64, lines [][]byte) {
	if ords = o.Window.Ords; len(o.shown) == len(ords) && o.shown != nil {
		return ords, o.shown
	}
	if len(ords) != len(o.Pool) || !ascending(ords) {
		ords = slices.Sorted(maps.Keys(o.Pool))
	}
	lines = make([][]byte, len(ords))
	for i, ord := range ords {
		lines[i] = o.Pool[ord]
	}
	return ords, lines
}

// fill is the inverse of pack.
func (o *Object) fill(w *body.Body) error {
	o.Summary.Entry, o.HeadOrd, o.Document, o.Header, o.Key, o.Prev, o.CAS = w.Entry, w.HeadOrd, w.Document, w.Header,
		w.Key, w.Prev, w.CAS
	o.Summary.Title, o.Summary.Cwd = cmp.Or(w.Title, o.Summary.Title), cmp.Or(w.Cwd, o.Summary.Cwd)
	o.Window = WindowState{
		Profile: w.Profile, MaxBytes: w.MaxBytes, Omitted: w.Omitted, Known: w.Known, Ords: body.Sums(w.Ords),
		Amended: body.Sums(w.Amended), AmendedBy: w.AmendedBy,
		Base: transcript.Settings{Model: w.Base[0], ThinkingLevel: w.Base[1], Mode: w.Base[2]},
	}
	o.Original, o.Claimed, o.SinceKey, o.Opening, o.LastLine = w.Original, w.Claimed, w.SinceKey, w.Opening, w.LastLine
	o.Since, o.Erased = w.Since, w.Erased
	commits, err := body.Unlist[body.Commit]("lineage", w.Lineage, MaxLineage)
	if err != nil {
		return err
	}
	if o.Keys, err = decodeKeys(w.Keys); err != nil {
		return err
	}
	for _, c := range commits {
		o.Lineage = append(o.Lineage, Commit{
			Head:   Head{Seq: c.Seq, Epoch: c.Epoch, Commit: c.ID, Entry: c.Entry, Branch: c.Branch},
			Parent: c.Parent, Reason: c.Reason, Writer: c.Writer, Snapshot: c.Snapshot, Time: fromMillis(c.Time),
			Entries: c.Entries, Keyframe: c.Keyframe, Key: c.Key, Kept: c.Kept, HeadOrd: c.HeadOrd,
			StateLost: c.StateLost,
		})
	}
	if o.Meta, err = decodeMeta(w.Meta); err != nil {
		return err
	}
	if o.Source, err = decodeSource(w.Source); err != nil {
		return err
	}
	if o.Branches, err = body.Unlist[BranchRef]("branches", w.Branches, MaxBranches); err != nil {
		return err
	}
	if o.Plain, err = body.Unlist[PlainRef]("unsealed segments", w.Plain, maxLevelRefs); err != nil {
		return err
	}
	if err := canon.AtMost("levels of the segment map", len(w.Levels), maxLevels); err != nil {
		return err
	}
	for _, p := range w.Levels {
		level, err := body.Unlist[codec.Ref]("segment map", p, maxLevelRefs)
		if err != nil {
			return err
		}
		o.Segments.Levels = append(o.Segments.Levels, level)
	}
	if len(w.IDs) > 0 {
		if o.IDs, err = body.Unlist[codec.Ref]("id index", w.IDs, MaxRuns); err != nil {
			return err
		}
	}
	return o.fillBytes(w)
}

// fillBytes cuts pool, blobs and tail into their parts.
func (o *Object) fillBytes(w *body.Body) error {
	ords := body.Sums(w.PoolOrds)
	bodies, ok := body.Split(w.Pool, w.PoolSizes)
	if !ok || len(bodies) != len(ords) {
		return canon.Malformed("pool: %d bodies for %d ordinals, or sizes that do not add up", len(bodies), len(ords))
	}
	if len(ords) > 0 {
		o.Pool = make(map[uint64][]byte, len(ords))
	}
	for i, ord := range ords {
		if i > 0 && ord <= ords[i-1] {
			return canon.Malformed("pool: ordinal %d after %d", ord, ords[i-1])
		}
		o.Pool[ord] = bodies[i]
	}
	blobs, ok := body.Split(w.Blobs, w.BlobSizes)
	if !ok || len(blobs) != len(w.BlobSums) {
		return canon.Malformed("images: %d bodies for %d names, or sizes that do not add up", len(blobs),
			len(w.BlobSums))
	}
	if len(blobs) > 0 {
		o.Blobs = make(map[string][]byte, len(blobs))
	}
	for i, sum := range w.BlobSums {
		if i > 0 && sum <= w.BlobSums[i-1] {
			return canon.Malformed("images: %q after %q", sum, w.BlobSums[i-1])
		}
		o.Blobs[sum] = blobs[i]
	}
	o.Tail.First, o.Tail.FirstSeq = w.TailFirst, w.TailSeq
	if o.Tail.Lines, ok = body.Split(w.Tail, w.TailSizes); !ok {
		return canon.Malformed("tail: sizes that do not add up")
	}
	for i, line := range o.Tail.Lines {
		if ord := o.Tail.First + uint64(i); len(line) == 0 {
			o.Tail.Lines[i] = o.Pool[ord]
		}
	}
	return nil
}
