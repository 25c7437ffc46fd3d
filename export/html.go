package export

import (
	"bufio"
	"context"
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	humanize "github.com/dustin/go-humanize"

	coppice "github.com/coppice-go/coppice"
	"github.com/coppice-go/coppice/manager"
	"github.com/coppice-go/coppice/transcript"
)

//go:embed page.css
var css string

// HTML writes a session as one self-contained page: no script, no font, no request. The page follows the current line
// of the conversation. Other versions, with all entries below them, are folded in before it, and each version links to
// the others. Tool results are folded next to their calls.
//
// Messages of models are rendered as Markdown, reduced to text, lists, tables, code and links to the web. Messages of
// users are shown as plain text. The page's content security policy forbids scripts and all requests.
func HTML(ctx context.Context, s *coppice.Session, w io.Writer, o *Options) error {
	t, err := s.Tree(ctx)
	if err != nil {
		return err
	}
	b := bufio.NewWriter(w)
	f, err := plant(t, o)
	if err != nil {
		return err
	}
	p := &page{k: sink{w: b}, ends: f.names.ends}
	if p.redacted = o != nil && o.Redact != nil; !p.redacted {
		p.contents, p.more = f.contents(t)
	}
	if err := write(ctx, s, o, f.nested, p); err != nil {
		return err
	}
	return b.Flush()
}

// page writes the HTML without html/template. That package calls methods by names known only at run time, so the linker
// would keep every exported method of the program: seven megabytes of the command.
//
// The last message of a model is held until a step is not a result of its calls.
type page struct {
	reader
	k        sink
	ends     []end
	redacted bool              // see Options.Redact
	contents []transcript.Node // user messages on the current line
	more     int               // number of further user messages
	held     []*article
	used     manager.UsageSum
}

// article is an entry to write.
type article struct {
	step    step
	entry   transcript.Entry
	said    said
	usage   string
	results map[int][]outcome // by index of the call among the parts
}

// outcome is the result of one call.
type outcome struct {
	id    string // of the entry, if this is its first result; else ""
	parts []part // the result, then its images and documents
}

// head returns the result itself.
func (r outcome) head() part { return r.parts[0] }

// maxContents bounds the table of contents, in lines.
const maxContents = 500

// contents returns the first maxContents user messages on the line that is written, or else the current one, and the
// number of further ones.
func (f *forest) contents(t *transcript.Tree) (list []transcript.Node, more int) {
	for n := range t.Nodes(transcript.FilterUserOnly) {
		switch {
		case f.line == nil && !n.OnPath, !f.has(n):
		case len(list) == maxContents:
			more++
		default:
			list = append(list, n)
		}
	}
	return list, more
}

// print writes markup. Arguments of type string are escaped, for text and for attribute values in double quotes;
// arguments of type markup are not.
func (p *page) print(format string, args ...any) {
	for i, a := range args {
		if s, ok := a.(string); ok {
			args[i] = escape.Replace(s)
		}
	}
	p.k.printf(format, args...)
}

// markup is a part of a page that must not be escaped.
type markup string

// escape turns markup into text. It escapes the plus sign because old browsers took it for UTF-7.
var escape = strings.NewReplacer("\x00", "\uFFFD", `"`, "&#34;", "&", "&amp;", "'", "&#39;", "+", "&#43;", "<", "&lt;",
	">", "&gt;")

// toEntry returns the link to an entry on this page.
func toEntry(id string) markup {
	b := []byte("#e-")
	for _, c := range []byte(id) {
		switch {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9', strings.IndexByte("-._~", c) >= 0:
			b = append(b, c)
		default:
			b = fmt.Appendf(b, "%%%02x", c)
		}
	}
	return markup(b)
}

// policy allows the page's only style sheet, by its hash, and embedded images.
func policy() string {
	sum := sha256.Sum256([]byte(css))
	return "default-src 'none'; style-src 'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) +
		"'; img-src data:; base-uri 'none'; form-action 'none'"
}

func (p *page) begin(s *coppice.Session) error {
	info := s.Info()
	title := titleOf(info, p.redacted)
	p.print(`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="%s">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="referrer" content="no-referrer">
<title>%s</title>
<style>%s</style>
</head>
<body>
<header>
<h1>%s</h1>
<p>session %s`, policy(), title, markup(css), title, s.ID())
	if info.Cwd != "" {
		p.print(" · %s", info.Cwd)
	}
	p.print(" · branch %s</p>\n", info.Branch)
	if len(p.ends) > 0 {
		p.print("<p>branches:")
		for _, e := range p.ends {
			p.print(` <a class="name" href="%s">%s</a>`, toEntry(e.ID), e.Name)
		}
		p.print("</p>\n")
	}
	if !info.Created.IsZero() {
		p.print("<p>created %s, last active %s, %d entries</p>\n",
			info.Created.UTC().Format(clock), info.Updated.UTC().Format(clock), info.Entries)
	}
	p.table()
	p.print("</header>\n<main>\n")
	return p.k.err
}

// table writes the table of contents, unless it has only one line.
func (p *page) table() {
	if len(p.contents) < 2 {
		return
	}
	p.print("<details class=\"contents\"><summary>contents</summary>\n<ol>\n")
	for _, n := range p.contents {
		p.print("<li><a href=\"%s\">%s</a></li>\n", toEntry(n.ID), n.Preview)
	}
	p.print("</ol>\n")
	if p.more > 0 {
		p.print("<p>and %d more</p>\n", p.more)
	}
	p.print("</details>\n")
}

func (p *page) step(st step, e transcript.Entry) error {
	if st.kind == show {
		p.take(&article{step: st, entry: e, said: p.of(e)})
		return p.k.err
	}
	p.release()
	if st.kind == shut {
		p.print("</details>\n")
		return p.k.err
	}
	p.print(`<details class="branch"><summary>`)
	if names := named(st.within, oneLine); names != "" {
		p.print(`<span class="name">%s</span> · `, names)
	}
	p.print("version %d of %d: <span class=\"begins\">%s</span></summary>\n", st.version, st.of, st.node.Preview)
	return p.k.err
}

// take adds an entry: next to the calls that it answers, or after the held entries.
func (p *page) take(a *article) {
	if u, ok := manager.UsageOf(a.entry); ok {
		a.usage = usageText(u)
	}
	p.used.Add(a.entry)
	if p.joins(a) {
		return
	}
	if !a.onlyCalls() || len(p.held) == batch {
		p.release()
	}
	p.held = append(p.held, a)
}

// onlyCalls reports whether an entry has only calls, so that it belongs to the held entries: OpenAI stores each call as
// an item.
func (a *article) onlyCalls() bool {
	return !slices.ContainsFunc(a.said.Parts, func(p part) bool { return p.Kind != kindCall })
}

// joins places an entry with only results next to the calls that they answer. It returns false for other entries, and
// for one with other versions, a label, or the end of a branch.
func (p *page) joins(a *article) bool {
	if a.said.Who != "tool" || a.step.of > 1 || a.step.node.Label != "" || len(a.step.heads) > 0 {
		return false
	}
	var results []outcome
	for _, of := range a.said.Parts {
		switch {
		case of.Kind == kindResult:
			results = append(results, outcome{parts: []part{of}})
		case len(results) == 0 || of.Kind != kindImage && of.Kind != kindFile:
			return false
		default:
			last := &results[len(results)-1]
			last.parts = append(last.parts, of)
		}
	}
	calls := make([]call, len(results))
	for i, r := range results {
		var ok bool
		if calls[i], ok = p.called(r.head().Call); !ok {
			return false
		}
	}
	for i, r := range results {
		if i == 0 {
			r.id = a.entry.ID
		}
		by, place := calls[i].by, calls[i].place
		if by.results == nil {
			by.results = map[int][]outcome{}
		}
		by.results[place] = append(by.results[place], r)
	}
	return len(results) > 0
}

// call is a call of a held entry.
type call struct {
	by    *article
	place int // index of the call among the parts
}

// called returns the newest held call with an ID, or false if there is none or it has too many results.
func (p *page) called(id string) (call, bool) {
	for _, a := range slices.Backward(p.held) {
		for i, of := range a.said.Parts {
			if of.Kind == kindCall && of.Call == id && id != "" && len(a.results[i]) < batch {
				return call{a, i}, true
			}
		}
	}
	return call{}, false
}

// release writes the held entries.
func (p *page) release() {
	for _, a := range p.held {
		p.article(a)
	}
	p.held = p.held[:0]
}

func (p *page) article(a *article) {
	s, st, class := &a.said, &a.step, "said"
	if s.Who == "user" || s.Who == "assistant" || s.Who == "tool" {
		class = s.Who
	}
	p.print("<article id=\"e-%s\" class=\"%s\">\n<p class=\"meta\"><span class=\"who\">%s", a.entry.ID, class, s.Who)
	lone := s.lone()
	if lone != nil {
		p.print(" %s", lone.Name)
	}
	p.print("</span>")
	if lone != nil && lone.Failed {
		p.print(` · <span class="bad">failed</span>`)
	}
	if s.Model != "" {
		p.print(` · <span class="model">%s</span>`, s.Model)
	}
	p.print(" · <time>%s</time>", a.entry.Time.UTC().Format(clock))
	if a.usage != "" {
		p.print(" · %s", a.usage)
	}
	if st.of > 1 {
		p.print(" · version %d of %d", st.version, st.of)
		for _, id := range st.others {
			p.print(` · <a href="%s">other</a>`, toEntry(id))
		}
	}
	if st.node.Label != "" {
		p.print(` · <span class="label">%s</span>`, st.node.Label)
	}
	if names := named(st.heads, oneLine); names != "" {
		p.print(` · <span class="name">%s</span> ends here`, names)
	}
	p.print("</p>")
	for i := range s.Parts {
		p.print("\n")
		p.part(&s.Parts[i])
		for _, r := range a.results[i] {
			p.print("\n")
			p.result(r, "")
		}
	}
	p.print("\n</article>\n")
}

// part writes one part of a message.
func (p *page) part(x *part) {
	switch x.Kind {
	case kindWords:
		p.words(x)
	case kindInserted:
		p.print(`<details><summary>inserted</summary>`)
		p.words(x)
		p.print("</details>")
	case kindThoughts:
		p.print(`<details><summary>thoughts</summary><div class="thoughts">`)
		p.words(x)
		p.print("</div></details>")
	case kindCall:
		p.print(`<details class="call"><summary>→ %s <code>%s</code></summary>`, x.Name, x.Brief())
		p.output(x.Text)
		p.print("</details>")
	case kindResult:
		p.result(outcome{parts: []part{*x}}, x.Name)
	case kindImage:
		p.print(`<p><img alt="%s" src="data:%s;base64,%s"></p>`, x.Image.Mime, x.Image.Mime, x.Image.Data)
	case kindFile:
		p.print(`<p class="file">%s</p>`, about(x.File))
	case kindFailure:
		p.print(`<p class="file failed">✗ %s</p>`, x.Text)
	case kindRaw:
		p.output(x.Text)
	}
}

// words writes text: that of a model as markup, unless it is over the bounds.
func (p *page) words(x *part) {
	if !x.Source {
		if m, ok := prose(x.Text); ok {
			p.print(`<div class="prose">%s</div>`, m)
			return
		}
	}
	p.print(`<div class="text">%s</div>`, x.Text)
}

// result writes a tool result, folded, with its images and documents.
func (p *page) result(r outcome, tool string) {
	p.print(`<details class="result"`)
	if r.id != "" {
		p.print(` id="e-%s"`, r.id)
	}
	mark := markup("←")
	if r.head().Failed {
		mark = `<span class="bad">✗</span>`
	}
	p.print("><summary>%s", mark)
	if tool != "" {
		p.print(" %s", tool)
	}
	head := r.head()
	p.print(" <code>%s</code></summary>", head.Brief())
	p.output(head.Text)
	for i := range r.parts[1:] {
		p.part(&r.parts[i+1])
	}
	p.print("</details>")
}

func (p *page) output(text string) {
	if text != "" {
		p.print("<pre>%s</pre>", text)
	}
}

func (p *page) end() error {
	p.release()
	p.print("</main>\n")
	p.usage()
	p.print("</body>\n</html>\n")
	return p.k.err
}

// usage writes the usage of the answers by model.
func (p *page) usage() {
	var list strings.Builder
	add := func(model string, u manager.Usage) {
		if text := usageText(u); text != "" {
			fmt.Fprintf(&list, "<li><span class=\"model\">%s</span>: %s</li>\n",
				escape.Replace(model), escape.Replace(text))
		}
	}
	all := p.used.Totals()
	for _, name := range slices.Sorted(maps.Keys(all.Models)) {
		add(first(name, "model not said"), all.Models[name])
	}
	if len(all.Models) > 1 {
		add("all", all.Usage)
	}
	if list.Len() > 0 {
		p.print("<footer>\n<h2>Usage</h2>\n<ul>\n%s</ul>\n</footer>\n", markup(list.String()))
	}
}

// usageText returns a usage as one line: "1,200 tokens in, 80 out, 10,000 cached, cost 0.0123"; "" = no usage.
func usageText(u manager.Usage) string {
	var list []string
	for _, n := range []struct {
		count int64
		what  string
	}{{u.Input, "tokens in"}, {u.Output, "out"}, {u.CacheRead, "from the cache"}, {u.CacheWrite, "to the cache"}} {
		if n.count > 0 {
			list = append(list, humanize.Comma(n.count)+" "+n.what)
		}
	}
	if u.Cost > 0 {
		list = append(list, fmt.Sprintf("cost %.4f", u.Cost))
	}
	return strings.Join(list, ", ")
}
