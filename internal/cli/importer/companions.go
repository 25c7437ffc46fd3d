package importer

import "path/filepath"

// Came are files whose sessions came with those of others, whatever name leads to them.
type Came map[string]bool

// Note takes what an import of a file brought along.
func (c Came) Note(path string, r *Result) {
	for _, name := range r.Files {
		c[real(filepath.Join(filepath.Dir(path), filepath.FromSlash(name)))] = true
	}
}

// With tells whether a file came with another one before it.
func (c Came) With(path string) bool { return len(c) > 0 && c[real(path)] }

// real is a path without links, or as it is where that cannot be told.
func real(path string) string {
	if abs, err := filepath.Abs(path); err == nil {
		path = abs
	}
	if r, err := filepath.EvalSymlinks(path); err == nil {
		return r
	}
	return path
}
