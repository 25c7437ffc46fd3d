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
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/coppice-go/coppice/interop"
)

// maxListed bounds the names that are listed of one folder.
const maxListed = 10_000

// FromFile returns the source of a file. Other files of its session are found from its folder:
// below it, and where a program keeps more of a session elsewhere (omp's images two folders up;
// Codex's files of another day, its archived files and its list of names).
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
			return struct {
				io.Reader
				io.Closer
			}{io.LimitReader(f, size), f}, nil
		},
		Beside: func(file string) (io.ReadCloser, error) {
			if !filepath.IsLocal(file) && !strings.HasPrefix(file, "../../blobs/") &&
				!codexFolder().MatchString(path.Dir(file)) && !slices.Contains(indexes, file) {
				return nil, fmt.Errorf("%s: %w", file, fs.ErrNotExist)
			}
			return os.Open(filepath.Join(from, filepath.FromSlash(file)))
		},
		List: func(dir string) ([]string, error) {
			if !filepath.IsLocal(dir) && !codexFolder().MatchString(dir) {
				return nil, fmt.Errorf("%s: %w", dir, fs.ErrNotExist)
			}
			return list(filepath.Join(from, filepath.FromSlash(dir)), dir)
		},
	}
}

// codexFolder matches a folder of Codex, seen from another one: sessions/YYYY/MM/DD or
// archived_sessions in its home.
var codexFolder = sync.OnceValue(func() *regexp.Regexp {
	const day = `[0-9]{4}/[0-9]{2}/[0-9]{2}`
	return regexp.MustCompile(`^(\.\./\.\./\.\./` + day + `|\.\./\.\./\.\./\.\./archived_sessions|` +
		`\.\./sessions/` + day + `)$`)
})

// indexes are the paths of Codex's list of session names, which is in its home, from the folders of
// its sessions.
var indexes = []string{"../../../../session_index.jsonl", "../session_index.jsonl"}

// list returns the files in a folder, as names for Beside; without those in folders below it, and
// without links.
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
