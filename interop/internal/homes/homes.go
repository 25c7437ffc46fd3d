// Package homes names the folders and files in which programs keep sessions: what several programs share.
package homes

import (
	"path/filepath"
	"strings"
	"time"

	"github.com/coppice-go/coppice/interop"
)

// Folder returns the folder that a variable of the environment names, in which ~/ is the user's folder, or else a
// folder below the user's; "" = unknown.
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

// Join is filepath.Join in a folder that may be unknown: the result is unknown then, too.
func Join(dir string, names ...string) string {
	if dir == "" {
		return ""
	}
	return filepath.Join(append([]string{dir}, names...)...)
}

// Name returns a path as the name of one folder, as pi and omp have it: dashes replace what separates its parts.
func Name(path string) string { return strings.NewReplacer("/", "-", `\`, "-", ":", "-").Replace(path) }

// CwdName returns pi's and omp's name of the folder for the sessions of a working directory.
func CwdName(cwd string) string { return "--" + Name(strings.TrimLeft(cwd, `/\`)) + "--" }

// FileName returns pi's and omp's name of the file of a session.
func FileName(id string, begun time.Time) string {
	at := begun.UTC().Format("2006-01-02T15:04:05.000Z")
	return strings.NewReplacer(":", "-", ".", "-").Replace(at) + "_" + id + ".jsonl"
}

// ID returns the id in pi's and omp's name of the file of a session; "" = there is none.
func ID(name string) string {
	_, id, _ := strings.Cut(strings.TrimSuffix(name, ".jsonl"), "_")
	return id
}

// Taken returns patterns of pi's and omp's files of a session below a folder.
func Taken(folder, id string) []string {
	return []string{filepath.Join(folder, "*_"+id+".jsonl"), filepath.Join(folder, "*", "*_"+id+".jsonl")}
}
