package vfs_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/coppice-go/coppice/internal/vfs"
)

// recorder records calls that make names durable. Every open finds another file when it is restless.
type recorder struct {
	vfs.FS
	did      []string
	restless bool
}

func (r *recorder) Make() error {
	r.did = append(r.did, "make")
	return r.FS.Make()
}

func (r *recorder) Mkdir(name string) error {
	r.did = append(r.did, "mkdir "+name)
	return r.FS.Mkdir(name)
}

func (r *recorder) OpenDir(name string) (vfs.Dir, error) {
	r.did = append(r.did, "sync "+name)
	return r.FS.OpenDir(name)
}

func (r *recorder) Lstat(name string) (vfs.Stat, error) {
	st, err := r.FS.Lstat(name)
	if r.restless {
		st.ID.Ino++
	}
	return st, err
}

func write(t *testing.T, f vfs.FS, name, text string) {
	t.Helper()
	file, err := f.OpenFile(name, os.O_RDWR|os.O_CREATE|os.O_EXCL)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := file.Write([]byte(text)); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(file.Datasync(), file.Sync(), file.Close()); err != nil {
		t.Fatal(err)
	}
}

// TestDirs: a directory counts as existing when each name on its path has been synced in its parent, also if others
// created it; and then no call is repeated.
func TestDirs(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "new", "root")
	r := &recorder{FS: vfs.OS(dir)}
	defer r.Close()
	d := vfs.NewDirs(r)
	ensure := func(name string, want ...string) {
		t.Helper()
		r.did = nil
		if err := d.Ensure(name); err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(r.did, want) {
			t.Errorf("%s: %q, want %q", name, r.did, want)
		}
	}
	ensure("a/b", "make", "mkdir a", "sync .", "mkdir a/b", "sync a")
	ensure("a/b")
	ensure("a/c", "mkdir a/c", "sync a")
	d = vfs.NewDirs(r)
	ensure("a/c", "make", "sync .", "sync a")
	d.Forget()
	ensure("a", "make", "sync .")
	write(t, r, "file", "")
	if err := d.Ensure("file/x"); !errors.Is(err, vfs.ErrForeign) {
		t.Errorf("below a file: %v", err)
	}
}

// TestRootIsTheEnd: no name leads out of the root, and nothing exists before Make.
func TestRootIsTheEnd(t *testing.T) {
	above := t.TempDir()
	f := vfs.OS(filepath.Join(above, "root"))
	if _, err := f.Lstat("x"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("before it exists: %v", err)
	}
	if _, err := f.OpenFile("x", os.O_RDWR|os.O_CREATE); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("before it exists: %v", err)
	}
	if err := errors.Join(f.Make(), f.Make()); err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	write(t, f, "x", "text")
	for _, name := range []string{"../out", "a/../../out", filepath.Join(above, "out")} {
		if file, err := f.OpenFile(name, os.O_RDWR|os.O_CREATE); err == nil {
			file.Close()
			t.Errorf("%s: opened", name)
		}
		if err := f.Link("x", name); err == nil {
			t.Errorf("%s: linked", name)
		}
		if err := f.Rename("x", name); err == nil {
			t.Errorf("%s: renamed", name)
		}
	}
	if left, err := os.ReadDir(above); err != nil || len(left) != 1 {
		t.Errorf("above the root: %v, %v", left, err)
	}
}

// TestLocks: they belong to the open file, not to the process.
func TestLocks(t *testing.T) {
	f := vfs.OS(t.TempDir())
	defer f.Close()
	write(t, f, "x", "")
	var files [3]vfs.File
	for i := range files {
		file, err := f.OpenFile("x", os.O_RDWR)
		if err != nil {
			t.Fatal(err)
		}
		defer file.Close()
		files[i] = file
	}
	try := func(i int, exclusive, want bool) {
		t.Helper()
		if ok, err := files[i].TryLock(exclusive); err != nil || ok != want {
			t.Errorf("lock %d, exclusive %v: %v, %v", i, exclusive, ok, err)
		}
	}
	try(0, false, true)
	try(1, false, true)
	try(2, true, false)
	if err := errors.Join(files[0].Unlock(), files[1].Close()); err != nil {
		t.Fatal(err)
	}
	try(2, true, true)
	try(0, false, false)
	if _, err := files[0].ReadAt(nil, 0); err != nil { // it does not prevent reads
		t.Error(err)
	}
}

// TestOpenPlain opens the file that Lookup described, or nothing.
func TestOpenPlain(t *testing.T) {
	r := &recorder{FS: vfs.OS(t.TempDir())}
	defer r.Close()
	if err := r.Mkdir("dir"); err != nil {
		t.Fatal(err)
	}
	write(t, r, "dir/x", "text")
	f, st, err := vfs.OpenPlain(r, "dir/x", os.O_RDONLY)
	if err != nil || st.Size != 4 || st.Links != 1 {
		t.Fatalf("%+v, %v", st, err)
	}
	f.Close()
	for _, name := range []string{"dir", "dir/y", "dir/x/y", "no/x"} {
		if _, _, err := vfs.OpenPlain(r, name, os.O_RDONLY); !vfs.Missing(err) {
			t.Errorf("%s: %v", name, err)
		}
	}
	r.restless = true
	if _, _, err := vfs.OpenPlain(r, "dir/x", os.O_RDONLY); !errors.Is(err, vfs.ErrUnsettled) {
		t.Errorf("always another file: %v", err)
	}
}
