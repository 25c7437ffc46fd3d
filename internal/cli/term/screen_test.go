package term

import (
	"bytes"
	"errors"
	"strings"
	"testing"
	"time"
)

// terminal returns a screen that behaves like a terminal.
func terminal(w *bytes.Buffer, width int) *Screen {
	return NewTerminal(w, width)
}

func TestNew(t *testing.T) {
	env := map[string]string{"COLUMNS": "70"}
	s := New(&bytes.Buffer{}, func(name string) string { return env[name] })
	if s.Terminal() || s.Width() != 70 || s.Paint(Red, "x") != "x" {
		t.Errorf("a buffer: terminal %v, width %d, %q", s.Terminal(), s.Width(), s.Paint(Red, "x"))
	}
	if s = New(&bytes.Buffer{}, unset); s.Width() != 0 {
		t.Errorf("without COLUMNS: width %d", s.Width())
	}
	env["COLUMNS"] = "3"
	if s = New(&bytes.Buffer{}, func(name string) string { return env[name] }); s.Width() != minWidth {
		t.Errorf("a width of 3 becomes %d", s.Width())
	}
}

func TestPaint(t *testing.T) {
	s := terminal(&bytes.Buffer{}, 80)
	if got := s.Paint(Green, "x"); got != "\x1b[32mx\x1b[0m" {
		t.Errorf("%q", got)
	}
	if got := s.Paint(Plain, "x") + s.Paint(Green, ""); got != "x" {
		t.Errorf("%q", got)
	}
}

func TestColumnsAndCut(t *testing.T) {
	for _, tt := range []struct {
		text    string
		columns int
		most    int
		cut     string
	}{
		{"", 0, 5, ""},
		{"hello", 5, 5, "hello"},
		{"hello", 5, 4, "hel…"},
		{"hello there", 11, 7, "hello…"},
		{"日本語", 6, 6, "日本語"},
		{"日本語", 6, 5, "日本…"},
		{"日本語", 6, 4, "日…"},
		{"e\u0301a", 2, 2, "e\u0301a"},
		{"😀x", 3, 2, "…"},
		{"a\u200db", 2, 0, "a\u200db"},
	} {
		if got := Columns(tt.text); got != tt.columns {
			t.Errorf("Columns(%q) = %d, want %d", tt.text, got, tt.columns)
		}
		if got := Cut(tt.text, tt.most); got != tt.cut {
			t.Errorf("Cut(%q, %d) = %q, want %q", tt.text, tt.most, got, tt.cut)
		}
	}
}

// Text of a session cannot control the terminal.
func TestNothingCommandsTheTerminal(t *testing.T) {
	hostile := "a\x1b[31mb\x1b]0;title\x07c\rd\u009bK\u202egnp\u2066\x00\xff\u0085e\n\tf"
	for name, got := range map[string]string{"Text": Text(hostile), "Line": Line(hostile)} {
		for _, r := range got {
			if unreadable(r) {
				t.Errorf("%s lets %q through: %q", name, r, got)
			}
		}
	}
	if got := Line("  two\n lines\t here "); got != "two lines here" {
		t.Errorf("%q", got)
	}
	if got := Text("keeps\n\ttabs"); got != "keeps\n\ttabs" {
		t.Errorf("%q", got)
	}
	if got := Text("dos\r\nlines"); got != "dos\nlines" {
		t.Errorf("%q", got)
	}
}

func TestWrap(t *testing.T) {
	for _, tt := range []struct {
		text    string
		columns int
		want    string
	}{
		{"one two three", 7, "one two|three"},
		{"one two three", 0, "one two three"},
		{"a\n\nb\n\n", 10, "a||b"},
		{"unbreakable-word here", 8, "unbreaka|ble-word|here"},
		{"  indented text goes on", 12, "  indented|text goes on"},
		{"日本語日本語", 4, "日本|語日|本語"},
		{"日", 1, "日"},
		{"\tx", 20, "    x"},
	} {
		if got := strings.Join(wrap(tt.text, tt.columns), "|"); got != tt.want {
			t.Errorf("wrap(%q, %d) = %q, want %q", tt.text, tt.columns, got, tt.want)
		}
	}
}

func TestTable(t *testing.T) {
	var b bytes.Buffer
	rows := [][]Cell{{{Text: "1"}, {Text: "a rather long title"}, {Text: "x", Style: Red}}, {{Text: "22"}, {Text: "日本"}, {Text: ""}}}
	columns := []Column{{Head: "N", Right: true}, {Head: "TITLE", Flex: true}, {Head: "END"}}
	if err := New(&b, unset).Table(columns, rows); err != nil {
		t.Fatal(err)
	}
	want := " N  TITLE                END\n 1  a rather long title  x\n22  日本\n"
	if b.String() != want {
		t.Errorf("got\n%swant\n%s", b.String(), want)
	}
	b.Reset()
	s := &Screen{w: &b, width: 22}
	if err := s.Table(columns, rows); err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(b.String()) {
		if Columns(strings.TrimSuffix(line, "\n")) > 22 {
			t.Errorf("%q is too wide", line)
		}
	}
	if !strings.Contains(b.String(), "…") {
		t.Errorf("nothing was cut:\n%s", b.String())
	}
}

func TestHuman(t *testing.T) {
	now := time.Date(2026, 3, 2, 9, 0, 0, 0, time.UTC)
	for d, want := range map[time.Duration]string{
		0: "just now", time.Second: "just now", -time.Second: "just now", 3 * time.Hour: "3 hours ago",
		25 * time.Hour: "1 day ago",
	} {
		if got := Ago(now, now.Add(-d)); got != want {
			t.Errorf("%v ago: %q, want %q", d, got, want)
		}
	}
	if got := Ago(now, now.AddDate(0, -3, 0)); got != now.AddDate(0, -3, 0).Local().Format(time.DateOnly) {
		t.Errorf("long ago: %q", got)
	}
	if Ago(now, time.Time{}) != "-" || Clock(time.Time{}) != "-" {
		t.Error("no time is not -")
	}
	for d, want := range map[time.Duration]string{
		1500: "1.5 µs", 15 * time.Microsecond: "15 µs", 1500 * time.Microsecond: "1.5 ms", 150 * time.Millisecond: "150 ms", 1500 * time.Millisecond: "1.5 s",
	} {
		if got := Duration(d); got != want {
			t.Errorf("Duration(%d) = %q, want %q", d, got, want)
		}
	}
	for _, tt := range [][3]string{
		{"/home/x/a", "/home/x", "~/a"}, {"/home/x", "/home/x", "~"}, {"/home/xy", "/home/x", "/home/xy"}, {"/a", "", "/a"}, {"/a", "/", "/a"},
	} {
		if got := ShortenHome(tt[0], tt[1]); got != tt[2] {
			t.Errorf("ShortenHome(%q, %q) = %q, want %q", tt[0], tt[1], got, tt[2])
		}
	}
	if got := Count(1, "entry", "entries") + ", " + Count(1002, "entry", "entries") + ", " + Size(2048) + ", " + Number(1002); got != "1 entry, 1,002 entries, 2.0 KiB, 1,002" {
		t.Error(got)
	}
}

// A bar appears only on a terminal, and only for work that takes long.
func TestProgress(t *testing.T) {
	var b bytes.Buffer
	now := time.Unix(0, 0)
	clock := func() time.Time { return now }
	p := New(&b, unset).Progress("importing", 100, true, clock)
	p.Add(50)
	p.Close()
	p = terminal(&b, 80).Progress("importing", 100, true, clock)
	p.Add(10)
	p.Close()
	if b.Len() > 0 {
		t.Errorf("a bar for nothing: %q", b.String())
	}
	now = now.Add(2 * time.Second)
	p.Add(10)
	p.Add(10)
	p.Close()
	if !strings.Contains(b.String(), "importing") {
		t.Errorf("no bar: %q", b.String())
	}
}

// The rate is that of the whole time: work done before the bar appears is not attributed to an instant.
func TestProgressRateIsReal(t *testing.T) {
	var b bytes.Buffer
	now := time.Unix(0, 0)
	p := terminal(&b, 80).Progress("importing", 100<<20, true, func() time.Time { return now })
	for range 4 {
		now = now.Add(500 * time.Millisecond)
		p.Add(10 << 20)
	}
	p.Close()
	if got := b.String(); !strings.Contains(got, "20 MiB of 100 MiB, 20 MiB/s") || strings.Contains(got, "GB/s") {
		t.Errorf("got %q", got)
	}
	b.Reset()
	p = terminal(&b, 80).Progress("looking at sessions", 3000, false, func() time.Time { return now })
	now = now.Add(2 * time.Second)
	p.Reach(1500, 3000)
	p.Close()
	if got := b.String(); !strings.Contains(got, "1,500 of 3,000") || strings.Contains(got, "/s") {
		t.Errorf("got %q", got)
	}
}

// The place in a line is always shown, however narrow the screen is.
func TestExcerptShowsThePlace(t *testing.T) {
	long := strings.Repeat("left ", 30) + "NEEDLE" + strings.Repeat(" right", 30)
	at := strings.Index(long, "NEEDLE")
	for _, columns := range []int{20, 21, 40, 77, 160, 0} {
		text, mark := Excerpt(long, [2]int{at, at + 6}, columns)
		if text[mark[0]:mark[1]] != "NEEDLE" {
			t.Errorf("%d columns: %q is marked in %q", columns, text[mark[0]:mark[1]], text)
		}
		if columns == 0 {
			continue
		}
		if n := Columns(text); n > columns || n < columns-3 {
			t.Errorf("%d columns: %d are used: %q", columns, n, text)
		}
		if off := Columns(text[:mark[0]]) - Columns(text[mark[1]:]); off < -4 || off > 4 {
			t.Errorf("%d columns: not in the middle: %q", columns, text)
		}
	}
	for _, tt := range []struct {
		text    string
		place   [2]int
		columns int
		want    string
	}{
		{"NEEDLE and much more text", [2]int{0, 6}, 12, "NEEDLE and…"},
		{"much more text and the NEEDLE", [2]int{23, 29}, 12, "…the NEEDLE"},
		{"a NEEDLE that is longer than the screen", [2]int{2, 39}, 12, "a NEEDLE th…"},
		{"a NEEDLE", [2]int{2, 8}, 12, "a NEEDLE"},
	} {
		if got, _ := Excerpt(tt.text, tt.place, tt.columns); got != tt.want {
			t.Errorf("%q: %q, want %q", tt.text, got, tt.want)
		}
	}
}

type broken struct{}

func (broken) Write([]byte) (int, error) { return 0, errors.New("no paper") }

func TestTableReportsAWriterThatFails(t *testing.T) {
	if err := New(broken{}, unset).Table([]Column{{Head: "A"}}, nil); err == nil {
		t.Error("no error")
	}
}
