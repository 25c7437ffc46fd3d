package codex

import (
	"bytes"
	"io"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/coppice-go/coppice/internal/rawjson"
	"github.com/coppice-go/coppice/interop"
	"github.com/coppice-go/coppice/interop/internal/homes"
)

// Program describes where Codex keeps its sessions: in a folder for each day below CODEX_HOME/sessions, and archived
// ones in one folder.
var Program = interop.Program{
	Name: "Codex",
	Folders: func(e interop.Env) []string {
		return []string{homes.Join(homeDir(e), "sessions"), homes.Join(homeDir(e), "archived_sessions")}
	},
	UUIDs: true,
	ID: func(name string) string {
		const uuid = 36
		stem := strings.TrimSuffix(strings.TrimSuffix(name, ".zst"), ".jsonl")
		return stem[max(0, len(stem)-uuid):]
	},
	File: func(e interop.Env, id, _ string, begun time.Time) (string, error) {
		begun = begun.Local()
		name := "rollout-" + begun.Format("2006-01-02T15-04-05") + "-" + id + ".jsonl"
		return filepath.Join(homeDir(e), "sessions", begun.Format("2006/01/02"), name), nil
	},
	Taken: func(e interop.Env, id string) []string {
		name := "rollout-*-" + id + ".jsonl*"
		return []string{
			filepath.Join(homeDir(e), "sessions", "*", "*", "*", name),
			filepath.Join(homeDir(e), "archived_sessions", name),
		}
	},
	Command: func(id, _ string) []string { return []string{"codex", "resume", id} },
	Hides: func(head []byte) bool { // Codex lists only the sessions of users
		line, _, _ := bytes.Cut(head, []byte{'\n'})
		return rawjson.Field(rawjson.Field(rawjson.Field(line, "payload"), "source"), "subagent") != nil
	},
	Lists: []string{"session_index.jsonl", "history.jsonl"}, // session names, and the history of prompts
	Beside: func(file string) bool {
		return dayFolder().MatchString(path.Dir(file)) || slices.Contains(indexes, file)
	},
	ListsBeside: func(dir string) bool { return dayFolder().MatchString(dir) },
	Open:        func(src interop.Source) (io.ReadCloser, error) { return openRollout(src) },
	Tail:        func() interop.Tail { return newTail() },
}

func homeDir(e interop.Env) string { return homes.Folder(e, "CODEX_HOME", ".codex") }

// dayFolder matches the path of a folder of sessions relative to another one.
var dayFolder = sync.OnceValue(func() *regexp.Regexp {
	const day = `[0-9]{4}/[0-9]{2}/[0-9]{2}`
	return regexp.MustCompile(`^(\.\./\.\./\.\./` + day + `|\.\./\.\./\.\./\.\./archived_sessions|` +
		`\.\./sessions/` + day + `)$`)
})

// indexes are the paths of the list of session names in Codex's home, relative to folders of sessions.
var indexes = []string{"../../../../session_index.jsonl", "../session_index.jsonl"}
