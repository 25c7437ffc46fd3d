package export

import (
	"bufio"
	"context"
	"io"
	"strings"

	coppice "github.com/coppice-go/coppice"
	"github.com/coppice-go/coppice/checkpoint"
	"github.com/coppice-go/coppice/transcript"
)

// Markdown writes a session as Markdown: the current line of the conversation, then each other line under a heading
// with the place where it begins. Messages are quotations, in which Markdown works: nothing in a message has an effect
// outside of its quotation, HTML and external images become text, and code is unchanged. Arguments and results of tools
// are in fences that they cannot close.
func Markdown(ctx context.Context, s *coppice.Session, w io.Writer, o *Options) error {
	t, err := s.Tree(ctx)
	if err != nil {
		return err
	}
	f, err := plant(t, o)
	if err != nil {
		return err
	}
	b := bufio.NewWriter(w)
	if err := write(ctx, s, o, f.lines, &markdown{k: sink{w: b}, redacted: o != nil && o.Redact != nil}); err != nil {
		return err
	}
	return b.Flush()
}

type markdown struct {
	reader
	k        sink
	redacted bool // see Options.Redact
}

const clock = "2006-01-02 15:04:05 MST"

func (m *markdown) begin(s *coppice.Session) error {
	info := s.Info()
	m.k.printf("# %s\n\n", inline(titleOf(info, m.redacted)))
	m.k.printf("- session %s\n", code(s.ID()))
	if info.Cwd != "" {
		m.k.printf("- folder %s\n", code(info.Cwd))
	}
	if !info.Created.IsZero() {
		m.k.printf("- begun %s, last active %s\n", info.Created.UTC().Format(clock), info.Updated.UTC().Format(clock))
	}
	m.k.printf("- branch %s\n", code(info.Branch))
	return m.k.err
}

// titleOf returns the name of a session as in lists and pages; of one that is redacted only a title that it was given.
func titleOf(info checkpoint.Summary, redacted bool) string {
	if redacted {
		return first(oneLine(info.Title), "Session "+info.ID)
	}
	return first(oneLine(info.Name()), "Session "+info.ID)
}

func (m *markdown) step(st step, e transcript.Entry) error {
	if st.kind == open {
		title := "Another branch"
		if names := named(st.along, code); names != "" {
			title = "Another line, " + names
		}
		m.k.printf("\n---\n\n# %s: version %d of %d\n\nIt begins in place of %s, with: %s\n",
			title, st.version, st.of, places(st.others), inline(st.node.Preview))
		return m.k.err
	}
	s := m.of(e)
	m.k.printf("\n## %s\n\n", inline(s.Who))
	m.k.printf("%s · %s", e.Time.UTC().Format(clock), code(e.ID))
	if st.of > 1 {
		m.k.printf(" · version %d of %d", st.version, st.of)
	}
	if names := named(st.heads, code); names != "" {
		m.k.printf(" · %s ends here", names)
	}
	if st.node.Label != "" {
		m.k.printf(" · label %s", inline(st.node.Label))
	}
	m.k.printf("\n")
	for i, p := range s.Parts {
		if i > 0 && p.Kind == kindWords && isQuoted(s.Parts[i-1].Kind) {
			m.k.printf("\n*said*\n") // without it, some readers join two quotations
		}
		m.part(p)
	}
	return m.k.err
}

// isQuoted reports whether parts of this kind are quotations.
func isQuoted(k kind) bool { return k == kindWords || k == kindThoughts || k == kindInserted }

func (m *markdown) part(p part) {
	switch p.Kind {
	case kindWords:
		m.k.printf("\n%s\n", quote(p.Text))
	case kindThoughts, kindInserted:
		m.k.printf("\n*%s*\n\n%s\n", p.Kind, quote(p.Text))
	case kindCall:
		m.k.printf("\n→ %s\n", code(p.Name))
		language := ""
		if strings.HasPrefix(p.Text, "{") {
			language = "json"
		}
		m.fence(language, p.Text)
	case kindResult:
		mark := "←"
		if p.Failed {
			mark = "✗"
		}
		m.k.printf("\n%s %s\n", mark, code(first(p.Name, "result")))
		m.fence("", p.Text)
	case kindImage:
		m.k.printf("\n![%s](data:%s;base64,%s)\n", p.Image.Mime, p.Image.Mime, p.Image.Data)
	case kindFile:
		m.k.printf("\n%s\n", inline(about(p.File)))
	case kindFailure:
		m.k.printf("\n✗ %s\n", inline(p.Text))
	case kindRaw:
		m.fence("json", p.Text)
	}
}

// fence writes text between fences that are longer than any run of backticks in it.
func (m *markdown) fence(language, text string) {
	if text == "" {
		return
	}
	bar := strings.Repeat("`", max(longest(text, '`'), 2)+1)
	m.k.printf("\n%s%s\n%s\n%s\n", bar, language, strings.TrimRight(text, "\n"), bar)
}

func (m *markdown) end() error { return m.k.err }

// longest returns the length of the longest run of a character.
func longest(s string, c rune) (most int) {
	run := 0
	for _, r := range s {
		if r == c {
			run++
			most = max(most, run)
		} else {
			run = 0
		}
	}
	return most
}

// inline returns a text on one line with its markup escaped.
func inline(s string) string {
	var b strings.Builder
	for _, r := range oneLine(s) {
		if strings.ContainsRune("\\`*_{}[]<>#|!&~$", r) {
			b.WriteByte('\\')
		}
		b.WriteRune(r)
	}
	return b.String()
}

// code returns a name between backticks, more than it contains.
func code(s string) string {
	if s = oneLine(s); s == "" {
		return "*none*"
	}
	bar := strings.Repeat("`", longest(s, '`')+1)
	if bar == "`" {
		return bar + s + bar
	}
	return bar + " " + s + " " + bar
}

// placesMost bounds the other versions that a heading names.
const placesMost = 10

func places(ids []string) string {
	if len(ids) == 0 {
		return "other versions"
	}
	more := ""
	if len(ids) > placesMost {
		ids, more = ids[:placesMost], ", and others"
	}
	out := make([]string, len(ids))
	for i, id := range ids {
		out[i] = code(id)
	}
	return strings.Join(out, ", ") + more
}
