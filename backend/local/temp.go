package local

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strconv"

	"github.com/coppice-go/coppice/backend"
	"github.com/coppice-go/coppice/internal/vfs"
)

const (
	tempDir = ".tmp"
	// maxTempTries bounds the search for a free name: names in use belong to active writers, or to crashed ones whose
	// files the sweep could not remove.
	maxTempTries = 10_000
	// maxSweep bounds the leftover files that one sweep examines.
	maxSweep = 10_000
)

// temp is an object that is not published yet. Its lock is held from creation to close: so a sweep distinguishes it
// from a leftover, and readers wait until a published one is durable.
type temp struct {
	b    *Backend
	name string // "" once it is removed
	file vfs.File
	stat vfs.Stat
}

// newTemp writes and syncs p to a temporary file. When it fails, nothing has been published.
func (b *Backend) newTemp(p []byte) (*temp, error) {
	b.sweep.Do(func() { b.sweepTemps(vfs.ID{}) })
	t, err := b.createTemp()
	if err != nil {
		return nil, err
	}
	if err := t.write(p); err != nil {
		t.discard()
		return nil, err
	}
	return t, nil
}

func (t *temp) write(p []byte) error {
	n, err := t.file.Write(p)
	if err == nil && n != len(p) {
		err = io.ErrShortWrite
	}
	if err != nil {
		return vfs.Step("write", err)
	}
	if err := t.file.Sync(); err != nil {
		return vfs.Step("sync", err)
	}
	if t.stat, err = t.file.Stat(); err != nil {
		return vfs.Step("stat", err)
	}
	if t.stat.Size != int64(len(p)) {
		return fmt.Errorf("temporary file of %d bytes: %w", t.stat.Size, errDisturbed)
	}
	return nil
}

func (b *Backend) createTemp() (*temp, error) {
	if err := vfs.MakeDir(b.fs, tempDir); err != nil {
		return nil, err
	}
	b.reserve.Do(b.keepReserve)
	for range maxTempTries {
		name := tempDir + "/" + strconv.FormatUint(b.temps.Add(1), 10)
		f, err := b.fs.OpenFile(name, os.O_RDWR|os.O_CREATE|os.O_EXCL)
		switch {
		case errors.Is(err, fs.ErrExist):
			continue // of another handle
		case err != nil:
			return nil, vfs.Step("create temporary file", err)
		}
		t := &temp{b: b, name: name, file: f}
		ours, err := t.claim()
		if err != nil {
			t.discard()
			return nil, err
		}
		if ours {
			return t, nil
		}
		f.Close()
	}
	return nil, errTemps
}

// claim locks a new file. Before the lock a sweep may have taken the file for a leftover; then another name is needed.
func (t *temp) claim() (bool, error) {
	ok, err := t.file.TryLock(true)
	if err != nil {
		return false, vfs.Step("lock temporary file", err)
	}
	if !ok {
		return false, nil
	}
	if t.stat, err = t.file.Stat(); err != nil {
		return false, vfs.Step("stat", err)
	}
	st, err := t.b.fs.Lstat(t.name)
	if err != nil && !vfs.Missing(err) {
		return false, vfs.Step("stat", err)
	}
	return err == nil && st.ID == t.stat.ID, nil
}

// published reports whether the object of that name is this file.
func (t *temp) published(key string) bool {
	st, err := t.b.fs.Lstat(key)
	return err == nil && st.ID == t.stat.ID
}

// discard removes the temporary name, and releases the file and its lock. If the removal fails a sweep removes it
// later.
func (t *temp) discard() {
	if t.name != "" {
		_ = t.b.fs.Remove(t.name)
		t.name = ""
	}
	t.file.Close()
}

// sweepTemps removes temporary files without a lock, and the temporary names of held, which the caller has locked. It
// is housekeeping: failures are ignored.
func (b *Backend) sweepTemps(held vfs.ID) {
	if st, err := b.fs.Lstat(tempDir); err != nil || !st.Mode.IsDir() {
		return
	}
	d, err := b.fs.OpenDir(tempDir)
	if err != nil {
		return
	}
	entries, err := d.ReadDir(maxSweep)
	d.Close()
	if err != nil {
		return
	}
	for _, e := range entries {
		if _, err := strconv.ParseUint(e.Name(), 10, 64); err == nil && e.Type().IsRegular() {
			b.sweepTemp(tempDir+"/"+e.Name(), held)
		}
	}
}

// sweepTemp removes one leftover. Its name cannot refer to another file meanwhile: only the holder of the lock of a
// temporary file removes its name.
func (b *Backend) sweepTemp(name string, held vfs.ID) {
	f, st, err := vfs.OpenPlain(b.fs, name, os.O_RDWR)
	if err != nil {
		return
	}
	defer f.Close()
	if st.ID != held {
		if ok, err := f.TryLock(true); err != nil || !ok {
			return
		}
	}
	if now, err := b.fs.Lstat(name); err == nil && now.ID == st.ID {
		_ = b.fs.Remove(name)
	}
}

// info describes the object once it is published.
func (t *temp) info(key string, p []byte) backend.Info {
	info := infoOf(key, t.stat)
	info.Version = versionOf(p)
	return info
}
