package casprobe

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/coppice-go/coppice/backend"
)

// Racers is the number of writers that compete for one key.
const Racers = 32

// ErrUnclear reports that the store returned too few definite answers: it is busy, or answers were lost.
var ErrUnclear = errors.New("cannot determine whether the store honours conditional writes")

// Stale checks, with four requests and no race, that writes with a false condition are refused. key must not exist.
func Stale(ctx context.Context, b backend.Backend, key string) error {
	first, err := b.Put(ctx, key, []byte("one"), backend.IfAbsent())
	if err != nil {
		return unclear(err)
	}
	if _, err := b.Put(ctx, key, []byte("two"), backend.IfMatch(first.Version)); err != nil {
		return unclear(err)
	}
	for _, c := range []struct {
		what, key string
		cond      backend.Cond
	}{
		{"a second create", key, backend.IfAbsent()},
		{"a replace of what was replaced", key, backend.IfMatch(first.Version)},
		{"a replace of what is not there", key + ".never", backend.IfMatch(first.Version)},
	} {
		_, err := b.Put(ctx, c.key, []byte("three"), c.cond)
		switch {
		case err == nil:
			return fmt.Errorf("%s was not refused: %w", c.what, backend.ErrNoCAS)
		case !errors.Is(err, backend.ErrPrecondition):
			return fmt.Errorf("%s: %w", c.what, unclear(err))
		}
	}
	return nil
}

// Race starts Racers writers at once under one condition: exactly one may win, and its body must be stored. They create
// key, or replace the object that Race stores there first; key must not exist.
func Race(ctx context.Context, b backend.Backend, key string, replace bool) error {
	cond := backend.IfAbsent()
	if replace {
		info, err := b.Put(ctx, key, []byte("base"), backend.IfAbsent())
		if err != nil {
			return unclear(err)
		}
		cond = backend.IfMatch(info.Version)
	}
	r := Compete(func(i int) error {
		_, err := b.Put(ctx, key, body(i), cond)
		return err
	})
	if err := r.Err(); err != nil {
		return err
	}
	got, _, err := b.Get(ctx, key, backend.Range{})
	if err != nil {
		return unclear(err)
	}
	for _, i := range append(slices.Clone(r.Won), r.Doubt...) {
		if string(got) == string(body(i)) {
			if len(r.Won) > 0 && i != r.Won[0] {
				return fmt.Errorf("writer %d won, but the object contains %q: %w", r.Won[0], got, backend.ErrNoCAS)
			}
			return nil
		}
	}
	if len(r.Won) > 0 {
		return fmt.Errorf("writer %d won, but the object contains %q: %w", r.Won[0], got, backend.ErrNoCAS)
	}
	return fmt.Errorf("none of %d writers is known to have won: %w", Racers, ErrUnclear)
}

func body(i int) []byte { return fmt.Appendf(nil, "writer %d", i) }

// unclear wraps an error of the store as ErrUnclear, unless it is ErrNoCAS.
func unclear(err error) error {
	if errors.Is(err, backend.ErrNoCAS) {
		return err
	}
	return fmt.Errorf("%w: %w", ErrUnclear, err)
}

// Result holds the outcomes of the writers of a race, by number.
type Result struct {
	Won, Doubt []int // applied; perhaps applied
	Refused    int
	Other      error // the errors of writers in doubt and of failed ones, joined
}

// Compete runs Racers writers at once and joins them.
func Compete(write func(i int) error) Result {
	var wg sync.WaitGroup
	errs := make([]error, Racers)
	start := make(chan struct{})
	for i := range Racers {
		wg.Go(func() {
			<-start
			errs[i] = write(i)
		})
	}
	close(start)
	wg.Wait()
	var r Result
	var other []error
	for i, err := range errs {
		switch {
		case err == nil:
			r.Won = append(r.Won, i)
		case errors.Is(err, backend.ErrPrecondition):
			r.Refused++
		case errors.Is(err, backend.ErrNoCAS), backend.OutcomeOf(err) == backend.NotApplied:
			other = append(other, err)
		default:
			r.Doubt = append(r.Doubt, i)
			other = append(other, err)
		}
	}
	r.Other = errors.Join(other...)
	return r
}

// Err judges the number of winners: nil if there is exactly one, or if there is none and a writer in doubt may have
// won.
func (r Result) Err() error {
	switch {
	case len(r.Won) > 1:
		return fmt.Errorf("%d of %d won: %w", len(r.Won), Racers, backend.ErrNoCAS)
	case errors.Is(r.Other, backend.ErrNoCAS):
		return r.Other
	case len(r.Won) == 0 && len(r.Doubt) == 0:
		return fmt.Errorf("none of %d won: %w", Racers, errors.Join(ErrUnclear, r.Other))
	}
	return nil
}
