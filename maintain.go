package coppice

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/coppice-go/coppice/internal/check"
	"github.com/coppice-go/coppice/internal/gc"
	"github.com/coppice-go/coppice/internal/journal"
	"github.com/coppice-go/coppice/internal/repair"
	"github.com/coppice-go/coppice/internal/transfer"
	"github.com/coppice-go/coppice/transcript"
)

// Verify reads a session, "" = every session of the store, and reports what is damaged or missing. deep
// also reads the bodies. It changes nothing. Damage is in the report; an error means that the check could
// not be made.
func (s *Store) Verify(ctx context.Context, id string, deep bool) (Report, error) {
	return s.maintain("verify", id,
		func(cfg journal.Config) (check.Report, error) { return check.Verify(ctx, cfg, deep) })
}

// Repair makes a damaged session usable again, "" = every one: it recovers bytes from wherever they still exist, with
// Options.Reread from an imported file too, and destroys none. What is nowhere is recorded as lost. It reads its result
// before it returns: a problem that is ErrCorrupt is damage that it could not repair. With dryRun it only reports what
// it would do.
func (s *Store) Repair(ctx context.Context, id string, dryRun bool) (Report, error) {
	return s.maintain("repair", id,
		func(cfg journal.Config) (check.Report, error) { return repair.Repair(ctx, cfg, s.again(), dryRun) })
}

// again is how a repair reads an imported file once more; nil = not at all.
func (s *Store) again() repair.Reread {
	read := s.o.Reread
	if read == nil {
		return nil
	}
	return func(open func() (io.ReadCloser, error), image func(string, []byte) error) (repair.Imported, error) {
		a, err := transfer.Reread(read(open), 0, image)
		if err != nil {
			return nil, err
		}
		return a, nil
	}
}

// GC removes the objects of a session, "" = of every session, that are no longer referenced and never can
// be, after it has completed an erasure that was broken off. With dryRun it only counts them.
func (s *Store) GC(ctx context.Context, id string, dryRun bool) (Report, error) {
	return s.maintain("gc", id, func(cfg journal.Config) (check.Report, error) { return gc.Run(ctx, cfg, dryRun) })
}

// maintain runs one of them with what a handle on the session would have.
func (s *Store) maintain(op, id string, run func(cfg journal.Config) (check.Report, error)) (Report, error) {
	name := id
	if name == "" {
		name = "every" // a valid id, so that the options are checked all the same
	}
	h, err := s.session(name, nil)
	if err != nil {
		return Report{}, fail(op, id, err)
	}
	cfg := h.cfg
	cfg.Session, cfg.ReadOnly = id, false
	found, err := run(cfg)
	r := Report{
		Sessions: found.Sessions, Objects: found.Objects, Removed: found.Removed, Bytes: found.Bytes, IO: h.b.IO(),
	}
	for _, p := range found.Problems {
		r.Problems = append(r.Problems, problem(op, p))
	}
	return r, fail(op, id, err)
}

// problem is a finding as an error with its place. Damage is ErrCorrupt; other findings are notes.
func problem(op string, p *check.Problem) *Error {
	e := &Error{Op: op, Session: p.Session, Object: p.Object, Offset: p.Offset, Err: p}
	if p.Kind.Damage() {
		e.Hint = "run repair; what is intact can still be read"
		if !errors.Is(p, ErrCorrupt) {
			e.Err = fmt.Errorf("%w: %w", ErrCorrupt, p)
		}
	}
	return e
}

// Kind returns what a problem of a Report is: damaged, missing and mismatch are damage (ErrCorrupt); lost is
// what a repair recorded, because nothing could bring it back; torn-tail, foreign-bytes, foreign-object, no-checkpoint,
// leftover, tree and too-new are notes; rebuilt and salvaged are what Repair did. "" for any other error.
func (e *Error) Kind() string {
	if p, ok := errors.AsType[*check.Problem](e.Err); ok {
		return string(p.Kind)
	}
	return ""
}

// Copy makes a session of a whole one of another store, or of this one: the same entries, and the same commits with
// their numbers, ids, times and states, its branches, images, imported file and snapshots. as is its id, which no
// session had before (fs.ErrExist); "" = a new one. A copy that fails leaves nothing, unless the outcome of its last
// write is unknown.
func (s *Store) Copy(ctx context.Context, from *Store, id, as string) (*Session, error) {
	if as == "" {
		var err error
		if as, err = transcript.NewID(s.cfg.Now(), s.cfg.Rand); err != nil {
			return nil, fail("copy", id, err)
		}
	}
	source, err := from.Open(ctx, id, &SessionOptions{ReadOnly: true})
	if err != nil {
		return nil, err
	}
	defer func() { _ = source.Close() }() // it wrote nothing
	h, err := s.session(as, nil)
	if err != nil {
		return nil, fail("copy", id, err)
	}
	if missing := source.Info().Missing; missing > 0 {
		return nil, fail("copy", id, fmt.Errorf("%w: commits up to %d were stored and are lost", ErrCorrupt, missing))
	}
	if err := repair.Copy(ctx, source.j, source.cfg, h.cfg); err != nil {
		return nil, fail("copy", id, err)
	}
	return s.Open(ctx, as, nil)
}
