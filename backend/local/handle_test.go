package local_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/coppice-go/coppice/backend"
	"github.com/coppice-go/coppice/backend/local"
	"github.com/coppice-go/coppice/internal/testutil"
	"github.com/coppice-go/coppice/internal/vfs"
)

// holdLock takes a lock as another process would.
func holdLock(t *testing.T, dir, name string) vfs.File {
	t.Helper()
	f, err := vfs.OS(dir).OpenFile(name, os.O_RDWR|os.O_CREATE)
	if err != nil {
		t.Fatal(err)
	}
	if ok, err := f.TryLock(true); err != nil || !ok {
		t.Fatalf("lock %s: %v, %v", name, ok, err)
	}
	t.Cleanup(func() { f.Close() })
	return f
}

// TestWaitingEnds: a call that waits for a lock of another process ends with its context, or with the backend, and has
// changed nothing.
func TestWaitingEnds(t *testing.T) {
	b, dir := openWith(t, logKey, oldData)
	holdLock(t, dir, "sessions/s1/.lock")
	synctest.Test(t, func(t *testing.T) {
		b := testutil.Must(local.Open(dir, nil))(t)
		defer b.Close()
		limited, cancel := context.WithTimeout(ctx, time.Minute)
		defer cancel()
		_, err := b.Append(limited, logKey, int64(len(oldData)), newData)
		if !errors.Is(err, context.DeadlineExceeded) || backend.OutcomeOf(err) != backend.NotApplied {
			t.Errorf("append: %v, outcome %v", err, backend.OutcomeOf(err))
		}
	})
	var wg sync.WaitGroup
	for range 2 { // one waits for the process, one for the other goroutine
		wg.Go(func() {
			err := b.Delete(ctx, logKey)
			if !errors.Is(err, backend.ErrClosed) || backend.OutcomeOf(err) != backend.NotApplied {
				t.Errorf("delete: %v, outcome %v", err, backend.OutcomeOf(err))
			}
		})
	}
	if err := b.Close(); err != nil {
		t.Error(err)
	}
	wg.Wait()
}

// TestReaderWaitsForWholeAppend: a reader never sees the size of an object that is being written.
func TestReaderWaitsForWholeAppend(t *testing.T) {
	b, dir := openWith(t, logKey, oldData)
	f := holdLock(t, dir, logKey)
	synctest.Test(t, func(t *testing.T) {
		b := testutil.Must(local.Open(dir, nil))(t)
		defer b.Close()
		limited, cancel := context.WithTimeout(ctx, time.Minute)
		defer cancel()
		if _, _, err := b.Get(limited, logKey, backend.Range{}); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("get: %v", err)
		}
	})
	if err := f.Unlock(); err != nil {
		t.Fatal(err)
	}
	if p, _, err := b.Get(ctx, logKey, backend.Range{}); err != nil || string(p) != string(oldData) {
		t.Errorf("get: %q, %v", p, err)
	}
}

// TestSweep: files that a crashed process left are removed by the next handle's first write; files that are being
// written and foreign files stay.
func TestSweep(t *testing.T) {
	_, dir := openWith(t, logKey, oldData)
	for _, name := range []string{"7", "1", "readme.txt"} {
		if err := os.WriteFile(filepath.Join(dir, ".tmp", name), oldData, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	holdLock(t, dir, ".tmp/8")
	b, err := local.Open(dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	left := func() (names []string) {
		entries, err := os.ReadDir(filepath.Join(dir, ".tmp"))
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range entries {
			names = append(names, e.Name())
		}
		return names
	}
	if _, _, err := b.Get(ctx, logKey, backend.Range{}); err != nil {
		t.Fatal(err)
	}
	if got := left(); !slices.Equal(got, []string{"1", "7", "8", "readme.txt"}) {
		t.Errorf("after a read: %q", got)
	}
	for i := range 10 { // skips the name that is taken
		if _, err := b.Put(ctx, fmt.Sprintf("x/%d", i), newData, backend.IfAbsent()); err != nil {
			t.Fatal(err)
		}
	}
	if got := left(); !slices.Equal(got, []string{"8", "readme.txt"}) {
		t.Errorf("after a write: %q", got)
	}
}

// TestNoLinks: on a file system without hard links IfAbsent still has exactly one winner.
func TestNoLinks(t *testing.T) {
	dir := t.TempDir()
	var handles []*local.Backend
	for range 2 {
		s := newScript(t, dir)
		s.reset(func(_ int, call string) error {
			if strings.HasPrefix(call, "link ") {
				return syscall.EPERM
			}
			return nil
		})
		b, err := local.Open("", &local.Options{FS: s})
		if err != nil {
			t.Fatal(err)
		}
		defer b.Close()
		handles = append(handles, b)
	}
	for round := range 20 {
		var (
			wg   sync.WaitGroup
			mu   sync.Mutex
			wins []string
		)
		key := fmt.Sprintf("a/b/%d", round)
		for i := range 6 {
			wg.Go(func() {
				id := fmt.Sprint(i)
				_, err := handles[i%2].Put(ctx, key, []byte(id), backend.IfAbsent())
				mu.Lock()
				defer mu.Unlock()
				if err == nil {
					wins = append(wins, id)
				} else if !errors.Is(err, backend.ErrPrecondition) {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		p, _, err := handles[0].Get(ctx, key, backend.Range{})
		if err != nil || len(wins) != 1 || string(p) != wins[0] {
			t.Fatalf("round %d: winners %q, stored %q, %v", round, wins, p, err)
		}
	}
}

// TestStoreRemovedUnderHandle: removing the directory also removes locks and cached files; the handle detects it.
func TestStoreRemovedUnderHandle(t *testing.T) {
	b, dir := openWith(t, logKey, oldData)
	if _, err := b.Append(ctx, logKey, int64(len(oldData)), newData); err != nil {
		t.Fatal(err)
	}
	if err := os.RemoveAll(filepath.Join(dir, "sessions")); err != nil {
		t.Fatal(err)
	}
	if _, err := b.Append(ctx, logKey, int64(len(oldData)+len(newData)), newData); !errors.Is(err, backend.ErrPrecondition) {
		t.Errorf("append to what is gone: %v", err)
	}
	if _, err := b.Put(ctx, logKey, oldData, backend.IfAbsent()); err != nil {
		t.Fatal(err)
	}
	if _, err := b.Append(ctx, logKey, int64(len(oldData)), newData); err != nil {
		t.Fatal(err)
	}
	p, err := os.ReadFile(filepath.Join(dir, logKey))
	if err != nil || string(p) != string(oldData)+string(newData) {
		t.Errorf("%q, %v", p, err)
	}
}

// TestDescriptorsAreBounded: the number of open descriptors is bounded, and idle ones are closed when descriptors have
// run out.
func TestDescriptorsAreBounded(t *testing.T) {
	s := newScript(t, t.TempDir())
	b, err := local.Open("", &local.Options{FS: s, MaxOpen: 3})
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	for i := range 10 {
		key := fmt.Sprintf("sessions/s%d/log", i)
		if _, err := b.Put(ctx, key, nil, backend.IfAbsent()); err != nil {
			t.Fatal(err)
		}
		if _, err := b.Append(ctx, key, 0, newData); err != nil {
			t.Fatal(err)
		}
		if s.open > 6 {
			t.Fatalf("%d files open", s.open)
		}
	}
	s.reset(failCall("open ", syscall.EMFILE))
	if _, _, err := b.Get(ctx, "sessions/s1/log", backend.Range{}); err != nil {
		t.Error(err)
	}
	if s.open != 0 {
		t.Errorf("%d files open", s.open)
	}
}

// TestAnswerLost: a link or a rename that took effect and returned an error, as on network file systems, is recognised
// as applied.
func TestAnswerLost(t *testing.T) {
	for call, c := range map[string]backend.Cond{"link ": backend.IfAbsent(), "rename ": {}} {
		dir := t.TempDir()
		s := newScript(t, dir)
		b, err := local.Open("", &local.Options{FS: s})
		if err != nil {
			t.Fatal(err)
		}
		s.reset(func(_ int, now string) error {
			if !strings.HasPrefix(now, call) {
				return nil
			}
			names := strings.Fields(now)
			if call == "link " {
				err = s.FS.Link(names[1], names[2])
			} else {
				err = s.FS.Rename(names[1], names[2])
			}
			return errors.Join(err, syscall.EEXIST)
		})
		if _, err := b.Put(ctx, logKey, newData, c); err != nil {
			t.Errorf("%s: %v", call, err)
		}
		if p, err := os.ReadFile(filepath.Join(dir, logKey)); err != nil || string(p) != string(newData) {
			t.Errorf("%s: %q, %v", call, p, err)
		}
		if err := b.Close(); err != nil {
			t.Error(err)
		}
	}
}

func TestOpenURL(t *testing.T) {
	dir := filepath.ToSlash(t.TempDir())
	for _, address := range []string{"file://" + dir + "/a%20b", "file://localhost" + dir + "/a%20b", dir + "/a b"} {
		b, err := backend.Open(ctx, address)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := b.Put(ctx, "x", newData, backend.Cond{}); err != nil {
			t.Errorf("%s: %v", address, err)
		}
		if _, err := os.Stat(dir + "/a b/x"); err != nil {
			t.Errorf("%s: %v", address, err)
		}
		if err := errors.Join(os.RemoveAll(dir+"/a b"), b.Close()); err != nil {
			t.Error(err)
		}
	}
	for _, address := range []string{"file://host/dir", "file:///dir?region=x", "file:///dir#x", "file:"} {
		if _, err := backend.Open(ctx, address); err == nil {
			t.Errorf("%s: opened", address)
		}
	}
}

// TestRootIsNoDirectory: neither a file nor a pipe at the store's path is opened.
func TestRootIsNoDirectory(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{file, file + "/below"} {
		b, err := local.Open(dir, nil)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := b.Put(ctx, "x", nil, backend.Cond{}); err == nil || backend.OutcomeOf(err) != backend.NotApplied {
			t.Errorf("put: %v", err)
		}
		if err := b.Close(); err != nil {
			t.Error(err)
		}
	}
}

// TestFolderInTheWay: a name with keys below it cannot be an object.
func TestFolderInTheWay(t *testing.T) {
	b, _ := openWith(t, logKey, oldData)
	for _, c := range []backend.Cond{{}, backend.IfAbsent()} {
		_, err := b.Put(ctx, "sessions/s1", newData, c)
		if err == nil || errors.Is(err, backend.ErrPrecondition) || backend.OutcomeOf(err) != backend.NotApplied {
			t.Errorf("%v: %v, outcome %v", c, err, backend.OutcomeOf(err))
		}
	}
	if _, err := b.Put(ctx, logKey+"/below", newData, backend.Cond{}); !errors.Is(err, local.ErrForeign) {
		t.Errorf("below an object: %v", err)
	}
	if err := b.Delete(ctx, "sessions/s1"); err != nil { // no such object exists
		t.Error(err)
	}
	if p, _, err := b.Get(ctx, logKey, backend.Range{}); err != nil || string(p) != string(oldData) {
		t.Errorf("%q, %v", p, err)
	}
}
