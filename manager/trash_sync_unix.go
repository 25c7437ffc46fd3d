//go:build !windows

package manager

import (
	"errors"
	"os"
)

// syncDir makes the names in a folder durable.
func (t *Trash) syncDir(path string) error {
	d, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(t.syncFile(d), d.Close())
}
