package program

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"path/filepath"
	"strconv"
	"strings"

	coppice "github.com/coppice-go/coppice"
	"github.com/coppice-go/coppice/backend"
	"github.com/coppice-go/coppice/checkpoint"
	"github.com/coppice-go/coppice/internal/cli/term"
)

// Reading opens a session to look at it: nothing is written.
func Reading() *coppice.SessionOptions { return &coppice.SessionOptions{ReadOnly: true} }

// WithStore runs f on the store.
func (a *App) WithStore(ctx context.Context, f func(st *Store) error) (err error) {
	st, err := a.Open(ctx)
	if err != nil {
		return err
	}
	defer func() {
		if cerr := st.Close(); err == nil {
			err = cerr // after a failure the first error says more
		}
	}()
	return f(st)
}

// WithSession runs f on a session, by its id or a prefix of it.
func (a *App) WithSession(ctx context.Context, id string, o *coppice.SessionOptions, f func(st *Store, s *coppice.Session) error) error {
	return a.WithStore(ctx, func(st *Store) (err error) {
		s, err := st.Session(ctx, id, o)
		if err != nil {
			return err
		}
		defer func() {
			if cerr := s.Close(); err == nil {
				err = cerr
			}
		}()
		return f(st, s)
	})
}

// ParseTarget reads the text of a TARGET.
func ParseTarget(text string) (coppice.Target, error) {
	var t coppice.Target
	if err := t.UnmarshalText([]byte(text)); err != nil {
		return t, Usage("%w", err)
	}
	return t, nil
}

// OrNull is a string of JSON, or null where there is none.
func OrNull(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}

// OrList makes [] of what would be null.
func OrList[T any](list []T) []T {
	if list == nil {
		return []T{}
	}
	return list
}

// Unsupported is the error for what a later release is to do.
func Unsupported(what string) error {
	return &Failure{Code: "unsupported", Err: errors.New(what)}
}

// Absolute makes a path whole; "" stays.
func Absolute(path string) (string, error) {
	if path == "" {
		return "", nil
	}
	path, err := filepath.Abs(path)
	if err != nil {
		return "", Usage("--cwd: %w", err)
	}
	return path, nil
}

// Itoa gives a number in digits.
func Itoa(n uint64) string { return strconv.FormatUint(n, 10) }

// Title is what a person knows a session by.
func Title(s checkpoint.Summary) string {
	return term.Cut(term.Line(cmp.Or(s.Title, s.First, s.Preview)), 60)
}

// Cost says what was asked of the backend, in words.
func Cost(io backend.IO) string {
	parts := []string{term.Count(io.Get, "read", "reads") + " of " + term.Size(io.BytesRead)}
	for _, n := range []struct {
		count     int
		one, many string
	}{
		{io.List, "listing", "listings"},
		{io.Stat, "stat", "stats"},
		{io.Put, "put", "puts"},
		{io.Append, "append", "appends"},
		{io.Delete, "delete", "deletes"},
	} {
		if n.count > 0 {
			parts = append(parts, term.Count(n.count, n.one, n.many))
		}
	}
	return strings.Join(parts, ", ")
}

// OrNullJSON is a value of JSON, null where there is none.
func OrNullJSON(raw json.RawMessage) json.RawMessage {
	if len(raw) == 0 {
		return json.RawMessage("null")
	}
	return raw
}
