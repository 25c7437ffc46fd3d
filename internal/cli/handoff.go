package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/google/uuid"
	"github.com/spf13/cobra"

	coppice "github.com/coppice-go/coppice"
	"github.com/coppice-go/coppice/internal/api"
	"github.com/coppice-go/coppice/internal/cli/term"
	"github.com/coppice-go/coppice/internal/exporter"
	"github.com/coppice-go/coppice/internal/rawjson"
	"github.com/coppice-go/coppice/interop"
	"github.com/coppice-go/coppice/interop/formats"
	"github.com/coppice-go/coppice/transcript"
)

func (c *cli) handoffCommand() *cobra.Command {
	var cwd string
	var force bool
	var secrets exporter.Secrets
	cmd := &cobra.Command{
		Use:   "handoff SESSION PROGRAM",
		Short: "Write a session where another program finds it, and print the command that continues it",
		Long: `Write a session as a file where another program looks for its sessions, and print the command that
continues it there. PROGRAM is ` + strings.Join(handoffPrograms(), ", ") + `. The folder is that of the program:
CLAUDE_CONFIG_DIR, CODEX_HOME, PI_CODING_AGENT_DIR, PI_CODING_AGENT_SESSION_DIR and PI_CONFIG_DIR are
honoured. No file is overwritten: if the program has a session with the id already, the file gets a new
id. What the program's format cannot express is reported. Nothing is written of a session with credentials until
--redact replaces each by [secret: RULE], or --allow writes them.`,
		Example: "  coppice handoff 019cadab codex\n  eval \"$(coppice handoff 019cadab claude-code)\"",
		Args:    cobra.ExactArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			return c.handoff(cmd.Context(), args[0], args[1], cwd, force, secrets)
		},
	}
	cmd.Flags().StringVar(&cwd, "cwd", "", "the working directory there; default that of the session")
	secretsFlags(cmd, &secrets)
	cmd.Flags().BoolVar(&force, "force", false, "hand over what is left of a session that lost commits")
	return cmd
}

// handoffPrograms returns the names of the formats whose programs continue sessions.
func handoffPrograms() []string {
	var list []string
	for _, f := range formats.All() {
		if f.Program != nil {
			list = append(list, string(f.Name))
		}
	}
	slices.Sort(list)
	return list
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
	Hidden  bool           `json:"hidden,omitempty"` // the program does not list it
	Losses  interop.Losses `json:"losses,omitempty"`
}

func (c *cli) handoff(ctx context.Context, id, to, cwd string, force bool, secrets exporter.Secrets) error {
	f, err := formats.Of(interop.Format(to))
	if err != nil || f.Program == nil {
		return oneOf("program", to, handoffPrograms())
	}
	if c.home() == "" {
		return usageError("no home folder: set $%s", homeVariable())
	}
	cwd, err = absolutePath(cwd)
	if err != nil {
		return err
	}
	return c.withStore(ctx, func(st *countedStore) error {
		full, err := st.resolve(ctx, id)
		if err != nil {
			return err
		}
		out := handedOff{Session: full, Program: to, Cwd: cwd}
		x := c.exporter(st)
		x.Secrets = secrets
		hand := func() error {
			return x.AsPi(ctx, full, func(s *coppice.Session, src interop.Source, h interop.Header) error {
				gone := lost(s)
				if gone != nil && !force {
					return gone
				}
				if gone != nil {
					c.notef("warning: %s", gone)
				}
				return c.writeThere(ctx, f.Program, s, x, x.Entries(src, s.Head().Entry), h, &out)
			})
		}
		err = hand()
		if damage := err; force && errors.Is(damage, coppice.ErrCorrupt) { // nothing is written yet
			if x.Store, err = st.Repaired(ctx, full); err != nil {
				return damage
			}
			c.notef("warning: %s", damage)
			err = hand()
		}
		if errors.Is(err, coppice.ErrCorrupt) && !force {
			return fmt.Errorf("%w; --force hands over what is left", err)
		}
		if err != nil {
			return err
		}
		return c.reportHandoff(out)
	})
}

// writeThere writes the file of a program, under a name that no file has.
func (c *cli) writeThere(
	ctx context.Context, p *interop.Program, s *coppice.Session, x exporter.Exporter,
	entries iter.Seq2[transcript.Draft, error], h interop.Header, out *handedOff,
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
	h.ID, h.Cwd, h.CwdWas = freeID(p, c.env(), h.ID), out.Cwd, h.Cwd
	h.Raw = rawjson.WithField(h.Raw, "id", rawjson.AppendString(nil, h.ID))
	h.Raw = rawjson.WithField(h.Raw, "cwd", rawjson.AppendString(nil, h.Cwd))
	file, err := p.File(c.env(), h.ID, out.Cwd, h.Created)
	if err != nil {
		return usageError("%w", err)
	}
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		return err
	}
	out.ID, out.File = h.ID, file
	out.Bytes, err = saveFile(out.File, false, func(w io.Writer) error {
		replaced, err := x.Screen(s.ID(), w, func(w io.Writer) (err error) {
			out.Losses, err = exporter.Write(ctx, s, w, interop.Format(out.Program), h, entries)
			return err
		})
		out.Losses = exporter.Together(out.Losses, replaced)
		return err
	})
	if f, ok := errors.AsType[*api.Failure](err); ok && f.Code == "exists" {
		f.Hint = "run it again"
	}
	if err == nil && p.Hides != nil {
		var head []byte
		if head, err = headOf(file); err == nil {
			out.Hidden = p.Hides(head)
		}
	}
	command := p.Command(out.ID, out.File)
	for i, word := range command {
		command[i] = shellQuote(word)
	}
	out.Command = strings.Join(command, " ")
	return err
}

// headOf returns the beginning of a file.
func headOf(file string) ([]byte, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	head, err := io.ReadAll(io.LimitReader(f, 256<<10))
	return head, errors.Join(err, f.Close())
}

// env is what the places of programs' files depend on.
func (c *cli) env() interop.Env {
	return interop.Env{Getenv: c.getenv, Home: c.home(), Temp: os.TempDir()}
}

// freeID returns the id of a session in a program: its own, if the program can use it and has no file of that id, or
// a new one.
func freeID(p *interop.Program, e interop.Env, id string) string {
	if !p.UUIDs || len(id) == 36 && uuid.Validate(id) == nil {
		taken := false
		for _, pattern := range p.Taken(e, id) {
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
	if out.Hidden {
		c.notef("it is the session of an agent: %s does not list such sessions", out.Program)
	}
	if _, err := os.Stat(out.Cwd); err != nil {
		c.notef("%s is not a folder of this machine: --cwd chooses another", term.Line(out.Cwd))
	}
	return c.textf("%s", term.Line(out.Command))
}
