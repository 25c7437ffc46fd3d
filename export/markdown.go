package export

import (
	"bufio"
	"context"
	"io"
	"strings"

	coppice "github.com/coppice-go/coppice"
	"github.com/coppice-go/coppice/transcript"
)

// Markdown writes a session as Markdown: the current line of the conversation, then every line that was left,
// each under a heading that says where it began. What was said stands there as it was said; arguments and
// results of tools stand in fences that they cannot close.
func Markdown(ctx context.Context, s *coppice.Session, w io.Writer, o *Options) error {
	t, err := s.Tree(ctx)
	if err != nil {
		return err
	}
	b := bufio.NewWriter(w)
	if err := write(ctx, s, plant(t, o).lines, &markdown{k: sink{w: b}}); err != nil {
		return err
	}
	return b.Flush()
}

type markdown struct{ k sink }

const clock = "2006-01-02 15:04:05 MST"

func (m *markdown) begin(s *coppice.Session) error {
	info := s.Info()
	m.k.printf("# %s\n\n", inline(titleOf(info.Title, s.ID())))
	m.k.printf("- session `%s`\n", s.ID())
	if info.Cwd != "" {
		m.k.printf("- folder %s\n", code(info.Cwd))
	}
	if !info.Created.IsZero() {
		m.k.printf("- begun %s, last active %s\n", info.Created.UTC().Format(clock), info.Updated.UTC().Format(clock))
	}
	m.k.printf("- branch %s\n", code(info.Branch))
	return m.k.err
}

func titleOf(title, id string) string {
	if title == "" {
		return "Session " + id
	}
	return title
}

func (m *markdown) step(st step, e transcript.Entry) error {
	if st.kind == open {
		m.k.printf("\n---\n\n# Another branch: version %d of %d\n\nIt begins in place of %s, with: %s\n",
			st.version, st.of, places(st.others), inline(st.node.Preview))
		return m.k.err
	}
	s := of(e)
	m.k.printf("\n## %s\n\n", inline(s.Who))
	m.k.printf("<sub>%s · `%s`", e.Time.UTC().Format(clock), strings.ReplaceAll(e.ID, "`", ""))
	if st.of > 1 {
		m.k.printf(" · version %d of %d", st.version, st.of)
	}
	if st.node.Label != "" {
		m.k.printf(" · label %s", inline(st.node.Label))
	}
	m.k.printf("</sub>\n")
	if s.Thoughts != "" {
		m.k.printf("\n%s\n", quote(s.Thoughts))
	}
	switch {
	case s.Who == "tool":
		m.result(s)
	case s.Text != "":
		m.k.printf("\n%s\n", strings.TrimRight(s.Text, "\n"))
	}
	for _, c := range s.Calls {
		m.k.printf("\n→ %s\n", code(c.Name))
		m.fence("json", c.Args)
	}
	for _, i := range s.Images {
		m.k.printf("\n![%s](data:%s;base64,%s)\n", i.Mime, i.Mime, i.Data)
	}
	m.fence("json", s.Raw)
	return m.k.err
}

func (m *markdown) result(s said) {
	name := s.Tool
	if name == "" {
		name = "result"
	}
	mark := "←"
	if s.Failed {
		mark = "✗"
	}
	m.k.printf("\n%s %s\n", mark, code(name))
	m.fence("", s.Text)
}

// fence writes text between fences that are longer than any run of backticks in it.
func (m *markdown) fence(language, text string) {
	if text == "" {
		return
	}
	longest, run := 2, 0
	for _, r := range text {
		if r == '`' {
			run++
			longest = max(longest, run)
		} else {
			run = 0
		}
	}
	bar := strings.Repeat("`", longest+1)
	m.k.printf("\n%s%s\n%s\n%s\n", bar, language, strings.TrimRight(text, "\n"), bar)
}

func (m *markdown) end() error { return m.k.err }

// inline keeps a text on one line and takes its markup away.
func inline(s string) string {
	var b strings.Builder
	for _, r := range strings.Join(strings.Fields(s), " ") {
		if strings.ContainsRune("\\`*_{}[]<>#|!&", r) {
			b.WriteByte('\\')
		}
		b.WriteRune(r)
	}
	return b.String()
}

// code is a name in backticks.
func code(s string) string {
	s = strings.Join(strings.Fields(strings.ReplaceAll(s, "`", "'")), " ")
	return "`" + s + "`"
}

func quote(text string) string {
	return "> " + strings.ReplaceAll(strings.TrimRight(text, "\n"), "\n", "\n> ")
}

func places(ids []string) string {
	if len(ids) == 0 {
		return "other versions"
	}
	out := make([]string, len(ids))
	for i, id := range ids {
		out[i] = code(id)
	}
	return strings.Join(out, ", ")
}
