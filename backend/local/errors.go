package local

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"syscall"

	"github.com/coppice-go/coppice/backend"
	"github.com/coppice-go/coppice/internal/vfs"
)

// ErrForeign is the error of a key whose file the store did not write: a symbolic link, a pipe, a device, or a file
// with more than one hard link. The store neither reads nor changes it. Remove it by hand.
var ErrForeign = vfs.ErrForeign

var (
	errDisturbed = errors.New("another program wrote to the object without its lock")
	errTemps     = errors.New("no free name for a temporary file")
)

// fail returns a *backend.Error.
func fail(op, key string, out backend.Outcome, err error) error {
	return &backend.Error{Op: op, Key: key, Outcome: out, Err: err}
}

// tooLarge returns the error of an object of size bytes, which is more than backend.MaxObjectSize.
func tooLarge(size int64) error {
	return fmt.Errorf("%w: %d bytes, the limit is %d", backend.ErrTooLarge, size, int64(backend.MaxObjectSize))
}

// refused reports whether err proves that a link, rename or unlink had no effect. EIO and EINTR do not prove it: the
// system may return them after the effect.
func refused(err error) bool {
	for _, known := range []error{
		fs.ErrExist, fs.ErrNotExist, fs.ErrPermission,
		syscall.ENOSPC, syscall.EDQUOT, syscall.EROFS, syscall.EMFILE, syscall.ENFILE, syscall.ENOMEM,
		syscall.ENOTDIR, syscall.EISDIR, syscall.ENAMETOOLONG, syscall.ELOOP, syscall.EMLINK, syscall.EXDEV,
	} {
		if errors.Is(err, known) {
			return true
		}
	}
	return vfs.Unsupported(err)
}

// waitError returns why a wait for a lock ended: the error of ctx, or backend.ErrClosed if Close ended it.
func (b *Backend) waitError(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	return backend.ErrClosed
}
