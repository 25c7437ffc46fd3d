package coppice

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"

	"github.com/coppice-go/coppice/backend"
	"github.com/coppice-go/coppice/checkpoint"
	"github.com/coppice-go/coppice/internal/journal"
	"github.com/coppice-go/coppice/internal/layout"
	"github.com/coppice-go/coppice/transcript"
)

const (
	chunkBytes = 4 << 20  // lines of one commit of an import
	chunkMost  = 16 << 20 // the same, where parents stand behind their children
)

// Import commits foreign lines unchanged as one new session; interop packages and entry.Line yield them. A first line of type "session" is the header and gives title and working
// directory where o does not. Parents are resolved over all lines: one may stand behind its child, and of
// lines with one id the last answers to it; so all lines are held in memory until the last has come. The
// session appears with several commits of at most 4 MiB each; an import that fails leaves none.
func (s *Store) Import(ctx context.Context, lines iter.Seq2[transcript.Draft, error], o *SessionOptions) (*Session, error) {
	h, err := s.importAll(ctx, lines, o)
	if err != nil {
		return nil, fail("import", "", err)
	}
	return h, nil
}

func (s *Store) importAll(ctx context.Context, lines iter.Seq2[transcript.Draft, error], o *SessionOptions) (*Session, error) {
	if o == nil {
		o = &s.o.Session
	}
	own := *o
	own.Original = nil
	h, err := s.Create(o.ID, &own)
	if err != nil {
		return nil, err
	}
	ld := loader{s: h}
	header, err := ld.gather(ctx, lines)
	if err == nil {
		err = h.adoptHeader(header, &own)
	}
	var original string
	if err == nil {
		original, err = ld.original(ctx, o)
	}
	if err == nil {
		err = ld.commitAll(ctx, "import", func(st *journal.Step) { st.Original = original })
	}
	if err == nil {
		err = h.j.Settle(ctx)
	}
	if err != nil {
		return nil, errors.Join(err, h.discard(ctx, o.ID == ""))
	}
	h.look(func(w *work) { w.settle() })
	return h, nil
}

// loader brings many lines into a new session.
type loader struct {
	s       *Session
	entries []*journal.Entry
	heads   []transcript.Line
	small   []transcript.Blob // the newest images that can ride in the checkpoint
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
		drafts, err := ld.s.screen(ctx, []transcript.Draft{d})
		if err == nil {
			err = ld.take(ctx, drafts[0])
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
	now, id, parent := ld.s.store.o.Now(), d.ID, d.Parent
	if d.Raw == nil && id == "" {
		var err error
		if id, err = transcript.NewID(now, ld.s.store.rand); err != nil {
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
	stored, blobs := transcript.Externalise(raw)
	if len(stored) > entryMax {
		return limitError("entry", entryMax, len(stored))
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
	sum, err := ld.s.j.PutBlob(ctx, data)
	if err != nil {
		return fmt.Errorf("store an image: %w", err)
	}
	if len(data) <= checkpoint.MaxBlob {
		ld.small = append(ld.small, transcript.Blob{Sum: sum, Data: data})
		ld.small = ld.small[max(0, len(ld.small)-checkpoint.MaxBlobs/blobLeast):]
	}
	return nil
}

// blobLeast is the length from which on an image leaves its line, in bytes.
const blobLeast = 24 << 10

// line takes a stored line in.
func (ld *loader) line(raw []byte) error {
	l, err := transcript.ParseLine(raw)
	if err != nil {
		return err
	}
	ld.heads = append(ld.heads, l)
	ld.entries = append(ld.entries, &journal.Entry{Raw: raw, ID: l.ID, ParentID: l.ParentID, ParentOrd: -1})
	return nil
}

// original stores the bytes of the imported file, where the lines are not those bytes.
func (ld *loader) original(ctx context.Context, o *SessionOptions) (sum string, err error) {
	if o.Original == nil || ld.s.store.o.Hooks.BeforeAppend != nil {
		return "", nil // a hook may have taken out what must not be kept
	}
	r, err := o.Original()
	if err != nil || r == nil {
		return "", err
	}
	if c, ok := r.(io.Closer); ok {
		defer func() { err = errors.Join(err, c.Close()) }()
	}
	raw, err := io.ReadAll(io.LimitReader(r, journal.OriginalMax+1))
	if err != nil {
		return "", fmt.Errorf("read the original: %w", err)
	}
	if len(raw) > journal.OriginalMax {
		return "", limitError("original", journal.OriginalMax, len(raw))
	}
	return ld.s.j.PutOriginal(ctx, raw)
}

// commitAll commits what was taken in, in chunks; last completes the last step.
func (ld *loader) commitAll(ctx context.Context, reason string, last func(*journal.Step)) error {
	parents, _ := transcript.ResolveParents(ld.heads)
	for at := 0; ; {
		end := ld.chunk(at, parents)
		step := &journal.Step{Reason: reason, Entries: ld.entries[at:end]}
		for i := at; i < end; i++ {
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
		if _, err := ld.s.j.Commit(ctx, step); err != nil {
			return err
		}
		if at = end; at == len(ld.entries) {
			return nil
		}
	}
}

// chunk gives the end of the chunk that begins at an entry: full, and with no parent behind it.
func (ld *loader) chunk(at int, parents []int64) int {
	size, need := 0, int64(0)
	for i := at; i < len(ld.entries); i++ {
		n := len(ld.entries[i].Raw) + 1
		if i > at && (size+n > chunkMost || size+n > chunkBytes && need < int64(i)) {
			return i
		}
		size, need = size+n, max(need, parents[i])
	}
	return len(ld.entries)
}

// adoptHeader begins the session anew with a foreign header line.
func (s *Session) adoptHeader(header []byte, o *SessionOptions) error {
	g := journal.Genesis{Header: header, Title: o.Title, Cwd: o.Cwd, Parent: o.Parent}
	if header == nil {
		return nil
	}
	var h struct {
		Title  string `json:"title"`
		Cwd    string `json:"cwd"`
		Parent string `json:"parentSession"`
	}
	if err := json.Unmarshal(header, &h); err != nil {
		h.Title, h.Cwd, h.Parent = "", "", "" // fields of other types say nothing
	}
	for _, f := range []struct {
		to   *string
		from string
	}{{&g.Title, h.Title}, {&g.Cwd, h.Cwd}, {&g.Parent, h.Parent}} {
		if *f.to == "" {
			*f.to = f.from
		}
	}
	_, cfg, err := s.store.session(s.id, &s.o)
	if err != nil {
		return err
	}
	cfg.Backend = s.b
	s.mu.Lock()
	defer s.mu.Unlock()
	s.j = journal.Create(cfg, g)
	s.w.reset(s.j.State())
	return nil
}

// discard leaves nothing of a session that could not be made. fresh: its id is nobody else's. If it is
// not, all that was stored before the first commit stays: another's objects may have the same names.
func (s *Session) discard(ctx context.Context, fresh bool) error {
	ctx = context.WithoutCancel(ctx)
	st, broken := s.j.State(), s.j.Broken() != nil
	err := s.Close()
	switch {
	case st.Summary.Commit != "" || fresh && broken:
		return errors.Join(err, s.store.Delete(ctx, s.id))
	case !fresh:
		return err
	}
	for info, lerr := range s.store.b.List(ctx, backend.ListOptions{Prefix: layout.SessionPrefix(s.id)}) {
		if lerr == nil {
			lerr = s.store.b.Delete(ctx, info.Key)
		}
		err = errors.Join(err, lerr)
	}
	return err
}

// Fork makes a session of its own of the way to a target: its entries byte for byte, the labels on them,
// and the document in force there. Its header names this session as its parent. id "" = a new UUIDv7; nil
// options take title and working directory over.
func (s *Session) Fork(ctx context.Context, t Target, id string, o *SessionOptions) (*Session, error) {
	v, err := s.At(ctx, t)
	var h *Session
	if err == nil {
		h, err = s.fork(ctx, v, id, o)
	}
	if err != nil {
		return nil, s.fail("fork", err)
	}
	return h, nil
}

func (s *Session) fork(ctx context.Context, v *View, id string, o *SessionOptions) (*Session, error) {
	own := s.store.o.Session
	if o != nil {
		own = *o
	} else {
		own.Title, own.Cwd = v.st.Summary.Title, v.st.Summary.Cwd
	}
	own.Parent = s.id
	m, err := s.moment(ctx)
	if err != nil {
		return nil, err
	}
	var path []uint64
	if ord, ok := m.ordinal(v.head); ok {
		for up := range m.up(ord) {
			path = append(path, up)
		}
	}
	h, err := s.store.Create(id, &own)
	if err != nil {
		return nil, err
	}
	ld := loader{s: h}
	if err = s.copyPath(ctx, m, path, &ld); err == nil {
		err = ld.commitAll(ctx, "fork", func(st *journal.Step) {
			doc := v.doc
			st.Edit = func(d checkpoint.Document) checkpoint.Document {
				doc.Branch = d.Branch
				return doc
			}
			st.Keyframe = true
			if n := len(path); n > 0 { // labels hang beside the head
				st.Head = &journal.Head{ID: ld.entries[n-1].ID, Ord: -1, Entry: ld.entries[n-1]}
			}
		})
	}
	if err != nil {
		return nil, errors.Join(err, h.discard(ctx, id == ""))
	}
	h.look(func(w *work) { w.settle() })
	return h, nil
}

// copyPath takes the lines of a path, given from the head down, into a loader, with their images and
// labels.
func (s *Session) copyPath(ctx context.Context, m *moment, path []uint64, ld *loader) error {
	var labels []transcript.Draft
	for n := len(path); n > 0; n = max(0, n-readMost) {
		part := make([]uint64, 0, readMost)
		for i := n - 1; i >= max(0, n-readMost); i-- {
			part = append(part, path[i])
		}
		entries, err := s.bodies(ctx, m, part)
		if err != nil {
			return err
		}
		for _, e := range entries {
			for _, ref := range transcript.BlobRefs(e.Raw) {
				data, err := s.images.get(ctx, s, m.st, ref.Sum)
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
			if label := m.tree.NodeAt(e.Ordinal).Label; label != "" {
				labels = append(labels, labelDraft(e.ID, label))
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
