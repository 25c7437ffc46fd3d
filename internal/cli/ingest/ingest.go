package ingest

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"slices"
	"time"

	coppice "github.com/coppice-go/coppice"
	"github.com/coppice-go/coppice/entry"
	"github.com/coppice-go/coppice/internal/layout"
	"github.com/coppice-go/coppice/interop"
	"github.com/coppice-go/coppice/interop/formats"
	"github.com/coppice-go/coppice/transcript"
)

// Options of Import.
type Options struct {
	Session string         // the id to import under; "" = the file's own if it can be had, else a new one
	Format  interop.Format // "" = as the file's content tells
	Now     time.Time
	Rand    io.Reader
	Again   bool          // import what the store has already once more, under a new id
	Read    func(n int64) // told how many bytes were read; nil = nobody asks
}

// Diagnostic is something unusual in a file: where it was seen while reading, by the line's number from
// 1; where the tree shows it, by the entry's ordinal.
type Diagnostic struct {
	Kind    string `json:"kind"`
	Entry   string `json:"entry,omitempty"`
	Line    uint64 `json:"line,omitempty"`
	Ordinal uint64 `json:"ordinal,omitempty"`
	Detail  string `json:"detail,omitempty"`
}

// Result says what became of a file.
type Result struct {
	File        string       `json:"file"`
	Format      string       `json:"format"`
	Session     string       `json:"session"`
	Entries     int          `json:"entries"`
	Unchanged   bool         `json:"unchanged,omitempty"` // the session is from an earlier import of these bytes: nothing was done
	BadLines    int          `json:"badLines"`
	Diagnostics []Diagnostic `json:"diagnostics"`
	Children    []string     `json:"children,omitempty"` // sessions that were in the file too: sidechains, agents that it started
	Files       []string     `json:"-"`                  // that hold some of these, by the names by which Beside gave them
}

// Source is what a session is read from.
type Source = interop.Source

// FromBytes is a file in memory as a source.
func FromBytes(name string, p []byte) Source {
	return Source{Name: name, Open: func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(p)), nil }}
}

// Import imports one file as one session, with the rules of its format for contexts. A file whose session is there
// from an earlier import of the same bytes is left alone, whatever became of the session since. On an error the store
// holds nothing of it.
func Import(ctx context.Context, st *coppice.Store, src Source, o Options) (Result, error) {
	if o.Format == "" {
		var err error
		if o.Format, err = formats.Told(src); err != nil {
			return Result{}, fmt.Errorf("%s: %w", src.Name, err)
		}
	}
	r, err := once(ctx, st, src, o, false)
	if errors.Is(err, fs.ErrExist) && o.Session == "" { // of a session that was deleted, or came in this moment
		return once(ctx, st, src, o, true)
	}
	return r, err
}

// profile is the rules by which the program of a format builds contexts.
func profile(f interop.Format) transcript.Profile {
	switch f {
	case interop.Pi:
		return transcript.Pi
	case interop.Omp:
		return transcript.OMP
	case interop.Atomic:
		return transcript.Atomic
	case interop.Operator:
		return transcript.Operator
	case interop.ClaudeCode, interop.Codex: // theirs are built by other means: the reader brings them into our form
	}
	return transcript.Coppice
}

// once tries to import a file. fresh: under a new id, whatever the file says.
func once(ctx context.Context, st *coppice.Store, src Source, o Options, fresh bool) (res Result, err error) {
	counted := src
	counted.Open = func() (io.ReadCloser, error) {
		f, err := src.Open()
		return &counting{f, o.Read}, err
	}
	r, err := formats.Open(counted, o.Format, interop.Options{Now: o.Now, Rand: o.Rand})
	if err != nil {
		return Result{}, fmt.Errorf("%s: %w", src.Name, err)
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	h, err := r.Header()
	if err != nil {
		return Result{}, fmt.Errorf("%s: %w", src.Name, err)
	}
	id, taken := o.Session, ""
	if id == "" && !h.Made && layout.ValidID(h.ID) == nil {
		has, entries := another, 0
		if !fresh {
			if has, entries, err = before(ctx, st, h.ID, src); err != nil {
				return Result{}, fmt.Errorf("%s: compare it with session %s: %w", src.Name, h.ID, err)
			}
		}
		switch {
		case has == nothing:
			id = h.ID
		case has == whole && !o.Again:
			res = Result{File: src.Name, Format: format(o), Session: h.ID, Entries: entries, Unchanged: true, Diagnostics: []Diagnostic{}}
			res.Files, err = along(r)
			return res, err
		default:
			taken = has.of(h.ID) + ": imported as a new one"
		}
	}
	res, err = bring(ctx, st, src, r, h, &coppice.SessionOptions{
		ID: id, Title: h.Title, Cwd: h.Cwd, Parent: h.Parent, Profile: profile(o.Format),
		Original: func() (io.Reader, error) {
			if r.Verbatim() {
				return nil, nil
			}
			return src.Open()
		},
	})
	res.Format = format(o)
	if err == nil && taken != "" {
		res.Diagnostics = slices.Insert(res.Diagnostics, 0, Diagnostic{Kind: "id-taken", Detail: taken})
	}
	return res, err
}

// format is the format's name, as results show it.
func format(o Options) string { return string(cmp.Or(o.Format, interop.Pi)) }

// bring imports what a reader gives, and then the sessions within.
func bring(ctx context.Context, st *coppice.Store, src Source, r interop.Reader, h interop.Header, opts *coppice.SessionOptions) (res Result, err error) {
	res = Result{File: src.Name, Diagnostics: []Diagnostic{}}
	s, err := st.Import(ctx, lines(h, r.Next, &res.Entries), opts)
	if err != nil {
		return Result{}, fmt.Errorf("%s: %w", src.Name, err)
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	res.Session, res.BadLines = s.ID(), r.BadLines()
	for _, d := range r.Diagnostics() {
		res.Diagnostics = append(res.Diagnostics, Diagnostic{Kind: d.Kind, Entry: d.Entry, Line: d.Ordinal, Detail: d.Detail})
	}
	tree, err := s.Tree(ctx)
	if err != nil {
		return Result{}, fmt.Errorf("%s: imported as %s: %w", src.Name, s.ID(), err)
	}
	for _, d := range tree.Diagnostics() {
		res.Diagnostics = append(res.Diagnostics, Diagnostic{Kind: d.Kind, Entry: d.Entry, Ordinal: d.Ordinal, Detail: d.Detail})
	}
	if family, ok := r.(interop.Family); ok {
		err = children(ctx, st, family, &res)
	}
	return res, err
}

// children imports the sessions that a file holds beside its own, each as a child of it. One that was
// imported before, or whose id is another's, gets a new id.
func children(ctx context.Context, st *coppice.Store, f interop.Family, res *Result) error {
	for child, err := range f.Children() {
		if err != nil {
			return fmt.Errorf("%s: a session within: %w", res.File, err)
		}
		h, id := child.Header, child.Header.ID
		if layout.ValidID(id) != nil {
			id = ""
		}
		for {
			next, stop := iter.Pull2(child.Entries)
			n := 0
			s, err := st.Import(ctx, lines(h, func() (transcript.Draft, error) {
				d, err, more := next()
				if !more {
					return d, io.EOF
				}
				return d, err
			}, &n), &coppice.SessionOptions{ID: id, Title: h.Title, Cwd: h.Cwd, Parent: res.Session})
			stop()
			if errors.Is(err, fs.ErrExist) && id != "" {
				id = ""
				continue
			}
			if err != nil {
				return fmt.Errorf("%s: a session within: %w", res.File, err)
			}
			res.Children = append(res.Children, s.ID())
			if child.File != "" {
				res.Files = append(res.Files, child.File)
			}
			if err := s.Close(); err != nil {
				return err
			}
			break
		}
	}
	return nil
}

// lines gives the header, then every entry, and counts the entries.
func lines(h interop.Header, next func() (transcript.Draft, error), count *int) iter.Seq2[transcript.Draft, error] {
	return func(yield func(transcript.Draft, error) bool) {
		if !yield(entry.Line(h.Raw), nil) {
			return
		}
		for {
			d, err := next()
			if errors.Is(err, io.EOF) {
				return
			}
			if err == nil {
				*count++
			}
			if !yield(d, err) || err != nil {
				return
			}
		}
	}
}

// counting tells how much was read.
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
