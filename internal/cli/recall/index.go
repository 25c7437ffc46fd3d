// Package recall has the commands that find things again by the index of package history.
package recall

import (
	"context"
	"errors"
	"fmt"
	"strings"

	coppice "github.com/coppice-go/coppice"
	"github.com/coppice-go/coppice/history"
	"github.com/coppice-go/coppice/internal/cli/program"
	"github.com/coppice-go/coppice/internal/cli/term"
)

// Index opens the index of a store. Where its file cannot be had it is in memory, and is made anew each
// time.
func Index(ctx context.Context, a *program.App, st *program.Store) (*history.Index, string, error) {
	file := a.HistoryFile(st.URL)
	x, err := history.Open(ctx, file)
	if err != nil && file != "" && ctx.Err() == nil {
		a.Note("no index can be kept, so everything is read: %s", term.Line(err.Error()))
		file = ""
		x, err = history.Open(ctx, "")
	}
	return x, file, err
}

// With runs f on the index of a store when it is up to date, or at least what it has of one session; ""
// = all. The error of f comes first; then what could not be read is one, since f may have missed it.
func With(ctx context.Context, a *program.App, st *program.Store, session string, f func(x *history.Index) error) error {
	return withIndex(ctx, a, st, func(x *history.Index, _ string) error {
		r, err := bring(ctx, a, st, session, x.Update)
		if err != nil {
			return err
		}
		return errors.Join(f(x), Problems(r))
	})
}

func withIndex(ctx context.Context, a *program.App, st *program.Store, f func(x *history.Index, file string) error) (err error) {
	x, file, err := Index(ctx, a, st)
	if err != nil {
		return err
	}
	defer func() {
		if cerr := x.Close(); err == nil {
			err = cerr
		}
	}()
	return f(x, file)
}

type reader = func(context.Context, *coppice.Store, *history.UpdateOptions) (history.Report, error)

// bring updates or rebuilds an index, with a bar for whoever waits.
func bring(ctx context.Context, a *program.App, st *program.Store, session string, read reader) (history.Report, error) {
	var bar *term.Progress
	var last int64
	r, err := read(ctx, st.Store, &history.UpdateOptions{
		Shallow: strings.HasPrefix(st.URL, "s3:"), Session: session,
		Progress: func(done, total int64) {
			if last == 0 {
				bar = a.Err.Progress("indexing", total, true, a.Now)
			}
			bar.Add(done - last)
			last = done
		},
	})
	bar.Close()
	return r, err
}

// Problems are the sessions that could not be read, as one error.
func Problems(r history.Report) error {
	if len(r.Problems) == 0 {
		return nil
	}
	return fmt.Errorf("not everything could be read: %w", errors.Join(r.Problems...))
}

// Query makes a query of arguments: one with spaces is a phrase, as the shell's quotes say.
func Query(args []string) (history.Query, error) {
	text := strings.Join(args, " ")
	if !strings.HasPrefix(text, "re:") {
		parts := make([]string, 0, len(args))
		for _, arg := range args {
			if strings.ContainsAny(strings.TrimSpace(arg), " \t\n") && !strings.Contains(arg, `"`) {
				arg = `"` + arg + `"`
			}
			parts = append(parts, arg)
		}
		text = strings.Join(parts, " ")
	}
	q, err := history.Parse(text)
	if err != nil {
		return q, program.Usage("%w", err)
	}
	return q, nil
}
