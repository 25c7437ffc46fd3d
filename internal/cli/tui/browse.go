package tui

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	tea "charm.land/bubbletea/v2"

	coppice "github.com/coppice-go/coppice"
	"github.com/coppice-go/coppice/internal/cli/term"
	"github.com/coppice-go/coppice/transcript"
	"github.com/coppice-go/coppice/transcript/view"
)

// Browse shows the tree of a session until the user quits. It does not close the handle, which belongs to the caller.
func Browse(ctx context.Context, t Terminal, s *coppice.Session) error {
	b := &browser{ctx: ctx, s: s}
	if err := b.reload(); err != nil {
		return err
	}
	_, err := run(ctx, t, b)
	return err
}

// browser is the state of Browse.
type browser struct {
	ctx           context.Context //nolint:containedctx // of the call of Browse: commands run outside of Update
	s             *coppice.Session
	tree          *transcript.Tree
	v             *view.View
	short         func(string) string
	width, height int
	from          int // first visible row
	filter        int // index in filters

	pane   pane
	paneOf string   // the entry in the pane
	text   []string // of the pane
	below  int      // first visible line of the pane

	asks   question
	input  string // for a question that takes text
	status string // one line about the last step
	busy   bool   // a step or a search runs
}

// pane is shown next to the tree or instead of it.
type pane uint8

const (
	paneNone pane = iota
	paneEntry
	paneState
	paneHelp
)

// question is the question in the last line.
type question uint8

const (
	askNothing question = iota
	askLabel
	askSearch
	askRollback
	askSwitch
)

// filters are selected in turn with one key.
var filters = []transcript.Filter{
	transcript.FilterDefault, transcript.FilterNoTools, transcript.FilterUserOnly, transcript.FilterLabeledOnly,
	transcript.FilterAll,
}

const browseHelp = `↑ ↓ pgup pgdn home end   move
← →                      the version before, after: of this entry, or of the nearest above that has versions
space                    fold or unfold what grows on this entry
enter                    show the entry
s                        show the agent's state at this entry, and the commit it is from
l                        set the label of this entry; an empty one removes it
/                        search; an empty text ends it
f                        next filter: default, no-tools, user-only, labeled-only, all
c                        continue here: move the head to this entry
r                        roll back: restore the exact state, context and head of this entry's commit
esc                      close what is open
q                        leave`

// Results of a browser's commands.
type (
	textMsg struct { // for a pane
		pane  pane
		of    string
		lines []string
		err   error
	}
	doneMsg struct { // of a step that changed the session
		status string
		err    error
		move   bool // the head may have moved
	}
	foundMsg struct {
		text string
		v    *view.View
		err  error
	}
)

func (b *browser) Init() tea.Cmd { return nil }

// reload reads the tree of the session, and keeps the selected and folded entries.
func (b *browser) reload() error {
	t, err := b.s.Tree(b.ctx)
	if err != nil {
		return err
	}
	b.tree, b.short = t, term.EntryIDs(t).Short
	if b.v == nil {
		b.v = view.New(t)
	} else {
		b.v.Grown(t)
	}
	return nil
}

func (b *browser) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	switch msg := msg.(type) {
	case tea.WindowSizeMsg:
		b.width, b.height = msg.Width, msg.Height
		if b.pane == paneEntry || b.pane == paneState {
			return b, b.open(b.pane) // its lines are as wide as the pane
		}
	case textMsg:
		if msg.pane == b.pane && msg.of == b.paneOf {
			b.text, b.below = msg.lines, 0
			b.fail(msg.err)
		}
	case doneMsg:
		b.done(msg)
	case foundMsg:
		if b.busy = false; msg.err != nil {
			b.fail(msg.err)
			return b, nil
		}
		b.v, b.from = msg.v, 0
		b.status = fmt.Sprintf("%s with %q", term.Count(len(b.v.Rows()), "entry", "entries"), msg.text)
	case tea.KeyPressMsg:
		if b.asks != askNothing {
			return b, b.answer(msg)
		}
		return b, b.key(msg)
	}
	return b, nil
}

// done handles the result of a step that changed the session.
func (b *browser) done(msg doneMsg) {
	b.busy = false
	if err := b.reload(); err != nil && msg.err == nil {
		msg.err = err
	}
	if msg.move {
		b.v.Select(b.tree.Head())
	}
	b.status = msg.status
	b.fail(msg.err)
}

func (b *browser) fail(err error) {
	if err != nil {
		b.status = "failed: " + err.Error()
	}
}

// key handles a key while no question is open.
func (b *browser) key(msg tea.KeyPressMsg) tea.Cmd {
	b.status = ""
	page := max(1, b.rows()-1)
	switch msg.String() {
	case "ctrl+c":
		return tea.Quit
	case "q":
		if !b.waits() {
			return tea.Quit
		}
	case "esc":
		b.pane = paneNone
	case "up", "k":
		return b.move(-1)
	case "down", "j":
		return b.move(1)
	case "pgup":
		return b.move(-page)
	case "pgdown":
		return b.move(page)
	case "home", "g":
		return b.move(-len(b.v.Rows()))
	case "end", "G":
		return b.move(len(b.v.Rows()))
	case "shift+up":
		b.below = max(0, b.below-1)
	case "shift+down":
		b.below++
	case "left":
		return b.version(-1)
	case "right":
		return b.version(1)
	case "space", "tab":
		b.fold()
	case "enter":
		return b.open(paneEntry)
	case "s":
		return b.open(paneState)
	case "?":
		b.pane, b.text, b.below = paneHelp, strings.Split(browseHelp, "\n"), 0
	case "f":
		b.filter = (b.filter + 1) % len(filters)
		b.v.Filter(filters[b.filter])
		b.status = "filter: " + string(filters[b.filter])
	default:
		b.ask(msg.Text)
	}
	return nil
}

// waits reports whether a step runs, and displays it.
func (b *browser) waits() bool {
	if b.busy {
		b.status = "wait: the last step has not ended"
	}
	return b.busy
}

// ask opens the question of a key, if it has one.
func (b *browser) ask(key string) {
	if b.waits() {
		return
	}
	row, ok := b.selected()
	switch {
	case key == "/":
		b.asks, b.input = askSearch, ""
	case !ok:
	case key == "l":
		b.asks, b.input = askLabel, row.Label
	case key == "r":
		b.asks = askRollback
	case key == "c":
		b.asks = askSwitch
	}
}

// answer handles a key while a question is open.
func (b *browser) answer(msg tea.KeyPressMsg) tea.Cmd {
	key := msg.String()
	if key == "ctrl+c" || key == "esc" {
		b.asks, b.status = askNothing, "nothing was changed"
		return nil
	}
	if b.asks == askRollback || b.asks == askSwitch {
		asked := b.asks
		b.asks = askNothing
		if key != "y" && key != "Y" {
			b.status = "nothing was changed"
			return nil
		}
		return b.step(asked, "")
	}
	switch {
	case key == "enter":
		asked := b.asks
		b.asks = askNothing
		return b.step(asked, b.input)
	case key == "backspace":
		if r := []rune(b.input); len(r) > 0 {
			b.input = string(r[:len(r)-1])
		}
	case key == "ctrl+u":
		b.input = ""
	case msg.Text != "" && len(b.input) < maxQuery:
		b.input += term.Typed(msg.Text)
	}
	return nil
}

// step runs a confirmed step, outside of the loop that handles keys.
func (b *browser) step(asked question, text string) tea.Cmd {
	if asked == askSearch {
		return b.search(text)
	}
	row, ok := b.selected()
	if !ok {
		return nil
	}
	b.busy, b.status = true, "working …"
	id, name := row.ID, b.short(row.ID)
	return func() tea.Msg {
		switch asked {
		case askLabel:
			_, err := b.s.Label(b.ctx, id, text)
			return doneMsg{status: "labeled " + name, err: err}
		case askRollback:
			r, err := b.s.Rollback(b.ctx, coppice.Target{Entry: id})
			return doneMsg{status: fmt.Sprintf("rolled back to %s, on branch %s", name, r.Branch), err: err, move: true}
		default:
			r, err := b.s.Switch(b.ctx, id)
			return doneMsg{status: fmt.Sprintf("the head is at %s, on branch %s", name, r.Branch), err: err, move: true}
		}
	}
}

// search shows the entries that contain all words of a text; "" = all entries again.
func (b *browser) search(text string) tea.Cmd {
	if text == "" {
		b.v.Search("")
		return nil
	}
	b.busy, b.status = true, "searching …"
	v := view.New(b.tree)
	v.Filter(filters[b.filter])
	return func() tea.Msg {
		err := v.SearchIn(text, b.s.EntriesWith(b.ctx, text))
		return foundMsg{text, v, err}
	}
}

// selected returns the selected row; ok is false if nothing is shown.
func (b *browser) selected() (view.Row, bool) {
	at := b.v.Selected()
	if at < 0 {
		return view.Row{}, false
	}
	return b.v.Rows()[at], true
}

func (b *browser) move(by int) tea.Cmd {
	rows := b.v.Rows()
	if len(rows) == 0 {
		return nil
	}
	b.v.Select(rows[max(0, min(b.v.Selected()+by, len(rows)-1))].ID)
	return b.follow()
}

// version selects the version before or after the selected one.
func (b *browser) version(by int) tea.Cmd {
	rows, at := b.v.Rows(), b.v.Selected()
	for at >= 0 && rows[at].Versions < 2 {
		parent := rows[at].ParentID
		at = slices.IndexFunc(rows[:at], func(r view.Row) bool { return r.ID == parent })
	}
	if at < 0 {
		b.status = "there is only one version"
		return nil
	}
	of, want := rows[at], rows[at].Version+by
	for _, r := range rows {
		if r.ParentID == of.ParentID && r.Versions == of.Versions && r.Version == want {
			b.v.Select(r.ID)
			return b.follow()
		}
	}
	b.status = fmt.Sprintf("this is version %d of %d", of.Version, of.Versions)
	return nil
}

func (b *browser) fold() {
	row, ok := b.selected()
	if !ok {
		return
	}
	if row.Folded {
		b.v.Unfold(row.ID)
	} else if !b.v.Fold(row.ID) {
		b.status = "nothing grows on this entry"
	}
}

// follow updates an open pane for the selected entry.
func (b *browser) follow() tea.Cmd {
	if b.pane == paneEntry || b.pane == paneState {
		return b.open(b.pane)
	}
	return nil
}

// open shows the selected entry, or the state there, in the pane.
func (b *browser) open(p pane) tea.Cmd {
	row, ok := b.selected()
	if !ok {
		return nil
	}
	_, width := b.panes(true)
	b.pane, b.paneOf, b.text, b.below = p, row.ID, []string{paint(term.Dim, "reading …", width)}, 0
	ctx, s, id, short := b.ctx, b.s, row.ID, b.short // a step may change b's fields meanwhile
	return func() tea.Msg {
		lines, err := screen(width, func(to *term.Screen) error {
			if p == paneState {
				return drawState(ctx, s, id, to)
			}
			return drawEntry(ctx, s, id, short, to)
		})
		return textMsg{p, id, lines, err}
	}
}

// drawEntry draws a complete entry.
func drawEntry(ctx context.Context, s *coppice.Session, id string, short func(string) string, to *term.Screen) error {
	e, err := s.Entry(ctx, id)
	if err != nil {
		return err
	}
	return term.NewConversation(to, term.ConversationOptions{Full: true, Data: true, Short: short}).Add(e)
}

// drawState draws the document in force at an entry, and its commit.
func drawState(ctx context.Context, s *coppice.Session, id string, to *term.Screen) error {
	at, err := s.At(ctx, coppice.Target{Entry: id})
	if err != nil {
		return err
	}
	c := at.Commit()
	head := fmt.Sprintf("commit %d, %s", c.Seq, term.Clock(c.Time))
	if c.Reason != "" {
		head += ", " + c.Reason
	}
	var text bytes.Buffer
	state := at.Document().State
	switch {
	case len(state) == 0:
		text.WriteString("(no state)")
	case json.Indent(&text, state, "", "  ") != nil:
		text.Write(state)
	}
	title := to.Paint(term.Dim, term.Cut(term.Line(head), to.Width()))
	_, err = fmt.Fprintf(to, "%s\n\n%s\n", title, wrapped(text.String(), to.Width()))
	return err
}

// wrapped returns text without control characters, its lines wrapped at a width.
func wrapped(text string, width int) string {
	var out []string
	for line := range strings.Lines(term.Text(text)) {
		line = strings.TrimRight(line, "\n")
		for term.Columns(line) > width {
			head := term.Cut(line, width)
			n := len(strings.TrimSuffix(head, "…"))
			out, line = append(out, line[:n]), line[n:]
		}
		out = append(out, line)
	}
	return strings.Join(out, "\n")
}

// panes returns the widths of the tree and of the pane; a narrow terminal shows one of them.
func (b *browser) panes(open bool) (tree, beside int) {
	switch {
	case !open:
		return b.width, 0
	case b.width < wide:
		return 0, b.width
	}
	tree = b.width / 2
	return tree, b.width - tree - 2
}

func (b *browser) rows() int { return max(1, b.height-2) }
