package tui

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/coppice-go/coppice/internal/cli/term"
	"github.com/coppice-go/coppice/manager"
)

// FindOptions define the sessions of Find.
type FindOptions struct {
	Query string
	// Sessions returns all sessions in list order; at most maxSessions of them are kept.
	Sessions func(ctx context.Context) ([]manager.Found, error)
	// Matches returns, by session id, a line of text that contains a match of the query; nil = there is no index.
	Matches func(ctx context.Context, query string) (map[string]string, error)
	// Preview draws a session.
	Preview func(ctx context.Context, id string, s *term.Screen) error
	Now     func() time.Time
	Home    string // the home folder, which is shown as "~"
}

// Bounds of a finder. Further sessions are not offered; the plain list finds them with a query.
const (
	maxSessions = 10_000
	maxPreviews = 32  // maximum number of cached previews; the one read first is dropped
	maxQuery    = 200 // maximum length of a query, in bytes
)

// Find shows sessions, narrows them as a query is typed, and returns the id of the chosen one; "" = none.
func Find(ctx context.Context, t Terminal, o FindOptions) (string, error) {
	end, err := run(ctx, t, &finder{o: o, ctx: ctx, query: o.Query, previews: map[string][]string{}})
	if err != nil {
		return "", err
	}
	f, ok := end.(*finder)
	if !ok {
		return "", fmt.Errorf("draw on the terminal: unexpected program %T", end)
	}
	return f.chosen, f.failed
}

// finder is the state of Find.
type finder struct {
	o             FindOptions
	ctx           context.Context //nolint:containedctx // of the call of Find: commands run outside of Update
	width, height int

	query      string
	all        []manager.Found
	loaded     bool
	matches    map[string]string // results of Matches for the query matchesFor
	matchesFor string
	asking     bool // a search of the conversations is under way
	shown      []manager.Found
	at, from   int

	previews map[string][]string // by id and width
	order    []string            // of previews, the oldest first
	reading  bool                // a preview is being read
	below    int                 // first visible line of the preview

	chosen string
	failed error
}

// Results of a finder's commands.
type (
	sessionsMsg struct {
		list []manager.Found
		err  error
	}
	matchesMsg struct {
		query string
		lines map[string]string // results of Matches
	}
	previewMsg struct {
		key   string
		lines []string
	}
)

func (f *finder) Init() tea.Cmd {
	return func() tea.Msg {
		list, err := f.o.Sessions(f.ctx)
		return sessionsMsg{list[:min(len(list), maxSessions)], err}
	}
}

func (f *finder) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	switch msg := msg.(type) {
	case tea.WindowSizeMsg:
		f.width, f.height = msg.Width, msg.Height
	case sessionsMsg:
		if f.all, f.failed, f.loaded = msg.list, msg.err, true; f.failed != nil {
			return f, tea.Quit
		}
		return f, tea.Batch(f.narrow(), f.preview())
	case matchesMsg:
		if f.asking = false; msg.query != f.query {
			return f, f.narrow() // the query has changed: search again
		}
		f.matches, f.matchesFor = msg.lines, msg.query
		f.rank()
	case previewMsg:
		f.reading = false
		f.keep(msg)
	case tea.KeyPressMsg:
		return f, f.key(msg)
	}
	return f, f.preview()
}

// key handles a key.
func (f *finder) key(msg tea.KeyPressMsg) tea.Cmd {
	page := max(1, f.rows()-1)
	switch key := msg.String(); key {
	case "ctrl+c", "esc":
		return tea.Quit
	case "enter":
		if f.at < len(f.shown) {
			f.chosen = f.shown[f.at].ID
			return tea.Quit
		}
	case "up", "ctrl+p", "ctrl+k":
		f.move(-1)
	case "down", "ctrl+n", "ctrl+j":
		f.move(1)
	case "pgup":
		f.move(-page)
	case "pgdown":
		f.move(page)
	case "shift+up":
		f.below = max(0, f.below-1)
	case "shift+down":
		f.below++
	case "backspace":
		if r := []rune(f.query); len(r) > 0 {
			return f.ask(string(r[:len(r)-1]))
		}
	case "ctrl+u":
		return f.ask("")
	case "ctrl+w":
		return f.ask(strings.TrimRight(f.query[:strings.LastIndexByte(strings.TrimRight(f.query, " "), ' ')+1], " "))
	default:
		if msg.Text != "" && len(f.query) < maxQuery {
			return f.ask(f.query + term.Typed(msg.Text))
		}
	}
	return f.preview()
}

func (f *finder) move(by int) {
	f.at = max(0, min(f.at+by, len(f.shown)-1))
	f.below = 0
}

// ask changes the query.
func (f *finder) ask(query string) tea.Cmd {
	f.query, f.at, f.from, f.below = query, 0, 0, 0
	return tea.Batch(f.narrow(), f.preview())
}

// narrow shows the sessions that match the query by name, and returns a command that searches the conversations; nil =
// they need not be searched.
func (f *finder) narrow() tea.Cmd {
	f.rank()
	query := f.query
	if f.o.Matches == nil || !f.loaded || f.asking || query == "" || query == f.matchesFor {
		return nil
	}
	f.asking = true
	return func() tea.Msg {
		lines, err := f.o.Matches(f.ctx, query)
		if err != nil {
			lines = nil // matches by name are shown anyway
		}
		return matchesMsg{query, lines}
	}
}

// rank sets the list to the sessions that match the query: the best matches by name first, then those whose
// conversation matches.
func (f *finder) rank() {
	f.shown = f.shown[:0]
	q, err := manager.ParseQuery(f.query)
	if err != nil {
		return // an incomplete regular expression
	}
	var byText []manager.Found
	for _, s := range f.all {
		score, fits := q.Score(s.Title + "\n" + s.First + "\n" + s.Preview + "\n" + s.ID + "\n" + s.Cwd)
		if s.Score, s.MatchLine = score, ""; fits {
			f.shown = append(f.shown, s)
		} else if line := f.matches[s.ID]; line != "" && f.matchesFor == f.query {
			s.MatchLine = line
			byText = append(byText, s)
		}
	}
	if f.query != "" {
		slices.SortStableFunc(f.shown, func(a, b manager.Found) int { return cmp.Compare(a.Score, b.Score) })
	}
	f.shown = append(f.shown, byText...)
	f.at = max(0, min(f.at, len(f.shown)-1))
}

// keep caches a preview. Above maxPreviews it drops the one that was read first.
func (f *finder) keep(msg previewMsg) {
	if _, ok := f.previews[msg.key]; !ok {
		f.order = append(f.order, msg.key)
	}
	f.previews[msg.key] = msg.lines
	if len(f.order) > maxPreviews {
		delete(f.previews, f.order[0])
		f.order = f.order[1:]
	}
}

// panes returns the widths of the list and of the preview, in columns; 0 = the preview is not shown.
func (f *finder) panes() (list, preview int) {
	if f.width < wide {
		return f.width, 0
	}
	list = f.width * 2 / 5
	return list, f.width - list - 2
}

// previewKey returns the cache key of the selected session's preview.
func (f *finder) previewKey(width int) string { return fmt.Sprintf("%s %d", f.shown[f.at].ID, width) }

// preview reads the preview of the selected session, unless it is cached.
func (f *finder) preview() tea.Cmd {
	_, width := f.panes()
	if width == 0 || f.at >= len(f.shown) {
		return nil
	}
	id, key := f.shown[f.at].ID, f.previewKey(width)
	if _, ok := f.previews[key]; ok || f.reading {
		return nil
	}
	f.reading = true
	return func() tea.Msg {
		lines, err := screen(width, func(s *term.Screen) error { return f.o.Preview(f.ctx, id, s) })
		if err != nil {
			lines = []string{paint(term.Red, err.Error(), width)}
		}
		return previewMsg{key, lines}
	}
}

// rows returns the number of visible sessions.
func (f *finder) rows() int { return max(1, f.height-2) }

func (f *finder) View() tea.View {
	if f.width < minWidth || f.height < minHeight {
		return screenOf([]string{"the terminal is too small"})
	}
	list, width := f.panes()
	f.from = scroll(f.from, f.at, len(f.shown), f.rows())
	var left []string
	for i := f.from; i < min(len(f.shown), f.from+f.rows()); i++ {
		left = append(left, f.row(f.shown[i], i == f.at, list-1))
	}
	if len(f.shown) == 0 {
		what := "reading the sessions …"
		if f.loaded {
			what = "nothing found"
		}
		left = []string{paint(term.Dim, what, list)}
	}
	body := column(left, 0, f.rows())
	if width > 0 && f.at < len(f.shown) {
		lines, ok := f.previews[f.previewKey(width)]
		if !ok {
			lines = []string{paint(term.Dim, "reading …", width)}
		}
		f.below = max(0, min(f.below, len(lines)-f.rows()))
		body = beside(body, column(lines, f.below, f.rows()), list)
	}
	prompt := brush.Paint(term.Cyan, "> ") + term.Cut(term.Typed(f.query), f.width-3)
	foot := fmt.Sprintf("%d/%d  enter: choose  ↑↓: move  shift+↑↓: scroll the preview  esc: leave",
		len(f.shown), len(f.all))
	v := screenOf(append(append([]string{prompt}, body...), paint(term.Dim, foot, f.width)))
	v.Cursor = tea.NewCursor(min(2+term.Columns(term.Typed(f.query)), f.width-1), 0)
	return v
}

// row draws one session.
func (f *finder) row(s manager.Found, selected bool, width int) string {
	mark, style := "  ", term.Plain
	if selected {
		mark, style = "▌ ", term.Bold
	}
	when := term.Ago(f.o.Now(), s.Updated)
	name := strings.Repeat("  ", min(s.Depth, 10)) + s.Name()
	if s.Pinned {
		name = "★ " + name
	}
	if s.MatchLine != "" {
		name += " · " + s.MatchLine
	}
	if folder := term.Line(term.ShortenHome(s.Cwd, f.o.Home)); folder != "" {
		if term.Columns(folder) > width/4 { // the last name is the most specific
			folder = folder[strings.LastIndexAny(folder, `/\`)+1:]
		}
		when = term.Cut(folder, width/4) + "  " + when
	}
	room := max(8, width-term.Columns(when)-4)
	text := term.Cut(term.Line(name), room)
	pad := strings.Repeat(" ", max(1, room-term.Columns(text)+1))
	return brush.Paint(term.Cyan, mark) + brush.Paint(style, text) + pad + paint(term.Dim, when, width)
}
