package pi

import (
	"path/filepath"
	"time"

	"github.com/coppice-go/coppice/interop"
	"github.com/coppice-go/coppice/interop/internal/homes"
)

// Program describes where pi keeps its sessions: in a folder for each working directory below PI_CODING_AGENT_DIR, or
// all in PI_CODING_AGENT_SESSION_DIR.
var Program = interop.Program{
	Name:    "pi",
	Folders: func(e interop.Env) []string { return []string{homeDir(e)} },
	File: func(e interop.Env, id, cwd string, begun time.Time) (string, error) {
		dir := homeDir(e)
		if e.Getenv(sessionDir) == "" {
			dir = filepath.Join(dir, homes.CwdName(cwd))
		}
		return filepath.Join(dir, homes.FileName(id, begun)), nil
	},
	ID:      homes.ID,
	Taken:   func(e interop.Env, id string) []string { return homes.Taken(homeDir(e), id) },
	Command: func(_, file string) []string { return []string{"pi", "--session", file} },
}

// sessionDir is the environment variable that names one folder for all sessions.
const sessionDir = "PI_CODING_AGENT_SESSION_DIR"

func homeDir(e interop.Env) string {
	if dir := homes.Folder(e, sessionDir); e.Getenv(sessionDir) != "" {
		return dir
	}
	return homes.Join(homes.Folder(e, "PI_CODING_AGENT_DIR", ".pi", "agent"), "sessions")
}
