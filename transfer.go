package coppice

import (
	"cmp"
	"context"
	"errors"
	"io"
	"io/fs"
	"iter"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/coppice-go/coppice/checkpoint"
	"github.com/coppice-go/coppice/entry"
	"github.com/coppice-go/coppice/internal/transfer"
	"github.com/coppice-go/coppice/transcript"
)

// Import commits foreign lines unchanged as one new session; interop packages and entry.Line yield them. A first line
// of type "session" is the header: it has the title and the working directory if o has not. Import reads all lines
// before it resolves parents, because a parent may come after its child, and of several lines with one id the last one
// is the parent. It holds 16 MiB of lines in memory and the rest in a temporary file. It makes commits of at most 4 MiB
// each. If one fails, no session remains, or, with o.Source, one that Grow completes.
func (s *Store) Import(
	ctx context.Context, lines iter.Seq2[transcript.Draft, error], o *SessionOptions,
) (*Session, error) {
	if o == nil {
		o = &SessionOptions{}
	}
	h, in, err := s.into(o.ID, o)
	if err != nil {
		return nil, fail("import", "", err)
	}
	in.Screen, in.Source = s.o.Hooks.BeforeAppend, o.Source
	g, err := genesis(h.ID(), &h.o, s.cfg.Now())
	if err != nil {
		return nil, fail("import", "", err)
	}
	if len(h.o.Meta) > 0 {
		in.Meta = checkpoint.MetaChange{}
		for key, value := range h.o.Meta {
			in.Meta[key] = &value
		}
	}
	j, err := transfer.Import(ctx, in, lines, g, o.Original)
	if err != nil {
		return nil, fail("import", "", err)
	}
	if err := s.add(h, j); err != nil {
		return nil, fail("import", "", err)
	}
	s.brought(h)
	return h, nil
}

// Grow appends to the session o.ID the lines beyond those that it was imported from, and returns the number of
// their entries: the session is then what Import of all lines would have made. Title, directory and header stay. It
// returns fs.ErrExist and does nothing if the lines do not begin as the session does, or if the session has commits
// besides imports and amendments, which stay in force. It makes commits of at most 4 MiB each; if one fails, the
// next Grow appends the rest.
func (s *Store) Grow(
	ctx context.Context, lines iter.Seq2[transcript.Draft, error], o *SessionOptions,
) (*Session, int, error) {
	if o == nil {
		o = &SessionOptions{}
	}
	h, in, err := s.into(o.ID, o)
	if err != nil {
		return nil, 0, fail("grow", o.ID, err)
	}
	in.Screen, in.Source = s.o.Hooks.BeforeAppend, o.Source
	j, added, err := transfer.Grow(ctx, in, lines, o.Original)
	if err != nil {
		return nil, 0, fail("grow", o.ID, err)
	}
	if err := s.add(h, j); err != nil {
		return nil, 0, fail("grow", o.ID, err)
	}
	s.grown(h, added)
	return h, added, nil
}

// GrowFrom is Grow of an open session for a file of which only the end was read. lines begin with the entry
// h.Info().Source.Resume.Entry, source describes the file as it is now, and more returns its bytes beyond
// h.Info().Source.Bytes, or nil if lines are all lines of the file. It returns fs.ErrExist and does nothing if the
// session does not end as the lines begin, if it was changed, or if the place of the new lines depends on earlier ones:
// then the caller needs Grow.
func (s *Store) GrowFrom(
	ctx context.Context, h *Session, lines iter.Seq2[transcript.Draft, error],
	source func() (*checkpoint.Source, error), more func() (io.Reader, error),
) (added int, err error) {
	in := transfer.Into{Config: h.cfg, Screen: s.o.Hooks.BeforeAppend, Source: source}
	if added, err = transfer.Continue(ctx, in, h.j, lines, more); err != nil {
		return 0, fail("grow", h.ID(), err)
	}
	s.grown(h, added)
	return added, nil
}

// DropImport deletes the session id if nothing but imports was committed to it. It is for the session of an earlier
// import of a file, when a later import of the file could not append to it and made the session by instead. The
// tombstone names by, which may be "". For any other session it returns fs.ErrExist and does nothing. It may be
// repeated after a failure.
func (s *Store) DropImport(ctx context.Context, id, by string) error {
	h, err := s.session(id, nil)
	if err == nil {
		err = transfer.Drop(ctx, h.cfg, by)
	}
	return fail("drop", id, err)
}

// Renew records the size and the time of the file that the session id was imported from, so that the next import need
// not read the file. The caller has compared the file's bytes with those of the import. Renew makes one commit without
// entries; if the newest commit of the session is not an import's, it does nothing.
func (s *Store) Renew(ctx context.Context, id string, size int64, changed time.Time) error {
	h, err := s.session(id, nil)
	if err == nil {
		err = transfer.Renew(ctx, h.cfg, size, changed)
	}
	return fail("renew", id, err)
}

// into makes a handle for a session that is about to be written. id "" = a new UUIDv7.
func (s *Store) into(id string, o *SessionOptions) (*Session, transfer.Into, error) {
	in := transfer.Into{Fresh: id == ""}
	if id == "" {
		var err error
		if id, err = transcript.NewID(s.cfg.Now(), s.cfg.Rand); err != nil {
			return nil, in, err
		}
	}
	h, err := s.session(id, o)
	if err != nil {
		return nil, in, err
	}
	in.Config = h.cfg
	in.Config.Fresh = in.Fresh
	return h, in, nil
}

// Fork creates a new session from the path to a target: its entries byte for byte, the labels on them and the
// amendments of them that are in force now, and the document in force there. Its header names this session as its
// parent. id "" = a new UUIDv7; with nil options it has the title and working directory of this session. If the
// entries set another title or directory than the options, one more commit sets those of the options.
func (s *Session) Fork(ctx context.Context, t Target, id string, o *SessionOptions) (*Session, error) {
	v, err := s.at(ctx, t)
	if err != nil {
		return nil, s.fail("fork", err)
	}
	f, err := s.store.fork(ctx, s, v, id, o)
	if err != nil {
		return nil, s.fail("fork", err)
	}
	return f, nil
}

// fork makes the session of a fork.
func (s *Store) fork(ctx context.Context, from *Session, v *View, id string, o *SessionOptions) (*Session, error) {
	own := SessionOptions{}
	if o != nil {
		own = *o
	} else {
		info := readableInfo(v.st.Summary)
		own.Title, own.Cwd = info.Title, info.Cwd
	}
	own.Parent, own.Relation = from.ID(), cmp.Or(own.Relation, "fork")
	own.Profile = cmp.Or(own.Profile, from.Profile())
	h, in, err := s.into(id, &own)
	if err != nil {
		return nil, err
	}
	g, err := genesis(h.ID(), &own, s.cfg.Now())
	if err != nil {
		return nil, err
	}
	path, err := from.pathTo(ctx, v)
	if err != nil {
		return nil, err
	}
	j, err := transfer.Fork(ctx, in, path, g)
	if err != nil {
		return nil, err
	}
	if err := s.add(h, j); err != nil {
		return nil, err
	}
	s.brought(h)
	if err := h.introduce(ctx); err != nil {
		return nil, errors.Join(err, h.Close(), s.Delete(context.WithoutCancel(ctx), h.ID()))
	}
	return h, nil
}

// pathTo returns the entries that a fork takes over: the path to a view.
func (s *Session) pathTo(ctx context.Context, v *View) (p transfer.Path, err error) {
	m, err := s.treeView(ctx)
	if err != nil {
		return p, err
	}
	head, ok := m.ordinal(v.head)
	if ok {
		p.Entries = slices.Collect(m.up(head))
		slices.Reverse(p.Entries)
	}
	note := func(ord uint64) { // in imported files some are entries of the path
		depth, _ := m.Tree.Depth(ord)
		if on, ok := m.Tree.Ancestor(head, depth); !ok || on != ord {
			p.Notes = append(p.Notes, ord)
		}
	}
	for _, ord := range p.Entries {
		if label, ok := m.Tree.LabelOf(ord); ok {
			note(label.Ordinal)
		}
		if a, ok := m.Tree.Amendment(ord, math.MaxUint64); ok {
			note(a)
		}
	}
	p.Doc = v.doc
	stored := m.stored()
	p.Read = func(ctx context.Context, ords []uint64) ([]transcript.Entry, error) {
		return s.bodies(ctx, stored, ords)
	}
	p.Image = func(ctx context.Context, sum string) ([]byte, error) { return s.images.get(ctx, m.State, sum) }
	return p, s.amendItems(ctx, m, &p.Doc)
}

// introduce appends title and directory of the options, in a commit of their own, if the entries that were taken over
// have others.
func (s *Session) introduce(ctx context.Context) error {
	var say []transcript.Draft
	now := s.Info()
	if !sameText(now.Title, s.o.Title) {
		say = append(say, entry.Title(s.o.Title))
	}
	if !sameText(now.Cwd, s.o.Cwd) {
		say = append(say, entry.Move(s.o.Cwd))
	}
	if len(say) == 0 {
		return nil
	}
	if _, err := s.append(ctx, say); err != nil {
		return err
	}
	_, err := s.commit(ctx, &Turn{Reason: reasonFork}, nil)
	return err
}

// sameText compares a text with one that is wanted, which may come from a summary and be cut there; "" = any.
func sameText(have, want string) bool {
	if cut, ok := strings.CutSuffix(want, "…"); ok && strings.HasPrefix(have, cut) {
		return true
	}
	return want == "" || have == want
}

// Export writes a session as it was imported: the exact bytes if they were not pi v3, otherwise the
// imported lines. For a session that was not imported it writes every line, as pi v3 JSONL. It reads no
// line if the original's bytes are kept, so it can write them if the session is too damaged to be opened.
func (s *Store) Export(ctx context.Context, id string, w io.Writer) error {
	opened := false
	err := s.export(ctx, id, func(h *Session) error {
		opened = true
		return transfer.Original(ctx, h.j, h.images.line, w)
	})
	if opened || !errors.Is(err, ErrCorrupt) && !errors.Is(err, fs.ErrNotExist) || errors.Is(err, ErrDeleted) {
		return fail("export", id, err)
	}
	h, serr := s.session(id, nil)
	if serr == nil {
		serr = transfer.Rescue(ctx, h.cfg, w)
	}
	if serr == nil || !errors.Is(serr, fs.ErrNotExist) {
		err = serr
	}
	return fail("export", id, err)
}

// ExportPi writes a session as a pi v3 file: the header and every entry, with images. If the head is not
// the last line, a custom entry "coppice.head" after it makes pi continue at the head.
func (s *Store) ExportPi(ctx context.Context, id string, w io.Writer) error {
	tail := func(d transcript.Draft, parent string) ([]byte, error) {
		now := s.cfg.Now()
		id, err := transcript.NewID(now, s.cfg.Rand)
		if err != nil {
			return nil, err
		}
		return d.Line(id, parent, now)
	}
	return fail("export", id, s.export(ctx, id, func(h *Session) error {
		return transfer.Pi(ctx, h.j, h.images.line, w, tail)
	}))
}

func (s *Store) export(ctx context.Context, id string, write func(*Session) error) error {
	h, err := s.Open(ctx, id, &SessionOptions{ReadOnly: true})
	if err != nil {
		return err
	}
	return errors.Join(write(h), h.Close())
}
