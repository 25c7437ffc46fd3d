package backendtest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"iter"
	"math/rand/v2"
	"strconv"
	"sync"
	"testing"

	"github.com/coppice-go/coppice/backend"
)

// env is the environment of one case.
type env struct {
	*testing.T
	b   backend.Backend
	a   backend.Appender // b again, in the cases that need one
	h   Harness
	rng *rand.Rand // for the case's own goroutine only
}

func (e *env) ctx() context.Context { return e.Context() }

// size returns the size of a case: full or short.
func (e *env) size(full, short int) int {
	if e.h.Short {
		return short
	}
	return full
}

// fill returns n bytes that differ for each tag and offset.
func fill(tag string, n int) []byte {
	p := make([]byte, 0, n+len(tag)+24)
	for len(p) < n {
		p = append(append(p, tag...), '@')
		p = append(strconv.AppendInt(p, int64(len(p)), 10), ';')
	}
	return p[:n]
}

func (e *env) put(key string, p []byte, c backend.Cond) backend.Info {
	e.Helper()
	info, err := e.b.Put(e.ctx(), key, p, c)
	if err != nil {
		e.Fatalf("put %s (%s): %v", key, c, err)
	}
	if info.Key != key || info.Size != int64(len(p)) || info.Version == "" || info.Prefix {
		e.Fatalf("put %s of %d bytes: info %+v; want the key, the size and a version", key, len(p), info)
	}
	return info
}

func (e *env) append(key string, off int64, p []byte) backend.Info {
	e.Helper()
	info, err := e.a.Append(e.ctx(), key, off, p)
	if err != nil {
		e.Fatalf("append %s at %d: %v", key, off, err)
	}
	if info.Key != key || info.Size != off+int64(len(p)) {
		e.Fatalf("append %s at %d of %d bytes: info %+v", key, off, len(p), info)
	}
	return info
}

func (e *env) get(key string, r backend.Range) ([]byte, backend.Info) {
	e.Helper()
	p, info, err := e.b.Get(e.ctx(), key, r)
	if err != nil {
		e.Fatalf("get %s (%s): %v", key, r, err)
	}
	if info.Key != key || info.Prefix {
		e.Fatalf("get %s: info %+v", key, info)
	}
	return p, info
}

func (e *env) stat(key string) backend.Info {
	e.Helper()
	info, err := e.b.Stat(e.ctx(), key)
	if err != nil {
		e.Fatalf("stat %s: %v", key, err)
	}
	if info.Key != key || info.Prefix {
		e.Fatalf("stat %s: info %+v", key, info)
	}
	return info
}

// holds checks that key has exactly these bytes, by Get and by Stat.
func (e *env) holds(key string, want []byte) {
	e.Helper()
	got, info := e.get(key, backend.Range{})
	if !bytes.Equal(got, want) {
		e.Fatalf("get %s: %s, want %s", key, show(got), show(want))
	}
	if info.Size != int64(len(want)) {
		e.Fatalf("get %s: size %d in the info, %d bytes", key, info.Size, len(want))
	}
	if size := e.stat(key).Size; size != int64(len(want)) {
		e.Fatalf("stat %s: size %d, want %d", key, size, len(want))
	}
}

func (e *env) absent(key string) {
	e.Helper()
	_, _, err := e.b.Get(e.ctx(), key, backend.Range{})
	e.fails(err, "get", key, backend.ErrNotExist)
	_, err = e.b.Stat(e.ctx(), key)
	e.fails(err, "stat", key, backend.ErrNotExist)
}

func (e *env) delete(key string) {
	e.Helper()
	if err := e.b.Delete(e.ctx(), key); err != nil {
		e.Fatalf("delete %s: %v", key, err)
	}
}

// fails checks the cause of an error, and that it names the operation and the key.
func (e *env) fails(err error, op, key string, want error) {
	e.Helper()
	if !errors.Is(err, want) {
		e.Errorf("%s %.80q: error %v, want %v", op, key, err, want)
		return
	}
	var be *backend.Error
	if !errors.As(err, &be) {
		e.Errorf("%s %.80q: error %v is no *backend.Error", op, key, err)
		return
	}
	if be.Key != key || (be.Op != op && be.Op != "key") {
		e.Errorf("%s %.80q: error speaks of %s %.80q", op, key, be.Op, be.Key)
	}
}

// refused is fails for a call that certainly had no effect.
func (e *env) refused(err error, op, key string, want error) {
	e.Helper()
	e.fails(err, op, key, want)
	if out := backend.OutcomeOf(err); out != backend.NotApplied {
		e.Errorf("%s %.80q: %v: outcome %q, want %q", op, key, err, out, backend.NotApplied)
	}
}

// list collects a listing; its error, if any, must come last and once.
func (e *env) list(o backend.ListOptions) []backend.Info {
	e.Helper()
	infos, err := collect(e.b.List(e.ctx(), o))
	if err != nil {
		e.Fatalf("list %+v: %v", o, err)
	}
	return infos
}

func collect(seq iter.Seq2[backend.Info, error]) ([]backend.Info, error) {
	var infos []backend.Info
	var failure error
	for info, err := range seq {
		if failure != nil {
			return infos, fmt.Errorf("the listing went on after its error: %w", failure)
		}
		if err != nil {
			failure = err
			continue
		}
		infos = append(infos, info)
	}
	return infos, failure
}

// together runs f in n goroutines that start at once, and reports their errors.
func (e *env) together(n int, f func(i int) error) {
	e.Helper()
	errs := make([]error, n)
	start := make(chan struct{})
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() {
			<-start
			errs[i] = f(i)
		})
	}
	close(start)
	wg.Wait()
	if err := errors.Join(errs...); err != nil {
		e.Fatal(err)
	}
}

// show truncates long bytes for a message.
func show(p []byte) string {
	if len(p) <= 80 {
		return fmt.Sprintf("%q (%d bytes)", p, len(p))
	}
	return fmt.Sprintf("%q...%q (%d bytes)", p[:40], p[len(p)-40:], len(p))
}
