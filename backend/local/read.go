package local

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"os"

	"github.com/coppice-go/coppice/backend"
	"github.com/coppice-go/coppice/internal/vfs"
)

// hashChunk is the number of bytes in memory while an object is hashed.
const hashChunk = 256 << 10

// Get reads an object or a part of it. The version is returned if the part is the whole.
func (b *Backend) Get(ctx context.Context, key string, r backend.Range) ([]byte, backend.Info, error) {
	const op = "get"
	if err := b.enterKey(ctx, op, key); err != nil {
		return nil, backend.Info{}, err
	}
	defer b.leave()
	p, st, err := b.read(ctx, key, r)
	if err != nil {
		return nil, backend.Info{}, fail(op, key, backend.NotApplied, err)
	}
	info := infoOf(key, st)
	if int64(len(p)) == st.Size {
		info.Version = versionOf(p)
	}
	return p, info, nil
}

// maxCuts bounds how often a read begins again because a Cut shortened the object meanwhile.
const maxCuts = 12

func (b *Backend) read(ctx context.Context, key string, r backend.Range) (p []byte, st vfs.Stat, err error) {
	for range maxCuts {
		if p, st, err = b.readOnce(ctx, key, r); !errors.Is(err, io.ErrUnexpectedEOF) {
			break
		}
	}
	return p, st, err
}

func (b *Backend) readOnce(ctx context.Context, key string, r backend.Range) ([]byte, vfs.Stat, error) {
	f, st, err := b.openWhole(ctx, key)
	if err != nil {
		return nil, vfs.Stat{}, err
	}
	defer f.Close()
	off, n, err := r.Resolve(st.Size)
	if err != nil {
		return nil, vfs.Stat{}, err
	}
	if n > backend.MaxObjectSize {
		return nil, vfs.Stat{}, tooLarge(n)
	}
	p := make([]byte, n)
	if err := readAt(f, p, off); err != nil {
		return nil, vfs.Stat{}, vfs.Step("read", err)
	}
	return p, st, nil
}

// Stat reads the object to compute its version.
func (b *Backend) Stat(ctx context.Context, key string) (backend.Info, error) {
	const op = "stat"
	if err := b.enterKey(ctx, op, key); err != nil {
		return backend.Info{}, err
	}
	defer b.leave()
	f, st, err := b.openWhole(ctx, key)
	if err != nil {
		return backend.Info{}, fail(op, key, backend.NotApplied, err)
	}
	defer f.Close()
	info := infoOf(key, st)
	info.Version, err = hashFile(f, st.Size)
	if err != nil {
		return backend.Info{}, fail(op, key, backend.NotApplied, vfs.Step("read", err))
	}
	return info, nil
}

// openWhole opens an object, and returns its size at a moment when it was not being changed. The lock is held for that
// moment only: bytes below the size of a whole object do not change (except by Cut), and readers that held it while
// they read would keep writers out indefinitely.
func (b *Backend) openWhole(ctx context.Context, key string) (vfs.File, vfs.Stat, error) {
	f, _, err := vfs.OpenPlain(b.fs, key, os.O_RDONLY)
	if err != nil {
		if vfs.Missing(err) {
			err = backend.ErrNotExist
		}
		return nil, vfs.Stat{}, err
	}
	st, err := b.wholeStat(ctx, f)
	if err != nil {
		f.Close()
		return nil, vfs.Stat{}, err
	}
	return f, st, nil
}

func (b *Backend) wholeStat(ctx context.Context, f vfs.File) (vfs.Stat, error) {
	// A file system without locks has no appends either, and all else is atomic by rename.
	err := b.await(ctx, f, false)
	locked := err == nil
	if err != nil && !vfs.Unsupported(err) {
		return vfs.Stat{}, err
	}
	st, err := f.Stat()
	if err != nil {
		return vfs.Stat{}, vfs.Step("stat", err)
	}
	if locked {
		if err := f.Unlock(); err != nil {
			return vfs.Stat{}, vfs.Step("unlock", err)
		}
	}
	return st, nil
}

func infoOf(key string, st vfs.Stat) backend.Info {
	return backend.Info{Key: key, Size: st.Size, ModTime: st.ModTime}
}

func readAt(f vfs.File, p []byte, off int64) error {
	n, err := f.ReadAt(p, off)
	if n == len(p) {
		return nil
	}
	if err == nil || err == io.EOF { //nolint:errorlint // ReaderAt's own contract
		return io.ErrUnexpectedEOF // shortened by a Cut, or by a program without the lock
	}
	return err
}

func versionOf(p []byte) backend.Version {
	sum := sha256.Sum256(p)
	return backend.Version(hex.EncodeToString(sum[:16]))
}

func hashFile(f vfs.File, size int64) (backend.Version, error) {
	h := sha256.New()
	buf := make([]byte, min(size, hashChunk))
	for off := int64(0); off < size; {
		chunk := buf[:min(size-off, int64(len(buf)))]
		if err := readAt(f, chunk, off); err != nil {
			return "", err
		}
		h.Write(chunk)
		off += int64(len(chunk))
	}
	return backend.Version(hex.EncodeToString(h.Sum(nil)[:16])), nil
}
