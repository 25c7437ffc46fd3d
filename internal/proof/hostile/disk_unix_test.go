//go:build unix

package hostile

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"

	coppice "github.com/coppice-go/coppice"
	"github.com/coppice-go/coppice/backend"
	"github.com/coppice-go/coppice/backend/local"
	"github.com/coppice-go/coppice/entry"
	"github.com/coppice-go/coppice/internal/vfs"
)

var diskRows = []row{
	{
		"a session's folder: links, hard links, pipes, devices and folders in a file's place", "never followed, never opened, never hangs; deletion removes none of what they lead to",
		"local.TestForeignThings, local.TestForeignFolders, local.TestForeignLock, local.TestHardLink", foreignThings,
	},
	{
		"a disk that refuses: read-only, no right, quota, full, out of inodes or of descriptors", "the turn is reported as not applied, with the cause; reading goes on; nothing acknowledged is lost",
		"journal.TestFullDisk (a real full disk), local.TestFaultAtEveryCall, crash.TestProofFaults, local.TestUnreadableFolder", refusingDisk,
	},
	{"files that others can read: umask", "files 0600, folders 0700, whatever the umask", "local.TestModes", modes},
}

// onDisk makes a store with two sessions, of which "s" has a checkpoint, a log and a snapshot.
func onDisk(a *attack) (dir string) {
	dir = filepath.Join(a.TempDir(), "store")
	b, err := local.Open(dir, nil)
	a.must(err)
	st := a.store(b)
	for _, id := range []string{"s", "other"} {
		s := a.session(st, id)
		for i := range 3 {
			_, err := s.Append(a.Context(), entry.User(fmt.Sprintf("turn %d", i)))
			a.must(err)
			_, err = s.Commit(a.Context(), coppice.Turn{State: i})
			a.must(err)
		}
		_, err := s.Snapshot(a.Context(), "t")
		a.must(err)
		a.must(s.Close())
	}
	a.must(st.Close())
	a.must(b.Close())
	return dir
}

// things are what may lie in a file's place; false = it cannot be made here.
var things = map[string]func(path, outside string) error{
	"a link to a file outside":   func(path, outside string) error { return os.Symlink(outside, path) },
	"a link up and out":          func(path, _ string) error { return os.Symlink("../../../../../../../../etc/passwd", path) },
	"a link to another session":  func(path, _ string) error { return os.Symlink("../../other/.lock", path) },
	"a link to itself":           func(path, _ string) error { return os.Symlink(filepath.Base(path), path) },
	"a hard link from outside":   func(path, outside string) error { return os.Link(outside, path) },
	"a pipe":                     func(path, _ string) error { return syscall.Mkfifo(path, 0o600) },
	"a device (zeros, no end)":   func(path, _ string) error { return mknod(path, 1, 5) },
	"a device (nothing, always)": func(path, _ string) error { return mknod(path, 1, 3) },
	"a folder":                   func(path, _ string) error { return os.Mkdir(path, 0o700) },
}

// foreignThings puts each thing in the place of each file of a session, and does all that one does with a
// session: each call ends, and what the thing leads to is neither read, nor written, nor removed.
func foreignThings(a *attack) {
	files := filesOf(a, onDisk(a))
	for name, place := range things {
		for i, file := range files {
			if i%2 > 0 && a.size(0, 1, 1) == 0 {
				continue
			}
			dir := onDisk(a)
			outside := filepath.Join(filepath.Dir(dir), "secret")
			a.must(os.WriteFile(outside, []byte("outside"), 0o600))
			path := filepath.Join(dir, sameKind(a, dir, file))
			a.must(os.Remove(path))
			if err := place(path, outside); err != nil {
				a.Logf("%s cannot be made here: %v", name, err)
				continue
			}
			a.soon(name+" in the place of "+file, func() { useAll(a, dir, name+" in the place of "+file) })
			unchanged(a, filepath.Dir(dir), "secret", "store")
			a.try(1)
		}
	}
}

// filesOf lists the files of session "s", one of each kind.
func filesOf(a *attack, dir string) (files []string) {
	kinds := map[string]bool{}
	a.must(filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		rel, _ := filepath.Rel(dir, path)
		if err == nil && d.Type().IsRegular() && (strings.HasPrefix(rel, "sessions/s/") || rel == "checkpoint_latest/s") && !kinds[filepath.Dir(rel)] {
			kinds[filepath.Dir(rel)] = true
			files = append(files, rel)
		}
		return err
	}))
	return files
}

// sameKind is the file in dir that lies in the folder of the given one: names hold random parts.
func sameKind(a *attack, dir, file string) string {
	for _, f := range filesOf(a, dir) {
		if filepath.Dir(f) == filepath.Dir(file) {
			return f
		}
	}
	a.Fatalf("no file beside %s", file)
	return ""
}

// useAll reads, writes, looks after and deletes the session "s". Whatever fails must say so; the other
// session is as it was.
func useAll(a *attack, dir, what string) {
	ctx := a.Context()
	b, err := local.Open(dir, nil)
	a.must(err)
	defer func() { _ = b.Close() }()
	st, err := coppice.New(b, nil)
	a.must(err)
	defer func() { _ = st.Close() }()
	var said strings.Builder
	note := func(err error) {
		if err != nil {
			fmt.Fprintln(&said, err)
			if !typed(err) {
				a.broken("%s: an error of no kind: %v", what, err)
			}
		}
	}
	if s, err := st.Open(ctx, "s", nil); err == nil {
		_, err = s.Append(ctx, entry.User("more"))
		note(err)
		_, err = s.Commit(ctx, coppice.Turn{State: 7})
		note(err)
		_ = s.Close()
	} else {
		note(err)
	}
	note(st.Export(ctx, "s", &said))
	for _, id := range []string{"s", ""} {
		report, err := st.Verify(ctx, id, true)
		note(err)
		for _, p := range report.Problems {
			fmt.Fprintln(&said, p)
		}
		_, err = st.GC(ctx, id, false)
		note(err)
	}
	_, err = st.Repair(ctx, "s", false)
	note(err)
	note(st.Delete(ctx, "s"))
	if strings.Contains(said.String(), "outside") || strings.Contains(said.String(), "root:") {
		a.broken("%s: what stands outside was read: %s", what, &said)
	}
	o, err := st.Open(ctx, "other", nil)
	if err != nil {
		a.broken("%s: the other session: %v", what, err)
		return
	}
	var n int
	if err := o.State(&n); err != nil || n != 2 {
		a.broken("%s: the other session has state %d: %v", what, n, err)
	}
}

// refusal is a file system whose changes fail from a moment on.
type refusal struct {
	vfs.FS
	errno atomic.Pointer[syscall.Errno]
}

func (r *refusal) no(op, name string) error {
	if e := r.errno.Load(); e != nil {
		return &fs.PathError{Op: op, Path: name, Err: *e}
	}
	return nil
}

func (r *refusal) Mkdir(name string) error {
	if err := r.no("mkdir", name); err != nil {
		return err
	}
	return r.FS.Mkdir(name)
}

func (r *refusal) Link(from, to string) error {
	if err := r.no("link", to); err != nil {
		return err
	}
	return r.FS.Link(from, to)
}

func (r *refusal) Rename(from, to string) error {
	if err := r.no("rename", to); err != nil {
		return err
	}
	return r.FS.Rename(from, to)
}

func (r *refusal) Remove(name string) error {
	if err := r.no("unlink", name); err != nil {
		return err
	}
	return r.FS.Remove(name)
}

func (r *refusal) OpenFile(name string, flag int) (vfs.File, error) {
	e := r.errno.Load()
	writes := flag&(os.O_WRONLY|os.O_RDWR|os.O_CREATE) != 0
	// A full disk and a quota refuse bytes and new files, not an open file.
	if e != nil && writes && (flag&os.O_CREATE != 0 || *e == syscall.EROFS || *e == syscall.EACCES) {
		return nil, r.no("open", name)
	}
	f, err := r.FS.OpenFile(name, flag)
	if err != nil {
		return nil, err
	}
	return &refusedFile{f, r}, nil
}

type refusedFile struct {
	vfs.File
	r *refusal
}

func (f *refusedFile) Write(p []byte) (int, error) {
	if err := f.r.no("write", "a file"); err != nil {
		return 0, err
	}
	return f.File.Write(p)
}

// refusingDisk: a store on a disk that stops to take anything, in six ways.
func refusingDisk(a *attack) {
	for _, errno := range []syscall.Errno{syscall.EROFS, syscall.EACCES, syscall.EDQUOT, syscall.ENOSPC, syscall.EMFILE, syscall.EIO} {
		disk := &refusal{FS: vfs.OS(filepath.Join(a.TempDir(), "store"))}
		b, err := local.Open("", &local.Options{FS: disk})
		a.must(err)
		st := a.store(b)
		s := a.session(st, "s")
		acked := 0
		for i := range 6 {
			if i == 3 {
				disk.errno.Store(&errno)
			}
			if i == 5 {
				disk.errno.Store(nil)
			}
			if i < 4 { // the turn that was refused is pending, and goes with the next
				_, err := s.Append(a.Context(), entry.User(fmt.Sprint(i)))
				a.must(err)
			}
			_, err := s.Commit(a.Context(), coppice.Turn{State: i})
			switch {
			case i == 3 || i == 4:
				if !errors.Is(err, errno) || backend.OutcomeOf(err) != backend.NotApplied || !typed(err) {
					a.broken("%v: a commit says %v, outcome %v", errno, err, backend.OutcomeOf(err))
				}
				readsOn(a, st, errno, acked)
			case err != nil:
				a.broken("%v: with the disk back: %v", errno, err)
			default:
				acked = i
			}
		}
		disk.errno.Store(&errno)
		if _, err := a.session(st, "new").Commit(a.Context(), coppice.Turn{State: 1}); !errors.Is(err, errno) {
			a.broken("%v: a new session: %v", errno, err)
		}
		if err := st.Delete(a.Context(), "s"); !errors.Is(err, errno) {
			a.broken("%v: a deletion: %v", errno, err)
		}
		readsOn(a, st, errno, 5)
		disk.errno.Store(nil)
		a.try(5)
	}
}

// readsOn opens the session anew, reads all of it and wants the state that was acknowledged last.
func readsOn(a *attack, st *coppice.Store, errno syscall.Errno, want int) {
	s, err := st.Open(a.Context(), "s", &coppice.SessionOptions{ReadOnly: true})
	if err != nil {
		a.broken("%v: open: %v", errno, err)
		return
	}
	defer func() { _ = s.Close() }()
	var got int
	if err := s.State(&got); err != nil || got != want {
		a.broken("%v: the state is %d, want %d: %v", errno, got, want, err)
	}
	if err := st.Export(a.Context(), "s", io.Discard); err != nil {
		a.broken("%v: export: %v", errno, err)
	}
	if r, err := st.Verify(a.Context(), "s", true); err != nil || len(r.Problems) > 0 {
		a.broken("%v: verify: %v %v", errno, err, r.Problems)
	}
}

// modes: with a umask that hides nothing, nobody else can read a byte.
func modes(a *attack) {
	old := syscall.Umask(0)
	defer syscall.Umask(old)
	dir := onDisk(a)
	want := map[bool]fs.FileMode{true: 0o700, false: 0o600}
	seen := map[string]fs.FileMode{}
	a.must(filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		seen[path] = info.Mode().Perm()
		if err == nil && info.Mode().Perm() != want[d.IsDir()] {
			a.broken("%s has mode %v", path, info.Mode())
		}
		return err
	}))
	a.try(len(slices.Collect(maps.Keys(seen))))
}
