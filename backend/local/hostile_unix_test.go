//go:build linux || darwin || freebsd || netbsd || openbsd || dragonfly

package local_test

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/coppice-go/coppice/backend"
	"github.com/coppice-go/coppice/backend/local"
)

// calls returns every operation on one key.
func calls(b *local.Backend, key string) map[string]func() error {
	return map[string]func() error{
		"get":    func() error { _, _, err := b.Get(ctx, key, backend.Range{}); return err },
		"stat":   func() error { _, err := b.Stat(ctx, key); return err },
		"put":    func() error { _, err := b.Put(ctx, key, newData, backend.Cond{}); return err },
		"absent": func() error { _, err := b.Put(ctx, key, newData, backend.IfAbsent()); return err },
		"match":  func() error { _, err := b.Put(ctx, key, newData, backend.IfMatch(oldVersion)); return err },
		"append": func() error { _, err := b.Append(ctx, key, int64(len(oldData)), newData); return err },
		"cut":    func() error { return b.Cut(ctx, key, 0, oldData) },
		"resync": func() error { _, err := b.Resync(ctx, key, 0, int64(len(oldData))); return err },
		"delete": func() error { return b.Delete(ctx, key) },
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// TestForeignThings puts other file types in an object's place: every call is refused, none hangs, and neither the file
// nor its target is changed.
func TestForeignThings(t *testing.T) {
	things := map[string]func(path, outside string) error{
		"link to a file":      func(path, outside string) error { return os.Symlink(outside+"/secret", path) },
		"link to an object":   func(path, _ string) error { return os.Symlink("log", path) },
		"link to nothing":     func(path, _ string) error { return os.Symlink("nothing", path) },
		"link out of the way": func(path, _ string) error { return os.Symlink("../../../../../../etc/passwd", path) },
		"pipe":                func(path, _ string) error { return syscall.Mkfifo(path, 0o600) },
	}
	for name, place := range things {
		t.Run(name, func(t *testing.T) {
			b, dir := openWith(t, logKey, oldData)
			outside := t.TempDir()
			must(t, os.WriteFile(outside+"/secret", oldData, 0o600))
			const key = "sessions/s1/transcript/thing"
			path := filepath.Join(dir, key)
			must(t, place(path, outside))
			before, err := os.Lstat(path)
			must(t, err)
			for op, call := range calls(b, key) {
				if err := call(); !errors.Is(err, local.ErrForeign) || backend.OutcomeOf(err) != backend.NotApplied {
					t.Errorf("%s: %v, outcome %v", op, err, backend.OutcomeOf(err))
				}
			}
			if after, err := os.Lstat(path); err != nil || !os.SameFile(before, after) {
				t.Errorf("the thing is gone: %v", err)
			}
			for _, file := range []string{outside + "/secret", filepath.Join(dir, logKey)} {
				if p, err := os.ReadFile(file); err != nil || string(p) != string(oldData) {
					t.Errorf("%s: %q, %v", file, p, err)
				}
			}
			if got := keys(t, b, backend.ListOptions{}); !slices.Equal(got, []string{logKey}) {
				t.Errorf("list: %q", got)
			}
		})
	}
}

func keys(t *testing.T, b backend.Backend, o backend.ListOptions) (keys []string) {
	t.Helper()
	for info, err := range b.List(ctx, o) {
		if err != nil {
			t.Errorf("list: %v", err)
			break
		}
		keys = append(keys, info.Key)
	}
	return keys
}

// TestForeignFolders: a link in a folder's place is not followed, inside the store or out of it.
func TestForeignFolders(t *testing.T) {
	b, dir := openWith(t, logKey, oldData)
	outside := t.TempDir()
	must(t, os.WriteFile(outside+"/log", oldData, 0o600))
	must(t, os.Symlink("s1", filepath.Join(dir, "sessions/s2")))
	must(t, os.MkdirAll(filepath.Join(dir, "sessions/s3"), 0o700))
	must(t, os.Symlink(outside, filepath.Join(dir, "sessions/s3/transcript")))
	must(t, syscall.Mkfifo(filepath.Join(dir, "sessions/s4"), 0o600))
	for _, key := range []string{"sessions/s2/transcript/log", "sessions/s3/transcript/log", "sessions/s4/log"} {
		for op, call := range calls(b, key) {
			if err := call(); !errors.Is(err, local.ErrForeign) || backend.OutcomeOf(err) != backend.NotApplied {
				t.Errorf("%s %s: %v, outcome %v", op, key, err, backend.OutcomeOf(err))
			}
		}
	}
	if p, err := os.ReadFile(outside + "/log"); err != nil || string(p) != string(oldData) {
		t.Errorf("outside: %q, %v", p, err)
	}
	if left, err := os.ReadDir(outside); err != nil || len(left) != 1 {
		t.Errorf("outside: %v, %v", left, err)
	}
	if got := keys(t, b, backend.ListOptions{Delimiter: "/", Prefix: "sessions/"}); !slices.Equal(got, []string{"sessions/s1/"}) {
		t.Errorf("list: %q", got)
	}
	for _, err := range b.List(ctx, backend.ListOptions{Prefix: "sessions/s2/"}) {
		if !errors.Is(err, local.ErrForeign) {
			t.Errorf("list below a link: %v", err)
		}
	}
}

// TestForeignLock: neither a lock nor the folder of temporary files may be a link.
func TestForeignLock(t *testing.T) {
	for name, key := range map[string]string{
		"sessions/s1/.lock": logKey, ".tmp": logKey,
		"checkpoint_latest/.lock": latestKey, "checkpoint_latest/.lock-30": latestKey,
	} {
		for kind, place := range map[string]func(path string) error{
			"link": func(path string) error { return os.Symlink("elsewhere", path) },
			"pipe": func(path string) error { return syscall.Mkfifo(path, 0o600) },
		} {
			_, dir := openWith(t, key, oldData)
			path := filepath.Join(dir, name)
			must(t, os.RemoveAll(path))
			must(t, place(path))
			b, err := local.Open(dir, nil)
			must(t, err)
			if _, err := b.Put(ctx, key, newData, backend.Cond{}); !errors.Is(err, local.ErrForeign) {
				t.Errorf("%s is a %s: %v", name, kind, err)
			}
			if p, _, err := b.Get(ctx, key, backend.Range{}); err != nil || string(p) != string(oldData) {
				t.Errorf("%s is a %s: %q, %v", name, kind, p, err)
			}
			if found, _ := filepath.Glob(dir + "/**/elsewhere"); len(found) > 0 {
				t.Errorf("%s is a %s: made %q", name, kind, found)
			}
			must(t, b.Close())
		}
	}
}

// TestForeignNames: files with invalid keys are not objects, and a folder without objects is not a prefix.
func TestForeignNames(t *testing.T) {
	b, dir := openWith(t, "a-b", nil)
	_, err := b.Put(ctx, "a/b", nil, backend.Cond{})
	must(t, err)
	for _, name := range []string{".hidden", "with space", "dot.", "\xff\xfe", "line\nbreak", "umläut", ".tmp/1", "empty/.lock"} {
		path := filepath.Join(dir, name)
		must(t, os.MkdirAll(filepath.Dir(path), 0o700))
		must(t, os.WriteFile(path, nil, 0o600))
	}
	must(t, os.MkdirAll(filepath.Join(dir, "empty/below/it"), 0o700))
	if got := keys(t, b, backend.ListOptions{}); !slices.Equal(got, []string{"a-b", "a/b"}) {
		t.Errorf("%q", got)
	}
	if got := keys(t, b, backend.ListOptions{Delimiter: "/"}); !slices.Equal(got, []string{"a-b", "a/"}) {
		t.Errorf("%q", got)
	}
	for _, prefix := range []string{"../", "/", "a//", ".tmp/", "./", "a/../", "a-b/", "a\x00/"} {
		if got := keys(t, b, backend.ListOptions{Prefix: prefix}); len(got) > 0 {
			t.Errorf("prefix %q: %q", prefix, got)
		}
	}
}

// TestHardLink: a file with a second name is read and replaced, but not changed in place: the other name may be a
// backup.
func TestHardLink(t *testing.T) {
	b, dir := openWith(t, logKey, oldData)
	copied := filepath.Join(t.TempDir(), "copy")
	must(t, os.Link(filepath.Join(dir, logKey), copied))
	for _, op := range []string{"append", "cut", "resync"} {
		if err := calls(b, logKey)[op](); !errors.Is(err, local.ErrForeign) || backend.OutcomeOf(err) != backend.NotApplied {
			t.Errorf("%s: %v", op, err)
		}
	}
	if p, _, err := b.Get(ctx, logKey, backend.Range{}); err != nil || string(p) != string(oldData) {
		t.Errorf("%q, %v", p, err)
	}
	_, err := b.Put(ctx, logKey, newData, backend.Cond{})
	must(t, err)
	if p, err := os.ReadFile(copied); err != nil || string(p) != string(oldData) {
		t.Errorf("the copy: %q, %v", p, err)
	}
	_, err = b.Append(ctx, logKey, int64(len(newData)), newData)
	must(t, err)
}

// TestOwnLinkIsNoObstacle: a crash, or a failed unlink, after an object was published leaves its temporary name as a
// second one.
func TestOwnLinkIsNoObstacle(t *testing.T) {
	dir := t.TempDir()
	s := newScript(t, dir)
	b, err := local.Open("", &local.Options{FS: s})
	must(t, err)
	defer b.Close()
	s.reset(failCall("remove .tmp/", syscall.EIO))
	_, err = b.Put(ctx, logKey, oldData, backend.IfAbsent())
	must(t, err)
	if left, _ := os.ReadDir(dir + "/.tmp"); len(left) != 1 {
		t.Fatalf("%v", left)
	}
	_, err = b.Append(ctx, logKey, int64(len(oldData)), newData)
	must(t, err)
	if left, _ := os.ReadDir(dir + "/.tmp"); len(left) != 0 {
		t.Errorf("%v", left)
	}
}

// TestModes: only the owner has access, whatever the umask is.
func TestModes(t *testing.T) {
	old := syscall.Umask(0)
	defer syscall.Umask(old)
	dir := filepath.Join(t.TempDir(), "above", "store")
	b, err := local.Open(dir, nil)
	must(t, err)
	defer b.Close()
	for i, c := range []backend.Cond{backend.IfAbsent(), {}} {
		key := fmt.Sprintf("sessions/s%d/x", i)
		_, err := b.Put(ctx, key, nil, c)
		must(t, err)
		_, err = b.Append(ctx, key, 0, oldData)
		must(t, err)
	}
	must(t, filepath.WalkDir(filepath.Dir(dir), func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		want := fs.FileMode(0o600)
		if d.IsDir() {
			want = 0o700
		}
		if err != nil || info.Mode().Perm() != want {
			t.Errorf("%s: %v, %v", path, info.Mode(), err)
		}
		return nil
	}))
}

// TestUnreadableFolder: a listing reports a folder that it could not read, as the last result.
func TestUnreadableFolder(t *testing.T) {
	b, s, _ := stage(t, false)
	for _, key := range []string{"a/x", "m/x", "z/x"} {
		_, err := b.Put(ctx, key, nil, backend.Cond{})
		must(t, err)
	}
	for _, call := range []string{"opendir m", "readdir m", "lstat m/x"} {
		s.reset(failCall(call, syscall.EACCES))
		var got []string
		for info, err := range b.List(ctx, backend.ListOptions{}) {
			if err != nil {
				var e *backend.Error
				if !errors.Is(err, fs.ErrPermission) || !errors.As(err, &e) || !strings.HasPrefix(e.Key, "m") {
					t.Errorf("%s: %v", call, err)
				}
				got = append(got, "error")
				continue
			}
			got = append(got, info.Key)
		}
		if !slices.Equal(got, []string{"a/x", latestKey, "error"}) {
			t.Errorf("%s: %q", call, got)
		}
	}
}

// TestUnreadableFolderAmongPrefixes: a listing of common prefixes includes an unreadable folder, and those after it.
func TestUnreadableFolderAmongPrefixes(t *testing.T) {
	b, s, _ := stage(t, false)
	for _, key := range []string{"a/x", "m/n/x", "z/x"} {
		_, err := b.Put(ctx, key, nil, backend.Cond{})
		must(t, err)
	}
	for _, call := range []string{"opendir m", "readdir m", "opendir m/n", "lstat m/n/x"} {
		s.reset(failCall(call, syscall.EACCES))
		var got []string
		for info, err := range b.List(ctx, backend.ListOptions{Delimiter: "/"}) {
			must(t, err)
			got = append(got, info.Key)
		}
		if !slices.Equal(got, []string{"a/", "checkpoint_latest/", "m/", "sessions/", "z/"}) {
			t.Errorf("%s: %q", call, got)
		}
	}
}

// TestForeignAppender: a program that appends without the lock loses nothing, and its bytes are not taken for those of
// the driver.
func TestForeignAppender(t *testing.T) {
	b, s, dir := stage(t, true)
	intrude := func(call string) func(int, string) error {
		return func(_ int, now string) error {
			if strings.HasPrefix(now, call) {
				f, err := os.OpenFile(filepath.Join(dir, logKey), os.O_WRONLY|os.O_APPEND, 0)
				must(t, err)
				_, err = f.WriteString("foreign\n")
				must(t, errors.Join(err, f.Close()))
			}
			return nil
		}
	}
	size := int64(len(oldData))
	s.reset(intrude("datasync ")) // after ours: harmless
	_, err := b.Append(ctx, logKey, size, newData)
	must(t, err)
	s.reset(nil)
	_, info, err := b.Get(ctx, logKey, backend.Tail(0))
	must(t, err)
	s.reset(intrude("write ")) // before ours: not at the offset that the caller expects
	_, err = b.Append(ctx, logKey, info.Size, newData)
	if err == nil || backend.OutcomeOf(err) != backend.Unknown {
		t.Errorf("%v, outcome %v", err, backend.OutcomeOf(err))
	}
	s.reset(nil)
	p, _, err := b.Get(ctx, logKey, backend.Range{})
	must(t, err)
	if want := "old data\nnew\nforeign\nforeign\nnew\n"; string(p) != want {
		t.Errorf("%q, want %q", p, want)
	}
}
