package importer

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"path"
	"path/filepath"
	"slices"

	"github.com/coppice-go/coppice/interop"
)

// maxListed bounds the names that are listed of one folder.
const maxListed = 10_000

// FromFile returns the source of a file. Other files of its session are found from its folder: below it, and where its
// program keeps more of a session.
func FromFile(name string) interop.Source { return FromFileTo(name, math.MaxInt64) }

// FromFileTo is FromFile that ends after size bytes: a file may grow while it is read, and a reader
// opens it more than once.
func FromFileTo(name string, size int64) interop.Source {
	from := filepath.Dir(name)
	return interop.Source{
		Name: name, Open: func() (io.ReadCloser, error) {
			f, err := os.Open(name)
			if err != nil {
				return nil, err
			}
			info, err := f.Stat()
			if err != nil {
				return nil, errors.Join(err, f.Close())
			}
			return struct {
				*io.SectionReader
				io.Closer
			}{io.NewSectionReader(f, 0, min(size, info.Size())), f}, nil
		},
		Beside: func(file string) (io.ReadCloser, error) {
			if !filepath.IsLocal(file) && !isBeside(file, true) {
				return nil, fmt.Errorf("%s: %w", file, fs.ErrNotExist)
			}
			return os.Open(filepath.Join(from, filepath.FromSlash(file)))
		},
		List: func(dir string) ([]string, error) {
			if !filepath.IsLocal(dir) && !isBeside(dir, false) {
				return nil, fmt.Errorf("%s: %w", dir, fs.ErrNotExist)
			}
			return list(filepath.Join(from, filepath.FromSlash(dir)), dir)
		},
	}
}

// list returns the files in a folder, as names for Beside, without links and without those in folders below it.
func list(folder, dir string) (names []string, err error) {
	d, err := os.Open(folder)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, d.Close()) }()
	found, err := d.ReadDir(maxListed)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	for _, f := range found {
		if f.Type().IsRegular() {
			names = append(names, path.Join(dir, f.Name()))
		}
	}
	slices.Sort(names)
	return names, nil
}
