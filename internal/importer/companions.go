package importer

import "path/filepath"

// Companions are files whose sessions were imported together with those of other files, by any name
// of theirs.
type Companions map[string]bool

// Add adds the files that were imported together with the file at path.
func (c Companions) Add(path string, r *Result) {
	for _, name := range r.Files {
		c[real(filepath.Join(filepath.Dir(path), filepath.FromSlash(name)))] = true
	}
}

// Contains reports whether a file was imported together with another one.
func (c Companions) Contains(path string) bool { return len(c) > 0 && c[real(path)] }

// real returns an absolute path without links, or the path unchanged if that fails.
func real(path string) string {
	if abs, err := filepath.Abs(path); err == nil {
		path = abs
	}
	if r, err := filepath.EvalSymlinks(path); err == nil {
		return r
	}
	return path
}
