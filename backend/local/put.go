package local

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"syscall"

	"github.com/coppice-go/coppice/backend"
	"github.com/coppice-go/coppice/internal/vfs"
)

// Put writes an object if c holds. Concurrent readers get the old object or the new one.
func (b *Backend) Put(ctx context.Context, key string, p []byte, c backend.Cond) (backend.Info, error) {
	const op = "put"
	if err := b.enterKey(ctx, op, key); err != nil {
		return backend.Info{}, err
	}
	defer b.leave()
	if len(p) > backend.MaxObjectSize {
		return backend.Info{}, fail(op, key, backend.NotApplied, tooLarge(int64(len(p))))
	}
	info, out, err := b.put(ctx, key, p, c)
	if b.spend(ctx, out, err) {
		info, out, err = b.put(ctx, key, p, c)
	}
	if err != nil {
		return backend.Info{}, fail(op, key, out, err)
	}
	return info, nil
}

func (b *Backend) put(
	ctx context.Context, key string, p []byte, c backend.Cond,
) (backend.Info, backend.Outcome, error) {
	// A condition that fails has mostly failed before, and then nothing needs to be written.
	_, err := vfs.Lookup(b.fs, key)
	_, match := c.Match()
	switch {
	case err != nil && !vfs.Missing(err):
		return backend.Info{}, backend.NotApplied, err
	case err == nil && c.Absent(), err != nil && match:
		return backend.Info{}, backend.NotApplied, backend.ErrPrecondition
	}
	t, dir, err := b.prepare(vfs.Folder(key), p)
	if err != nil {
		return backend.Info{}, backend.NotApplied, err
	}
	defer t.discard()
	defer dir.Close()
	var out backend.Outcome
	if c.Absent() {
		out, err = b.create(ctx, t, dir, key)
	} else {
		out, err = b.replace(ctx, t, dir, key, c)
	}
	if err != nil {
		return backend.Info{}, out, err
	}
	return t.info(key, p), backend.Applied, nil
}

// prepare performs the steps that can fail without effect: it makes the object's folder durable and opens it, and
// writes and syncs the temporary file.
func (b *Backend) prepare(folder string, p []byte) (*temp, vfs.Dir, error) {
	if err := b.dirs.Ensure(folder); err != nil {
		return nil, nil, err
	}
	dir, err := b.fs.OpenDir(folder)
	if errors.Is(err, fs.ErrNotExist) { // removed in the meantime
		b.dirs.Forget()
		if err := b.dirs.Ensure(folder); err != nil {
			return nil, nil, err
		}
		dir, err = b.fs.OpenDir(folder)
	}
	if err != nil {
		return nil, nil, vfs.Step("open directory", err)
	}
	t, err := b.newTemp(p)
	if err != nil {
		dir.Close()
		return nil, nil, err
	}
	return t, dir, nil
}

// create publishes under a name that must be free. link(2) has exactly one winner without a lock; if the file system
// refuses links, every caller takes the lock.
func (b *Backend) create(ctx context.Context, t *temp, dir vfs.Dir, key string) (backend.Outcome, error) {
	err := b.fs.Link(t.name, key)
	switch {
	case err == nil, t.published(key): // done, even if the call returned an error
		return syncDir(dir)
	case errors.Is(err, fs.ErrExist):
		return backend.NotApplied, b.taken(key)
	case errors.Is(err, syscall.EMLINK) || vfs.Unsupported(err):
		return b.replace(ctx, t, dir, key, backend.IfAbsent())
	case refused(err):
		return backend.NotApplied, vfs.Step("link", err)
	}
	return backend.Unknown, vfs.Step("link", err)
}

// syncDir makes a change of a name in dir durable. If the sync fails the outcome of the change is Unknown.
func syncDir(dir vfs.Dir) (backend.Outcome, error) {
	if err := dir.Sync(); err != nil {
		return backend.Unknown, vfs.Step("sync directory", err)
	}
	return backend.Applied, nil
}

func (b *Backend) taken(key string) error {
	if st, err := b.fs.Lstat(key); err == nil && st.Mode.IsDir() {
		return fmt.Errorf("other keys lie below it: %w", syscall.EISDIR)
	}
	return backend.ErrPrecondition
}

// replace publishes over the existing object, under the lock, which is held until the name is durable.
func (b *Backend) replace(
	ctx context.Context, t *temp, dir vfs.Dir, key string, c backend.Cond,
) (backend.Outcome, error) {
	d, err := b.acquire(ctx, key)
	if err != nil {
		return backend.NotApplied, err
	}
	defer b.release(d)
	if err := b.holds(key, c); err != nil {
		return backend.NotApplied, err
	}
	if err := b.fs.Rename(t.name, key); err != nil && !t.published(key) {
		if refused(err) {
			return backend.NotApplied, vfs.Step("rename", err)
		}
		return backend.Unknown, vfs.Step("rename", err)
	}
	t.name = ""
	if d.key == key {
		d.dropFile()
	}
	return syncDir(dir)
}

// holds checks the condition; the caller has the lock.
func (b *Backend) holds(key string, c backend.Cond) error {
	want, match := c.Match()
	if !match {
		_, err := vfs.Lookup(b.fs, key)
		switch {
		case err == nil && c.Absent():
			return backend.ErrPrecondition
		case err != nil && !vfs.Missing(err):
			return err
		}
		return nil
	}
	f, st, err := vfs.OpenPlain(b.fs, key, os.O_RDONLY)
	if vfs.Missing(err) {
		return backend.ErrPrecondition
	}
	if err != nil {
		return err
	}
	defer f.Close()
	got, err := hashFile(f, st.Size)
	if err != nil {
		return vfs.Step("read", err)
	}
	if got != want {
		return backend.ErrPrecondition
	}
	return nil
}

// Delete removes an object, durably; a missing one is no error.
func (b *Backend) Delete(ctx context.Context, key string) error {
	const op = "delete"
	if err := b.enterKey(ctx, op, key); err != nil {
		return err
	}
	defer b.leave()
	d, err := b.acquire(ctx, key)
	if vfs.Missing(err) {
		return nil
	}
	if err != nil {
		return fail(op, key, backend.NotApplied, err)
	}
	defer b.release(d)
	out, err := b.remove(d, key)
	if b.spend(ctx, out, err) {
		out, err = b.remove(d, key)
	}
	if err != nil {
		return fail(op, key, out, err)
	}
	if b.spent.CompareAndSwap(true, false) {
		b.keepReserve()
	}
	return nil
}

func (b *Backend) remove(d *domain, key string) (backend.Outcome, error) {
	_, err := vfs.Lookup(b.fs, key)
	absent := vfs.Missing(err)
	if err != nil && !absent {
		return backend.NotApplied, err
	}
	dir, err := b.fs.OpenDir(vfs.Folder(key))
	if err != nil {
		if absent && vfs.Missing(err) {
			return backend.Applied, nil
		}
		return backend.NotApplied, vfs.Step("open directory", err)
	}
	defer dir.Close()
	if !absent {
		if err := b.fs.Remove(key); err != nil && !errors.Is(err, fs.ErrNotExist) {
			if refused(err) {
				return backend.NotApplied, vfs.Step("remove", err)
			}
			return backend.Unknown, vfs.Step("remove", err)
		}
		if d.key == key {
			d.dropFile()
		}
	}
	return syncDir(dir) // also for a missing one: its remover may have failed to sync
}
