package importer

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"slices"
	"sync"
	"time"

	coppice "github.com/coppice-go/coppice"
	"github.com/coppice-go/coppice/checkpoint"
	"github.com/coppice-go/coppice/entry"
	"github.com/coppice-go/coppice/interop"
	"github.com/coppice-go/coppice/interop/formats"
	"github.com/coppice-go/coppice/transcript"
)

// Options of Import.
type Options struct {
	Session string         // the id to import under; "" = that of the file if it is free, else a new one
	Format  interop.Format // "" = detected by the content
	Now     time.Time
	Again   bool          // import again what the store has already, under a new id, and what was deleted, under its id
	Grow    bool          // append to its session what was added to a file
	Verify  bool          // compare every byte with what was imported before, not the beginning and the end
	Read    func(n int64) // called with the number of bytes read; may be nil
	Redact  bool          // the store's hook is secrets.RedactDraft: titles are redacted too, and sessions are marked
	Closed  func(error)   // called with errors of closing sessions whose entries are stored; may be nil

	beside func(name string) (io.ReadCloser, error) // of the source
}

// Diagnostic is something unusual in a file: where it was seen while reading, by the line's number
// from 1; where the tree shows it, by the entry's ordinal.
type Diagnostic struct {
	Kind    string `json:"kind"`
	Entry   string `json:"entry,omitempty"`
	Line    uint64 `json:"line,omitempty"`
	Ordinal uint64 `json:"ordinal,omitempty"`
	Detail  string `json:"detail,omitempty"`
}

// Result is the result of an import.
type Result struct {
	File        string       `json:"file"`
	Format      string       `json:"format"`
	Session     string       `json:"session"`
	Entries     int          `json:"entries"`
	Unchanged   bool         `json:"unchanged,omitempty"` // an earlier import of these bytes: nothing was done
	Deleted     time.Time    `json:"deleted,omitzero"`    // when its session was deleted: nothing was done
	Grew        bool         `json:"grew,omitempty"`      // an earlier import of the file, which was shorter
	Added       int          `json:"added,omitempty"`     // entries that were added to it
	Messages    int          `json:"messages"`            // on the current lines of what was imported now
	Branches    int          `json:"branches"`            // messages on branches of it
	BadLines    int          `json:"badLines"`
	Diagnostics []Diagnostic `json:"diagnostics"`
	Children    []string     `json:"children,omitempty"` // sessions within the file: sidechains, agents
	Replaced    []string     `json:"replaced,omitempty"` // sessions of the file as it was before, now deleted
	Files       []string     `json:"-"`                  // files of these, by their names for Beside
	From        int64        `json:"-"`                  // where the next import begins to read, if the file grows
}

// Import imports one file as one session, with its format's rules for contexts. It knows a file by the id of its
// session, and by the beginning and the end of what was imported (with Verify by all of that). A file that did not
// change is left alone, whatever was done with its session since; so is one whose session was deleted (Deleted). What
// was added to a file becomes another session; with Grow it is appended to its session, if nothing but imports changed
// that. Where a later line changed an entry of that session, the file is imported under another id, and the earlier
// session is removed after that.
//
// On an error the store holds nothing of the file, or a part of it that the next import completes.
func Import(ctx context.Context, st *coppice.Store, src interop.Source, o Options) (Result, error) {
	if o.Format == "" {
		var err error
		if o.Format, err = formats.Told(src); err != nil {
			return Result{}, fmt.Errorf("%s: %w", src.Name, err)
		}
	}
	o.Format, o.beside = cmp.Or(o.Format, interop.Pi), src.Beside
	if !src.Changed.IsZero() && src.Changed.Before(o.Now) {
		o.Now = src.Changed // lines that have no time are at most as new as their file
	}
	counted := src
	counted.Open = func() (io.ReadCloser, error) {
		f, err := src.Open()
		return &counting{f, o.Read}, err
	}
	var tried attempts
	for { // at most twice for each of layout.MaxApart sessions
		r, err := formats.Open(counted, o.Format, interop.Options{Now: o.Now})
		if err != nil {
			return Result{}, fmt.Errorf("%s: %w", src.Name, err)
		}
		res, err := read(ctx, st, src, r, o, &tried)
		if err = errors.Join(err, r.Close()); err == nil {
			err = tried.drop(ctx, st, &res)
		}
		other, ok := errors.AsType[*otherError](err)
		switch {
		case err == nil:
			return res, nil
		case !ok && o.Session == "" && tried.lost < maxLost && lost(err) && ctx.Err() == nil:
			tried.lost++
		case !ok:
			return Result{}, refused(src, o.Format, err)
		case other.id != tried.original: // its original may be all that is in the way, or it is another file's
			tried.original, o.Verify = other.id, true
		default:
			tried.apart, tried.original = append(tried.apart, other.id), ""
		}
	}
}

// maxLost bounds how often an import looks again because another one was first.
const maxLost = 5

// lost reports whether another import of the file, at the same time, was first.
func lost(err error) bool { return errors.Is(err, fs.ErrExist) || errors.Is(err, coppice.ErrConflict) }

// refused makes the error of a file. Of one that is no session it reports what the file is.
func refused(src interop.Source, f interop.Format, err error) error {
	if errors.Is(err, interop.ErrNotSession) {
		if is := formats.Strange(src, f); is != "" {
			err = fmt.Errorf("%w: %s", interop.ErrNotSession, is)
		}
	}
	return fmt.Errorf("%s: %w", src.Name, err)
}

// attempts is what was found out about the sessions of a file that cannot grow.
type attempts struct {
	apart    []string // they are none of this file, or not any more
	lost     int      // times that another import was first
	original string   // it is to be tried once more, with the file's bytes in addition to its lines
}

// drop removes the sessions that an earlier import of the file left, now that the file is imported again. A session
// that was used since stays.
func (a *attempts) drop(ctx context.Context, st *coppice.Store, res *Result) error {
	if len(a.apart) == 0 {
		return nil
	}
	var stale []string
	for sum, err := range st.List(ctx, coppice.ListOptions{Exact: true}) {
		if err != nil {
			return err
		}
		if slices.Contains(a.apart, sum.Parent) {
			stale = append(stale, sum.ID)
		}
	}
	err := dropImports(ctx, st, stale, "", res)
	if err == nil {
		err = dropImports(ctx, st, a.apart, res.Session, res)
	}
	if err != nil {
		return err
	}
	if len(res.Replaced) > 0 { // no other session has the id
		res.Diagnostics = slices.DeleteFunc(res.Diagnostics, func(d Diagnostic) bool { return d.Kind == idTaken })
	}
	return nil
}

// dropImports removes sessions in whose place another one is, except those that were used or are gone already.
func dropImports(ctx context.Context, st *coppice.Store, ids []string, by string, res *Result) error {
	for _, id := range ids {
		err := st.DropImport(ctx, id, by)
		switch {
		case err == nil:
			res.Replaced = append(res.Replaced, id)
		case !errors.Is(err, fs.ErrExist) && !errors.Is(err, fs.ErrNotExist):
			return err
		}
	}
	return nil
}

// idTaken is the kind of diagnostic for a file whose session has another id.
const idTaken = "id-taken"

// read imports the session that a reader returns, and those within.
func read(
	ctx context.Context, st *coppice.Store, src interop.Source, r interop.Reader, o Options, tried *attempts,
) (res Result, err error) {
	h, err := r.Header()
	if err != nil {
		return Result{}, err
	}
	if len(h.Parent) > checkpoint.MaxName {
		h.Parent = "" // a path, as pi has it: the header line keeps it
	}
	f := file{Source: src, program: row(o.Format).Program, format: o.Format}
	if !h.Made && len(h.ID) <= checkpoint.MaxName {
		f.id = h.ID
	}
	is := place{id: o.Session}
	if o.Session == "" {
		if is, err = find(ctx, st, h, f, o, tried.apart); err != nil {
			return Result{}, err
		}
	}
	res = Result{
		File: src.Name, Format: string(o.Format), Session: is.id, Entries: is.entries,
		Unchanged: is.unchanged, Grew: is.grows, Diagnostics: []Diagnostic{},
	}
	if is.taken != "" {
		res.Diagnostics = append(res.Diagnostics, Diagnostic{Kind: idTaken, Detail: is.taken})
	}
	if is.deleted != nil {
		res.Deleted = is.deleted.Deleted
		return res, nil
	}
	if err = f.take(ctx, st, r, h, is, o, tried.original, &res); err != nil {
		return res, err
	}
	tried.apart = append(tried.apart, is.stale...)
	if is.grows {
		is.parts, err = f.others(ctx, st, res.Session)
	}
	if err != nil {
		return res, err
	}
	return res, f.adopt(ctx, st, is.parts, "", o, &res)
}

// take imports the session that a reader returns at its place, and those within. original is the id of a session that
// keeps the bytes of its file whatever its lines are.
func (f file) take(
	ctx context.Context, st *coppice.Store, r interop.Reader, h interop.Header, is place, o Options, original string,
	res *Result,
) (err error) {
	if is.after != "" {
		whole, own, err := f.continued(ctx, st, is.after, h, o)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, whole.Close()) }()
		r, h = whole, own
	}
	if !is.unchanged {
		source := sync.OnceValues(func() (*checkpoint.Source, error) { return f.identify(ctx) })
		var hashing sync.WaitGroup // while the file is converted
		hashing.Go(func() { _, _ = source() })
		defer hashing.Wait()
		err = importSession(ctx, st, r, h, res, o, &coppice.SessionOptions{
			ID: is.id, Title: o.title(h), Cwd: h.Cwd, Parent: h.Parent, Profile: row(o.Format).Profile,
			Again: o.Again, Meta: o.meta(h),
			Source: func() (*checkpoint.Source, error) {
				s, err := source()
				return res.from(withMark(s, r, o.Redact)), err
			},
			Original: func() (io.Reader, error) {
				if r.Verbatim() && is.id != original {
					return nil, nil
				}
				return f.Open()
			},
		})
	}
	if err != nil {
		return err
	}
	if family, ok := r.(interop.Family); ok {
		err = children(ctx, st, family, o, res)
	}
	return err
}

// from notes where the next import of a source begins, and returns the source.
func (r *Result) from(s *checkpoint.Source) *checkpoint.Source {
	if r.From = 0; s != nil && s.Resume != nil {
		r.From = s.Resume.From
	}
	return s
}

// row returns what is known of a format.
func row(f interop.Format) formats.Format {
	row, err := formats.Of(f)
	if err != nil {
		return formats.Format{Profile: transcript.Coppice}
	}
	return row
}

// OnlyClosing reports whether the error of closing a session means that what was committed is stored, but the session
// could not be tidied up: its checkpoint cannot be written. The next handle does that. To repeat the work would
// do it twice.
func OnlyClosing(err error) bool {
	failed, ok := errors.AsType[*coppice.Error](err)
	return ok && failed.Op == "close" && !errors.Is(err, coppice.ErrCommitUnknown)
}

// end closes a session whose entries are stored.
func (o Options) end(s *coppice.Session) error {
	err := s.Close()
	if !OnlyClosing(err) {
		return err
	}
	if o.Closed != nil {
		o.Closed(err)
	}
	return nil
}

// importSession imports the entries that a reader returns.
func importSession(
	ctx context.Context, st *coppice.Store, r interop.Reader, h interop.Header, res *Result, o Options,
	opts *coppice.SessionOptions,
) (err error) {
	res.Entries = 0
	all := lines(h, r.Next, &res.Entries)
	var s *coppice.Session
	if res.Grew {
		s, res.Added, err = o.grow(ctx, st, all, opts)
	} else {
		s, err = st.Import(ctx, all, opts)
	}
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, o.end(s)) }()
	res.Session, res.BadLines = s.ID(), r.BadLines()
	for _, d := range r.Diagnostics() {
		res.Diagnostics = append(res.Diagnostics, diagnosticOf(d))
	}
	tree, err := s.Tree(ctx)
	if err != nil {
		return fmt.Errorf("imported as %s: %w", s.ID(), err)
	}
	res.count(tree)
	for _, d := range tree.Diagnostics() {
		res.Diagnostics = append(res.Diagnostics, Diagnostic{
			Kind: d.Kind, Entry: d.Entry, Ordinal: d.Ordinal, Detail: d.Detail,
		})
	}
	return nil
}

// Unknown adds a diagnostic for each type of lines, in a file that was imported and in those of its agents, that the
// reader of the format does not know. It reads them once more.
func (f File) Unknown(r *Result) error {
	for _, name := range append([]string{""}, r.Files...) { // "" = the file
		src, in := f.source(), ""
		if name != "" {
			beside, of := src.Beside, name
			src.Open, in = func() (io.ReadCloser, error) { return beside(of) }, name+": "
		}
		list, err := formats.Unknown(interop.Format(r.Format), src)
		if err != nil {
			return fmt.Errorf("%s: %w", src.Name, err)
		}
		for _, d := range list {
			r.Diagnostics = append(r.Diagnostics, Diagnostic{Kind: d.Kind, Line: d.Ordinal, Detail: in + d.Detail})
		}
	}
	return nil
}

// count adds the messages of a session.
func (r *Result) count(t *transcript.Tree) {
	path, elsewhere := t.Messages()
	r.Messages, r.Branches = r.Messages+path, r.Branches+elsewhere
}

// Remarks returns the number of diagnostics, with those that are counted only.
func (r *Result) Remarks() (n int) {
	for _, d := range r.Diagnostics {
		more := 1
		if d.Kind == transcript.DiagMore {
			_, _ = fmt.Sscanf(d.Detail, "%d more", &more)
		}
		n += more
	}
	return n
}

// otherError reports that a session does not match the beginning of a file, so that the file cannot
// be appended to it.
type otherError struct {
	id  string
	err error
}

func (e *otherError) Error() string { return e.err.Error() }
func (e *otherError) Unwrap() error { return e.err }

// grow appends to a session what was added to its file, and returns the number of new entries.
func (o Options) grow(
	ctx context.Context, st *coppice.Store, lines iter.Seq2[transcript.Draft, error], opts *coppice.SessionOptions,
) (*coppice.Session, int, error) {
	if err := o.mayGrow(ctx, st, opts.ID); err != nil {
		return nil, 0, err
	}
	s, added, err := st.Grow(ctx, lines, opts)
	if errors.Is(err, fs.ErrExist) {
		err = &otherError{opts.ID, err}
	}
	return s, added, err
}

// lines yields the header, then every entry, and counts the entries.
func lines(h interop.Header, next func() (transcript.Draft, error), count *int) iter.Seq2[transcript.Draft, error] {
	return func(yield func(transcript.Draft, error) bool) {
		if h.Raw != nil && !yield(entry.Line(h.Raw), nil) {
			return
		}
		for {
			d, err := next()
			if errors.Is(err, io.EOF) {
				return
			}
			if err != nil {
				yield(d, err)
				return
			}
			*count++
			if !yield(d, nil) {
				return
			}
		}
	}
}

// counting reports how much was read.
type counting struct {
	io.ReadCloser
	tell func(n int64)
}

func (c *counting) Read(p []byte) (int, error) {
	n, err := c.ReadCloser.Read(p)
	if c.tell != nil && n > 0 {
		c.tell(int64(n))
	}
	return n, err
}
