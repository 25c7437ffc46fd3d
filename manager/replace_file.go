package manager

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
)

// replaceFile writes a small file as a whole: a reader finds the old one or the new one. It makes the folder; both
// are for their owner alone. Nothing is synced: the file may be lost with the machine. On an error the file is as
// it was. What a crash leaves has a name that begins with ".new-".
func replaceFile(name string, data []byte) error {
	dir := filepath.Dir(name)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	tmp, err := os.CreateTemp(dir, ".new-*")
	if err != nil {
		return err
	}
	_, err = tmp.Write(data)
	if err = errors.Join(err, tmp.Close()); err == nil {
		err = os.Rename(tmp.Name(), name)
	}
	if err == nil {
		return nil
	}
	if gone := os.Remove(tmp.Name()); !errors.Is(gone, fs.ErrNotExist) {
		err = errors.Join(err, gone)
	}
	return err
}
