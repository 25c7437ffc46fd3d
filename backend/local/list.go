package local

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"slices"
	"strings"

	"github.com/coppice-go/coppice/backend"
	"github.com/coppice-go/coppice/internal/vfs"
)

// dirChunk is the number of names of a folder in memory in addition to the wanted ones.
const dirChunk = 4096

// List walks the folders in key order; at each level it holds the wanted names of one folder in memory. Files that are
// not objects (dot files, names that are not keys, links, pipes) are skipped. No version is reported, and the size of
// an object that is being appended to may be an intermediate one.
func (b *Backend) List(ctx context.Context, o backend.ListOptions) iter.Seq2[backend.Info, error] {
	return func(yield func(backend.Info, error) bool) {
		if o.Delimiter != "" && o.Delimiter != "/" {
			err := fmt.Errorf("delimiter %q: only \"/\" is known", o.Delimiter)
			yield(backend.Info{}, fail("list", o.Prefix, backend.NotApplied, err))
			return
		}
		w := walk{b: b, ctx: ctx, o: o, yield: yield}
		if err := b.enter(ctx, "list", o.Prefix); err != nil {
			yield(backend.Info{}, err)
			return
		}
		b.leave()
		if found, err := w.exact(); found || err != nil {
			if err != nil {
				yield(backend.Info{}, err)
			}
			return
		}
		dir := ""
		if i := strings.LastIndexByte(o.Prefix, '/'); i >= 0 {
			dir = o.Prefix[:i]
			if backend.ValidKey(dir) != nil {
				return // no key begins with this
			}
			dir += "/"
		}
		if err := w.folder(dir); err != nil {
			yield(backend.Info{}, err)
		}
	}
}

// exact answers a listing for the first key with a prefix that is a key itself: it precedes all others, and costs one
// lookup.
func (w *walk) exact() (found bool, err error) {
	if w.o.Limit != 1 || w.o.After != "" || backend.ValidKey(w.o.Prefix) != nil {
		return false, nil
	}
	err = w.object(w.o.Prefix)
	return w.n > 0, err
}

// walk is one listing. It holds the backend open only while it reads, never while it yields, so that the loop's body
// may call any method, including Close.
type walk struct {
	b     *Backend
	ctx   context.Context //nolint:containedctx // lives as long as one call of List
	o     backend.ListOptions
	yield func(backend.Info, error) bool
	n     int
	ended bool
}

// folder lists the entries below dir, which is "" or ends with "/". Entries sort by the common start of their keys: a
// folder by its name and "/", since "-" and "." sort before "/".
func (w *walk) folder(dir string) error {
	entries, err := w.read(dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		switch {
		case !e.dir:
			err = w.object(e.key)
		case w.o.Delimiter != "" && strings.HasPrefix(e.key, w.o.Prefix):
			err = w.common(e.key)
		default:
			err = w.folder(e.key)
		}
		if err != nil || w.ended {
			return err
		}
	}
	return nil
}

// entry is an object's key, or a folder's path with "/" after it.
type entry struct {
	key string
	dir bool
}

// read returns the entries of dir that can contribute to the listing, in order.
func (w *walk) read(dir string) ([]entry, error) {
	if err := w.b.enter(w.ctx, "list", w.o.Prefix); err != nil {
		return nil, err
	}
	defer w.b.leave()
	d, err := w.b.openFolder(dir)
	if vfs.Missing(err) {
		return nil, nil // missing, or removed since
	}
	if err != nil {
		return nil, fail("list", strings.TrimSuffix(dir, "/"), backend.NotApplied, err)
	}
	defer d.Close()
	var entries []entry
	for {
		found, err := d.ReadDir(dirChunk)
		for _, f := range found {
			if e, ok := w.entry(dir, f); ok {
				entries = append(entries, e)
			}
		}
		if err == io.EOF || err == nil && len(found) == 0 { //nolint:errorlint // ReadDir's own contract
			break
		}
		if err != nil {
			return nil, fail("list", strings.TrimSuffix(dir, "/"), backend.NotApplied, vfs.Step("read directory", err))
		}
	}
	slices.SortFunc(entries, func(a, b entry) int { return cmp.Compare(a.key, b.key) })
	return entries, nil
}

// entry returns the entry for f; ok is false if f is not listed.
func (w *walk) entry(dir string, f fs.DirEntry) (entry, bool) {
	e := entry{key: dir + f.Name(), dir: f.IsDir()}
	if !f.IsDir() && !f.Type().IsRegular() || backend.ValidKey(e.key) != nil {
		return entry{}, false
	}
	if e.dir {
		e.key += "/"
	}
	return e, w.wants(e)
}

// wants reports whether a key of e can match the prefix and follow After.
func (w *walk) wants(e entry) bool {
	matches := strings.HasPrefix(e.key, w.o.Prefix) || e.dir && strings.HasPrefix(w.o.Prefix, e.key)
	after := e.key > w.o.After || e.dir && strings.HasPrefix(w.o.After, e.key)
	return matches && after
}

func (w *walk) object(key string) error {
	if err := w.b.enter(w.ctx, "list", w.o.Prefix); err != nil {
		return err
	}
	st, err := w.b.fs.Lstat(key)
	w.b.leave()
	if vfs.Missing(err) || err == nil && !st.Mode.IsRegular() {
		return nil
	}
	if err != nil {
		return fail("list", key, backend.NotApplied, vfs.Step("look up", err))
	}
	w.give(infoOf(key, st))
	return nil
}

// common yields a folder as a common prefix, if it contains an object: the search stops at the first one. An unreadable
// folder is yielded too: to list what is in it then fails.
func (w *walk) common(prefix string) error {
	if prefix <= w.o.After {
		return nil
	}
	if w.o.Loose {
		w.give(backend.Info{Key: prefix, Prefix: true})
		return nil
	}
	found := false
	probe := walk{b: w.b, ctx: w.ctx, o: backend.ListOptions{Prefix: prefix}}
	probe.yield = func(backend.Info, error) bool {
		found = true
		return false
	}
	err := probe.folder(prefix)
	refused := backend.Refused(err)
	if err != nil && !refused {
		return err
	}
	if found || refused {
		w.give(backend.Info{Key: prefix, Prefix: true})
	}
	return nil
}

func (w *walk) give(info backend.Info) {
	w.n++
	if !w.yield(info, nil) || w.n == w.o.Limit {
		w.ended = true
	}
}

// openFolder opens the folder dir ("" or with "/" after it) after refusing components that are links or special
// files.
func (b *Backend) openFolder(dir string) (vfs.Dir, error) {
	for i, c := range dir {
		if c != '/' {
			continue
		}
		st, err := b.fs.Lstat(dir[:i])
		if err != nil {
			return nil, vfs.Step("look up", err)
		}
		if !st.Mode.IsDir() && !st.Mode.IsRegular() {
			return nil, vfs.Foreign("folder "+dir[:i], st.Mode)
		}
	}
	d, err := b.fs.OpenDir(cmp.Or(strings.TrimSuffix(dir, "/"), "."))
	if err != nil {
		return nil, vfs.Step("open directory", err)
	}
	return d, nil
}
