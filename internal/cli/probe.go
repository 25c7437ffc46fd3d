package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"time"

	"github.com/coppice-go/coppice/backend"
	"github.com/coppice-go/coppice/internal/casprobe"
)

// The probe asks a store of any kind whether it keeps the promises that sessions depend on: a write
// can be read back, conditions are honoured by racing writers, and an append compares and acts in
// one step. It is a check of a store in use, not of the whole contract of package backend: that is
// the suite in backend/backendtest.

// probeCheck is one question and its answer.
type probeCheck struct {
	Name   string  `json:"name"`
	OK     bool    `json:"ok"`
	Detail string  `json:"detail,omitempty"` // what was seen instead
	Ms     float64 `json:"ms"`
}

// prober works in one scratch folder.
type prober struct {
	b    backend.Backend
	now  func() time.Time
	list []probeCheck
}

// probeStore asks all questions of b, an empty scratch folder. A failed check does not stop the
// others. The error means that the scratch folder could not be emptied.
func probeStore(ctx context.Context, b backend.Backend, now func() time.Time) ([]probeCheck, error) {
	p := &prober{b: b, now: now}
	p.ask("write and read back", func() error { return p.roundTrip(ctx) })
	p.ask("ranges are exact", func() error { return p.ranges(ctx) })
	p.ask("listing in order", func() error { return p.listing(ctx) })
	p.ask("deleting, twice", func() error { return p.deleting(ctx) })
	p.ask("a stale version is refused", func() error { return casprobe.Stale(ctx, p.b, "c/stale") })
	p.ask(fmt.Sprintf("%d race to create: one wins", casprobe.Racers), func() error {
		return casprobe.Race(ctx, p.b, "race/create", false)
	})
	p.ask(fmt.Sprintf("%d race to replace: one wins", casprobe.Racers), func() error {
		return casprobe.Race(ctx, p.b, "race/replace", true)
	})
	if a, ok := b.(backend.Appender); ok {
		p.ask("append at the end only", func() error { return p.appending(ctx, a) })
		p.ask(fmt.Sprintf("%d race to append: one wins", casprobe.Racers), func() error { return p.raceAppend(ctx, a) })
	}
	return p.list, p.clean(context.WithoutCancel(ctx))
}

// allPassed reports whether every check passed.
func allPassed(list []probeCheck) bool {
	return !slices.ContainsFunc(list, func(c probeCheck) bool { return !c.OK })
}

func (p *prober) ask(name string, f func() error) {
	begun := p.now()
	err := f()
	c := probeCheck{Name: name, OK: err == nil, Ms: float64(p.now().Sub(begun).Microseconds()) / 1000}
	if err != nil {
		c.Detail = err.Error()
	}
	p.list = append(p.list, c)
}

// sample returns 4 KiB in which every byte value occurs.
func sample() []byte {
	p := make([]byte, 4096)
	for i := range p {
		p[i] = byte(i)
	}
	return p
}

func (p *prober) put(ctx context.Context, key string, body []byte, c backend.Cond) (backend.Info, error) {
	return p.b.Put(ctx, key, body, c)
}

func (p *prober) roundTrip(ctx context.Context) error {
	want := sample()
	if _, err := p.put(ctx, "a/bytes", want, backend.Cond{}); err != nil {
		return err
	}
	got, info, err := p.b.Get(ctx, "a/bytes", backend.Range{})
	switch {
	case err != nil:
		return err
	case !bytes.Equal(got, want):
		return fmt.Errorf("wrote %d bytes, read %d different ones", len(want), len(got))
	case info.Version == "":
		return errors.New("no version is reported")
	}
	_, _, err = p.b.Get(ctx, "a/missing", backend.Range{})
	if !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("read of a missing object: %w", orNil(err))
	}
	return nil
}

func (p *prober) ranges(ctx context.Context) error {
	want := sample()
	for _, c := range []struct {
		r    backend.Range
		want []byte
	}{{backend.Bytes(10, 20), want[10:30]}, {backend.Tail(100), want[len(want)-100:]}, {backend.Tail(1 << 20), want}} {
		got, info, err := p.b.Get(ctx, "a/bytes", c.r)
		switch {
		case err != nil:
			return err
		case !bytes.Equal(got, c.want) || info.Size != int64(len(want)):
			return fmt.Errorf("%s returned %d bytes of %d", c.r, len(got), info.Size)
		}
	}
	if _, _, err := p.b.Get(ctx, "a/bytes", backend.Bytes(4090, 20)); !errors.Is(err, backend.ErrRange) {
		return fmt.Errorf("a range past the end: %w", orNil(err))
	}
	return nil
}

func (p *prober) listing(ctx context.Context) error {
	want := []string{"l/a", "l/a-b", "l/b", "l/c/d"}
	for _, key := range []string{"l/c/d", "l/b", "l/a-b", "l/a"} {
		if _, err := p.put(ctx, key, []byte(key), backend.Cond{}); err != nil {
			return err
		}
	}
	keys, err := p.keys(ctx, "l/")
	if err != nil {
		return err
	}
	if !slices.Equal(keys, want) {
		return fmt.Errorf("got %s", strings.Join(keys, " "))
	}
	return nil
}

func (p *prober) keys(ctx context.Context, prefix string) ([]string, error) {
	var keys []string
	for info, err := range p.b.List(ctx, backend.ListOptions{Prefix: prefix}) {
		if err != nil {
			return keys, err
		}
		keys = append(keys, info.Key)
	}
	return keys, nil
}

func (p *prober) deleting(ctx context.Context) error {
	for range 2 {
		if err := p.b.Delete(ctx, "l/b"); err != nil {
			return err
		}
	}
	if _, err := p.b.Stat(ctx, "l/b"); !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("the object still exists: %w", orNil(err))
	}
	return nil
}

// orNil returns an error that means that there was none.
func orNil(err error) error {
	if err == nil {
		return errors.New("no error")
	}
	return err
}

// orIgnored is orNil for a condition that the store ignored.
func orIgnored(err error) error {
	if err == nil {
		return backend.ErrNoCAS
	}
	return err
}

func (p *prober) appending(ctx context.Context, a backend.Appender) error {
	if _, err := a.Append(ctx, "log/missing", 0, []byte("x")); !errors.Is(err, backend.ErrPrecondition) {
		return fmt.Errorf("an append created an object: %w", orIgnored(err))
	}
	if _, err := p.put(ctx, "log/a", []byte("one\n"), backend.IfAbsent()); err != nil {
		return err
	}
	if _, err := a.Append(ctx, "log/a", 4, []byte("two\n")); err != nil {
		return err
	}
	if _, err := a.Append(ctx, "log/a", 4, []byte("three\n")); !errors.Is(err, backend.ErrPrecondition) {
		return fmt.Errorf("an append that was not at the end was not refused: %w", orIgnored(err))
	}
	if err := a.Cut(ctx, "log/a", 4, []byte("one\n")); !errors.Is(err, backend.ErrPrecondition) {
		return fmt.Errorf("a cut of other bytes than those at the end was not refused: %w", orIgnored(err))
	}
	if err := a.Cut(ctx, "log/a", 4, []byte("two\n")); err != nil {
		return err
	}
	got, _, err := a.Get(ctx, "log/a", backend.Range{})
	if err != nil {
		return err
	}
	if string(got) != "one\n" {
		return fmt.Errorf("the object contains %q", got)
	}
	return nil
}

func (p *prober) raceAppend(ctx context.Context, a backend.Appender) error {
	if _, err := p.put(ctx, "log/race", []byte("base\n"), backend.IfAbsent()); err != nil {
		return err
	}
	r := casprobe.Compete(func(i int) error {
		_, err := a.Append(ctx, "log/race", 5, fmt.Appendf(nil, "writer %d\n", i))
		return err
	})
	if err := errors.Join(r.Err(), r.Other); err != nil {
		return err
	}
	got, _, err := a.Get(ctx, "log/race", backend.Range{})
	if err != nil {
		return err
	}
	if want := fmt.Sprintf("base\nwriter %d\n", r.Won[0]); string(got) != want {
		return fmt.Errorf("writer %d won, but the object contains %q", r.Won[0], got)
	}
	return nil
}

// clean deletes everything in the scratch folder.
func (p *prober) clean(ctx context.Context) error {
	keys, err := p.keys(ctx, "")
	errs := []error{err}
	for _, key := range keys {
		errs = append(errs, p.b.Delete(ctx, key))
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("remove the objects of the checks: %w", err)
	}
	return nil
}
