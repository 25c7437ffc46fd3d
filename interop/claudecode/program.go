package claudecode

import (
	"fmt"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"github.com/coppice-go/coppice/interop"
	"github.com/coppice-go/coppice/interop/internal/homes"
)

// Program is where Claude Code keeps its sessions: in a folder for each working directory below CLAUDE_CONFIG_DIR.
var Program = interop.Program{
	Name: "Claude Code",
	Folders: func(e interop.Env) []string {
		list := []string{homeDir(e)}
		if e.Getenv(configDir) == "" {
			list = append(list, homes.Join(e.Home, ".config", "claude", "projects"))
		}
		return list
	},
	UUIDs: true,
	File: func(e interop.Env, id, cwd string, _ time.Time) (string, error) {
		name, err := cwdName(cwd)
		return filepath.Join(homeDir(e), name, id+".jsonl"), err
	},
	Taken: func(e interop.Env, id string) []string {
		return []string{filepath.Join(homeDir(e), "*", id+".jsonl"), filepath.Join(homeDir(e), "*", id)}
	},
	Command: func(id, _ string) []string { return []string{"claude", "--resume", id} },
	Lists:   []string{"history.jsonl", "journal.jsonl"}, // what was typed, and the journal of a workflow
	Agent:   func(file string) bool { return strings.HasPrefix(filepath.Base(file), "agent-") },
	Owner:   owner,
	Settled: func() interop.Settler { return new(tail) },
}

const configDir = "CLAUDE_CONFIG_DIR"

func homeDir(e interop.Env) string {
	return homes.Join(homes.Folder(e, configDir, ".claude"), "projects")
}

// maxCwdName is the longest name of a folder that Claude Code does not shorten.
const maxCwdName = 200

var notAlphanumeric = regexp.MustCompile(`[^a-zA-Z0-9]`)

// cwdName returns the name of the folder for the sessions of a working directory.
func cwdName(cwd string) (string, error) {
	if real, err := filepath.EvalSymlinks(cwd); err == nil { // as Claude Code sees it
		cwd = real
	}
	name := notAlphanumeric.ReplaceAllString(cwd, "-")
	if len(name) > maxCwdName {
		return "", fmt.Errorf("names of folders over %d characters are shortened by Claude Code in a way of its own: "+
			"choose a shorter one with --cwd", maxCwdName)
	}
	return name, nil
}

// owner returns the file of the session to which a file in SESSION/subagents belongs; "" = it is in no such folder.
func owner(file string) string {
	dir, _, ok := strings.Cut(filepath.ToSlash(file), "/subagents/")
	if !ok {
		return ""
	}
	return filepath.FromSlash(dir) + ".jsonl"
}
