//go:build linux || darwin || freebsd || netbsd || openbsd || dragonfly

package local_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/coppice-go/coppice/backend"
	"github.com/coppice-go/coppice/backend/local"
	"github.com/coppice-go/coppice/internal/vfs"
)

// TestReplacedLockFile: the lock file that a call waits for is removed, or replaced (by a restore of the folder). The
// old file excludes no later process, so the call takes the lock of the file that has the name now.
func TestReplacedLockFile(t *testing.T) {
	const name = "sessions/s1/.lock"
	for _, replaced := range []bool{true, false} {
		dir := t.TempDir()
		synctest.Test(t, func(t *testing.T) {
			b, err := local.Open(dir, nil)
			if err != nil {
				t.Fatal(err)
			}
			defer b.Close()
			const key = "sessions/s1/log"
			if _, err := b.Put(ctx, key, oldData, backend.IfAbsent()); err != nil {
				t.Fatal(err)
			}
			old := holdLock(t, dir, name)
			limited, cancel := context.WithTimeout(ctx, time.Minute)
			defer cancel()
			done := make(chan error, 1)
			go func() {
				_, err := b.Append(limited, key, int64(len(oldData)), newData)
				done <- err
			}()
			synctest.Wait() // it waits for the lock
			var newer vfs.File
			if err := os.Remove(filepath.Join(dir, name)); err != nil {
				t.Fatal(err)
			}
			if replaced {
				newer = holdLock(t, dir, name)
			}
			old.Close()
			err = <-done
			if replaced {
				newer.Close()
				if !errors.Is(err, context.DeadlineExceeded) {
					t.Errorf("the lock file was replaced by one that is locked, and a waiting append ended with %v", err)
				}
				if _, err := b.Append(ctx, key, int64(len(oldData)), newData); err != nil {
					t.Errorf("an append after the new lock was released: %v", err)
				}
			} else if err != nil {
				t.Errorf("an append whose lock file was removed: %v", err)
			}
			if _, err := os.Lstat(filepath.Join(dir, name)); err != nil {
				t.Errorf("the append holds a lock that has no name: %v", err)
			}
		})
	}
}
