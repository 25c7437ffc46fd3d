package manager

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
)

// replaceFile writes a small file as a whole: a reader finds the old content or the new one. It creates the folder;
// both are accessible to their owner only. Nothing is synced: the file may be lost in a power failure. On an error the
// file is unchanged. A crash may leave a file whose name begins with ".new-".
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
