package importer

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Homes are the folders in which programs keep sessions by their environment: CLAUDE_CONFIG_DIR, CODEX_HOME,
// PI_CODING_AGENT_SESSION_DIR, PI_CODING_AGENT_DIR (of pi and omp) and PI_CONFIG_DIR (of omp, a folder below home).
// "" = there is none, because the user's home folder is unknown.
type Homes struct {
	ClaudeCode string // one folder for each working directory
	Codex      string // Codex's own: its sessions and archived_sessions hold them
	Pi, Omp    string // as ClaudeCode
	PiFlat     bool   // the user chose Pi: it has no folders for working directories
}

// HomesOf returns the folders of programs. home is the user's home folder; "" = unknown.
func HomesOf(getenv func(string) string, home string) Homes {
	// folder returns what a variable names, or else a folder below home.
	folder := func(variable string, below ...string) string {
		dir := getenv(variable)
		rest, ofHome := strings.CutPrefix(dir, "~/")
		switch {
		case ofHome:
			below = []string{rest}
		case dir != "":
			return dir
		}
		return join(home, below...)
	}
	h := Homes{
		ClaudeCode: join(folder("CLAUDE_CONFIG_DIR", ".claude"), "projects"),
		Codex:      folder("CODEX_HOME", ".codex"),
		Pi:         folder("PI_CODING_AGENT_SESSION_DIR"),
		PiFlat:     getenv("PI_CODING_AGENT_SESSION_DIR") != "",
	}
	if !h.PiFlat {
		h.Pi = join(folder("PI_CODING_AGENT_DIR", ".pi", "agent"), "sessions")
	}
	config := ".omp"
	if dir := getenv("PI_CONFIG_DIR"); dir != "" {
		config = dir
	}
	h.Omp = join(folder("PI_CODING_AGENT_DIR", config, "agent"), "sessions")
	return h
}

// join is filepath.Join in a folder that may be unknown: then the result is too.
func join(dir string, names ...string) string {
	if dir == "" {
		return ""
	}
	return filepath.Join(append([]string{dir}, names...)...)
}

// Program is a program whose sessions are looked for on this machine.
type Program struct {
	Name    string
	Folders []string // where it keeps them; they need not exist. No two programs have the same
}

// Programs returns the programs that keep sessions on this machine. Claude Code and omp are looked for in their
// standard folders as well.
func Programs(getenv func(string) string, home string) []Program {
	h := HomesOf(getenv, home)
	claude := []string{h.ClaudeCode}
	if getenv("CLAUDE_CONFIG_DIR") == "" {
		claude = append(claude, join(home, ".config", "claude", "projects"))
	}
	list := []Program{
		{"Claude Code", claude},
		{"Codex", []string{join(h.Codex, "sessions"), join(h.Codex, "archived_sessions")}},
		{"pi", []string{h.Pi}},
		{"omp", []string{h.Omp, join(home, ".omp", "agent", "sessions")}},
	}
	taken := []string{""}
	for i := range list {
		list[i].Folders = slices.DeleteFunc(list[i].Folders, func(dir string) bool {
			again := slices.Contains(taken, dir)
			taken = append(taken, dir)
			return again
		})
	}
	return list
}

// Existing returns those of some folders that exist.
func Existing(folders []string) []string {
	return slices.DeleteFunc(slices.Clone(folders), func(dir string) bool {
		info, err := os.Stat(dir)
		return err != nil || !info.IsDir()
	})
}
