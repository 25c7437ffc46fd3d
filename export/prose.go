package export

import (
	"bytes"
	"net/url"
	"strings"
	"sync"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	"github.com/yuin/goldmark/renderer"
	"github.com/yuin/goldmark/renderer/html"
	"github.com/yuin/goldmark/util"
)

// Bounds of the Markdown that a page renders; a longer text is shown as its source. No model's answer is that long, and
// hostile nesting costs a parser seconds at most. In a table each row has as many cells as the head, whatever the row's
// text, so that few bytes could make many cells.
const (
	maxProse = 64 << 10 // bytes of one text
	maxCells = 20_000   // of one text: its lines times the bars in the longest
)

// isSource reports whether a text is shown as its source.
func isSource(text string) bool {
	if len(text) > maxProse {
		return true
	}
	lines, bars := 0, 0
	for line := range strings.Lines(text) {
		lines++
		bars = max(bars, strings.Count(line, "|"))
	}
	return lines*bars > maxCells
}

// prose returns Markdown as markup: headings, lists, tables, quotations, emphasis, code, and links to other pages. HTML
// becomes text, an external image a link to it, and a link that is neither http(s) nor mailto its text. ok is false if
// the text is over the bounds.
func prose(text string) (m markup, ok bool) {
	if isSource(text) {
		return "", false
	}
	var b bytes.Buffer
	if err := markdownReader().Convert([]byte(text), &b); err != nil {
		return "", false
	}
	return markup(b.String()), true
}

var markdownReader = sync.OnceValue(func() goldmark.Markdown {
	return goldmark.New(
		goldmark.WithExtensions(
			extension.NewTable(extension.WithTableCellAlignMethod(extension.TableCellAlignAttribute)),
			extension.Strikethrough,
			extension.NewLinkify(extension.WithLinkifyAllowedProtocols([]string{"http:", "https:"})),
		),
		goldmark.WithRendererOptions(
			html.WithHardWraps(), // a line end in an answer is meant as one
			renderer.WithNodeRenderers(util.Prioritized(inert{}, 100)),
		),
	)
})

// inert renders the elements that could be active in a page: raw HTML, links, images. It also renders headings, at
// levels below those of the page.
type inert struct{}

func (inert) RegisterFuncs(r renderer.NodeRendererFuncRegisterer) {
	r.Register(ast.KindHTMLBlock, htmlBlock)
	r.Register(ast.KindRawHTML, rawHTML)
	r.Register(ast.KindLink, link)
	r.Register(ast.KindAutoLink, autoLink)
	r.Register(ast.KindImage, imageLink)
	r.Register(ast.KindHeading, lowered)
}

func htmlBlock(w util.BufWriter, source []byte, n ast.Node, entering bool) (ast.WalkStatus, error) {
	block, ok := n.(*ast.HTMLBlock)
	if !ok || !entering {
		return ast.WalkContinue, nil
	}
	text := string(block.Lines().Value(source))
	if block.HasClosure() {
		text += string(block.ClosureLine.Value(source))
	}
	writeText(w, `<p class="text">`, strings.TrimRight(text, "\n"), "</p>\n")
	return ast.WalkContinue, nil
}

func rawHTML(w util.BufWriter, source []byte, n ast.Node, entering bool) (ast.WalkStatus, error) {
	if raw, ok := n.(*ast.RawHTML); ok && entering {
		writeText(w, "", string(raw.Segments.Value(source)), "")
	}
	return ast.WalkSkipChildren, nil
}

func link(w util.BufWriter, _ []byte, n ast.Node, entering bool) (ast.WalkStatus, error) {
	if l, ok := n.(*ast.Link); ok {
		anchor(w, string(l.Destination), entering)
	}
	return ast.WalkContinue, nil
}

func autoLink(w util.BufWriter, source []byte, n ast.Node, entering bool) (ast.WalkStatus, error) {
	l, ok := n.(*ast.AutoLink)
	if !ok || !entering {
		return ast.WalkContinue, nil
	}
	to := string(l.URL(source))
	if l.AutoLinkType == ast.AutoLinkEmail {
		to = "mailto:" + strings.TrimPrefix(to, "mailto:")
	}
	anchor(w, to, true)
	writeText(w, "", string(l.Label(source)), "")
	anchor(w, to, false)
	return ast.WalkContinue, nil
}

func imageLink(w util.BufWriter, _ []byte, n ast.Node, entering bool) (ast.WalkStatus, error) {
	if i, ok := n.(*ast.Image); ok {
		if entering {
			writeText(w, "", "[picture: ", "")
		}
		if n.Parent().Kind() != ast.KindLink { // a link cannot contain a link
			anchor(w, string(i.Destination), entering)
		}
		if !entering {
			writeText(w, "", "]", "")
		}
	}
	return ast.WalkContinue, nil
}

func lowered(w util.BufWriter, _ []byte, n ast.Node, entering bool) (ast.WalkStatus, error) {
	h, ok := n.(*ast.Heading)
	if !ok {
		return ast.WalkContinue, nil
	}
	level := string(rune('0' + min(h.Level+2, 6)))
	if entering {
		writeText(w, "<h"+level+">", "", "")
	} else {
		writeText(w, "", "", "</h"+level+">\n")
	}
	return ast.WalkContinue, nil
}

// anchor opens or closes a link if a page may contain it.
func anchor(w util.BufWriter, to string, entering bool) {
	u, err := url.Parse(to)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" && u.Scheme != "mailto" {
		return
	}
	if entering {
		writeText(w, `<a rel="noopener noreferrer" href="`, u.String(), `">`)
	} else {
		writeText(w, "</a>", "", "")
	}
}

// writeText writes text between two pieces of markup. The final flush returns the error of a write.
func writeText(w util.BufWriter, before, text, after string) {
	_, _ = w.WriteString(before)
	_, _ = w.Write(util.EscapeHTML([]byte(text)))
	_, _ = w.WriteString(after)
}
