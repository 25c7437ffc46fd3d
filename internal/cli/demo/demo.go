// Package demo tells the whole story of coppice on a session that comes with the program: import, resume,
// a turn, an edited message, a way back to an exact earlier state, a check of every checksum; and what
// each of them cost.
package demo

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	coppice "github.com/coppice-go/coppice"
	"github.com/coppice-go/coppice/backend"
	"github.com/coppice-go/coppice/internal/cas"
	"github.com/coppice-go/coppice/internal/cli/program"
	"github.com/coppice-go/coppice/internal/cli/term"
)

// Command is `coppice demo`.
func Command(a *program.App) *cobra.Command {
	return &cobra.Command{
		Use:   "demo",
		Short: "The whole story on a bundled session, in one command",
		Long: `The whole story on a bundled session: import it, resume it with one read, look at its tree, append a turn, edit an
earlier message into a new branch, roll back to an exact earlier state, verify; and what each step cost.

The store stays on disk for a look: in a fresh folder, or where --store says.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return run(cmd.Context(), a) },
	}
}

// step is one step of the story and what it cost.
type step struct {
	Name string     `json:"name"`
	Ms   float64    `json:"ms"`
	IO   backend.IO `json:"io"`
	took time.Duration
}

// story is one run of the demo.
type story struct {
	*program.App
	st    *program.Store
	steps []step
	told  told

	id string
	s  *coppice.Session
}

// told is the JSON of the demo.
type told struct {
	Store    string   `json:"store"`
	Session  string   `json:"session"`
	Entries  int      `json:"entries"`
	Context  int      `json:"contextMessages"`
	Restored restored `json:"restored"`
	Problems int      `json:"problems"`
	Steps    []step   `json:"steps"`
}

// restored tells whether the rollback gave back what was there.
type restored struct {
	Seq        uint64 `json:"seq"`
	StateBytes int    `json:"stateBytes"`
	StateEqual bool   `json:"stateEqual"`
	Context    bool   `json:"contextEqual"`
	Head       bool   `json:"headEqual"`
}

var errNotRestored = errors.New("the state that was restored is not the one that was there")

func run(ctx context.Context, a *program.App) (err error) {
	d := &story{App: a}
	if a.URL == "" {
		if a.URL, err = os.MkdirTemp("", "coppice-demo-"); err != nil {
			return err
		}
	}
	d.told.Store = a.URL
	if d.st, err = a.Open(ctx); err != nil {
		return err
	}
	defer func() {
		if cerr := d.st.Close(); err == nil {
			err = cerr
		}
	}()
	for _, chapter := range []func(context.Context) error{
		d.importIt, d.resume, d.tree, d.turn, d.edit, d.rollback, d.verify,
	} {
		if err := chapter(ctx); err != nil {
			return err
		}
	}
	return d.end()
}

// do runs one step and notes what it cost.
func (d *story) do(name string, f func() error) error {
	before, begun := d.st.IO(), d.Now()
	err := f()
	took := d.Now().Sub(begun)
	d.steps = append(d.steps, step{
		Name: name, Ms: float64(took.Microseconds()) / 1000, IO: d.st.IO().Sub(before), took: took,
	})
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return nil
}

// say writes a line of the story.
func (d *story) say(format string, args ...any) error {
	if d.JSON {
		return nil
	}
	return d.Text("   "+format, args...)
}

// chapter writes a heading.
func (d *story) chapter(text string) error {
	if d.JSON {
		return nil
	}
	return d.Text("\n%s", d.Out.Paint(term.Bold, fmt.Sprintf("%d. %s", len(d.steps)+1, text)))
}

// end shows what it all cost, and where to go on.
func (d *story) end() error {
	if d.JSON {
		d.told.Session, d.told.Steps = d.id, d.steps
		return d.Emit(d.told)
	}
	rows := make([][]term.Cell, len(d.steps))
	for i, s := range d.steps {
		rows[i] = []term.Cell{
			{Text: s.Name},
			{Text: program.Itoa(uint64(s.IO.Get))},
			{Text: program.Itoa(uint64(s.IO.Append))},
			{Text: program.Itoa(uint64(s.IO.Put))},
			{Text: term.Size(s.IO.BytesRead)},
			{Text: term.Size(s.IO.BytesWritten)},
			{Text: term.Duration(s.took), Style: term.Green},
		}
	}
	if err := d.Text("\n%s", d.Out.Paint(term.Bold, "What it cost")); err != nil {
		return err
	}
	if err := d.Out.Table([]term.Column{
		{Head: "STEP", Flex: true},
		{Head: "READS", Right: true},
		{Head: "APPENDS", Right: true},
		{Head: "PUTS", Right: true},
		{Head: "READ", Right: true},
		{Head: "WRITTEN", Right: true},
		{Head: "TIME", Right: true},
	}, rows); err != nil {
		return err
	}
	var errs []error
	if d.steps[0].IO.Put >= 2*cas.Racers {
		errs = append(errs, d.Text("The import includes asking the store, once and for all, whether it honours conditional writes."))
	}
	errs = append(errs, d.Text("\nThe store is in %s; it is yours to look at:", d.told.Store))
	for _, line := range []string{
		"coppice --store %[1]s tree %[2]s", "coppice --store %[1]s log %[2]s", "coppice --store %[1]s show %[2]s --last 12",
		"coppice --store %[1]s diff %[2]s seq:0 head", "coppice --store %[1]s export %[2]s > session.jsonl",
	} {
		errs = append(errs, d.Text("   "+line, quoted(d.told.Store), d.id[:min(8, len(d.id))]))
	}
	errs = append(errs, d.Text("and your own sessions:\n   coppice import ~/.pi/agent/sessions && coppice list"))
	return errors.Join(errs...)
}

// quoted is a store's address as a shell takes it: the parameters of a URL are joined by ampersands.
func quoted(url string) string {
	plain := func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("/._-:=,+@%", r)
	}
	if strings.IndexFunc(url, func(r rune) bool { return !plain(r) }) < 0 {
		return url
	}
	return "'" + strings.ReplaceAll(url, "'", `'\''`) + "'"
}
