package cli

import (
	"cmp"
	"context"
	"errors"
	"io"
	"iter"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/spf13/cobra"

	coppice "github.com/coppice-go/coppice"
	"github.com/coppice-go/coppice/internal/api"
	"github.com/coppice-go/coppice/internal/cli/importer"
	"github.com/coppice-go/coppice/internal/cli/term"
	"github.com/coppice-go/coppice/internal/rawjson"
	"github.com/coppice-go/coppice/interop"
	"github.com/coppice-go/coppice/interop/formats"
	"github.com/coppice-go/coppice/transcript"
)

// homes are the folders on which the place of a file depends.
type homes struct {
	importer.Homes
	home string // of the user
}

// program is one that continues sessions from files: where it looks for them, and the command that opens one.
type program struct {
	format interop.Format
	uuids  bool // its sessions have UUIDs for ids
	// folder returns the folder of sessions in a working directory that were begun at a time.
	folder func(p homes, cwd string, begun time.Time) (string, error)
	name   func(id string, begun time.Time) string
	root   func(p homes) string
	taken  func(root, id string) []string // patterns of the files that a session with this id may have
	resume func(id, file string) string
}

var programs = map[string]program{
	"pi": {
		format: interop.Pi, folder: piFolder, name: stamped, taken: takenStamped,
		root:   func(p homes) string { return p.Pi },
		resume: func(_, file string) string { return "pi --session " + shellQuote(file) },
	},
	"omp": {
		format: interop.Omp, folder: ompFolder, name: stamped, taken: takenStamped,
		root:   func(p homes) string { return p.Omp },
		resume: func(_, file string) string { return "omp --resume " + shellQuote(file) },
	},
	"claude-code": {
		format: interop.ClaudeCode, uuids: true, folder: claudeFolder,
		root: func(p homes) string { return p.ClaudeCode },
		name: func(id string, _ time.Time) string { return id + ".jsonl" },
		taken: func(root, id string) []string {
			return []string{filepath.Join(root, "*", id+".jsonl"), filepath.Join(root, "*", id)}
		},
		resume: func(id, _ string) string { return "claude --resume " + id },
	},
	"codex": {
		format: interop.Codex, uuids: true, root: func(p homes) string { return p.Codex },
		folder: func(p homes, _ string, begun time.Time) (string, error) {
			return filepath.Join(p.Codex, "sessions", begun.Local().Format("2006/01/02")), nil
		},
		name: func(id string, begun time.Time) string {
			return "rollout-" + begun.Local().Format("2006-01-02T15-04-05") + "-" + id + ".jsonl"
		},
		taken: func(root, id string) []string {
			name := "rollout-*-" + id + ".jsonl*"
			return []string{
				filepath.Join(root, "sessions", "*", "*", "*", name), filepath.Join(root, "archived_sessions", name),
			}
		},
		resume: func(id, _ string) string { return "codex resume " + id },
	},
}

// dashes replaces what separates the parts of a path.
var dashes = strings.NewReplacer("/", "-", `\`, "-", ":", "-")

// piFolder is --PATH--, or the folder of all sessions where the user has chosen one.
func piFolder(p homes, cwd string, _ time.Time) (string, error) {
	if p.PiFlat {
		return p.Pi, nil
	}
	return filepath.Join(p.Pi, "--"+dashes.Replace(strings.TrimLeft(cwd, `/\`))+"--"), nil
}

// ompFolder names a folder below the home folder or that for temporary files by the way from there.
func ompFolder(p homes, cwd string, _ time.Time) (string, error) {
	for _, base := range [][2]string{{p.home, "-"}, {filepath.Clean(os.TempDir()), "-tmp-"}} {
		rel, err := filepath.Rel(base[0], cwd)
		if base[0] == "" || err != nil || rel == ".." || strings.HasPrefix(rel, ".."+string(filepath.Separator)) {
			continue
		}
		name := base[1] + dashes.Replace(rel)
		if rel == "." {
			name = strings.TrimSuffix(base[1], "-")
		}
		return filepath.Join(p.Omp, cmp.Or(name, "-")), nil
	}
	return filepath.Join(p.Omp, "--"+dashes.Replace(strings.TrimLeft(cwd, `/\`))+"--"), nil
}

// claudeNameMost is the longest name of a folder that Claude Code does not shorten.
const claudeNameMost = 200

var notAlphanumeric = regexp.MustCompile(`[^a-zA-Z0-9]`)

func claudeFolder(p homes, cwd string, _ time.Time) (string, error) {
	if real, err := filepath.EvalSymlinks(cwd); err == nil { // as Claude Code sees it
		cwd = real
	}
	name := notAlphanumeric.ReplaceAllString(cwd, "-")
	if len(name) > claudeNameMost {
		return "", usageError("Claude Code shortens names of folders over %d characters in a way of its own: "+
			"choose a shorter one with --cwd", claudeNameMost)
	}
	return filepath.Join(p.ClaudeCode, name), nil
}

// stamped is the name of a file of pi's and omp's.
func stamped(id string, begun time.Time) string {
	at := begun.UTC().Format("2006-01-02T15:04:05.000Z")
	return strings.NewReplacer(":", "-", ".", "-").Replace(at) + "_" + id + ".jsonl"
}

func takenStamped(root, id string) []string {
	return []string{filepath.Join(root, "*_"+id+".jsonl"), filepath.Join(root, "*", "*_"+id+".jsonl")}
}

func (c *cli) handoffCommand() *cobra.Command {
	var cwd string
	names := slices.Sorted(maps.Keys(programs))
	cmd := &cobra.Command{
		Use:   "handoff SESSION PROGRAM",
		Short: "Write a session where another program finds it, and print the command that continues it",
		Long: `Write a session as a file where another program looks for its sessions, and print the command that
continues it there. PROGRAM is ` + strings.Join(names, ", ") + `. The folder is that of the program:
CLAUDE_CONFIG_DIR, CODEX_HOME, PI_CODING_AGENT_DIR, PI_CODING_AGENT_SESSION_DIR and PI_CONFIG_DIR are
honoured. No file is overwritten: if the program has a session with the id already, the file gets a new
id. What the program's format cannot express is reported.`,
		Example: "  coppice handoff 019cadab codex\n  eval \"$(coppice handoff 019cadab claude-code)\"",
		Args:    cobra.ExactArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			return c.handoff(cmd.Context(), args[0], args[1], cwd)
		},
	}
	cmd.Flags().StringVar(&cwd, "cwd", "", "the working directory there; default that of the session")
	return cmd
}

// handedOff is the JSON of handoff.
type handedOff struct {
	Session string         `json:"session"`
	Program string         `json:"program"`
	ID      string         `json:"id"` // that the session has there
	File    string         `json:"file"`
	Bytes   int64          `json:"bytes"`
	Cwd     string         `json:"cwd"`
	Command string         `json:"command"`
	Losses  interop.Losses `json:"losses,omitempty"`
}

func (c *cli) handoff(ctx context.Context, id, to, cwd string) error {
	p, ok := programs[to]
	if !ok {
		names := slices.Sorted(maps.Keys(programs))
		return usageError("unknown program %q; there are %s", to, strings.Join(names, ", "))
	}
	if c.home() == "" {
		return usageError("no home folder: set $%s", homeVariable())
	}
	cwd, err := absolutePath(cwd)
	if err != nil {
		return err
	}
	return c.withStore(ctx, func(st *countedStore) error {
		full, err := st.resolve(ctx, id)
		if err != nil {
			return err
		}
		out := handedOff{Session: full, Program: to, Cwd: cwd}
		err = c.exporter(st).AsPi(ctx, full, func(s *coppice.Session, src interop.Source, h interop.Header) error {
			return c.writeThere(p, s, c.exporter(st).Entries(src, s.Head().Entry), h, &out)
		})
		if err != nil {
			return err
		}
		return c.reportHandoff(out)
	})
}

// writeThere writes the file of a program, under a name that no file has.
func (c *cli) writeThere(
	p program, s *coppice.Session, entries iter.Seq2[transcript.Draft, error], h interop.Header, out *handedOff,
) error {
	if out.Cwd == "" {
		out.Cwd = h.Cwd
	}
	if out.Cwd == "" {
		var err error
		if out.Cwd, err = os.Getwd(); err != nil {
			return err
		}
	}
	if h.Created.IsZero() {
		h.Created = c.now()
	}
	at := homes{importer.HomesOf(c.getenv, c.home()), c.home()}
	h.ID, h.Cwd = freeID(p, p.root(at), h.ID), out.Cwd
	h.Raw = rawjson.WithField(h.Raw, "id", rawjson.AppendString(nil, h.ID))
	h.Raw = rawjson.WithField(h.Raw, "cwd", rawjson.AppendString(nil, h.Cwd))
	dir, err := p.folder(at, out.Cwd, h.Created)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	out.ID, out.File = h.ID, filepath.Join(dir, p.name(h.ID, h.Created))
	head := s.Head().Entry
	out.Bytes, err = saveFile(out.File, false, func(w io.Writer) (err error) {
		out.Losses, err = formats.Write(w, p.format, h, entries, head)
		return err
	})
	if f, ok := errors.AsType[*api.Failure](err); ok && f.Code == "exists" {
		f.Hint = "run it again"
	}
	out.Command = p.resume(out.ID, out.File)
	return err
}

// freeID returns the id of a session in a program: its own, if the program can use it and has no file of that id, or
// a new one.
func freeID(p program, root, id string) string {
	if !p.uuids || len(id) == 36 && uuid.Validate(id) == nil {
		taken := false
		for _, pattern := range p.taken(root, id) {
			names, err := filepath.Glob(pattern)
			taken = taken || err != nil || len(names) > 0
		}
		if !taken {
			return id
		}
	}
	return uuid.Must(uuid.NewV7()).String()
}

// reportHandoff writes the command, which a shell can run, to the standard output, and the rest as remarks.
func (c *cli) reportHandoff(out handedOff) error {
	here, err := os.Getwd()
	if err == nil && here != out.Cwd {
		out.Command = "cd " + shellQuote(out.Cwd) + " && " + out.Command
	}
	if c.json {
		return c.writeJSON(out)
	}
	c.notef("wrote %s, %s", term.ShortenHome(out.File, c.home()), term.Size(out.Bytes))
	c.noteLosses(out.Losses)
	if _, err := os.Stat(out.Cwd); err != nil {
		c.notef("%s is not a folder of this machine: --cwd chooses another", term.Line(out.Cwd))
	}
	return c.textf("%s", term.Line(out.Command))
}
