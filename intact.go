package coppice

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"sync"

	"github.com/coppice-go/coppice/checkpoint"
	"github.com/coppice-go/coppice/internal/repair"
)

// intact is what a handle with SessionOptions.Intact reads where the session is damaged.
type intact struct {
	repair sync.Mutex // held while a repair is made; taken before mu

	mu     sync.Mutex
	damage error    // what ended a read
	s      *Session // what a repair would leave
	commit string   // the newest one when it was made

	missing uint64 // of a handle from Salvage: Missing in its Info
}

// Salvage opens a session for reading past damage (SessionOptions.Intact), also one that cannot be opened or that lost
// commits (Missing in its Info): then it is read as Repair would leave it, and the Cause in its Info is why. Nothing is
// written: a repair is made in memory.
func (s *Store) Salvage(ctx context.Context, id string) (*Session, error) {
	h, err := s.Open(ctx, id, &SessionOptions{ReadOnly: true, Intact: true})
	early := err == nil && h.Info().Missing > 0
	if !early && !errors.Is(err, ErrCorrupt) {
		return h, err
	}
	r, terr := s.repaired(ctx, id)
	if terr != nil {
		return h, err // what is left of its log
	}
	if r.intact.damage = err; !early {
		return r, nil
	}
	r.intact.missing = h.Info().Missing
	r.intact.damage = &endsEarly{h.Head().Seq + 1, r.intact.missing}
	return r, h.Close()
}

// endsEarly is the damage of a session that lost its newest commits.
type endsEarly struct{ from, to uint64 }

func (e *endsEarly) Error() string {
	return fmt.Sprintf("commits %d to %d were stored and are lost", e.from, e.to)
}

func (e *endsEarly) Is(target error) bool { return target == ErrCorrupt }

// repaired opens what Repair would leave of a session.
func (s *Store) repaired(ctx context.Context, id string) (*Session, error) {
	st, err := s.Repaired(ctx, id)
	if err != nil {
		return nil, err
	}
	return st.Open(ctx, id, &SessionOptions{ReadOnly: true})
}

// Repaired returns a Store that has one session as Repair would leave it. Nothing is written: the repair is made in
// memory, where changes by that Store stay too.
func (s *Store) Repaired(ctx context.Context, id string) (*Store, error) {
	h, err := s.session(id, nil)
	if err != nil {
		return nil, err
	}
	b, _, err := repair.Try(ctx, h.cfg, s.again())
	if err != nil {
		return nil, err
	}
	o := s.o
	o.Hooks, o.ListCache = Hooks{}, ""
	return New(b, &o)
}

// cause returns what ended a read of a handle with SessionOptions.Intact, or the opening of one from Salvage; "" =
// nothing did.
func (s *Session) cause() string {
	commit := s.state().Summary.Commit
	s.intact.mu.Lock()
	defer s.intact.mu.Unlock()
	if s.intact.damage == nil || s.intact.s != nil && s.intact.commit != commit { // it was repaired since, perhaps
		return ""
	}
	return s.intact.damage.Error()
}

// beyond returns what a repair would leave of the session, if a read ended with damage; else nil.
func (s *Session) beyond(ctx context.Context, damage error) *Session {
	if !s.o.Intact || !errors.Is(damage, ErrCorrupt) {
		return nil
	}
	s.intact.repair.Lock()
	defer s.intact.repair.Unlock()
	commit := s.state().Summary.Commit
	s.intact.mu.Lock()
	last, of := s.intact.s, s.intact.commit
	s.intact.mu.Unlock()
	if last != nil && of == commit {
		return last
	}
	h, err := s.store.repaired(ctx, s.ID())
	if err != nil {
		return nil // then the damage is all that is known
	}
	s.intact.mu.Lock()
	defer s.intact.mu.Unlock()
	s.intact.s, s.intact.commit, s.intact.damage = h, commit, damage
	return h
}

// readOn yields what read yields. Where damage ends that, the rest of what a repair would leave follows, and the damage
// is the error at the end.
func readOn[T any](
	ctx context.Context, s *Session, read func(s *Session) iter.Seq2[T, error],
) iter.Seq2[T, error] {
	if !s.o.Intact {
		return read(s)
	}
	return func(yield func(T, error) bool) {
		n, damage := 0, error(nil)
		for v, err := range read(s) {
			if err != nil {
				damage = err
			} else if n++; !yield(v, nil) {
				return
			}
		}
		if rest := s.beyond(ctx, damage); rest != nil {
			for v, err := range read(rest) {
				if err != nil {
					break
				}
				if n--; n < 0 && !yield(v, nil) {
					return
				}
			}
		}
		if damage != nil {
			var zero T
			yield(zero, damage)
		}
	}
}

// unmade leaves out the commits that Salvage made.
func unmade(log iter.Seq2[checkpoint.Commit, error]) iter.Seq2[checkpoint.Commit, error] {
	return func(yield func(checkpoint.Commit, error) bool) {
		for c, err := range log {
			if c.Writer != repair.Trial && !yield(c, err) {
				return
			}
		}
	}
}
