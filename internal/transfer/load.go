// Package transfer brings whole histories into a new session and out of one: imports, forks, exports.
//
// Guarantees: lines go in and come out byte for byte; parents are resolved over all lines at once; a
// history that could not be brought in leaves no session behind.
package transfer

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"time"

	"github.com/coppice-go/coppice/backend"
	"github.com/coppice-go/coppice/checkpoint"
	"github.com/coppice-go/coppice/internal/journal"
	"github.com/coppice-go/coppice/internal/layout"
	"github.com/coppice-go/coppice/internal/live"
	"github.com/coppice-go/coppice/internal/rawjson"
	"github.com/coppice-go/coppice/internal/working"
	"github.com/coppice-go/coppice/transcript"
	"github.com/coppice-go/coppice/transcript/blob"
	"github.com/coppice-go/coppice/transcript/tree"
)

const (
	chunkBytes = 4 << 20  // lines of one commit of an import
	chunkMost  = 16 << 20 // the same, where parents stand behind their children
	blobLeast  = 24 << 10 // from which on an image leaves its line, in bytes
	pathPart   = 512      // entries of a fork that are read at once
)

// Into is where a history goes: a new session's objects, by a journal that is made once the header is
// known.
type Into struct {
	Config journal.Config
	Screen func(ctx context.Context, d *transcript.Draft) error // nil = every draft as it is
	Fresh  bool                                                 // the session's id is nobody else's
	Memory int64                                                // bytes of lines that are held in memory at most; 0 = 64 MiB
}

// Import brings lines in, and gives the journal of the session. genesis completes what the session starts
// with; original gives the imported bytes where the lines are not those, and may be nil.
func Import(ctx context.Context, in Into, lines iter.Seq2[transcript.Draft, error], genesis func(header []byte) (journal.Genesis, error), original func() (io.Reader, error)) (*journal.Journal, error) {
	ld := &loader{in: in, j: journal.Create(in.Config, journal.Genesis{}), lines: newSpool(in.Memory)}
	header, err := ld.gather(ctx, lines)
	var g journal.Genesis
	if err == nil {
		g, err = genesis(header)
	}
	var sum string
	if err == nil {
		sum, err = ld.original(ctx, original)
	}
	if err == nil {
		ld.j = journal.Create(in.Config, g)
		ld.dated = g.Created
		err = ld.commitAll(ctx, "import", func(st *journal.Step) { st.Original, st.Head = sum, ld.head() })
	}
	if err = errors.Join(err, ld.lines.close()); err != nil {
		return nil, errors.Join(err, ld.discard(ctx))
	}
	return ld.j, nil
}

// Fork brings the way to a view in: its entries, the labels on them, and the document in force there.
func Fork(ctx context.Context, in Into, from *live.Handle, v *live.View, g journal.Genesis) (*journal.Journal, error) {
	ld := &loader{in: in, j: journal.Create(in.Config, g), lines: newSpool(in.Memory)}
	m, err := from.Moment(ctx)
	if err != nil {
		return nil, err
	}
	var path []uint64
	if ord, ok := m.Ordinal(v.Head); ok {
		for up := range m.Up(ord) {
			path = append(path, up)
		}
	}
	if err = ld.copyPath(ctx, from, m, path); err == nil {
		err = ld.commitAll(ctx, "fork", func(st *journal.Step) {
			doc := v.Doc
			st.Keyframe = true
			st.Edit = func(d checkpoint.Document) checkpoint.Document {
				doc.Branch = d.Branch
				return doc
			}
			if n := len(path); n > 0 { // labels hang beside the head
				st.Head = &journal.Head{ID: ld.entries[n-1].ID, Ord: -1, Entry: ld.entries[n-1]}
			}
		})
	}
	if err = errors.Join(err, ld.lines.close()); err != nil {
		return nil, errors.Join(err, ld.discard(ctx))
	}
	return ld.j, nil
}

// loader brings many lines into a new session.
type loader struct {
	in      Into
	j       *journal.Journal
	entries []*journal.Entry  // their lines are in lines until they are committed
	heads   []transcript.Line // the same
	lines   spool
	small   []blob.Blob // the newest images that can ride in the checkpoint
	dated   time.Time   // what is brought in is as old as it says, and no older than this; zero = it is new
	target  []byte      // of the last entry, if it is a leaf entry: where it moves the head, as JSON
}

// gather takes all lines in; images are stored at once. The header is the first line, if it is one.
func (ld *loader) gather(ctx context.Context, lines iter.Seq2[transcript.Draft, error]) (header []byte, err error) {
	first := true
	for d, err := range lines {
		if err == nil {
			err = ctx.Err()
		}
		if err != nil {
			return nil, err
		}
		if first && isHeader(d.Raw) {
			first, header = false, bytes.Clone(bytes.TrimSuffix(d.Raw, []byte("\n")))
			continue
		}
		first = false
		if ld.in.Screen != nil && d.Err == nil {
			d.Body, d.Raw = bytes.Clone(d.Body), bytes.Clone(d.Raw)
			err = ld.in.Screen(ctx, &d)
		}
		if err == nil {
			err = ld.take(ctx, d)
		}
		if err != nil {
			return nil, fmt.Errorf("entry %d: %w", len(ld.entries), err)
		}
	}
	return header, nil
}

func isHeader(raw []byte) bool {
	if len(raw) == 0 {
		return false
	}
	l, err := transcript.ParseLine(bytes.TrimSuffix(raw, []byte("\n")))
	return err == nil && l.Type == "session"
}

func (ld *loader) take(ctx context.Context, d transcript.Draft) error {
	now, id, parent := ld.in.Config.Now(), d.ID, d.Parent
	if d.Raw == nil && id == "" {
		var err error
		if id, err = transcript.NewID(now, ld.in.Config.Rand); err != nil {
			return err
		}
	}
	if n := len(ld.heads); d.Raw == nil && parent == "" && n > 0 {
		parent = ld.heads[n-1].ID
	}
	raw, err := d.Line(id, parent, now)
	if err != nil {
		return err
	}
	stored, blobs := blob.Externalise(raw)
	if len(stored) > working.EntryMax {
		return working.LimitError("entry", working.EntryMax, len(stored))
	}
	for _, b := range blobs {
		if err := ld.image(ctx, b.Data); err != nil {
			return err
		}
	}
	return ld.line(stored)
}

// image stores an image of an entry that is taken in.
func (ld *loader) image(ctx context.Context, data []byte) error {
	sum, err := ld.j.PutBlob(ctx, data)
	if err != nil {
		return fmt.Errorf("store an image: %w", err)
	}
	if len(data) <= checkpoint.MaxBlob {
		ld.small = append(ld.small, blob.Blob{Sum: sum, Data: data})
		ld.small = ld.small[max(0, len(ld.small)-checkpoint.MaxBlobs/blobLeast):]
	}
	return nil
}

// line takes a stored line in.
func (ld *loader) line(raw []byte) error {
	l, err := transcript.ParseLine(raw)
	if err != nil {
		return err
	}
	ld.target = nil
	if l.Type == "leaf" {
		ld.target = bytes.Clone(rawjson.OrNull(rawjson.Field(raw, "targetId")))
	}
	l.Raw = nil
	ld.heads = append(ld.heads, l)
	ld.entries = append(ld.entries, &journal.Entry{ID: l.ID, ParentID: l.ParentID, ParentOrd: -1})
	return ld.lines.add(raw)
}

// head gives the place that a leaf entry at the end of the file moves the head to, as pi's harness and operator
// go on there: null is before the first entry. nil = the head stands at the last entry.
func (ld *loader) head() *journal.Head {
	if string(ld.target) == "null" {
		return &journal.Head{Ord: -1}
	}
	if id := rawjson.Text(ld.target); id != "" {
		for i := len(ld.heads) - 1; i >= 0; i-- {
			if ld.heads[i].ID == id {
				return &journal.Head{ID: id, Ord: -1, Entry: ld.entries[i]}
			}
		}
	}
	return nil
}

// original stores the bytes of the imported file, where the lines are not those bytes.
func (ld *loader) original(ctx context.Context, open func() (io.Reader, error)) (sum string, err error) {
	if open == nil || ld.in.Screen != nil {
		return "", nil // a hook may have taken out what must not be kept
	}
	r, err := open()
	if err != nil || r == nil {
		return "", err
	}
	if c, ok := r.(io.Closer); ok {
		defer func() { err = errors.Join(err, c.Close()) }()
	}
	return ld.j.PutOriginal(ctx, r)
}

// commitAll commits what was taken in, in chunks, and brings the session to the shape of one that grew by
// itself; last completes the last step.
func (ld *loader) commitAll(ctx context.Context, reason string, last func(*journal.Step)) error {
	parents, _ := tree.ResolveParents(ld.heads)
	for at := 0; ; {
		end := ld.chunk(at, parents)
		step := &journal.Step{Reason: reason, Entries: ld.entries[at:end], Time: ld.age(at, end)}
		for i := at; i < end; i++ {
			raw, err := ld.lines.get(i)
			if err != nil {
				return err
			}
			ld.entries[i].Raw = raw
			switch p := parents[i]; {
			case p >= int64(end): // further on than a commit can reach: a root, reported as an orphan
			case p >= int64(at):
				ld.entries[i].Parent = ld.entries[p]
			case p >= 0:
				ld.entries[i].ParentOrd = int64(ld.entries[p].Ord)
			}
		}
		if end == len(ld.entries) {
			step.Blobs = map[string][]byte{}
			for _, b := range ld.small {
				step.Blobs[b.Sum] = b.Data
			}
			last(step)
		}
		if _, err := ld.j.Commit(ctx, step); err != nil {
			return err
		}
		for _, e := range ld.entries[at:end] {
			e.Raw = nil
		}
		ld.lines.drop(at, end)
		if at = end; at == len(ld.entries) {
			return ld.j.Settle(ctx)
		}
	}
}

// age is when the newest of some entries, or of those before them, was made: the activity that a commit of an
// import stands for, so that what was brought in is listed by its own dates. A time to come counts as now.
func (ld *loader) age(from, to int) time.Time {
	if ld.dated.IsZero() {
		return ld.dated
	}
	now := ld.in.Config.Now()
	for _, l := range ld.heads[from:to] {
		if l.Time.After(ld.dated) && !l.Time.After(now) {
			ld.dated = l.Time
		}
	}
	return ld.dated
}

// chunk gives the end of the chunk that begins at an entry: full, and with no parent behind it.
func (ld *loader) chunk(at int, parents []int64) int {
	size, need := 0, int64(0)
	for i := at; i < len(ld.entries); i++ {
		n := ld.lines.size(i) + 1
		if i > at && (size+n > chunkMost || size+n > chunkBytes && need < int64(i)) {
			return i
		}
		size, need = size+n, max(need, parents[i])
	}
	return len(ld.entries)
}

// discard leaves nothing of a session that could not be made. If its id may be another's, all that was
// stored before the first commit stays: the other's objects may have the same names.
func (ld *loader) discard(ctx context.Context) error {
	ctx = context.WithoutCancel(ctx)
	committed, broken := ld.j.State().Summary.Commit != "", ld.j.Broken() != nil
	err := ld.j.Close(ctx)
	switch {
	case committed || ld.in.Fresh && broken:
		return errors.Join(err, journal.Delete(ctx, ld.in.Config))
	case !ld.in.Fresh:
		return err
	}
	b := ld.in.Config.Backend
	for info, lerr := range b.List(ctx, backend.ListOptions{Prefix: layout.SessionPrefix(ld.in.Config.Session)}) {
		if lerr == nil {
			lerr = b.Delete(ctx, info.Key)
		}
		err = errors.Join(err, lerr)
	}
	return err
}

// copyPath takes the lines of a path in, which is given from the head down, with their images and labels.
func (ld *loader) copyPath(ctx context.Context, from *live.Handle, m *working.Moment, path []uint64) error {
	var labels []transcript.Draft
	for n := len(path); n > 0; n = max(0, n-pathPart) {
		part := make([]uint64, 0, pathPart)
		for i := n - 1; i >= max(0, n-pathPart); i-- {
			part = append(part, path[i])
		}
		entries, err := from.Bodies(ctx, m, part)
		if err != nil {
			return err
		}
		for _, e := range entries {
			for _, ref := range blob.Refs(e.Raw) {
				data, err := from.Images().Get(ctx, m.State, ref.Sum)
				if err == nil {
					err = ld.image(ctx, data)
				}
				if err != nil {
					return fmt.Errorf("copy an image: %w", err)
				}
			}
			if err := ld.line(e.Raw); err != nil {
				return err
			}
			if label := m.Tree.NodeAt(e.Ordinal).Label; label != "" {
				labels = append(labels, live.LabelDraft(e.ID, label))
			}
		}
	}
	head := len(ld.heads)
	for _, d := range labels {
		d.Parent = ld.heads[head-1].ID
		if err := ld.take(ctx, d); err != nil {
			return err
		}
	}
	return nil
}
