package local_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/coppice-go/coppice/backend"
	"github.com/coppice-go/coppice/backend/local"
)

const (
	logKey    = "sessions/s1/transcript/log"
	latestKey = "checkpoint_latest/s1" // its locks are those of the folder
)

// change is one write on a store that holds oldData under logKey and latestKey.
type change struct {
	name string
	key  string // of the changed object
	do   func(b *local.Backend) error
	want []byte // nil: the object is deleted
	old  []byte // nil: there was none
}

var (
	oldData = []byte("old data\n")
	newData = []byte("new\n")
	ctx     = context.Background()
)

func changes() []change {
	put := func(key string, c func(b *local.Backend) backend.Cond) func(b *local.Backend) error {
		return func(b *local.Backend) error {
			_, err := b.Put(ctx, key, newData, c(b))
			return err
		}
	}
	always := func(*local.Backend) backend.Cond { return backend.Cond{} }
	absent := func(*local.Backend) backend.Cond { return backend.IfAbsent() }
	return []change{
		{"append", logKey, func(b *local.Backend) error {
			_, err := b.Append(ctx, logKey, int64(len(oldData)), newData)
			return err
		}, append(bytes.Clone(oldData), newData...), oldData},
		{"cut", logKey, func(b *local.Backend) error {
			return b.Cut(ctx, logKey, 3, oldData[3:])
		}, oldData[:3], oldData},
		{"resync", logKey, func(b *local.Backend) error {
			_, err := b.Resync(ctx, logKey, 3, int64(len(oldData)))
			return err
		}, oldData, oldData},
		{"put", logKey, put(logKey, always), newData, oldData},
		{"put if-match", logKey, put(logKey, func(*local.Backend) backend.Cond { return backend.IfMatch(oldVersion) }), newData, oldData},
		{"put in a folder", latestKey, put(latestKey, func(*local.Backend) backend.Cond { return backend.IfMatch(oldVersion) }), newData, oldData},
		{"append in a folder", latestKey, func(b *local.Backend) error {
			_, err := b.Append(ctx, latestKey, int64(len(oldData)), newData)
			return err
		}, append(bytes.Clone(oldData), newData...), oldData},
		{"cut in a folder", latestKey, func(b *local.Backend) error { return b.Cut(ctx, latestKey, 3, oldData[3:]) }, oldData[:3], oldData},
		{"delete in a folder", latestKey, func(b *local.Backend) error { return b.Delete(ctx, latestKey) }, nil, oldData},
		{"put if-absent", "new/folder/x", put("new/folder/x", absent), newData, nil},
		{"delete", logKey, func(b *local.Backend) error { return b.Delete(ctx, logKey) }, nil, oldData},
	}
}

// oldVersion is that of oldData: half of its SHA-256.
var oldVersion = func() backend.Version {
	dir, err := os.MkdirTemp("", "coppice")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	b, err := local.Open(dir, nil)
	if err != nil {
		panic(err)
	}
	defer b.Close()
	info, err := b.Put(ctx, "x", oldData, backend.Cond{})
	if err != nil {
		panic(err)
	}
	return info.Version
}()

// stage makes a store with oldData under both keys; warm: the handle has appended before.
func stage(t *testing.T, warm bool) (*local.Backend, *script, string) {
	t.Helper()
	dir := t.TempDir()
	s := newScript(t, dir)
	b, err := local.Open("", &local.Options{FS: s})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := b.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
		if s.open != 0 {
			t.Errorf("%d files left open", s.open)
		}
	})
	first := oldData
	if warm {
		first = oldData[:4]
	}
	for _, key := range []string{logKey, latestKey} {
		if _, err := b.Put(ctx, key, first, backend.IfAbsent()); err != nil {
			t.Fatal(err)
		}
		if !warm {
			continue
		}
		if _, err := b.Append(ctx, key, 4, oldData[4:]); err != nil {
			t.Fatal(err)
		}
	}
	return b, s, dir
}

// TestFaultAtEveryCall lets each call of each operation fail once in each way, and compares the reported outcome with
// the disk.
func TestFaultAtEveryCall(t *testing.T) {
	for _, warm := range []bool{false, true} {
		for _, c := range changes() {
			t.Run(fmt.Sprintf("%s/warm=%v", c.name, warm), func(t *testing.T) {
				t.Parallel()
				b, s, _ := stage(t, warm)
				s.reset(nil)
				if err := c.do(b); err != nil {
					t.Fatal(err)
				}
				calls := s.calls
				for i, call := range calls {
					kinds := errnos
					if len(writes([]string{call})) == 0 { // changes nothing: two errors are enough
						kinds = []syscall.Errno{syscall.EIO, syscall.EMFILE}
					}
					for _, errno := range kinds {
						oneFault(t, c, warm, i, call, errno, false)
						if strings.HasPrefix(call, "write ") {
							oneFault(t, c, warm, i, call, errno, true)
						}
					}
				}
			})
		}
	}
}

func oneFault(t *testing.T, c change, warm bool, n int, call string, errno syscall.Errno, short bool) {
	t.Helper()
	b, s, dir := stage(t, warm)
	s.short = short
	s.reset(failNth(n, errno))
	err := c.do(b)
	s.reset(nil)
	what := fmt.Sprintf("%s: %s (call %d) fails with %v, short %v", c.name, call, n, errno, short)
	got, rerr := os.ReadFile(filepath.Join(dir, c.key))
	if rerr != nil && !errors.Is(rerr, os.ErrNotExist) {
		t.Fatal(rerr)
	}
	if rerr == nil && got == nil {
		got = []byte{}
	}
	isOld, isNew := reflect.DeepEqual(got, c.old), reflect.DeepEqual(got, c.want)
	switch out := backend.OutcomeOf(err); {
	case err == nil && !isNew:
		t.Errorf("%s: reported done, found %q", what, got)
	case err != nil && out == backend.NotApplied && !isOld:
		t.Errorf("%s: reported as not applied, found %q: %v", what, got, err)
	case err != nil && out == backend.Applied:
		t.Errorf("%s: an error that says applied: %v", what, err)
	case out == backend.Unknown && !isOld && !isNew && !bytes.HasPrefix(got, c.old):
		t.Errorf("%s: found %q: %v", what, got, err)
	case err != nil && !errors.Is(err, errno):
		t.Errorf("%s: the errno is not in %v", what, err)
	}
	syncs := strings.HasPrefix(call, "sync") || strings.HasPrefix(call, "datasync")
	temps := strings.Contains(call, ".tmp/")
	if syncs && !temps && !strings.HasPrefix(call, "syncdir") && backend.OutcomeOf(err) != backend.Unknown {
		t.Errorf("%s: a failed sync of the object is %v: %v", what, backend.OutcomeOf(err), err)
	}
	if left, _ := os.ReadDir(filepath.Join(dir, ".tmp")); len(left) > 0 && !strings.HasPrefix(call, "remove .tmp/") {
		t.Errorf("%s: %d temporary files left: %s", what, len(left), left[0].Name())
	}
	// The handle stays usable, unless the caller has to determine the outcome.
	if err != nil && backend.OutcomeOf(err) == backend.NotApplied {
		if err := c.do(b); err != nil {
			t.Errorf("%s: once more: %v", what, err)
		}
	}
}

// TestShortAppendIsCutBack: nothing remains of an append for which the disk had no room.
func TestShortAppendIsCutBack(t *testing.T) {
	for _, errno := range errnos {
		b, s, dir := stage(t, true)
		s.short = true
		s.reset(failCall("write", errno))
		_, err := b.Append(ctx, logKey, int64(len(oldData)), newData)
		if backend.OutcomeOf(err) != backend.NotApplied || !errors.Is(err, errno) {
			t.Errorf("%v: %v, outcome %v", errno, err, backend.OutcomeOf(err))
		}
		if got := writes(s.calls); !reflect.DeepEqual(got, []string{"write " + logKey, "truncate " + logKey, "datasync " + logKey}) {
			t.Errorf("%v: %q", errno, got)
		}
		if got, _ := os.ReadFile(filepath.Join(dir, logKey)); !bytes.Equal(got, oldData) {
			t.Errorf("%v: %q", errno, got)
		}
	}
}

// TestShortAppendIsOthers: if a program without the lock wrote other bytes of the same length in the place of a short
// write, nothing is cut back.
func TestShortAppendIsOthers(t *testing.T) {
	b, s, dir := stage(t, true)
	s.short = true
	write, wrote := failCall("write", syscall.ENOSPC), false
	s.reset(func(n int, call string) error {
		if err := write(n, call); err != nil {
			wrote = true
			return err
		}
		if wrote && strings.HasPrefix(call, "stat ") {
			wrote = false
			return os.WriteFile(filepath.Join(dir, logKey), append(bytes.Clone(oldData), "XX"...), 0o600)
		}
		return nil
	})
	_, err := b.Append(ctx, logKey, int64(len(oldData)), newData)
	if err == nil || backend.OutcomeOf(err) != backend.Unknown {
		t.Errorf("%v, outcome %v", err, backend.OutcomeOf(err))
	}
	if got, _ := os.ReadFile(filepath.Join(dir, logKey)); string(got) != string(oldData)+"XX" {
		t.Errorf("%q", got)
	}
}

// TestShortAppendThatStays: if cutting back fails too, the append must not be reported as undone.
func TestShortAppendThatStays(t *testing.T) {
	for _, second := range []string{"truncate", "datasync", "stat"} {
		b, s, _ := stage(t, true)
		s.short = true
		write, next := failCall("write", syscall.ENOSPC), failCall(second, syscall.EIO)
		s.reset(func(n int, call string) error {
			if err := write(n, call); err != nil {
				return err
			}
			return next(n, call)
		})
		_, err := b.Append(ctx, logKey, int64(len(oldData)), newData)
		if err == nil || backend.OutcomeOf(err) != backend.Unknown {
			t.Errorf("%s: %v, outcome %v", second, err, backend.OutcomeOf(err))
		}
	}
}

// TestAppendCalls: an append by a handle that has appended before is one write and one sync.
func TestAppendCalls(t *testing.T) {
	b, s, _ := stage(t, true)
	s.reset(nil)
	if _, err := b.Append(ctx, logKey, int64(len(oldData)), newData); err != nil {
		t.Fatal(err)
	}
	const lock = "sessions/s1/.lock"
	want := []string{
		"lock " + lock, "lstat " + lock, "lstat " + logKey, "lock " + logKey,
		"write " + logKey, "datasync " + logKey, "stat " + logKey,
		"unlock " + logKey, "unlock " + lock,
	}
	if !reflect.DeepEqual(s.calls, want) {
		t.Errorf("%q\nwant %q", s.calls, want)
	}
}

// TestFoundNameBecomesDurable: the creator of a log may have died before its name was durable. So the first append of
// another handle syncs the folder, and the folders above, before it writes, and fails if that fails.
func TestFoundNameBecomesDurable(t *testing.T) {
	_, _, dir := stage(t, false)
	s := newScript(t, dir)
	b, err := local.Open("", &local.Options{FS: s})
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	const folder = "syncdir sessions/s1/transcript"
	s.reset(failCall(folder, syscall.EIO))
	_, err = b.Append(ctx, logKey, int64(len(oldData)), newData)
	if !errors.Is(err, syscall.EIO) || backend.OutcomeOf(err) != backend.NotApplied {
		t.Errorf("the folder cannot be synced: %v (%s)", err, backend.OutcomeOf(err))
	}
	before := s.calls
	s.reset(nil)
	if _, err := b.Append(ctx, logKey, int64(len(oldData)), newData); err != nil {
		t.Fatal(err)
	}
	name, write := slices.Index(s.calls, folder), slices.Index(s.calls, "write "+logKey)
	if name < 0 || write < name {
		t.Errorf("%q, want %q before the write", s.calls, folder)
	}
	for _, parent := range []string{"syncdir .", "syncdir sessions", "syncdir sessions/s1"} {
		if !slices.Contains(before, parent) {
			t.Errorf("%q, want %q", before, parent)
		}
	}
}

// TestPutCalls: the calls of a replacement, and the order in which it becomes durable.
func TestPutCalls(t *testing.T) {
	b, s, _ := stage(t, true)
	s.reset(nil)
	if _, err := b.Put(ctx, logKey, newData, backend.IfMatch(oldVersion)); err != nil {
		t.Fatal(err)
	}
	want := []string{"write .tmp/3", "sync .tmp/3", "rename .tmp/3 " + logKey, "syncdir " + "sessions/s1/transcript"}
	if got := writes(s.calls); !reflect.DeepEqual(got, want) {
		t.Errorf("%q\nwant %q", got, want)
	}
}

// TestDeleteCalls: outside of sessions an object's own lock is taken, then the folder's, and both are held
// until the name is durable.
func TestDeleteCalls(t *testing.T) {
	b, s, _ := stage(t, true)
	s.reset(nil)
	if err := b.Delete(ctx, latestKey); err != nil {
		t.Fatal(err)
	}
	const own, folder = "checkpoint_latest/.lock-30", "checkpoint_latest/.lock"
	want := []string{
		"lock " + own, "lstat " + own, "lock " + folder, "lstat " + folder,
		"lstat checkpoint_latest", "lstat " + latestKey, "opendir checkpoint_latest",
		"remove " + latestKey, "syncdir checkpoint_latest", "unlock " + own, "unlock " + folder,
	}
	if !reflect.DeepEqual(s.calls, want) {
		t.Errorf("%q\nwant %q", s.calls, want)
	}
}

// TestRepeatedDeleteIsDurable: a deletion that is repeated because the folder could not be synced syncs the folder
// although the name no longer exists, and fails if that fails again.
func TestRepeatedDeleteIsDurable(t *testing.T) {
	b, s, _ := stage(t, true)
	for range 2 {
		s.reset(failCall("syncdir", syscall.EIO))
		if err := b.Delete(ctx, latestKey); !errors.Is(err, syscall.EIO) || backend.OutcomeOf(err) == backend.Applied {
			t.Errorf("the folder cannot be synced: %v (%s)", err, backend.OutcomeOf(err))
		}
	}
	s.reset(nil)
	if err := b.Delete(ctx, latestKey); err != nil {
		t.Fatal(err)
	}
	if got := writes(s.calls); !reflect.DeepEqual(got, []string{"syncdir checkpoint_latest"}) {
		t.Errorf("the repeated deletion: %q, want the sync of the folder", got)
	}
}

// TestReadsWriteNothing is I14: a read creates neither a store nor a lock.
func TestReadsWriteNothing(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "a", "store")
	b, err := local.Open(dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	if _, _, err := b.Get(ctx, "x", backend.Range{}); !errors.Is(err, backend.ErrNotExist) {
		t.Errorf("get: %v", err)
	}
	if _, err := b.Append(ctx, "x", 0, []byte("x")); !errors.Is(err, backend.ErrPrecondition) {
		t.Errorf("append: %v", err)
	}
	if err := b.Delete(ctx, "a/x"); err != nil {
		t.Errorf("delete: %v", err)
	}
	if _, err := b.Put(ctx, "x", nil, backend.IfMatch("v")); !errors.Is(err, backend.ErrPrecondition) {
		t.Errorf("put: %v", err)
	}
	for _, err := range b.List(ctx, backend.ListOptions{}) {
		t.Errorf("list: %v", err)
	}
	if _, err := os.Stat(filepath.Dir(dir)); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the store's directory: %v", err)
	}

	staged, s, _ := stage(t, false)
	s.reset(nil)
	if _, _, err := staged.Get(ctx, logKey, backend.Range{}); err != nil {
		t.Error(err)
	}
	if _, err := staged.Stat(ctx, logKey); err != nil {
		t.Error(err)
	}
	for _, err := range staged.List(ctx, backend.ListOptions{Prefix: "sessions/", Delimiter: "/"}) {
		if err != nil {
			t.Error(err)
		}
	}
	if got := writes(s.calls); len(got) > 0 {
		t.Errorf("reading wrote: %q", got)
	}
}
