package claudecode

import (
	"bytes"
	"path/filepath"
	"strconv"
	"strings"
	"time"
	"unicode/utf16"

	"github.com/coppice-go/coppice/internal/fold"
	"github.com/coppice-go/coppice/internal/rawjson"
	"github.com/coppice-go/coppice/interop"
	"github.com/coppice-go/coppice/interop/internal/homes"
)

// Program describes where Claude Code keeps its sessions: in a folder for each working directory below
// CLAUDE_CONFIG_DIR.
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
	ID:    func(name string) string { return strings.TrimSuffix(name, fileExtension) },
	File: func(e interop.Env, id, cwd string, _ time.Time) (string, error) {
		return filepath.Join(homeDir(e), cwdName(cwd), id+".jsonl"), nil
	},
	Taken: func(e interop.Env, id string) []string {
		return []string{filepath.Join(homeDir(e), "*", id+".jsonl"), filepath.Join(homeDir(e), "*", id)}
	},
	Command: func(id, _ string) []string { return []string{"claude", "--resume", id} },
	Lists:   []string{"history.jsonl", "journal.jsonl"}, // the history of prompts, and the journal of a workflow
	Agent:   func(file string) bool { return strings.HasPrefix(filepath.Base(file), "agent-") },
	Owner:   owner,
	Hides:   hides,
	After:   after,
	Upto:    upto,
	Tail:    func() interop.Tail { return new(tail) },
}

const configDir = "CLAUDE_CONFIG_DIR"

func homeDir(e interop.Env) string {
	return homes.Join(homes.Folder(e, configDir, ".claude"), "projects")
}

// maxCwdName is the longest name of a folder that Claude Code does not shorten, in UTF-16 code units.
const maxCwdName = 200

// cwdName returns the name of the folder for the sessions of a working directory, as Claude Code 2.1 makes it: the path
// with a dash for each UTF-16 code unit that is not an ASCII letter or digit. A longer name is cut, and a hash of the
// path is appended.
func cwdName(cwd string) string {
	if real, err := filepath.EvalSymlinks(cwd); err == nil { // Claude Code resolves links
		cwd = real
	}
	var name strings.Builder
	var hash int32
	for _, unit := range utf16.Encode([]rune(fold.Composed(cwd))) {
		hash = 31*hash + int32(unit)
		switch {
		case name.Len() > maxCwdName: // the limit is exceeded
		case '0' <= unit && unit <= '9', 'A' <= unit && unit <= 'Z', 'a' <= unit && unit <= 'z':
			name.WriteByte(byte(unit))
		default:
			name.WriteByte('-')
		}
	}
	if name.Len() <= maxCwdName {
		return name.String()
	}
	return name.String()[:maxCwdName] + "-" + strconv.FormatInt(max(int64(hash), -int64(hash)), 36)
}

// hides reports whether a file is the transcript of an agent, which Claude Code's list of sessions omits.
func hides(head []byte) bool {
	line, _, _ := bytes.Cut(head, []byte{'\n'})
	return rawjson.IsTrue(rawjson.Field(line, "isSidechain"))
}

// owner returns the file of the session to which a file in SESSION/subagents belongs; "" = it is in no such folder.
func owner(file string) string {
	dir, _, ok := strings.Cut(filepath.ToSlash(file), "/subagents/")
	if !ok {
		return ""
	}
	return filepath.FromSlash(dir) + ".jsonl"
}
