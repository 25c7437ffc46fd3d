// Package homes returns the folders and files in which programs keep sessions, for what several programs share.
package homes

import (
	"path/filepath"
	"strings"
	"time"

	"github.com/coppice-go/coppice/interop"
)

// Folder returns the folder named by an environment variable, with ~/ resolved, or else a folder in the home directory;
// "" = unknown.
func Folder(e interop.Env, variable string, below ...string) string {
	dir := e.Getenv(variable)
	if rest, ok := strings.CutPrefix(dir, "~/"); ok {
		return Join(e.Home, rest)
	}
	if dir != "" {
		return dir
	}
	return Join(e.Home, below...)
}

// Join is filepath.Join for a folder that may be unknown: then the result is "".
func Join(dir string, names ...string) string {
	if dir == "" {
		return ""
	}
	return filepath.Join(append([]string{dir}, names...)...)
}

// Name returns a path as the name of one folder, as pi and omp do: dashes replace the separators.
func Name(path string) string { return strings.NewReplacer("/", "-", `\`, "-", ":", "-").Replace(path) }

// CwdName returns the name of pi's and omp's folder for the sessions of a working directory.
func CwdName(cwd string) string { return "--" + Name(strings.TrimLeft(cwd, `/\`)) + "--" }

// FileName returns the name of pi's and omp's file for a session.
func FileName(id string, begun time.Time) string {
	at := begun.UTC().Format("2006-01-02T15:04:05.000Z")
	return strings.NewReplacer(":", "-", ".", "-").Replace(at) + "_" + id + ".jsonl"
}

// ID returns the session ID in a file name of pi and omp, or "".
func ID(name string) string {
	_, id, _ := strings.Cut(strings.TrimSuffix(name, ".jsonl"), "_")
	return id
}

// Taken returns patterns of pi's and omp's files for a session below a folder.
func Taken(folder, id string) []string {
	return []string{filepath.Join(folder, "*_"+id+".jsonl"), filepath.Join(folder, "*", "*_"+id+".jsonl")}
}
