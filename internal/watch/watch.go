// Package watch reports which files below some folders changed. It is notified by the system, and looks
// itself once a second where it cannot be notified, for instance where the system allows no more watches.
//
// Bounds: 8,192 folders are watched and 100,000 files are known; with more folders everything is looked at
// once a second, and files that exceed are reported as an error. One change is held for each file, and
// no file stays open. A root may be a link; links to folders below it are not followed.
package watch

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/fsnotify/fsnotify"
)

// The bounds, and how often things happen.
const (
	maxFolders = 8_192
	maxFiles   = 100_000
	gather     = 200 * time.Millisecond // changes are gathered for this time before they are returned
	pollEvery  = time.Second
)

// ErrTooMany reports that there are more files than a Watcher knows.
var ErrTooMany = errors.New("too many files to watch")

// Options of a Watcher.
type Options struct {
	Roots []string                               // files and folders; one that does not exist yet is waited for
	Match func(path string) bool                 // which files below a folder count
	After func(d time.Duration) <-chan time.Time // time.After, or a clock of a test
	Poll  bool                                   // do not use notification
}

// Watcher is not safe for concurrent use.
type Watcher struct {
	o       Options
	notify  *fsnotify.Watcher // nil = none
	folders map[string]bool   // watched
	files   map[string]stamp  // known
	changed map[string]bool
	polls   bool // not everything is watched
	absent  bool // a root did not exist when it was last looked at

	maxFolders, maxFiles int
}

// stamp is compared to find out whether a file changed.
type stamp struct {
	size int64
	time time.Time
}

// New watches the roots. Files that exist already do not count as changed.
func New(o Options) (*Watcher, error) { return bounded(o, maxFolders, maxFiles) }

// bounded is New with other bounds.
func bounded(o Options, folders, files int) (*Watcher, error) {
	w := &Watcher{
		o: o, folders: map[string]bool{}, files: map[string]stamp{}, changed: map[string]bool{}, polls: o.Poll,
		maxFolders: folders, maxFiles: files,
	}
	if !o.Poll {
		var err error
		if w.notify, err = fsnotify.NewWatcher(); err != nil {
			w.notify, w.polls = nil, true
		}
	}
	err := w.scan()
	clear(w.changed)
	if err != nil {
		return nil, errors.Join(err, w.Close())
	}
	return w, nil
}

// Folders returns how many folders are watched by notification.
func (w *Watcher) Folders() int { return len(w.folders) }

// Polls reports whether some of the files are looked at once a second.
func (w *Watcher) Polls() bool { return w.polls }

// Close ends the notification.
func (w *Watcher) Close() error {
	if w.notify == nil {
		return nil
	}
	return w.notify.Close()
}

// Wait returns the files that changed since the last call, in the order of their names, once there are
// any; or those so far, perhaps none, when ctx is done, or after the time most, if that is positive.
func (w *Watcher) Wait(ctx context.Context, most time.Duration) ([]string, error) {
	var limit, soon, poll <-chan time.Time
	if most > 0 {
		limit = w.o.After(most)
	}
	events, failed := w.channels()
	for {
		if len(w.changed) > 0 && soon == nil {
			soon = w.o.After(gather)
		}
		if poll == nil && (w.polls || w.absent) {
			poll = w.o.After(pollEvery)
		}
		select {
		case <-ctx.Done():
			return w.take(), nil
		case <-limit:
			return w.take(), nil
		case <-soon:
			return w.take(), nil
		case <-poll:
			poll = nil
			if err := w.scan(); err != nil {
				return nil, err
			}
		case e := <-events:
			if err := w.event(e); err != nil {
				return nil, err
			}
		case <-failed: // notifications were lost: the queue of the system is full
			if err := w.scan(); err != nil {
				return nil, err
			}
		}
	}
}

// Scan looks at all files and returns those that changed since the last call of Scan or Wait.
func (w *Watcher) Scan() ([]string, error) {
	err := w.scan()
	return w.take(), err
}

func (w *Watcher) channels() (<-chan fsnotify.Event, <-chan error) {
	if w.notify == nil {
		return nil, nil
	}
	return w.notify.Events, w.notify.Errors
}

func (w *Watcher) take() []string {
	var list []string
	for path := range w.changed {
		list = append(list, path)
	}
	clear(w.changed)
	slices.Sort(list)
	return list
}

func (w *Watcher) event(e fsnotify.Event) error {
	if e.Op == fsnotify.Chmod {
		return nil
	}
	gone := w.folders[e.Name] && (e.Has(fsnotify.Remove) || e.Has(fsnotify.Rename))
	if gone {
		w.forget(e.Name)
	}
	info, err := os.Stat(e.Name)
	switch {
	case err != nil:
		delete(w.files, e.Name)
		delete(w.changed, e.Name)
		return nil
	case info.IsDir() && (gone || e.Has(fsnotify.Create)): // it may be there again already
		return w.tree(e.Name)
	case info.IsDir():
		return nil
	}
	return w.file(e.Name, info)
}

// forget ends the watches of a folder that was removed or moved, and of those in it. If a root went with it, Wait looks
// for that once a second.
func (w *Watcher) forget(folder string) {
	within := func(path string) bool {
		rel, err := filepath.Rel(folder, path)
		return err == nil && filepath.IsLocal(rel)
	}
	for path := range w.folders {
		if within(path) {
			delete(w.folders, path)
			_ = w.notify.Remove(path) // a removed folder has no watch any more
		}
	}
	w.absent = w.absent || slices.ContainsFunc(w.o.Roots, within)
}

// scan looks at everything below the roots.
func (w *Watcher) scan() error {
	w.absent = false
	for _, root := range w.o.Roots {
		info, err := os.Stat(root)
		switch {
		case err != nil:
			w.absent = true // it may come
			continue
		case info.IsDir():
			err = w.tree(root)
		default:
			w.folder(filepath.Dir(root))
			err = w.file(root, info)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// tree watches a folder and those below it, and looks at their files. By the separator a root that is a link is
// followed.
func (w *Watcher) tree(root string) error {
	return filepath.WalkDir(root+string(filepath.Separator), func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return nil //nolint:nilerr // it is gone, or cannot be read: the others can
		case d.IsDir():
			w.folder(filepath.Clean(path)) // before its files are read, so that none is missed
			return nil
		}
		info, err := os.Stat(path)
		if err != nil {
			return nil //nolint:nilerr // likewise
		}
		return w.file(path, info)
	})
}

func (w *Watcher) folder(path string) {
	if w.notify == nil || w.folders[path] {
		return
	}
	if len(w.folders) >= w.maxFolders || w.notify.Add(path) != nil {
		w.polls = true
		return
	}
	w.folders[path] = true
}

func (w *Watcher) file(path string, info fs.FileInfo) error {
	if !info.Mode().IsRegular() || !w.wanted(path) {
		return nil
	}
	now := stamp{info.Size(), info.ModTime()}
	old, known := w.files[path]
	if !known && len(w.files) >= w.maxFiles {
		return fmt.Errorf("%w: more than %d", ErrTooMany, w.maxFiles)
	}
	if w.files[path] = now; !known || old != now {
		w.changed[path] = true
	}
	return nil
}

// wanted reports whether a file is one of the roots, or below one and of the right name.
func (w *Watcher) wanted(path string) bool {
	for _, root := range w.o.Roots {
		if path == root {
			return true
		}
		if rel, err := filepath.Rel(root, path); err == nil && filepath.IsLocal(rel) && w.o.Match(path) {
			return true
		}
	}
	return false
}
