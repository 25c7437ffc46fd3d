package export

import (
	"bufio"
	"context"
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"html/template"
	"io"
	"sync"
	"time"

	coppice "github.com/coppice-go/coppice"
	"github.com/coppice-go/coppice/transcript"
)

//go:embed page.css
var css string

// HTML writes a session as one page that needs nothing else: no script, no font, no request. The current line
// of the conversation runs down the page; where there are other versions they are folded in before it, with
// all that grew on them, and each version links to the others.
//
// What was said is escaped text, and Markdown its source. The page's own policy forbids scripts and every request besides.
func HTML(ctx context.Context, s *coppice.Session, w io.Writer, o *Options) error {
	t, err := s.Tree(ctx)
	if err != nil {
		return err
	}
	b := bufio.NewWriter(w)
	f := plant(t, o)
	if err := write(ctx, s, f.nested, &page{w: b, ends: f.names.ends}); err != nil {
		return err
	}
	return b.Flush()
}

type page struct {
	reader
	w    io.Writer
	ends []end
}

// policy allows the page's one style sheet, by its hash, and images that are part of the page.
func policy() string {
	sum := sha256.Sum256([]byte(css))
	return "default-src 'none'; style-src 'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'; img-src data:; base-uri 'none'; form-action 'none'"
}

// pieces returns the templates of the page. They are parsed when the first page is written.
var pieces = sync.OnceValue(func() *template.Template {
	return template.Must(template.New("").Funcs(template.FuncMap{
		"about": about,
		"clock": func(t time.Time) string { return t.UTC().Format(clock) },
		"data":  func(i image) template.URL { return template.URL("data:" + i.Mime + ";base64," + i.Data) }, //nolint:gosec // its kind and its alphabet were checked
	}).Parse(`
{{define "begin"}}<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{{.Policy}}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="referrer" content="no-referrer">
<title>{{.Title}}</title>
<style>{{.CSS}}</style>
</head>
<body>
<header>
<h1>{{.Title}}</h1>
<p>session {{.ID}}{{if .Info.Cwd}} · {{.Info.Cwd}}{{end}} · branch {{.Info.Branch}}</p>
{{with .Ends}}<p>branches:{{range .}} <a class="name" href="#e-{{.ID}}">{{.Name}}</a>{{end}}</p>
{{end}}{{if not .Info.Created.IsZero}}<p>begun {{clock .Info.Created}}, last active {{clock .Info.Updated}}, {{.Info.Entries}} entries</p>
{{end}}</header>
<main>
{{end}}
{{define "open"}}<details class="branch"><summary>{{with .Step.Within}}<span class="name">{{.}}</span> · {{end}}version {{.Step.Version}} of {{.Step.Of}}: <span class="begins">{{.Step.Preview}}</span></summary>
{{end}}
{{define "shut"}}</details>
{{end}}
{{define "show"}}<article id="e-{{.ID}}" class="{{.Class}}">
<p class="meta"><span class="who">{{.Said.Who}}{{with .Tool}} {{.Name}}{{end}}</span>{{with .Tool}}{{if .Failed}} · <span class="bad">failed</span>{{end}}{{end}} · <time>{{clock .Time}}</time>
{{- if gt .Step.Of 1}} · version {{.Step.Version}} of {{.Step.Of}}{{range .Step.Others}} · <a href="#e-{{.}}">other</a>{{end}}{{end}}
{{- if .Step.Label}} · <span class="label">{{.Step.Label}}</span>{{end}}
{{- with .Step.Heads}} · <span class="name">{{.}}</span> ends here{{end}}</p>
{{- range .Said.Parts}}
{{if eq .Kind "words"}}<div class="text">{{.Text}}</div>
{{- else if eq .Kind "thoughts"}}<details><summary>thoughts</summary><div class="text thoughts">{{.Text}}</div></details>
{{- else if eq .Kind "call"}}<details><summary>→ {{.Name}} <code>{{.Brief}}</code></summary><pre>{{.Text}}</pre></details>
{{- else if eq .Kind "result"}}<div class="result{{if .Failed}} failed{{end}}">{{if not $.Tool}}<p class="meta">{{if .Failed}}✗{{else}}←{{end}} {{with .Name}}{{.}}{{else}}result{{end}}</p>{{end}}{{if .Text}}<pre>{{.Text}}</pre>{{end}}</div>
{{- else if eq .Kind "image"}}<p><img alt="{{.Image.Mime}}" src="{{data .Image}}"></p>
{{- else if eq .Kind "file"}}<p class="file">{{about .File}}</p>
{{- else if eq .Kind "failure"}}<p class="file failed">✗ {{.Text}}</p>
{{- else}}<pre>{{.Text}}</pre>{{end}}{{end}}
</article>
{{end}}
{{define "end"}}</main>
</body>
</html>
{{end}}`))
})

func (p *page) begin(s *coppice.Session) error {
	info := s.Info()
	return pieces().ExecuteTemplate(p.w, "begin", map[string]any{
		"Policy": policy(), "CSS": template.CSS(css), //nolint:gosec // our own
		"Title": titleOf(info.Title, s.ID()), "ID": s.ID(), "Info": info, "Ends": p.ends,
	})
}

// shown is a step as the templates see it.
type shown struct {
	Version, Of    int
	Preview, Label string
	Others         []string
	Heads, Within  string // names of branches
}

func (p *page) step(st step, e transcript.Entry) error {
	view := shown{st.version, st.of, st.node.Preview, st.node.Label, st.others, named(st.heads, oneLine), named(st.within, oneLine)}
	switch st.kind {
	case open:
		return pieces().ExecuteTemplate(p.w, "open", map[string]any{"Step": view})
	case shut:
		return pieces().ExecuteTemplate(p.w, "shut", nil)
	case show:
	}
	s := p.of(e)
	class := "said"
	if s.Who == "user" || s.Who == "assistant" || s.Who == "tool" {
		class = s.Who
	}
	return pieces().ExecuteTemplate(p.w, "show", map[string]any{"ID": e.ID, "Time": e.Time, "Class": class, "Said": s, "Tool": s.lone(), "Step": view})
}

func (p *page) end() error { return pieces().ExecuteTemplate(p.w, "end", nil) }
