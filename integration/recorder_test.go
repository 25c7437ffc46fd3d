package integration

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"sync"

	"github.com/coppice-go/coppice/backend"
)

// recorder is a backend that records each request as a line, in the order in which they end:
//
//	put checkpoint_latest/x if-match ok
//	list sessions/x/ limit 1 ok
//	put checkpoint_latest/x if-match error (outcome unknown)
type recorder struct {
	backend.Backend

	mu  sync.Mutex
	log []string
}

// all returns the lines so far.
func (r *recorder) all() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.log)
}

func (r *recorder) note(err error, parts ...string) {
	parts = slices.DeleteFunc(append(parts, result(parts[0], err)), func(part string) bool { return part == "" })
	r.mu.Lock()
	defer r.mu.Unlock()
	r.log = append(r.log, strings.Join(parts, " "))
}

// result returns how a request ended. Texts of errors that depend on the store are left out.
func result(op string, err error) string {
	if err == nil {
		return "ok"
	}
	text := "error"
	for _, known := range []error{backend.ErrNotExist, backend.ErrPrecondition, backend.ErrRange, backend.ErrNoCAS} {
		if errors.Is(err, known) {
			text = known.Error()
		}
	}
	out, write := backend.OutcomeOf(err), op == "put" || op == "delete"
	if write && (out != backend.NotApplied || text == "error") {
		return fmt.Sprintf("%s (%s)", text, out)
	}
	return text
}

func (r *recorder) Get(ctx context.Context, key string, rg backend.Range) ([]byte, backend.Info, error) {
	p, info, err := r.Backend.Get(ctx, key, rg)
	part := ""
	if !rg.Whole() {
		part = rg.String()
	}
	r.note(err, "get", key, part)
	return p, info, err
}

func (r *recorder) Put(ctx context.Context, key string, p []byte, c backend.Cond) (backend.Info, error) {
	info, err := r.Backend.Put(ctx, key, p, c)
	condition := ""
	if _, match := c.Match(); match {
		condition = "if-match"
	} else if c.Absent() {
		condition = "if-absent"
	}
	r.note(err, "put", key, condition)
	return info, err
}

func (r *recorder) Stat(ctx context.Context, key string) (backend.Info, error) {
	info, err := r.Backend.Stat(ctx, key)
	r.note(err, "stat", key)
	return info, err
}

func (r *recorder) List(ctx context.Context, o backend.ListOptions) iter.Seq2[backend.Info, error] {
	return func(yield func(backend.Info, error) bool) {
		var failed error
		defer func() {
			var parts []string
			if o.After != "" {
				parts = append(parts, "after "+o.After)
			}
			if o.Delimiter != "" {
				parts = append(parts, "delimiter "+o.Delimiter)
			}
			if o.Limit > 0 {
				parts = append(parts, fmt.Sprintf("limit %d", o.Limit))
			}
			r.note(failed, "list", o.Prefix, strings.Join(parts, ", "))
		}()
		for info, err := range r.Backend.List(ctx, o) {
			failed = errors.Join(failed, err)
			if !yield(info, err) {
				return
			}
		}
	}
}

func (r *recorder) Delete(ctx context.Context, key string) error {
	err := r.Backend.Delete(ctx, key)
	r.note(err, "delete", key)
	return err
}
