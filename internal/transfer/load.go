// Package transfer moves whole histories into a new session and out of one: imports, forks, exports.
//
// Guarantees: lines are stored and returned byte for byte; parents are resolved over all lines at once; if an import
// fails, no session remains, or, with Into.Source, one that Grow completes.
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
	chunkMost  = 16 << 20 // the same, if parents follow their children
	blobLeast  = 24 << 10 // minimum size in bytes of an image that is stored outside its line
	pathPart   = 512      // entries of a fork that are read at once
)

// Into is the destination of a history: the objects of a new session, through a journal that is created once the header
// is known.
type Into struct {
	Config journal.Config
	Screen func(ctx context.Context, d *transcript.Draft) error // nil = drafts are not changed
	Fresh  bool                                                 // no other session has this id
	Meta   checkpoint.MetaChange                                // instead of that of the header; nil = the header's
	// maximum bytes of lines in memory; 0 = 16 MiB
	Memory int64
	// Source is called after the last line and returns the file of the lines. With it a failed import keeps its
	// commits, for Grow. nil, or a nil result = unknown.
	Source func() (*checkpoint.Source, error)
}

// Import stores lines, and returns the journal of the session. g is the initial state of fields that the lines do not
// set; original returns the imported bytes if the lines are not those bytes, and may be nil.
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
		d := transcript.Draft{Type: "session", Raw: header}
		if err := ld.screen(ctx, &d); err != nil {
			return fmt.Errorf("header: %w", err)
		}
		header = d.Raw
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

// Path is the content of a fork: the path to an entry of another session.
type Path struct {
	Entries []uint64            // ordinals, from the root down
	Notes   []uint64            // ordinals of the labels and amendments in force on these entries
	Doc     checkpoint.Document // in force at the entry

	Read  func(ctx context.Context, ords []uint64) ([]transcript.Entry, error) // as stored
	Image func(ctx context.Context, sum string) ([]byte, error)
}

// Fork copies a path: its entries with their labels and amendments, and the document.
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

// loader loads many lines into a new session. In addition to the lines it holds about 150 bytes of each until the last
// is committed: any may be the parent of any other.
type loader struct {
	in    Into
	j     *journal.Journal
	heads []transcript.Line // their lines are in lines until they are committed
	ords  []uint64          // of committed entries
	lines spool
	small []blob.Blob // the newest images that fit into the checkpoint
	dated time.Time   // imported entries have their own dates, but none before this; zero = they are new
	// ids that a conversion made, and those that the session has in their place
	renames map[string]string
	older   map[string]uint64  // by id: possible parents that are not in heads; nil = heads has all lines
	leaf    []byte             // of the last entry, if it is a leaf entry: the new head, as JSON
	source  *checkpoint.Source // the imported file; nil = unknown
}

// identify sets the source.
func (ld *loader) identify() (err error) {
	if ld.in.Source != nil {
		ld.source, err = ld.in.Source()
	}
	return err
}

// gather reads all lines; images are stored at once.
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

// headless returns lines without the header, if the first line is one.
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

// written returns the line of a draft, with a new id and the previous line as parent unless it names them.
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

// image stores an image of an entry.
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

// line adds a stored line.
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

// hold records the head of a line.
func (ld *loader) hold(l transcript.Line) {
	if n := len(ld.heads); n > 0 && l.ParentID == ld.heads[n-1].ID {
		l.ParentID = ld.heads[n-1].ID // the usual case: the strings share memory
	}
	l.Raw = nil
	ld.heads = append(ld.heads, l)
}

// original stores the bytes of the imported file, if the lines are not those bytes.
func (ld *loader) original(ctx context.Context, open func() (io.Reader, error)) (sum string, err error) {
	if open == nil || ld.in.Screen != nil {
		return "", nil // a hook may have removed text that must not be stored
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

// discard removes everything of a session whose load failed. If its id may belong to another session, all objects
// stored before the first commit stay: the other's objects may have the same names.
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

// copyPath adds the lines of a path, with their images, labels and amendments.
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
	for _, ord := range from.Notes {
		entries, err := from.Read(ctx, []uint64{ord})
		if err != nil {
			return err
		}
		e := entries[0]
		if err := ld.copyImages(ctx, from, e.Raw); err != nil {
			return err
		}
		body := rawjson.ValidText(e.Body()) // a new line must be valid; earlier releases stored other bytes
		raw, err := ld.written(transcript.Draft{ID: e.ID, Type: e.Type, Body: body, Parent: ld.heads[head-1].ID})
		if err != nil {
			return err
		}
		if err := ld.line(raw); err != nil { // a stored line: its images are references already
			return err
		}
	}
	return nil
}

// copyImages stores the images to which a line of another session refers.
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
