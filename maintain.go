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
// be. With dryRun it only counts them.
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
