package importer

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"hash"
	"io"
	"slices"

	coppice "github.com/coppice-go/coppice"
	"github.com/coppice-go/coppice/checkpoint"
	"github.com/coppice-go/coppice/codec"
	"github.com/coppice-go/coppice/interop"
	"github.com/coppice-go/coppice/interop/formats"
	"github.com/coppice-go/coppice/secrets"
	"github.com/coppice-go/coppice/transcript"
)

// mayGrow reports whether a reader of a file that has this size now can begin in the middle.
func mayGrow(s *checkpoint.Source, size int64) bool {
	return s != nil && s.Resume != nil && s.Bytes < size
}

// resumed imports what was added to a file since a session was imported from it, and reads only the end of the file.
// ok is false where the whole file has to be read: nothing was done then. It closes the session.
func resumed(
	ctx context.Context, st *coppice.Store, src interop.Source, s *found, o Options,
) (res Result, ok bool, err error) {
	defer func() { err = errors.Join(err, o.end(s.open)) }()
	g := &growth{src: src, was: s.source}
	if o.Format = interop.Format(s.source.Program); !o.Grow || !o.Redact && s.Meta[redactedMeta] != "" || !g.open() {
		return res, false, nil
	}
	defer func() { err = errors.Join(err, g.in.Close()) }()
	from := g.was.Resume
	end := src
	end.Open = func() (io.ReadCloser, error) {
		part := io.NewSectionReader(g.at, from.From, g.size-from.From)
		return &counting{io.NopCloser(io.TeeReader(part, g)), o.Read}, nil
	}
	r, err := formats.Open(end, o.Format, interop.Options{Now: o.Now, From: &interop.Mark{
		Offset: from.From, Line: from.Line, Entry: from.Entry, State: from.State,
	}})
	if err != nil {
		return res, false, err
	}
	m, marks := r.(interop.Marker)
	if marks {
		res, err = g.bring(ctx, st, s.open, m, o)
	}
	if err = errors.Join(err, r.Close()); errors.Is(err, interop.ErrWhole) || lost(err) {
		return res, false, nil
	}
	if !marks || err != nil {
		return res, false, err
	}
	f := file{Source: src, program: row(o.Format).Program, format: o.Format, id: s.source.Session}
	parts, err := f.others(ctx, st, s.ID)
	if err == nil {
		err = f.adopt(ctx, st, parts, "", o, &res)
	}
	return res, err == nil, err
}

// growth is a file that grew, of which the end is read.
type growth struct {
	src  interop.Source
	was  *checkpoint.Source
	in   io.ReadCloser
	at   sized // the same
	size int64
	left int64 // bytes of the lines that the session has, while those are read
	line int   // the last one of these
}

// open opens the file, if it begins as it did, and with whole lines.
func (g *growth) open() (ok bool) {
	in, err := g.src.Open()
	if err != nil {
		return false // reading the whole file reports it
	}
	g.in = in
	if g.at, ok = in.(sized); ok {
		g.size = g.at.Size()
		has, cerr := compareParts(g.at, g.was)
		last := make([]byte, 1)
		_, err = g.at.ReadAt(last, g.was.Bytes-1)
		ok = has == beginning && cerr == nil && err == nil && last[0] == '\n'
	}
	if !ok {
		_ = in.Close() // nothing was written
	}
	g.left, g.line = g.was.Bytes-g.was.Resume.From, int(g.was.Resume.Line)
	return ok
}

// Write counts the lines that the session has; it is shown all bytes that are read.
func (g *growth) Write(p []byte) (int, error) {
	old := p[:min(int64(len(p)), g.left)]
	g.left -= int64(len(old))
	g.line += bytes.Count(old, []byte{'\n'})
	return len(p), nil
}

// bring appends the new entries to the session.
func (g *growth) bring(
	ctx context.Context, st *coppice.Store, s *coppice.Session, r interop.Marker, o Options,
) (res Result, err error) {
	seen, rows := 0, newRows{}
	source := func() (*checkpoint.Source, error) {
		now, err := g.identify(ctx)
		return withMark(now, r, o.Redact), err
	}
	all := lines(interop.Header{}, rows.of(r.Next), &seen)
	added, err := st.GrowFrom(ctx, s, all, source, func() (io.Reader, error) {
		if r.Verbatim() {
			return nil, nil
		}
		return io.NewSectionReader(g.at, g.was.Bytes, g.size-g.was.Bytes), nil
	})
	if err != nil {
		return res, err
	}
	res = Result{
		File: g.src.Name, Format: string(cmp.Or(o.Format, interop.Pi)), Session: s.ID(), Entries: int(s.Info().Entries),
		Grew: true, Added: added, BadLines: r.BadLines(), Diagnostics: []Diagnostic{},
	}
	for _, d := range r.Diagnostics() {
		if d.Ordinal > uint64(g.line) {
			res.Diagnostics = append(res.Diagnostics, diagnosticOf(d))
		}
	}
	res.from(s.Info().Source)
	res.count(rows.tree(added, s.Head().Entry))
	return res, nil
}

// newRows are what a tree has of lines. The tree of the whole session would be read for no more than a count.
type newRows struct {
	rows    []codec.Row
	parents []string
}

// of returns next, and notes what it returns.
func (n *newRows) of(next func() (transcript.Draft, error)) func() (transcript.Draft, error) {
	return func() (transcript.Draft, error) {
		d, err := next()
		if err != nil {
			return d, err
		}
		l, lerr := transcript.ParseLine(d.Raw)
		if lerr == nil { // else it is refused
			n.rows, n.parents = append(n.rows, transcript.RowOf(l, codec.NoParent)), append(n.parents, l.ParentID)
		}
		return d, nil
	}
}

// tree returns the tree of the newest lines. head is where the conversation is.
func (n *newRows) tree(newest int, head string) *transcript.Tree {
	at, from := map[string]int64{}, len(n.rows)-newest
	b := transcript.NewTreeBuilder()
	for i, r := range n.rows[from:] {
		if parent, ok := at[n.parents[from+i]]; ok {
			r.Parent = parent
		}
		at[r.ID] = int64(i)
		b.AddRow(r)
	}
	if _, ok := at[head]; !ok {
		head = ""
	}
	return b.Tree(head, nil, nil)
}

// diagnosticOf returns what a reader found.
func diagnosticOf(d transcript.Diagnostic) Diagnostic {
	return Diagnostic{Kind: d.Kind, Entry: d.Entry, Line: d.Ordinal, Detail: d.Detail}
}

// identify returns the source of an import of the grown file: the hash continues with the new bytes.
func (g *growth) identify(ctx context.Context) (*checkpoint.Source, error) {
	all, err := continueHash(g.was.Resume.Hash, g.was.Bytes)
	if err != nil {
		return nil, err
	}
	from := g.was.Bytes - g.was.Bytes%sha256.BlockSize
	if _, err := io.Copy(all, io.NewSectionReader(g.at, from, g.size-from)); err != nil {
		return nil, err
	}
	now := *g.was
	now.Bytes, now.Size, now.Changed, now.Resume = g.size, g.src.Size, g.src.Changed, nil
	part := make([]byte, min(g.size, checkpoint.SourceTail))
	if _, err := g.at.ReadAt(part, g.size-int64(len(part))); err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	now.Tail = sum(part)
	if g.was.Bytes < checkpoint.SourceHead {
		n, err := g.at.ReadAt(part[:min(len(part), checkpoint.SourceHead)], 0)
		if err != nil && !errors.Is(err, io.EOF) {
			return nil, err
		}
		now.Head = sum(part[:n])
	}
	now.Resume = &checkpoint.Resume{Hash: hashState(all)}
	now.SHA256 = hex.EncodeToString(all.Sum(nil))
	return &now, ctx.Err()
}

// withMark returns a source with the place where a reader of the grown file can begin; without one, where it has to
// begin with the first line.
// The state of a reader can hold texts of the file: with redact it has no credentials.
func withMark(s *checkpoint.Source, r interop.Reader, redact bool) *checkpoint.Source {
	if s == nil || s.Resume == nil {
		return s
	}
	var at *interop.Mark
	if m, ok := r.(interop.Marker); ok && (s.Size == 0 || s.Size == s.Bytes) { // a packed file is not appended to
		at = m.Mark()
	}
	if at != nil && redact && len(secrets.FindJSON([]byte(at.State))) > 0 {
		at = nil
	}
	if at == nil || len(at.State) > checkpoint.MaxResume || len(at.Entry) > checkpoint.MaxName {
		return s.Whole()
	}
	now := *s
	now.Resume = &checkpoint.Resume{
		Hash: s.Resume.Hash, From: at.Offset, Line: at.Line, Entry: at.Entry, State: at.State,
	}
	return &now
}

// The form in which crypto/sha256 keeps its state: a magic, the state, a block, and the number of bytes.
const (
	hashMagic = "sha\x03"
	hashForm  = len(hashMagic) + sha256.Size + sha256.BlockSize + 8
)

// hashState returns the state after the whole blocks that were hashed, in hex; "" = it is not known.
func hashState(h hash.Hash) string {
	m, ok := h.(encoding.BinaryMarshaler)
	if !ok {
		return ""
	}
	p, err := m.MarshalBinary()
	if err != nil || len(p) != hashForm || string(p[:len(hashMagic)]) != hashMagic {
		return ""
	}
	return hex.EncodeToString(p[len(hashMagic) : len(hashMagic)+sha256.Size])
}

var errHashState = errors.New("the state of a hash cannot be restored")

// continueHash returns a hash of the whole blocks in so many bytes, of which state is known.
func continueHash(state string, n int64) (hash.Hash, error) {
	h := sha256.New()
	u, ok := h.(encoding.BinaryUnmarshaler)
	p, err := hex.DecodeString(state)
	if err != nil || !ok {
		return nil, errors.Join(errHashState, err)
	}
	p = slices.Concat([]byte(hashMagic), p, make([]byte, sha256.BlockSize))
	p = binary.BigEndian.AppendUint64(p, uint64(n-n%sha256.BlockSize))
	if err := u.UnmarshalBinary(p); err != nil {
		return nil, errors.Join(errHashState, err)
	}
	return h, nil
}
