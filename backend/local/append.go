package local

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"

	"github.com/coppice-go/coppice/backend"
	"github.com/coppice-go/coppice/internal/vfs"
)

// rewriteChunk is the number of bytes that Resync holds in memory.
const rewriteChunk = 1 << 20

// Append writes p at the end iff the object is off bytes long: one write, one fdatasync.
func (b *Backend) Append(ctx context.Context, key string, off int64, p []byte) (backend.Info, error) {
	const op = "append"
	if err := b.enterKey(ctx, op, key); err != nil {
		return backend.Info{}, err
	}
	defer b.leave()
	d, st, err := b.hold(ctx, key, off)
	if err != nil {
		return backend.Info{}, fail(op, key, backend.NotApplied, err)
	}
	defer b.release(d)
	if len(p) == 0 {
		return infoOf(key, st), nil
	}
	if end := off + int64(len(p)); end > backend.MaxObjectSize {
		return backend.Info{}, fail(op, key, backend.NotApplied, tooLarge(end))
	}
	st, out, err := d.extend(off, p)
	if b.spend(ctx, out, err) {
		st, out, err = d.extend(off, p)
	}
	if err != nil {
		return backend.Info{}, fail(op, key, out, err)
	}
	return infoOf(key, st), nil
}

// hold takes the lock of an object that is to be changed in place, and the object's own lock against its readers, and
// checks that it is size bytes long. d.file is the object then, open for appending.
func (b *Backend) hold(ctx context.Context, key string, size int64) (*domain, vfs.Stat, error) {
	d, err := b.acquire(ctx, key)
	if vfs.Missing(err) {
		return nil, vfs.Stat{}, backend.ErrPrecondition
	}
	if err != nil {
		return nil, vfs.Stat{}, err
	}
	st, err := b.lockCurrent(ctx, d, key)
	if vfs.Missing(err) {
		err = backend.ErrPrecondition
	}
	if err == nil && st.Size != size {
		err = fmt.Errorf("%w: size %d, not %d", backend.ErrPrecondition, st.Size, size)
	}
	if err != nil {
		b.release(d)
		return nil, vfs.Stat{}, err
	}
	return d, st, nil
}

// lockCurrent sets d.file to the file that key names now, with an exclusive lock. It reuses the open file if key still
// names it, which costs one lstat.
func (b *Backend) lockCurrent(ctx context.Context, d *domain, key string) (vfs.Stat, error) {
	st, err := b.fs.Lstat(key)
	if err != nil {
		d.dropFile()
		return vfs.Stat{}, vfs.Step("look up", err)
	}
	if d.file == nil || d.key != key || d.fileID != st.ID {
		d.dropFile()
		// A name that existed already may not be durable.
		if err := b.dirs.Ensure(vfs.Folder(key)); err != nil {
			return vfs.Stat{}, err
		}
		f, found, err := vfs.OpenPlain(b.fs, key, os.O_RDWR|os.O_APPEND)
		if err != nil {
			return vfs.Stat{}, err
		}
		d.key, d.file, d.fileID = key, f, found.ID
		st = found
		if err := vfs.SyncDir(b.fs, vfs.Folder(key)); err != nil {
			d.dropFile()
			return vfs.Stat{}, err
		}
	}
	if err := b.await(ctx, d.file, true); err != nil {
		return vfs.Stat{}, err
	}
	if st.Links > 1 {
		return b.soleLink(key)
	}
	return st, nil
}

// soleLink refuses an object with a second name, since a change would affect that too: a hard link into another tree,
// or a copy that a backup program made. A name that a crash left in .tmp is the driver's own, and is removed.
func (b *Backend) soleLink(key string) (vfs.Stat, error) {
	st, err := b.fs.Lstat(key)
	if err == nil && st.Links > 1 {
		b.sweepTemps(st.ID)
		st, err = b.fs.Lstat(key)
	}
	if err != nil {
		return vfs.Stat{}, vfs.Step("look up", err)
	}
	if st.Links > 1 {
		return vfs.Stat{}, fmt.Errorf("%s has %d hard links: %w", key, st.Links, ErrForeign)
	}
	return st, nil
}

// extend appends and syncs.
func (d *domain) extend(off int64, p []byte) (vfs.Stat, backend.Outcome, error) {
	n, err := d.file.Write(p)
	if err == nil && n != len(p) {
		err = io.ErrShortWrite
	}
	if err != nil {
		err = vfs.Step("write", err)
		if d.cutBack(off, p[:max(n, 0)]) {
			return vfs.Stat{}, backend.NotApplied, err
		}
		d.dropFile()
		return vfs.Stat{}, backend.Unknown, err
	}
	if err := d.file.Datasync(); err != nil {
		d.dropFile()
		return vfs.Stat{}, backend.Unknown, vfs.Step("sync", err)
	}
	st, ok := d.landed(off, p)
	if !ok {
		d.dropFile()
		return vfs.Stat{}, backend.Unknown, errDisturbed
	}
	return st, backend.Applied, nil
}

// cutBack undoes a short write of p. It changes nothing unless the file ends with exactly p after off: other bytes were
// written by another program.
func (d *domain) cutBack(off int64, p []byte) bool {
	st, err := d.file.Stat()
	if err != nil || st.Size != off+int64(len(p)) {
		return false
	}
	if len(p) == 0 {
		return true
	}
	if same, err := d.has(off, p); err != nil || !same {
		return false
	}
	return d.file.Truncate(off) == nil && d.file.Datasync() == nil
}

// has reports whether the object contains p at off. It reads in chunks.
func (d *domain) has(off int64, p []byte) (bool, error) {
	buf := make([]byte, min(len(p), hashChunk))
	for len(p) > 0 {
		chunk := buf[:min(len(p), len(buf))]
		if err := readAt(d.file, chunk, off); err != nil {
			return false, err
		}
		if !bytes.Equal(chunk, p[:len(chunk)]) {
			return false, nil
		}
		off, p = off+int64(len(chunk)), p[len(chunk):]
	}
	return true, nil
}

// landed reports whether p is at off. It is if the file ends with it; otherwise a program appended without the lock,
// and the bytes at off are read and compared. If Stat of the file fails, the required size is returned.
func (d *domain) landed(off int64, p []byte) (vfs.Stat, bool) {
	end := off + int64(len(p))
	st, err := d.file.Stat()
	if err != nil {
		st = vfs.Stat{Size: end}
	}
	if err == nil && st.Size == end {
		return st, true
	}
	same, err := d.has(off, p)
	return st, err == nil && same
}

// Cut removes torn from the end of the object iff the object is off bytes followed by exactly torn.
func (b *Backend) Cut(ctx context.Context, key string, off int64, torn []byte) error {
	const op = "cut"
	if err := b.enterKey(ctx, op, key); err != nil {
		return err
	}
	defer b.leave()
	size := off + int64(len(torn))
	if off < 0 || size < off {
		return fail(op, key, backend.NotApplied, backend.ErrPrecondition)
	}
	d, _, err := b.hold(ctx, key, size)
	if err != nil {
		return fail(op, key, backend.NotApplied, err)
	}
	defer b.release(d)
	if out, err := d.cut(off, torn); err != nil {
		return fail(op, key, out, err)
	}
	return nil
}

// cut compares the bytes after off with torn, shortens the object to off bytes and syncs. The caller holds the locks
// and has checked the length.
func (d *domain) cut(off int64, torn []byte) (backend.Outcome, error) {
	same, err := d.has(off, torn)
	if err != nil {
		return backend.NotApplied, vfs.Step("read", err)
	}
	if !same {
		return backend.NotApplied, fmt.Errorf("%w: other bytes after %d", backend.ErrPrecondition, off)
	}
	if err := d.file.Truncate(off); err != nil {
		out := backend.Unknown
		if st, serr := d.file.Stat(); serr == nil && st.Size == off+int64(len(torn)) {
			out = backend.NotApplied
		}
		d.dropFile()
		return out, vfs.Step("truncate", err)
	}
	if err := d.file.Datasync(); err != nil {
		d.dropFile()
		return backend.Unknown, vfs.Step("sync", err)
	}
	return backend.Applied, nil
}

// Resync rewrites the bytes from off to size and syncs them.
func (b *Backend) Resync(ctx context.Context, key string, off, size int64) (backend.Info, error) {
	const op = "resync"
	if err := b.enterKey(ctx, op, key); err != nil {
		return backend.Info{}, err
	}
	defer b.leave()
	if off < 0 || off > size {
		return backend.Info{}, fail(op, key, backend.NotApplied, backend.ErrRange)
	}
	d, st, err := b.hold(ctx, key, size)
	if err != nil {
		return backend.Info{}, fail(op, key, backend.NotApplied, err)
	}
	defer b.release(d)
	if out, err := b.resync(d, key, off, size); err != nil {
		return backend.Info{}, fail(op, key, out, err)
	}
	if now, err := d.file.Stat(); err == nil {
		st.ModTime = now.ModTime
	}
	return infoOf(key, st), nil
}

func (b *Backend) resync(d *domain, key string, off, size int64) (backend.Outcome, error) {
	// A second descriptor: with O_APPEND the system would write at the end.
	f, st, err := vfs.OpenPlain(b.fs, key, os.O_RDWR)
	if err != nil {
		return backend.NotApplied, err
	}
	defer f.Close()
	if st.ID != d.fileID {
		return backend.NotApplied, vfs.ErrUnsettled
	}
	if err := rewrite(f, off, size); err != nil {
		d.dropFile()
		return backend.Unknown, err
	}
	return backend.Applied, nil
}

func rewrite(f vfs.File, off, size int64) error {
	buf := make([]byte, min(size-off, rewriteChunk))
	for off < size {
		chunk := buf[:min(size-off, int64(len(buf)))]
		if err := readAt(f, chunk, off); err != nil {
			return vfs.Step("read", err)
		}
		n, err := f.WriteAt(chunk, off)
		if err == nil && n != len(chunk) {
			err = io.ErrShortWrite
		}
		if err != nil {
			return vfs.Step("write", err)
		}
		off += int64(n)
	}
	if err := f.Sync(); err != nil {
		return vfs.Step("sync", err)
	}
	return nil
}
