// Package importer imports session files into a store: it finds them, and imports each as a session
// of its own. It only reads files. A file that cannot be read, or holds no session, does not stop
// the others.
package importer

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// File is a file to import, or Err is the reason why it cannot be imported.
type File struct {
	Path string
	Size int64
	Err  error

	// Beside marks a file with the name of a list or journal that programs keep in the folder of their
	// sessions: it need not be a session.
	Beside bool

	Changed time.Time
	unnamed bool // the name is not that of the session: size and time do not prove which one it is
	agent   bool // named like the transcript of an agent, which may be imported with the session that started it
}

var errNotRegular = errors.New("not a regular file")

// stat is os.Stat, or what counts its calls in a test.
var stat = os.Stat

// maxFolders bounds the folders that are read for one path, links to them included.
const maxFolders = 100_000

// Find returns the files that paths name, in their order: a file itself, whatever its name; of a
// folder every *.jsonl and *.jsonl.zst file below it, the last changed one last, so that it becomes
// the newest session. Transcripts of agents come after all others, since most are imported with the
// session that started them. Links are followed; no file or folder occurs twice because of them. A
// path that cannot be read, or a folder without such files, is a File with an error. Of files with one name the
// beginning is read, and one that continues another one's session comes after it, in whatever order the paths are.
func Find(ctx context.Context, paths []string) []File {
	var found []File
	for _, p := range paths {
		info, err := stat(p)
		switch {
		case err != nil:
			found = append(found, File{Path: p, Err: err})
		case info.IsDir():
			w := walker{stopped: ctx.Err, seen: map[string]bool{}}
			w.folder(p, real(p))
			for len(w.links) > 0 { // files below p are found by their own names first
				link := w.links[0]
				w.links = w.links[1:]
				w.link(link)
			}
			if len(w.found) == 0 {
				w.fail(p, fmt.Errorf("no *.jsonl file in %s: %w", p, fs.ErrNotExist))
			}
			slices.SortStableFunc(w.found, func(a, b File) int { return a.Changed.Compare(b.Changed) })
			found = append(found, w.found...)
		case !info.Mode().IsRegular():
			found = append(found, File{Path: p, Err: fmt.Errorf("%s: %w", p, errNotRegular)})
		default:
			found = append(found, File{Path: p, Size: info.Size(), Changed: info.ModTime()})
		}
	}
	orderParts(found)
	slices.SortStableFunc(found, func(a, b File) int {
		order := map[bool]int{true: 1}
		return order[a.agent] - order[b.agent]
	})
	return found
}

// orderParts puts a file that continues the session of another one with its name after that one. They change places.
func orderParts(files []File) {
	names := map[string][]int{}
	for i, f := range files {
		names[filepath.Base(f.Path)] = append(names[filepath.Base(f.Path)], i)
	}
	for _, at := range names {
		if len(at) < 2 {
			continue
		}
		parts := make([]part, len(at))
		for i, k := range at {
			parts[i] = part{files[k], files[k].goesOn()}
		}
		slices.SortStableFunc(parts, func(a, b part) int { return a.begun.Compare(b.begun) })
		for i, k := range at {
			files[k] = parts[i].File
		}
	}
}

// part is a file that may continue the session of another one.
type part struct {
	File
	begun time.Time // when it does; zero = it does not
}

// goesOn returns when a file begins to continue the session of another one; zero = it does not, or cannot be read,
// which its import reports.
func (f File) goesOn() (begun time.Time) {
	for p := range programs {
		if p.After == nil || f.Err != nil {
			continue
		}
		if line, at, err := p.After(f.source()); err == nil && line != "" {
			begun = at
		}
	}
	return begun
}

// walker searches one folder.
type walker struct {
	stopped func() error    // returns why to stop; nil = continue
	seen    map[string]bool // visited files and folders, links resolved
	links   []string        // still to be followed
	folders int
	found   []File
}

func (w *walker) fail(path string, err error) { w.found = append(w.found, File{Path: path, Err: err}) }

// folder takes a folder, of which is is the path without links: so its files cost one call of stat each.
func (w *walker) folder(dir, is string) {
	if err := w.stopped(); err != nil {
		if n := len(w.found); n == 0 || !errors.Is(w.found[n-1].Err, err) {
			w.fail(dir, err)
		}
		return
	}
	if !w.first(is) {
		return
	}
	if w.folders++; w.folders > maxFolders {
		if w.folders == maxFolders+1 {
			w.fail(dir, fmt.Errorf("%s: more than %d folders: import its subfolders one by one", dir, maxFolders))
		}
		return
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		w.fail(dir, err)
	}
	for _, e := range entries {
		switch path := filepath.Join(dir, e.Name()); {
		case e.IsDir():
			w.folder(path, filepath.Join(is, e.Name()))
		case e.Type()&fs.ModeSymlink != 0:
			w.links = append(w.links, path)
		case IsSession(path):
			w.file(path, filepath.Join(is, e.Name()))
		}
	}
}

// IsSession reports whether a file has the name of a session file.
func IsSession(path string) bool {
	return strings.HasSuffix(path, ".jsonl") || strings.HasSuffix(path, ".jsonl.zst")
}

// first reports whether a file or folder, by its path without links, was not visited before.
func (w *walker) first(path string) bool {
	if w.seen[path] {
		return false
	}
	w.seen[path] = true
	return true
}

func (w *walker) file(path, is string) {
	info, err := stat(path)
	switch {
	case err != nil:
		w.fail(path, err)
	case info.Mode().IsRegular() && w.first(is):
		w.found = append(w.found, File{
			Path: path, Size: info.Size(), Changed: info.ModTime(),
			Beside: isList(filepath.Base(path)),
			agent:  isAgent(path),
		})
	}
}

// link follows a link. A broken one counts only if it has the name of a session file.
func (w *walker) link(path string) {
	if info, err := stat(path); err == nil && info.IsDir() {
		w.folder(path, real(path))
	} else if IsSession(path) {
		w.file(path, real(path))
	}
}

// Existing returns those of some folders that exist.
func Existing(folders []string) []string {
	return slices.DeleteFunc(slices.Clone(folders), func(dir string) bool {
		info, err := os.Stat(dir)
		return err != nil || !info.IsDir()
	})
}
