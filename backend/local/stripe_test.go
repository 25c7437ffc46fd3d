package local_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/coppice-go/coppice/backend"
	"github.com/coppice-go/coppice/backend/local"
	"github.com/coppice-go/coppice/internal/vfs"
)

const folder = "checkpoint_latest"

// slowDisk stops the next sync of a folder until it is released.
type slowDisk struct {
	vfs.FS

	mu      sync.Mutex
	reached chan struct{} // nil = no sync stops
	resume  chan struct{}
}

func (s *slowDisk) arm() (reached <-chan struct{}, letGo func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.reached, s.resume = make(chan struct{}), make(chan struct{})
	resume := s.resume
	return s.reached, func() { close(resume) }
}

func (s *slowDisk) OpenDir(name string) (vfs.Dir, error) {
	d, err := s.FS.OpenDir(name)
	if err != nil || name != folder {
		return d, err
	}
	return &slowDir{d, s}, nil
}

type slowDir struct {
	vfs.Dir
	s *slowDisk
}

func (d *slowDir) Sync() error {
	d.s.mu.Lock()
	reached, resume := d.s.reached, d.s.resume
	d.s.reached = nil
	d.s.mu.Unlock()
	if reached != nil {
		close(reached)
		<-resume
	}
	return d.Dir.Sync()
}

// replace replaces oldData by newData.
func replace(ctx context.Context, b *local.Backend, key string) error {
	_, err := b.Put(ctx, key, newData, backend.IfMatch(oldVersion))
	return err
}

// heldPut runs test while a conditional Put of checkpoint_latest/s1 is in the sync of the folder. The handles are the
// one of the Put and another on the same directory. Time in test is that of the bubble: a call that waits for a lock
// reaches its deadline at once.
func heldPut(t *testing.T, test func(t *testing.T, dir string, handles map[string]*local.Backend)) {
	t.Helper()
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		disk := &slowDisk{FS: vfs.OS(dir)}
		one, err := local.Open("", &local.Options{FS: disk})
		if err != nil {
			t.Fatal(err)
		}
		defer one.Close()
		other, err := local.Open(dir, nil)
		if err != nil {
			t.Fatal(err)
		}
		defer other.Close()
		for i := range 4 {
			if _, err := one.Put(ctx, fmt.Sprintf("%s/s%d", folder, i), oldData, backend.IfAbsent()); err != nil {
				t.Fatal(err)
			}
		}
		reached, letGo := disk.arm()
		first := make(chan error, 1)
		go func() { first <- replace(ctx, one, folder+"/s1") }()
		<-reached
		test(t, dir, map[string]*local.Backend{"same handle": one, "other handle": other})
		letGo()
		if err := <-first; err != nil {
			t.Errorf("the put that was held: %v", err)
		}
	})
}

// TestPutsOfOneFolder: objects of one folder do not wait for each other's sync.
func TestPutsOfOneFolder(t *testing.T) {
	heldPut(t, func(t *testing.T, _ string, handles map[string]*local.Backend) {
		key := folder + "/s2"
		for name, b := range handles {
			limited, cancel := context.WithTimeout(ctx, time.Minute)
			if err := replace(limited, b, key); err != nil {
				t.Errorf("%s: %v", name, err)
			}
			key = folder + "/s3"
			cancel()
		}
	})
}

// TestOneObjectWaits: every change of an object waits for the sync of a Put of it.
func TestOneObjectWaits(t *testing.T) {
	heldPut(t, func(t *testing.T, _ string, handles map[string]*local.Backend) {
		const key = folder + "/s1"
		for name, b := range handles {
			for op, call := range map[string]func(ctx context.Context) error{
				"match":  func(ctx context.Context) error { return replace(ctx, b, key) },
				"put":    func(ctx context.Context) error { _, err := b.Put(ctx, key, newData, backend.Cond{}); return err },
				"append": func(ctx context.Context) error { _, err := b.Append(ctx, key, 4, newData); return err },
				"cut":    func(ctx context.Context) error { return b.Cut(ctx, key, 0, newData) },
				"resync": func(ctx context.Context) error { _, err := b.Resync(ctx, key, 0, 4); return err },
				"delete": func(ctx context.Context) error { return b.Delete(ctx, key) },
			} {
				limited, cancel := context.WithTimeout(ctx, time.Minute)
				err := call(limited)
				if !errors.Is(err, context.DeadlineExceeded) || backend.OutcomeOf(err) != backend.NotApplied {
					t.Errorf("%s: %s: %v, outcome %v; want it to wait", name, op, err, backend.OutcomeOf(err))
				}
				cancel()
			}
		}
	})
}

// TestOlderReleaseWaits: releases that know only the folder's lock take it exclusively, and must find it taken.
func TestOlderReleaseWaits(t *testing.T) {
	heldPut(t, func(t *testing.T, dir string, _ map[string]*local.Backend) {
		f, err := vfs.OS(dir).OpenFile(folder+"/.lock", os.O_RDWR|os.O_CREATE)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		if free, err := f.TryLock(true); err != nil || free {
			t.Errorf("the folder's lock is free during a put: %v, %v", free, err)
		}
	})
}

// TestOlderReleaseIsAwaited: while such a release holds the folder's lock, no object of the folder changes.
func TestOlderReleaseIsAwaited(t *testing.T) {
	const key = folder + "/s1"
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		b, err := local.Open(dir, nil)
		if err != nil {
			t.Fatal(err)
		}
		defer b.Close()
		if _, err := b.Put(ctx, key, oldData, backend.IfAbsent()); err != nil {
			t.Fatal(err)
		}
		older := holdLock(t, dir, folder+"/.lock")
		for op, call := range map[string]func(ctx context.Context) error{
			"match": func(ctx context.Context) error { return replace(ctx, b, key) },
			"append": func(ctx context.Context) error {
				_, err := b.Append(ctx, key, int64(len(oldData)), newData)
				return err
			},
			"delete": func(ctx context.Context) error { return b.Delete(ctx, key) },
		} {
			limited, cancel := context.WithTimeout(ctx, time.Minute)
			if err := call(limited); !errors.Is(err, context.DeadlineExceeded) || backend.OutcomeOf(err) != backend.NotApplied {
				t.Errorf("%s: %v, outcome %v; want it to wait", op, err, backend.OutcomeOf(err))
			}
			cancel()
		}
		if err := older.Unlock(); err != nil {
			t.Fatal(err)
		}
		if err := replace(ctx, b, key); err != nil {
			t.Error(err)
		}
	})
}

// TestLockFilesAreBounded: however many objects a folder has or had, it has few lock files, which are never removed and
// never listed.
func TestLockFilesAreBounded(t *testing.T) {
	dir := t.TempDir()
	b, err := local.Open("", &local.Options{FS: newScript(t, dir)})
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	locks := func() map[string]os.FileInfo {
		t.Helper()
		entries, err := os.ReadDir(filepath.Join(dir, folder))
		if err != nil {
			t.Fatal(err)
		}
		found := map[string]os.FileInfo{}
		for _, e := range entries {
			if !strings.HasPrefix(e.Name(), ".lock") {
				continue
			}
			if found[e.Name()], err = e.Info(); err != nil {
				t.Fatal(err)
			}
		}
		return found
	}
	const sessions = 400
	key := func(i int) string { return fmt.Sprintf("%s/0192f3a0-0000-7000-8000-%012x", folder, i*7919) }
	for i := range sessions {
		if _, err := b.Put(ctx, key(i), oldData, backend.Cond{}); err != nil {
			t.Fatal(err)
		}
	}
	before := locks()
	if len(before) < 33 || len(before) > 65 {
		t.Errorf("%d lock files", len(before))
	}
	listed := 0
	for info, err := range b.List(ctx, backend.ListOptions{Prefix: folder}) {
		if err != nil || !strings.HasPrefix(info.Key, folder+"/0") {
			t.Errorf("list: %+v, %v", info, err)
		}
		listed++
	}
	if listed != sessions {
		t.Errorf("%d objects listed", listed)
	}
	for i := range sessions {
		if err := b.Delete(ctx, key(i)); err != nil {
			t.Fatal(err)
		}
	}
	after := locks()
	if len(after) != len(before) {
		t.Errorf("%d lock files, were %d", len(after), len(before))
	}
	for name, info := range before {
		if !os.SameFile(info, after[name]) {
			t.Errorf("%s was replaced", name)
		}
	}
}

// cutDisk calls a function once, before the next read of a file.
type cutDisk struct {
	vfs.FS
	before func()
}

func (c *cutDisk) OpenFile(name string, flag int) (vfs.File, error) {
	f, err := c.FS.OpenFile(name, flag)
	return &cutFile{f, c}, err
}

type cutFile struct {
	vfs.File
	c *cutDisk
}

func (f *cutFile) ReadAt(p []byte, off int64) (int, error) {
	if before := f.c.before; before != nil {
		f.c.before = nil
		before()
	}
	return f.File.ReadAt(p, off)
}

// A read of an object that is cut meanwhile returns its content after the cut.
func TestReadDuringACut(t *testing.T) {
	ctx, key := t.Context(), "sessions/a/log"
	for name, tt := range map[string]struct {
		r    backend.Range
		want string
		err  error
	}{
		"whole":            {backend.Range{}, "good", nil},
		"the end":          {backend.Tail(4), "good", nil},
		"what was cut off": {backend.Bytes(4, 4), "", backend.ErrRange},
	} {
		t.Run(name, func(t *testing.T) {
			disk := &cutDisk{FS: vfs.OS(t.TempDir())}
			b, err := local.Open("", &local.Options{FS: disk})
			if err != nil {
				t.Fatal(err)
			}
			defer b.Close()
			if _, err := b.Put(ctx, key, []byte("goodtorn"), backend.IfAbsent()); err != nil {
				t.Fatal(err)
			}
			disk.before = func() {
				if err := b.Cut(ctx, key, 4, []byte("torn")); err != nil {
					t.Error(err)
				}
			}
			p, info, err := b.Get(ctx, key, tt.r)
			if string(p) != tt.want || !errors.Is(err, tt.err) || err == nil && info.Size != 4 {
				t.Errorf("%q of %d bytes, %v; want %q, %v", p, info.Size, err, tt.want, tt.err)
			}
		})
	}
}
