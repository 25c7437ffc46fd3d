package local

import (
	"context"
	"errors"
	"math/rand/v2"
	"os"
	"syscall"

	"github.com/coppice-go/coppice/backend"
	"github.com/coppice-go/coppice/internal/vfs"
)

const (
	// reserveFile is removed on a full disk for writes that free more (backend.Freeing). It is made with the first
	// object of a handle, and its bytes mean nothing.
	reserveFile = ".reserve"
	// reserveBytes are enough for the end of a session in its log, its tombstone, and their directories.
	reserveBytes = 64 << 10
)

// keepReserve makes the reserve where it is missing. Without room there is none: that is no error.
func (b *Backend) keepReserve() {
	if _, err := b.fs.Lstat(reserveFile); !vfs.Missing(err) {
		return
	}
	f, err := b.fs.OpenFile(reserveFile, os.O_RDWR|os.O_CREATE|os.O_EXCL)
	if err != nil {
		return
	}
	p := make([]byte, reserveBytes)
	_, _ = rand.NewChaCha8([32]byte{}).Read(p) // file systems that compress would keep nothing of zeros
	_, err = f.Write(p)
	if errors.Join(err, f.Close()) != nil {
		b.spent.Store(b.fs.Remove(reserveFile) == nil)
	}
}

// spend removes the reserve for a write that a full disk refused; true: try it once more.
func (b *Backend) spend(ctx context.Context, out backend.Outcome, err error) bool {
	full := errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT)
	if !full || out != backend.NotApplied || !backend.IsFreeing(ctx) || b.fs.Remove(reserveFile) != nil {
		return false
	}
	b.spent.Store(true)
	return vfs.SyncDir(b.fs, ".") == nil // some file systems free what is removed with their next commit
}
