package cli

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	coppice "github.com/coppice-go/coppice"
	"github.com/coppice-go/coppice/backend"
	"github.com/coppice-go/coppice/entry"
	"github.com/coppice-go/coppice/examples/session"
	"github.com/coppice-go/coppice/internal/casprobe"
	"github.com/coppice-go/coppice/internal/cli/term"
	"github.com/coppice-go/coppice/internal/importer"
	"github.com/coppice-go/coppice/internal/shortid"
	"github.com/coppice-go/coppice/interop"
	"github.com/coppice-go/coppice/transcript"
)

func (c *cli) demoCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "demo",
		Short: "Run the main steps on a bundled session",
		Long: `Run the main steps on a bundled session and print what each of them costs: import it, resume it with
one read, draw its tree, append a turn, edit an earlier message on a new branch, roll back to an
earlier state, and verify the store.

The store stays on disk, in a new temporary folder or in --store.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return c.demo(cmd.Context()) },
	}
}

// demoStep is one step of the demo and its cost.
type demoStep struct {
	Name string     `json:"name"`
	Ms   float64    `json:"ms"`
	IO   backend.IO `json:"io"`
	took time.Duration
}

// demo is one run of the demo.
type demo struct {
	c     *cli
	st    *countedStore
	steps []demoStep
	out   demoOut

	id string
	s  *coppice.Session
}

// demoOut is the JSON of the demo.
type demoOut struct {
	Store    string       `json:"store"`
	Session  string       `json:"session"`
	Entries  int          `json:"entries"`
	Context  int          `json:"contextMessages"`
	Restored demoRestored `json:"restored"`
	Problems int          `json:"problems"`
	Steps    []demoStep   `json:"steps"`
}

// demoRestored reports whether the rollback restored everything exactly.
type demoRestored struct {
	Seq        uint64 `json:"seq"`
	StateBytes int    `json:"stateBytes"`
	StateEqual bool   `json:"stateEqual"`
	Context    bool   `json:"contextEqual"`
	Head       bool   `json:"headEqual"`
}

var errNotRestored = errors.New("the restored state differs from the earlier one")

func (c *cli) demo(ctx context.Context) (err error) {
	d := &demo{c: c}
	if c.storeFlag == "" {
		if c.storeFlag, err = os.MkdirTemp("", "coppice-demo-"); err != nil {
			return err
		}
	}
	d.out.Store = backend.Redacted(c.storeFlag)
	if d.st, err = c.openStore(ctx); err != nil {
		return err
	}
	return closeAfter(d.st, d.run(ctx))
}

func (d *demo) run(ctx context.Context) error {
	for _, step := range []func(context.Context) error{
		d.importSession, d.resume, d.tree, d.turn, d.edit, d.rollback, d.verify,
	} {
		if err := step(ctx); err != nil {
			return err
		}
	}
	return d.summary()
}

// step writes a heading, runs one step, and records its cost.
func (d *demo) step(title, name string, f func() error) error {
	if !d.c.json {
		heading := d.c.stdout.Paint(term.Bold, fmt.Sprintf("%d. %s", len(d.steps)+1, title))
		if err := d.c.textf("\n%s", heading); err != nil {
			return err
		}
	}
	before, begun := d.st.io(), d.c.now()
	err := f()
	took := d.c.now().Sub(begun)
	d.steps = append(d.steps, demoStep{
		Name: name, Ms: float64(took.Microseconds()) / 1000, IO: d.st.io().Sub(before), took: took,
	})
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return nil
}

// say writes a line for people.
func (d *demo) say(format string, args ...any) error {
	if d.c.json {
		return nil
	}
	return d.c.textf("   "+format, args...)
}

// summary shows what the steps cost, and which commands to try next.
func (d *demo) summary() error {
	if d.c.json {
		d.out.Session, d.out.Steps = d.id, d.steps
		return d.c.writeJSON(d.out)
	}
	rows := make([][]term.Cell, len(d.steps))
	for i, s := range d.steps {
		rows[i] = []term.Cell{
			{Text: s.Name},
			{Text: itoa(uint64(s.IO.Get))},
			{Text: itoa(uint64(s.IO.Append))},
			{Text: itoa(uint64(s.IO.Put))},
			{Text: term.Size(s.IO.BytesRead)},
			{Text: term.Size(s.IO.BytesWritten)},
			{Text: term.Duration(s.took), Style: term.Green},
		}
	}
	if err := d.c.textf("\n%s", d.c.stdout.Paint(term.Bold, "Cost of each step")); err != nil {
		return err
	}
	if err := d.c.stdout.Table([]term.Column{
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
	if d.steps[0].IO.Put >= 2*casprobe.Racers {
		errs = append(errs, d.c.textf(
			"The import includes a test, made once, whether the store honours conditional writes."))
	}
	errs = append(errs, d.c.textf("\nThe store is in %s. Try:", d.out.Store))
	for _, line := range []string{
		"coppice --store %[1]s tree %[2]s", "coppice --store %[1]s log %[2]s",
		"coppice --store %[1]s show %[2]s --last 12",
		"coppice --store %[1]s diff %[2]s seq:0 head", "coppice --store %[1]s export %[2]s > session.jsonl",
	} {
		errs = append(errs, d.c.textf("   "+line, shellQuote(d.out.Store), d.id[:min(8, len(d.id))]))
	}
	errs = append(errs, d.c.textf("Import your own sessions:\n   coppice import ~/.pi/agent/sessions && coppice list"))
	return errors.Join(errs...)
}

// shellQuote quotes the address of a store for a shell: the parameters of a URL are joined by
// ampersands.
func shellQuote(url string) string {
	plain := func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' ||
			strings.ContainsRune("/._-:=,+@%", r)
	}
	if strings.IndexFunc(url, func(r rune) bool { return !plain(r) }) < 0 {
		return url
	}
	return "'" + strings.ReplaceAll(url, "'", `'\''`) + "'"
}

// The messages and states of the demo. editedEntry is an entry of the bundled session.
const (
	demoQuestion = "One more thing: what would it take to ship this for Windows as well?"
	demoAnswer   = "Little: the station files are embedded, so one `GOOS=windows go build` and a release step. " +
		"I would do it in a branch."
	editedEntry = "cacbd4da"
	editedText  = "I gave it to Fiona, who will type them in. She would rather have a web form than a command. " +
		"Can we do that?"
	editedAnswer = "Yes: the checks are a package of their own already. I would serve one page and call them " +
		"on every change."

	stateBefore = `{"turn":1,"plan":["windows release"],"spent":{"tokens":12345678901234567890,"usd":0.30},` +
		`"note":"größer als 2^53, and exact"}`
	stateAfter = `{"turn":2,"plan":["web form","release"],` +
		`"spent":{"tokens":12345678901234569999,"usd":0.41},"note":null}`
)

func (d *demo) importSession(ctx context.Context) error {
	var res importer.Result
	err := d.step("Import a session of a coding agent, unchanged", "import", func() (err error) {
		src := interop.Bytes("the bundled session", session.JSONL())
		o := importer.Options{Again: true, Now: d.c.now()}
		res, err = importer.Import(ctx, d.st.Store, src, o)
		return err
	})
	if err != nil {
		return err
	}
	d.id, d.out.Entries = res.Session, res.Entries
	return d.say("session %s: %s, %s, pi v3 format, every byte preserved", shortid.One(d.id),
		term.Count(res.Entries, "entry", "entries"), term.Size(int64(len(session.JSONL()))))
}

func (d *demo) resume(ctx context.Context) error {
	var con transcript.Context
	err := d.step("Resume it, as on another host", "resume", func() (err error) {
		if d.s, err = d.st.Store.Open(ctx, d.id, nil); err != nil {
			return err
		}
		con, err = d.s.Context(ctx)
		return err
	})
	if err != nil {
		return err
	}
	d.out.Context = len(con.Messages)
	io := d.steps[len(d.steps)-1].IO
	return d.say("%s ready for the model (%s): %s, %s; the older history was not read",
		term.Count(len(con.Messages), "message", "messages"), con.Settings.Model,
		term.Count(io.Get, "read", "reads"), term.Size(io.BytesRead))
}

func (d *demo) tree(ctx context.Context) error {
	var t *transcript.Tree
	const title = "Draw its tree: ● is the current path, ○ are other versions; long runs are shortened"
	err := d.step(title, "tree", func() (err error) {
		t, err = d.s.Tree(ctx)
		return err
	})
	if err != nil || d.c.json {
		return err
	}
	return term.Tree(d.c.stdout, t, term.TreeOptions{Filter: transcript.FilterNoTools, Ends: 2})
}

func (d *demo) turn(ctx context.Context) error {
	var r coppice.Receipt
	err := d.step("Append a turn: messages and the agent's state in one commit", "append a turn", func() error {
		if _, err := d.s.Append(ctx, entry.User(demoQuestion), entry.Assistant(demoAnswer)); err != nil {
			return err
		}
		var err error
		r, err = d.s.Commit(ctx, coppice.Turn{State: json.RawMessage(stateBefore)})
		return err
	})
	if err != nil {
		return err
	}
	d.out.Restored.Seq = r.Seq
	return errors.Join(
		d.say("seq %d: %s, and the state", r.Seq, term.Count(r.Entries, "entry", "entries")),
		d.say("state %s", d.c.stdout.Paint(term.Cyan, stateBefore)))
}

func (d *demo) edit(ctx context.Context) error {
	const title = "Edit a message from an hour before: this creates a branch, and the old one stays"
	err := d.step(title, "edit an earlier message", func() error {
		if _, err := d.s.Edit(ctx, editedEntry, entry.User(editedText)); err != nil {
			return err
		}
		if _, err := d.s.Append(ctx, entry.Assistant(editedAnswer)); err != nil {
			return err
		}
		_, err := d.s.Commit(ctx, coppice.Turn{State: json.RawMessage(stateAfter)})
		return err
	})
	if err != nil {
		return err
	}
	t, err := d.s.Tree(ctx)
	if err != nil {
		return err
	}
	versions, _ := t.Siblings(editedEntry)
	for i, v := range versions {
		mark := "○"
		if v.OnPath {
			mark = d.c.stdout.Paint(term.Green, "●")
		}
		if err := d.say("%s ‹%d/%d› %s", mark, i+1, len(versions), term.Line(v.Preview)); err != nil {
			return err
		}
	}
	return d.say("state %s", d.c.stdout.Paint(term.Cyan, stateAfter))
}

func (d *demo) rollback(ctx context.Context) error {
	seq := d.out.Restored.Seq
	then, err := d.s.At(ctx, coppice.Target{Seq: seq})
	if err != nil {
		return err
	}
	var r coppice.Receipt
	title := fmt.Sprintf("Roll back to seq %d: restore state, context and head exactly", seq)
	err = d.step(title, "roll back", func() (err error) {
		r, err = d.s.Rollback(ctx, coppice.Target{Seq: seq})
		return err
	})
	if err != nil {
		return err
	}
	if err := d.compare(ctx, then); err != nil {
		return err
	}
	t := d.out.Restored
	sum := sha256.Sum256([]byte(stateBefore))
	err = d.say("state: %d bytes, identical to seq %d (sha256 %x…)", t.StateBytes, seq, sum[:6])
	if err != nil {
		return err
	}
	return d.say("context and head: identical; the path that was left is kept as branch %q", r.Kept)
}

// compare compares the restored state, context and head with the earlier view. It opens the session
// again.
func (d *demo) compare(ctx context.Context, then *coppice.View) (err error) {
	s, err := d.st.Store.Open(ctx, d.id, &coppice.SessionOptions{ReadOnly: true})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	now, err := s.At(ctx, coppice.Target{})
	if err != nil {
		return err
	}
	was, err := then.Context(ctx)
	if err != nil {
		return err
	}
	is, err := now.Context(ctx)
	if err != nil {
		return err
	}
	state, r := now.Document().State, &d.out.Restored
	r.StateBytes = len(state)
	r.StateEqual = string(state) == stateBefore && bytes.Equal(state, then.Document().State)
	r.Head = is.Leaf == was.Leaf && s.Head().Entry == then.Commit().Entry
	r.Context = sameMessages(was.Messages, is.Messages)
	if !r.StateEqual || !r.Head || !r.Context {
		return errNotRestored
	}
	return nil
}

func sameMessages(a, b []transcript.Message) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if a[i].Entry != b[i].Entry || !bytes.Equal(a[i].Raw, b[i].Raw) {
			return false
		}
	}
	return true
}

func (d *demo) verify(ctx context.Context) error {
	if err := d.s.Close(); err != nil {
		return err
	}
	var r coppice.Report
	title := "Read every byte and verify every checksum, as `coppice verify --deep` does"
	err := d.step(title, "verify", func() (err error) {
		r, err = d.st.Verify(ctx, d.id, true)
		return err
	})
	if err != nil {
		return err
	}
	if d.out.Problems = len(r.Problems); len(r.Problems) > 0 {
		return r.Problems[0]
	}
	return d.say("%s, %s: no damage found", term.Count(r.Objects, "object", "objects"), term.Size(r.Bytes))
}
