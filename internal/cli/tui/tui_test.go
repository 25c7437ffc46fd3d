package tui

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"

	coppice "github.com/coppice-go/coppice"
	"github.com/coppice-go/coppice/backend/memory"
	"github.com/coppice-go/coppice/checkpoint"
	"github.com/coppice-go/coppice/internal/cli/term"
	"github.com/coppice-go/coppice/manager"
	"github.com/coppice-go/coppice/transcript"
)

// play runs a program like the loop of keys, one message at a time, with commands run at once.
type play struct {
	t    *testing.T
	m    tea.Model
	quit bool
}

func start(t *testing.T, m tea.Model, width, height int) *play {
	p := &play{t: t, m: m}
	p.do(m.Init())
	p.send(tea.WindowSizeMsg{Width: width, Height: height})
	return p
}

func (p *play) send(msg tea.Msg) {
	var cmd tea.Cmd
	p.m, cmd = p.m.Update(msg)
	p.do(cmd)
}

func (p *play) do(cmd tea.Cmd) {
	if cmd == nil {
		return
	}
	switch msg := cmd().(type) {
	case nil:
	case tea.QuitMsg:
		p.quit = true
	case tea.BatchMsg:
		for _, c := range msg {
			p.do(c)
		}
	default:
		p.send(msg)
	}
}

var named = map[string]tea.Key{
	"enter": {Code: tea.KeyEnter}, "esc": {Code: tea.KeyEscape}, "up": {Code: tea.KeyUp}, "down": {Code: tea.KeyDown},
	"left": {Code: tea.KeyLeft}, "right": {Code: tea.KeyRight}, "home": {Code: tea.KeyHome}, "end": {Code: tea.KeyEnd},
	"space": {Code: tea.KeySpace, Text: " "}, "backspace": {Code: tea.KeyBackspace},
	"ctrl+u": {Code: 'u', Mod: tea.ModCtrl}, "pgdown": {Code: tea.KeyPgDown},
}

// keys presses keys: names, and texts of which each letter is one.
func (p *play) keys(list ...string) *play {
	for _, k := range list {
		if key, ok := named[k]; ok {
			p.send(tea.KeyPressMsg(key))
			continue
		}
		for _, r := range k {
			p.send(tea.KeyPressMsg(tea.Key{Code: r, Text: string(r)}))
		}
	}
	return p
}

// plain returns the screen without colours.
func (p *play) plain() string {
	var out strings.Builder
	for rest := p.m.View().Content; ; {
		before, after, colored := strings.Cut(rest, "\x1b[")
		out.WriteString(before)
		if !colored {
			return out.String()
		}
		_, rest, _ = strings.Cut(after, "m")
	}
}

func (p *play) shows(want ...string) {
	p.t.Helper()
	for _, w := range want {
		if !strings.Contains(p.plain(), w) {
			p.t.Errorf("the screen does not show %q:\n%s", w, p.plain())
		}
	}
}

func (p *play) hides(what string) {
	p.t.Helper()
	if strings.Contains(p.plain(), what) {
		p.t.Errorf("the screen shows %q:\n%s", what, p.plain())
	}
}

// fits compares the size of the screen with that of the terminal.
func (p *play) fits(width, height int) {
	p.t.Helper()
	lines := strings.Split(p.plain(), "\n")
	if len(lines) > height {
		p.t.Errorf("%d lines on a terminal of %d:\n%s", len(lines), height, p.plain())
	}
	for _, l := range lines {
		if term.Columns(l) > width {
			p.t.Errorf("a line of %d columns on a terminal of %d: %q", term.Columns(l), width, l)
		}
	}
}

func found(id, title string, updated time.Time) manager.Found {
	return manager.Found{Summary: checkpoint.Summary{ID: id, Title: title, Updated: updated}}
}

var noon = time.Date(2026, 3, 2, 12, 0, 0, 0, time.UTC)

func finderOf(list ...manager.Found) *finder {
	return &finder{
		ctx: context.Background(), previews: map[string][]string{},
		o: FindOptions{
			Now:      func() time.Time { return noon },
			Sessions: func(context.Context) ([]manager.Found, error) { return list, nil },
			Matches: func(_ context.Context, query string) (map[string]string, error) {
				if said := "a whale in the bay"; strings.Contains(said, query) {
					return map[string]string{"s3": said}, nil
				}
				return map[string]string{}, nil
			},
			Preview: func(_ context.Context, id string, s *term.Screen) error {
				_, err := fmt.Fprintf(s, "preview of %s\n", id)
				return err
			},
		},
	}
}

func TestFind(t *testing.T) {
	list := []manager.Found{
		found("s1", "tide tables", noon), found("s2", "mend \x1b[31mthe roof", noon.Add(-time.Hour)),
		found("s3", "ships", noon),
	}
	f := finderOf(list...)
	p := start(t, f, 120, 20)
	p.shows("tide tables", "ships", "3/3", "preview of s1")
	if strings.Contains(p.m.View().Content, "\x1b[31mthe") {
		t.Error("a title commands the terminal")
	}
	p.keys("down").shows("preview of s2")
	p.keys("roof").shows("1/3", "> roof", "preview of s2")
	p.hides("tide tables")
	p.keys("ctrl+u", "tide", "space", "tab").shows("1/3", "> tide tab")
	p.keys("ctrl+u", "whale").shows("1/3", "ships · a whale in the bay")
	p.keys("backspace", "backspace", "backspace", "backspace", "backspace", "nothing").shows("nothing found")
	p.keys("enter")
	if p.quit {
		t.Fatal("enter chose nothing")
	}
	p.keys("ctrl+u", "re:(", "ctrl+u", "end", "down", "down", "down", "down", "enter")
	if !p.quit || f.chosen != "s3" {
		t.Errorf("chosen %q, want s3", f.chosen)
	}
	p = start(t, finderOf(list...), 120, 20).keys("esc")
	if f, _ := p.m.(*finder); !p.quit || f.chosen != "" {
		t.Error("esc did not leave without a choice")
	}
}

// For any size of the terminal and any number of sessions, the screen fits and shows the selected session.
func TestFindFits(t *testing.T) {
	var list []manager.Found
	for i := range 200 {
		list = append(list, found(fmt.Sprint("s", i), strings.Repeat("寛 long title ", i%9)+fmt.Sprint("t", i), noon))
	}
	for _, size := range [][2]int{{120, 30}, {100, 5}, {40, 10}, {21, 6}, {300, 80}} {
		p := start(t, finderOf(list...), size[0], size[1])
		for range 30 {
			p.keys("pgdown")
			p.fits(size[0], size[1])
			if !strings.Contains(p.plain(), "▌") {
				t.Fatalf("nothing is selected:\n%s", p.plain())
			}
		}
	}
	start(t, finderOf(list...), 10, 2).shows("too small")
}

func TestFindReportsAListingThatFails(t *testing.T) {
	f := finderOf()
	broken := errors.New("no disk")
	f.o.Sessions = func(context.Context) ([]manager.Found, error) { return nil, broken }
	if p := start(t, f, 80, 20); !p.quit || !errors.Is(f.failed, broken) {
		t.Errorf("got %v", f.failed)
	}
}

// session makes: u1 - a1 - (u2 - a2 | v2 - b2), the head at b2, and a commit with a state for each turn.
func session(t *testing.T) *coppice.Session {
	t.Helper()
	st, err := coppice.New(memory.New(), nil)
	if err != nil {
		t.Fatal(err)
	}
	s, err := st.Create("s", &coppice.SessionOptions{Title: "harbour"})
	if err != nil {
		t.Fatal(err)
	}
	say := func(state string, texts ...string) (ids []string) {
		t.Helper()
		for i, text := range texts {
			role := []string{"user", "assistant"}[i%2]
			got, err := s.Append(t.Context(), transcript.Draft{
				Type: "message", Body: fmt.Appendf(nil, `{"message":{"role":%q,"content":%q}}`, role, text),
			})
			if err != nil {
				t.Fatal(err)
			}
			ids = append(ids, got...)
		}
		if _, err := s.Commit(t.Context(), coppice.Turn{State: map[string]string{"step": state}}); err != nil {
			t.Fatal(err)
		}
		return ids
	}
	first := say("one", "first question", "first answer")
	say("two", "second question", "second answer")
	if _, err := s.Branch(t.Context(), first[1], nil); err != nil {
		t.Fatal(err)
	}
	say("three", "other question", "other answer")
	t.Cleanup(func() {
		if err := errors.Join(s.Close(), st.Close()); err != nil {
			t.Error(err)
		}
	})
	return s
}

func browse(t *testing.T, s *coppice.Session, width int) *play {
	t.Helper()
	b := &browser{ctx: t.Context(), s: s}
	if err := b.reload(); err != nil {
		t.Fatal(err)
	}
	return start(t, b, width, 20)
}

func TestBrowse(t *testing.T) {
	s := session(t)
	p := browse(t, s, 140)
	p.shows("harbour", "first question", "second question", "other answer", "‹1/2›", "‹2/2›", "(head)")
	seq := s.Head().Seq
	p.keys("enter").shows("other answer")
	p.keys("s").shows(`"step": "three"`)
	p.keys("left", "down").shows(`"step": "two"`)
	p.keys("left").shows("this is version 1 of 2")
	p.keys("esc", "home").hides(`"step"`)
	p.keys("space").shows("▸", "+5")
	p.hides("second question")
	p.keys("space").shows("second question")
	p.keys("/second", "enter").shows("2 entries with \"second\"")
	p.hides("other question")
	p.keys("/", "enter").shows("other question")
	p.keys("?").shows("roll back: restore")
	p.keys("esc", "f").shows("filter: no-tools")
	if got := s.Head().Seq; got != seq {
		t.Errorf("looking made commit %d of %d", got, seq)
	}
	if p.keys("q"); !p.quit {
		t.Error("q does not leave")
	}
}

func TestBrowseChangesOnlyWhatIsConfirmed(t *testing.T) {
	s := session(t)
	p := browse(t, s, 140)
	p.keys("home", "r", "n").shows("nothing was changed")
	p.keys("c", "esc").shows("nothing was changed")
	if seq := s.Head().Seq; seq != browse(t, s, 140).m.(*browser).s.Head().Seq {
		t.Errorf("commit %d", seq)
	}
	p.keys("down", "lstart\x07 here", "enter").shows("labeled", "[start here]")
	p.keys("r").shows("roll back to", "[y/N]")
	p.keys("y").shows("rolled back to")
	var state struct{ Step string }
	if err := s.State(&state); err != nil || state.Step != "one" {
		t.Errorf("state %+v, %v; want that of the first commit", state, err)
	}
	p.keys("end", "c", "y").shows("the head is at")
	p.keys("l", "ctrl+u", "enter")
}

// A step that fails is reported, and the program continues.
func TestBrowseReportsWhatFails(t *testing.T) {
	s := session(t)
	p := browse(t, s, 140)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	p.keys("home", "r", "y").shows("failed:")
	p.keys("esc", "down").shows("first answer")
}

func TestBrowseFits(t *testing.T) {
	s := session(t)
	for _, width := range []int{21, 40, 99, 100, 250} {
		p := browse(t, s, width)
		for _, k := range []string{"enter", "s", "?", "up", "esc", "l", "esc", "r", "n", "/", "esc", "left"} {
			p.keys(k)
			p.fits(width, 20)
		}
	}
}

// A pane is read while a step runs: neither affects the other, no second step starts, and the program does not quit
// before the result is known, except by ctrl+c.
func TestBrowseWhileAStepRuns(t *testing.T) {
	p := browse(t, session(t), 140)
	b, ok := p.m.(*browser)
	if !ok {
		t.Fatal("no browser")
	}
	read := make(chan tea.Msg)
	cmd := b.open(paneEntry)
	go func() { read <- cmd() }()
	if err := b.reload(); err != nil {
		t.Fatal(err)
	}
	b.busy = true
	p.send(<-read)
	p.shows("other answer")
	p.keys("r").shows("wait")
	p.keys("q").shows("wait")
	if p.quit {
		t.Error("the program was left during a step")
	}
	p.send(doneMsg{status: "labeled"})
	if p.keys("q"); !p.quit {
		t.Error("the program cannot be left after a step")
	}
}
