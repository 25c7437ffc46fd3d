// Package transfer brings whole histories into a new session and out of one: imports, forks, exports.
//
// Guarantees: lines go in and come out byte for byte; parents are resolved over all lines at once; if
// an import fails, no session remains, or, with Into.Source, one that Grow completes.
package transfer

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"slices"
	"time"

	"github.com/coppice-go/coppice/backend"
	"github.com/coppice-go/coppice/checkpoint"
	"github.com/coppice-go/coppice/internal/blob"
	"github.com/coppice-go/coppice/internal/journal"
	"github.com/coppice-go/coppice/internal/journal/state"
	"github.com/coppice-go/coppice/internal/layout"
	"github.com/coppice-go/coppice/internal/rawjson"
	"github.com/coppice-go/coppice/transcript"
)

const (
	chunkBytes = 4 << 20  // lines of one commit of an import
	chunkMost  = 16 << 20 // the same, where parents stand after their children
	blobLeast  = 24 << 10 // from which on an image leaves its line, in bytes
	pathPart   = 512      // entries of a fork that are read at once
)

// Into is where a history goes: a new session's objects, by a journal that is made once the header is
// known.
type Into struct {
	Config journal.Config
	Screen func(ctx context.Context, d *transcript.Draft) error // nil = every draft as it is
	Fresh  bool                                                 // the session's id is no one else's
	Meta   checkpoint.MetaChange                                // in place of an import's header's; nil = that one
	// bytes of lines that are held in memory at most; 0 = 16 MiB
	Memory int64
	// Source is asked after the last line for the file that the lines are from. With it an import that fails in the
	// middle leaves what it committed, for Grow. nil, or a nil source = not known.
	Source func() (*checkpoint.Source, error)
}

// Import brings lines in, and returns the journal of the session. g is what the session starts with where the lines say
// nothing else; original returns the imported bytes where the lines are not those, and may be nil.
func Import(ctx context.Context, in Into, lines iter.Seq2[transcript.Draft, error], g state.Genesis,
	original func() (io.Reader, error),
) (*journal.Journal, error) {
	var err error
	if in.Config, err = journal.Again(ctx, in.Config); err != nil {
		return nil, err
	}
	ld := &loader{in: in, j: journal.Create(in.Config, state.Genesis{}), lines: newSpool(in.Memory)}
	err = ld.bring(ctx, lines, g, original)
	if err = errors.Join(err, ld.lines.close()); err == nil {
		return ld.j, nil
	}
	if ld.source != nil && ld.j.State().Summary.Commit != "" { // for Grow: a tombstone would take the id
		return nil, errors.Join(err, ld.j.Close(context.WithoutCancel(ctx)))
	}
	return nil, errors.Join(err, ld.discard(ctx))
}

// bring gathers all lines and commits them to a new session.
func (ld *loader) bring(
	ctx context.Context, lines iter.Seq2[transcript.Draft, error], g state.Genesis, original func() (io.Reader, error),
) error {
	var header []byte
	if err := ld.gather(ctx, headless(lines, &header)); err != nil {
		return err
	}
	if header != nil {
		if err := rawjson.CheckText("header", header); err != nil {
			return err
		}
		g.Meta = ld.in.Meta
		g = adopt(g, header, ld.in.Config.Now())
	}
	sum, err := ld.original(ctx, original)
	if err != nil {
		return err
	}
	if err := ld.identify(); err != nil {
		return err
	}
	ld.j = journal.Create(ld.in.Config, g)
	ld.dated = g.Created
	return ld.commitAll(ctx, "import", ld.target(), func(st *journal.Step) { st.Original = sum })
}

// Path is what a fork takes over: the way to a place in another session.
type Path struct {
	Entries    []uint64            // ordinals, from the root down
	Labels     []transcript.Draft  // of these entries
	Amendments []uint64            // ordinals of those that are in force now
	Doc        checkpoint.Document // in force there

	Read  func(ctx context.Context, ords []uint64) ([]transcript.Entry, error) // as they are stored
	Image func(ctx context.Context, sum string) ([]byte, error)
}

// Fork brings a path in: its entries, the labels on them and the amendments of them, and the document.
func Fork(ctx context.Context, in Into, from Path, g state.Genesis) (*journal.Journal, error) {
	var err error
	if in.Config, err = journal.Again(ctx, in.Config); err != nil {
		return nil, err
	}
	ld := &loader{in: in, j: journal.Create(in.Config, g), lines: newSpool(in.Memory)}
	err = ld.fork(ctx, from)
	if err = errors.Join(err, ld.lines.close()); err != nil {
		return nil, errors.Join(err, ld.discard(ctx))
	}
	return ld.j, nil
}

func (ld *loader) fork(ctx context.Context, from Path) error {
	if err := ld.copyPath(ctx, from); err != nil {
		return err
	}
	head := here
	if n := len(from.Entries); n > 0 {
		head = n - 1 // labels and amendments are not on the path
	}
	return ld.commitAll(ctx, "fork", head, func(st *journal.Step) {
		st.Keyframe = true
		st.Edit = func(d checkpoint.Document) checkpoint.Document {
			doc := from.Doc
			doc.Branch = d.Branch
			return doc
		}
	})
}

// loader brings many lines into a new session. Beside the lines it holds some 150 bytes of each until the last is
// committed: any may be the parent of any other.
type loader struct {
	in    Into
	j     *journal.Journal
	heads []transcript.Line // their lines are in lines until they are committed
	ords  []uint64          // of those that are committed
	lines spool
	small []blob.Blob // the newest images that can ride in the checkpoint
	dated time.Time   // what is brought in is as old as it says, and no older than this; zero = it is new
	// ids that a conversion made, and those that the session has in their place
	renames map[string]string
	older   map[string]uint64  // by id: parents among lines of the session that are not in heads; nil = all lines are
	leaf    []byte             // of the last entry, if it is a leaf entry: where it moves the head, as JSON
	source  *checkpoint.Source // the file that is imported; nil = not known
}

// identify asks for the file that is imported.
func (ld *loader) identify() (err error) {
	if ld.in.Source != nil {
		ld.source, err = ld.in.Source()
	}
	return err
}

// gather takes all lines in; images are stored at once.
func (ld *loader) gather(ctx context.Context, lines iter.Seq2[transcript.Draft, error]) error {
	for d, err := range lines {
		if err != nil {
			return err
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := ld.screen(ctx, &d); err != nil {
			return fmt.Errorf("entry %d: %w", len(ld.heads), err)
		}
		if err := ld.take(ctx, d); err != nil {
			return fmt.Errorf("entry %d: %w", len(ld.heads), err)
		}
	}
	return nil
}

// screen passes a copy of a draft to the hook, which may change it.
func (ld *loader) screen(ctx context.Context, d *transcript.Draft) error {
	if ld.in.Screen == nil || d.Err != nil {
		return nil
	}
	d.Body, d.Raw = bytes.Clone(d.Body), bytes.Clone(d.Raw)
	return ld.in.Screen(ctx, d)
}

// headless returns lines without the header, which is the first, if it is one.
func headless(lines iter.Seq2[transcript.Draft, error], header *[]byte) iter.Seq2[transcript.Draft, error] {
	return func(yield func(transcript.Draft, error) bool) {
		first := true
		for d, err := range lines {
			if first && err == nil && isHeader(d.Raw) {
				first, *header = false, bytes.Clone(bytes.TrimSuffix(d.Raw, []byte("\n")))
				continue
			}
			first = false
			if !yield(d, err) {
				return
			}
		}
	}
}

func isHeader(raw []byte) bool {
	if len(raw) == 0 {
		return false
	}
	l, err := transcript.ParseLine(bytes.TrimSuffix(raw, []byte("\n")))
	return err == nil && l.Type == "session"
}

func (ld *loader) take(ctx context.Context, d transcript.Draft) error {
	raw, err := ld.written(d)
	if err != nil {
		return err
	}
	stored, blobs := blob.Externalise(ld.renamed(raw))
	if len(stored) > layout.MaxEntry {
		return layout.TooLarge("entry", layout.MaxEntry, len(stored))
	}
	for _, b := range blobs {
		if err := ld.image(ctx, b.Data); err != nil {
			return err
		}
	}
	return ld.line(stored)
}

// written returns the line of a draft, with an id and a parent where it names none.
func (ld *loader) written(d transcript.Draft) ([]byte, error) {
	now, id, parent := ld.in.Config.Now(), d.ID, d.Parent
	if d.Raw == nil && id == "" {
		var err error
		if id, err = transcript.NewID(now, ld.in.Config.Rand); err != nil {
			return nil, err
		}
	}
	if n := len(ld.heads); d.Raw == nil && parent == "" && n > 0 {
		parent = ld.heads[n-1].ID
	}
	return d.Line(id, parent, now)
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
	ld.leaf = nil
	if l.Type == "leaf" {
		ld.leaf = bytes.Clone(rawjson.OrNull(rawjson.Field(raw, "targetId")))
	}
	ld.hold(l)
	return ld.lines.add(raw)
}

// hold remembers the head of a line.
func (ld *loader) hold(l transcript.Line) {
	if n := len(ld.heads); n > 0 && l.ParentID == ld.heads[n-1].ID {
		l.ParentID = ld.heads[n-1].ID // the usual case: one text instead of two
	}
	l.Raw = nil
	ld.heads = append(ld.heads, l)
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

// discard leaves nothing of a session that could not be made. If its id may be another's, all that was
// stored before the first commit stays: the other's objects may have the same names.
func (ld *loader) discard(ctx context.Context) error {
	ctx = context.WithoutCancel(ctx)
	committed, broken := ld.j.State().Summary.Commit != "", ld.j.InDoubt()
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

// copyPath takes the lines of a path in, with their images, labels and amendments.
func (ld *loader) copyPath(ctx context.Context, from Path) error {
	for part := range slices.Chunk(from.Entries, pathPart) {
		entries, err := from.Read(ctx, part)
		if err != nil {
			return err
		}
		for _, e := range entries {
			if err := ld.copyImages(ctx, from, e.Raw); err != nil {
				return err
			}
			if err := ld.line(e.Raw); err != nil {
				return err
			}
		}
	}
	head := len(ld.heads)
	for _, d := range from.Labels {
		d.Parent = ld.heads[head-1].ID
		if err := ld.take(ctx, d); err != nil {
			return err
		}
	}
	for _, ord := range from.Amendments {
		entries, err := from.Read(ctx, []uint64{ord})
		if err != nil {
			return err
		}
		e := entries[0]
		if err := ld.copyImages(ctx, from, e.Raw); err != nil {
			return err
		}
		body := rawjson.ValidText(e.Body()) // it is a new line; earlier releases took other bytes
		raw, err := ld.written(transcript.Draft{Type: e.Type, Body: body, Parent: ld.heads[head-1].ID})
		if err != nil {
			return err
		}
		if err := ld.line(raw); err != nil { // a stored line: its images are references already
			return err
		}
	}
	return nil
}

// copyImages stores the images that a line of another session refers to.
func (ld *loader) copyImages(ctx context.Context, from Path, raw []byte) error {
	for _, ref := range blob.Refs(raw) {
		data, err := from.Image(ctx, ref.Sum)
		if err != nil {
			return fmt.Errorf("copy an image: %w", err)
		}
		if err := ld.image(ctx, data); err != nil {
			return fmt.Errorf("copy an image: %w", err)
		}
	}
	return nil
}
