package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path"
	"slices"

	coppice "github.com/coppice-go/coppice"
	"github.com/coppice-go/coppice/internal/importer"
	"github.com/coppice-go/coppice/internal/importer/langgraph"
	"github.com/coppice-go/coppice/internal/importer/strands"
)

// framework imports what an agent framework has stored: threads with states, each of which becomes a session.
type framework struct {
	name   string
	detect func(file string) bool
	run    func(ctx context.Context, st *coppice.Store, file string, o frameworkOptions) error
}

// frameworkOptions are the options of an import. done is called for each thread; an error that it returns ends the
// import.
type frameworkOptions struct {
	clock  *importer.Clock
	closed func(error)
	done   func(importer.Result, error) error
}

// frameworks are the formats that are not files of one session, in the order of detection.
var frameworks = []framework{
	{
		name: strands.Format,
		detect: func(file string) bool {
			info, err := os.Stat(file)
			return err == nil && info.IsDir() && strands.Detect(os.DirFS(file))
		},
		run: func(ctx context.Context, st *coppice.Store, dir string, o frameworkOptions) error {
			return strands.Import(ctx, st, os.DirFS(dir), strands.Options{
				Clock: o.clock, Closed: o.closed, Done: func(r importer.Result, err error) error {
					r.File = path.Join(dir, r.File)
					return o.done(r, err)
				},
			})
		},
	},
	{
		name:   langgraph.Format,
		detect: func(file string) bool { return langgraph.Detect(context.Background(), file) },
		run: func(ctx context.Context, st *coppice.Store, file string, o frameworkOptions) error {
			return langgraph.Import(ctx, st, file, langgraph.Options{Clock: o.clock, Closed: o.closed, Done: o.done})
		},
	},
}

// saved is a file or folder of a framework.
type saved struct {
	framework
	path string
}

// frameworksIn takes those paths out of a list that hold what a framework has stored.
func (r *importRun) frameworksIn(paths []string) (rest []string, found []saved) {
	for _, p := range paths {
		i := slices.IndexFunc(frameworks, func(f framework) bool {
			return f.name == r.o.format || r.o.format == "auto" && f.detect(p)
		})
		if i < 0 {
			rest = append(rest, p)
		} else {
			found = append(found, saved{frameworks[i], p})
		}
	}
	return rest, found
}

// checkFrameworks refuses options that are for files of one session.
func (r *importRun) checkFrameworks() error {
	switch {
	case len(r.saved) == 0:
		return nil
	case r.o.session != "" || r.o.again || !r.o.grow || r.o.watch || r.o.verify || r.o.redact:
		return usageError("--session, --again, --grow=false, --verify, --watch and --redact cannot be used with %s",
			r.saved[0].name)
	}
	return nil
}

// frameworks imports what frameworks have stored, into a store with a clock that shows the time of each step.
func (r *importRun) frameworks(ctx context.Context) (err error) {
	if len(r.saved) == 0 {
		return nil
	}
	clock := importer.NewClock(r.c.now)
	st, err := coppice.New(r.st.b, &coppice.Options{Now: clock.Now})
	if err != nil {
		return err
	}
	defer func() { err = cmp.Or(err, st.Close()) }()
	for _, f := range r.saved {
		err := f.run(ctx, st, f.path, frameworkOptions{clock: clock, closed: r.c.untidy, done: r.thread})
		if err != nil && ctx.Err() == nil && !isStop(err) {
			err = r.thread(importer.Result{File: f.path}, fmt.Errorf("%s: %w", f.path, err))
		}
		if stop, ok := errors.AsType[*stopError](err); ok {
			return stop.error
		}
	}
	return nil
}

// thread reports one thread. The error is a stopError.
func (r *importRun) thread(res importer.Result, err error) error {
	if _, err = r.report(res.File, res, err); isStop(err) {
		return err
	}
	return nil
}

func isStop(err error) bool {
	_, ok := errors.AsType[*stopError](err)
	return ok
}
