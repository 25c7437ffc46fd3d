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

// ErrForeign reports that the object of a name is not a plain file of the store, but a symbolic link, a pipe, a device,
// or a file with further hard links. It is left alone: remove it by hand.
var ErrForeign = vfs.ErrForeign

var (
	errDisturbed = errors.New("another program wrote to the object without its lock")
	errTemps     = errors.New("no free name for a temporary file")
)

func fail(op, key string, out backend.Outcome, err error) error {
	return &backend.Error{Op: op, Key: key, Outcome: out, Err: err}
}

func tooLarge(size int64) error {
	return fmt.Errorf("%w: %d bytes, the limit is %d", backend.ErrTooLarge, size, int64(backend.MaxObjectSize))
}

// refused reports whether an error of a call on a name (link, rename, unlink) means that it certainly had no effect.
// EIO and EINTR do not: they may be returned after the effect.
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

// waitError returns the error that ends a wait for a lock.
func (b *Backend) waitError(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	return backend.ErrClosed
}
