package cli

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/coppice-go/coppice/internal/cli/term"
	"github.com/coppice-go/coppice/internal/importer"
	"github.com/coppice-go/coppice/internal/watch"
	"github.com/coppice-go/coppice/interop"
	"github.com/coppice-go/coppice/interop/formats"
)

const (
	silence = 10 * time.Second // after which the lines that were held back are imported
	ending  = 4 * time.Second  // in which the last import must be done after the signal
)

// watchedFile is a file that is watched.
type watchedFile struct {
	since time.Time // it changed last
	done  int64     // bytes that were imported
	size  int64     // bytes that there were then; -1 = it changed since
	from  int64     // where the next import begins to read
}

// importWatch imports what is added to files. It runs in one goroutine, and imports one file at a time.
type importWatch struct {
	*importRun
	files   map[string]*watchedFile
	parents map[string]string // of a file that is imported with another one
}

// watch imports what there is, and then what is added, until the context is done.
func (r *importRun) watch(ctx context.Context, paths []string) error {
	work, cancel := context.WithCancel(context.WithoutCancel(ctx)) // an import under way is completed
	defer cancel()
	defer context.AfterFunc(ctx, func() {
		select {
		case <-r.c.after(ending):
			cancel()
		case <-work.Done():
		}
	})()
	w, err := watch.New(watch.Options{
		Roots: paths, Match: importer.IsSession, After: r.c.after, Poll: r.o.poll,
	})
	if err != nil {
		return err
	}
	iw := &importWatch{importRun: r, files: map[string]*watchedFile{}, parents: map[string]string{}}
	r.begin()
	err = iw.run(ctx, work, w, paths)
	if err = errors.Join(err, w.Close()); err == nil {
		err = r.sum()
	}
	return r.ended(err)
}

func (iw *importWatch) run(ctx, work context.Context, w *watch.Watcher, paths []string) error {
	for _, f := range importer.Find(ctx, paths) {
		if ctx.Err() != nil {
			break
		}
		if f.Err != nil {
			if !errors.Is(f.Err, fs.ErrNotExist) {
				iw.c.notef("%s", term.Line(f.Err.Error()))
			}
			continue
		}
		iw.files[f.Path] = &watchedFile{since: f.Changed}
		if err := iw.bring(work, f.Path); err != nil {
			return err
		}
	}
	how := "notified of changes"
	if w.Polls() {
		how = "looking once a second"
	}
	iw.c.notef("watching %s, %s", term.Count(w.Folders(), "folder", "folders"), how)
	for ctx.Err() == nil {
		changed, err := w.Wait(ctx, iw.due())
		if err != nil {
			return err
		}
		if err := iw.changed(work, changed); err != nil {
			return err
		}
	}
	return iw.end(work, w)
}

// end imports all that was held back, and what changed since it was looked at last.
func (iw *importWatch) end(work context.Context, w *watch.Watcher) error {
	changed, err := w.Scan()
	if err != nil {
		return err
	}
	for _, path := range changed {
		iw.touch(path)
	}
	for path, f := range iw.files {
		f.since = time.Time{}
		if err := iw.bring(work, path); err != nil {
			return err
		}
	}
	if work.Err() != nil {
		iw.c.notef("not everything was imported in time; the next import continues")
	}
	return nil
}

// due returns how long the first of the files that have lines held back must stay silent; 0 = there is none.
func (iw *importWatch) due() (wait time.Duration) {
	now := iw.c.now()
	for _, f := range iw.files {
		if f.done >= f.size {
			continue
		}
		left := max(f.since.Add(silence).Sub(now), time.Millisecond)
		if wait == 0 || left < wait {
			wait = left
		}
	}
	return wait
}

// changed imports what was added to files, and what was held back of others that are silent now.
func (iw *importWatch) changed(ctx context.Context, paths []string) error {
	for _, path := range paths {
		iw.touch(path)
	}
	now := iw.c.now()
	for path, f := range iw.files {
		if f.size < 0 || f.done < f.size && now.Sub(f.since) >= silence {
			if err := iw.bring(ctx, path); err != nil {
				return err
			}
		}
	}
	return nil
}

// touch notes that a file changed. One that is imported with another one changes that one.
func (iw *importWatch) touch(path string) {
	if parent, ok := iw.parents[path]; ok {
		path = parent
	} else if parent := importer.OwnerOf(path); parent != "" {
		if _, ok := iw.files[parent]; ok {
			iw.files[parent].since, iw.files[parent].size = iw.c.now(), -1
		}
	}
	f := iw.files[path]
	if f == nil {
		f = &watchedFile{}
		iw.files[path] = f
	}
	f.since, f.size = iw.c.now(), -1
}

// bring imports a file, without the lines that are to be held back.
func (iw *importWatch) bring(ctx context.Context, path string) error {
	f := iw.files[path]
	info, err := os.Stat(path)
	if err != nil {
		delete(iw.files, path)
		return nil //nolint:nilerr // it is gone: what was imported stays
	}
	if parent, ok := iw.parents[path]; ok && parent != path || iw.batch.Contains(path) {
		delete(iw.files, path)
		return nil
	}
	size := info.Size()
	if f.size == size && f.done == size || ctx.Err() != nil {
		return nil
	}
	f.size, f.done = size, size
	if iw.c.now().Sub(f.since) < silence {
		if f.done, err = iw.stable(path, size, f.from); err != nil {
			iw.c.notef("%s", term.Line(err.Error()))
			return nil
		}
		if f.done == 0 {
			return nil
		}
	}
	what := importer.File{Path: path, Size: f.done}
	if f.done == size {
		what.Changed = info.ModTime()
	}
	iw.batch.Forget(path)
	res, err := iw.file(ctx, what)
	if stop, ok := errors.AsType[*stopError](err); ok {
		return stop.error
	}
	if err != nil || res == nil {
		return nil //nolint:nilerr // it is printed, and the other files continue
	}
	f.from = res.From
	for _, name := range res.Files {
		iw.parents[filepath.Join(filepath.Dir(path), filepath.FromSlash(name))] = path
	}
	if iw.c.json {
		return iw.out.flush()
	}
	return nil
}

// stable returns how many bytes of a file can be imported now: the part that no later line can change. A compressed
// file is written as a whole, so all of it is stable.
func (iw *importWatch) stable(path string, size, from int64) (int64, error) {
	if strings.HasSuffix(path, ".zst") {
		return size, nil
	}
	src, format := importer.FromFileTo(path, size), iw.format
	if format == "" {
		var err error
		if format, err = formats.Told(src); err != nil {
			return 0, err
		}
	}
	if format == "" {
		format = interop.Pi
	}
	return formats.Stable(format, src, from)
}
