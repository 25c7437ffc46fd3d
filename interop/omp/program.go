package omp

import (
	"cmp"
	"path/filepath"
	"strings"
	"time"

	"github.com/coppice-go/coppice/interop"
	"github.com/coppice-go/coppice/interop/internal/homes"
)

// Program describes where omp keeps its sessions: in a folder for each working directory. PI_CODING_AGENT_DIR replaces
// omp's folder, and PI_CONFIG_DIR its part below the home directory.
var Program = interop.Program{
	Name: "omp",
	Folders: func(e interop.Env) []string {
		return []string{homeDir(e), homes.Join(e.Home, ".omp", "agent", "sessions")}
	},
	File: func(e interop.Env, id, cwd string, begun time.Time) (string, error) {
		return filepath.Join(homeDir(e), cwdName(e, cwd), homes.FileName(id, begun)), nil
	},
	ID:      homes.ID,
	Taken:   func(e interop.Env, id string) []string { return homes.Taken(homeDir(e), id) },
	Command: func(_, file string) []string { return []string{"omp", "--resume", file} },
	Beside:  func(path string) bool { return strings.HasPrefix(path, "../../blobs/") }, // images
}

func homeDir(e interop.Env) string {
	config := cmp.Or(e.Getenv("PI_CONFIG_DIR"), ".omp")
	return homes.Join(homes.Folder(e, "PI_CODING_AGENT_DIR", config, "agent"), "sessions")
}

// cwdName names a working directory below the home directory, or below the directory for temporary files, by its
// relative path.
func cwdName(e interop.Env, cwd string) string {
	for _, base := range [][2]string{{e.Home, "-"}, {filepath.Clean(e.Temp), "-tmp-"}} {
		rel, err := filepath.Rel(base[0], cwd)
		if base[0] == "" || err != nil || rel == ".." || strings.HasPrefix(rel, ".."+string(filepath.Separator)) {
			continue
		}
		name := base[1] + homes.Name(rel)
		if rel == "." {
			name = strings.TrimSuffix(base[1], "-")
		}
		return cmp.Or(name, "-")
	}
	return homes.CwdName(cwd)
}
