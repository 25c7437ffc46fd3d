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
	// reserveFile is removed on a full disk to make room for writes that free more (backend.Freeing). It is created
	// with the first object of a handle; its content has no meaning.
	reserveFile = ".reserve"
	// reserveBytes is enough for the end of a session in its log, its tombstone, and their directories.
	reserveBytes = 64 << 10
)

// keepReserve creates the reserve if it is missing. A full disk is no error.
func (b *Backend) keepReserve() {
	if _, err := b.fs.Lstat(reserveFile); !vfs.Missing(err) {
		return
	}
	f, err := b.fs.OpenFile(reserveFile, os.O_RDWR|os.O_CREATE|os.O_EXCL)
	if err != nil {
		return
	}
	p := make([]byte, reserveBytes)
	_, _ = rand.NewChaCha8([32]byte{}).Read(p) // a file system that compresses would reserve nothing for zeros
	_, err = f.Write(p)
	if errors.Join(err, f.Close()) != nil {
		b.spent.Store(b.fs.Remove(reserveFile) == nil)
	}
}

// spend removes the reserve after a full disk refused a write; true: try the write once more.
func (b *Backend) spend(ctx context.Context, out backend.Outcome, err error) bool {
	full := errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT)
	if !full || out != backend.NotApplied || !backend.IsFreeing(ctx) || b.fs.Remove(reserveFile) != nil {
		return false
	}
	b.spent.Store(true)
	return vfs.SyncDir(b.fs, ".") == nil // some file systems free removed files with their next commit
}
