package export

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"regexp"
	"strings"
	"testing"
	"time"

	coppice "github.com/coppice-go/coppice"
	"github.com/coppice-go/coppice/backend/memory"
	"github.com/coppice-go/coppice/entry"
	"github.com/coppice-go/coppice/internal/testutil"
	"github.com/coppice-go/coppice/transcript"
)

var update = flag.Bool("update", false, "write the golden files")

func session(t *testing.T, title string) *coppice.Session {
	t.Helper()
	clock := time.Date(2026, 3, 2, 9, 0, 0, 0, time.UTC)
	st, err := coppice.New(memory.New(), &coppice.Options{
		Now:  func() time.Time { return clock },
		Rand: rand.NewChaCha8([32]byte{7}),
	})
	if err != nil {
		t.Fatal(err)
	}
	s, err := st.Create("s", &coppice.SessionOptions{Title: title, Cwd: "/srv/<place>"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = st.Close() })
	return s
}

func say(t *testing.T, s *coppice.Session, lines ...string) {
	t.Helper()
	for _, l := range lines {
		if _, err := s.Append(t.Context(), entry.Line([]byte(l))); err != nil {
			t.Fatalf("%s: %v", l, err)
		}
	}
	if _, err := s.Commit(t.Context(), coppice.Turn{}); err != nil {
		t.Fatal(err)
	}
}

func line(id, parent, message string) string {
	p := "null"
	if parent != "" {
		p = fmt.Sprintf("%q", parent)
	}
	return fmt.Sprintf(`{"type":"message","id":%q,"parentId":%s,"timestamp":"2026-03-02T09:00:00.000Z","message":%s}`, id, p, message)
}

func user(text string) string { return fmt.Sprintf(`{"role":"user","content":%q}`, text) }

const (
	thinking = `{"role":"assistant","content":[{"type":"thinking","thinking":"let me\nthink"},{"type":"text","text":"Here."},` +
		`{"type":"toolCall","id":"c1","name":"bash","arguments":{"command":"echo '` + "```" + `'"}}]}`
	result  = `{"role":"toolResult","toolCallId":"c1","toolName":"bash","isError":true,"content":[{"type":"text","text":"` + "```" + `"}]}`
	openai  = `{"role":"assistant","content":null,"tool_calls":[{"id":"c2","type":"function","function":{"name":"look","arguments":"{\"at\":1}"}}]}`
	picture = `{"role":"user","content":[{"type":"text","text":"see"},{"type":"image","data":"iVBORw0KGgo=","mimeType":"image/png"},` +
		`{"type":"image","data":"PHN2Zz4=","mimeType":"image/svg+xml"}]}`
)

// branched is a session with every kind of part, and with versions within versions.
func branched(t *testing.T) *coppice.Session {
	s := session(t, "A <b>title</b>")
	say(t, s, line("u1", "", user("first question")), line("a1", "u1", thinking), line("r1", "a1", result),
		line("u2", "r1", user("left behind")), line("a2", "u2", `{"role":"assistant","content":"an answer that was left"}`),
		line("u2b", "r1", user("asked again")), line("a2b", "u2b", openai),
		line("u3", "a2b", picture), line("u3b", "a2b", user("the last word")),
		`{"type":"compaction","id":"c","parentId":"u3b","timestamp":"2026-03-02T09:00:01.000Z","summary":"what went before","firstKeptEntryId":"u3b","tokensBefore":9}`)
	return s
}

func text(t *testing.T, f func(context.Context, *coppice.Session) (string, error), s *coppice.Session) string {
	t.Helper()
	out, err := f(t.Context(), s)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func markdownOf(ctx context.Context, s *coppice.Session) (string, error) {
	var b bytes.Buffer
	err := Markdown(ctx, s, &b, nil)
	return b.String(), err
}

func htmlOf(ctx context.Context, s *coppice.Session) (string, error) {
	var b bytes.Buffer
	err := HTML(ctx, s, &b, nil)
	return b.String(), err
}

// providers is a session with all that providers put into messages in addition to text, and with named branches:
// documents, tools that ran at the provider, results with more than text, a truncated answer.
func providers(t *testing.T) *coppice.Session {
	s := session(t, "Attachments")
	pdf := base64.StdEncoding.EncodeToString(make([]byte, 5000))
	say(t, s,
		line("u1", "", `{"role":"user","content":[{"type":"text","text":"read these"},{"type":"document","title":"Report <1>.pdf","source":{"type":"base64","media_type":"application/pdf","data":"`+pdf+`"}},`+
			`{"type":"file","file":{"filename":"b.txt","file_data":"data:text/plain;base64,QUJD"}},{"type":"image","source":{"type":"url","url":"https://example.com/x.png"}}]}`),
		line("a1", "u1", `{"role":"assistant","content":[{"type":"text","text":"I search."},{"type":"server_tool_use","id":"w1","name":"web_search","input":{"query":"x"}},`+
			`{"type":"web_search_tool_result","tool_use_id":"w1","content":[{"type":"web_search_result","title":"A page","url":"https://example.com/","encrypted_content":"c2VjcmV0"}]},{"type":"text","text":"It is old."},`+
			`{"type":"tool_use","id":"t1","name":"Read","input":{"path":"c.pdf"}}]}`),
		line("r1", "a1", `{"role":"user","content":[{"type":"tool_result","tool_use_id":"t1","content":[{"type":"text","text":"\u001b[31mred\u001b[0m"},{"type":"document","title":"c.pdf","source":{"type":"base64","media_type":"application/pdf","data":"QUJD"}}]}]}`),
		line("x1", "r1", `{"role":"bashExecution","command":"make","output":"no rule","exitCode":2}`),
		line("u2", "x1", user("the first way")),
		line("a2", "u2", `{"role":"assistant","content":[{"type":"text","text":"<!-- See:\n`+"```"+`go\nfunc main() {"}],"stopReason":"aborted","errorMessage":"Request was aborted."}`),
		line("u3", "x1", user("the second way")), line("a3", "u3", `{"role":"assistant","content":"yes"}`))
	if _, err := s.Branch(t.Context(), "a2", &coppice.BranchOptions{Name: "first <way>"}); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Switch(t.Context(), "a3"); err != nil {
		t.Fatal(err)
	}
	return s
}

// The whole output for sessions that have everything.
func TestGolden(t *testing.T) {
	for name, made := range map[string]struct {
		write func(context.Context, *coppice.Session) (string, error)
		of    func(*testing.T) *coppice.Session
	}{
		"session.md": {markdownOf, branched}, "session.html": {htmlOf, branched},
		"providers.md": {markdownOf, providers}, "providers.html": {htmlOf, providers},
	} {
		got := text(t, made.write, made.of(t))
		testutil.Golden(t, *update, "testdata/"+name, []byte(got))
	}
}

// Every message of every branch is there once, whatever the shape of the tree, and what is opened is closed.
func TestEveryBranchIsThere(t *testing.T) {
	for seed := range uint64(20) {
		rng := rand.New(rand.NewPCG(seed, 1))
		s := session(t, "")
		var lines []string
		n := 1 + rng.IntN(300)
		deep := seed%4 == 0 // versions within versions within versions
		for i := range n {
			parent := ""
			switch {
			case i > 0 && deep:
				parent = fmt.Sprintf("e%d", max(0, i-1-rng.IntN(2)))
			case i > 0 && rng.IntN(30) > 0:
				parent = fmt.Sprintf("e%d", rng.IntN(i))
			}
			lines = append(lines, line(fmt.Sprintf("e%d", i), parent, user(fmt.Sprintf("<said %d.>", i))))
		}
		say(t, s, lines...)
		page, md := text(t, htmlOf, s), text(t, markdownOf, s)
		for i := range n {
			if got := strings.Count(page, fmt.Sprintf(`<div class="text">&lt;said %d.&gt;</div>`, i)); got != 1 {
				t.Errorf("seed %d: message %d stands %d times in the page", seed, i, got)
			}
			if got := strings.Count(md, fmt.Sprintf("\n> \\<said %d.>\n", i)); got != 1 {
				t.Errorf("seed %d: message %d stands %d times in the Markdown", seed, i, got)
			}
		}
		if open, shut := strings.Count(page, "<details"), strings.Count(page, "</details>"); open != shut {
			t.Errorf("seed %d: %d folds open, %d close", seed, open, shut)
		}
	}
}

// Of one line, every message on it is there once, and no other, whichever line is the current one.
func TestOneLine(t *testing.T) {
	s := session(t, "")
	say(t, s, line("a", "", user("<first.>")), line("b", "a", user("<left.>")), line("c", "b", user("<left too.>")),
		line("d", "a", user("<head.>")))
	for _, format := range []func(context.Context, *coppice.Session, io.Writer, *Options) error{HTML, Markdown} {
		for end, want := range map[string][]bool{"c": {true, true, true, false}, "d": {true, false, false, true}, "": {true, true, true, true}} {
			var out bytes.Buffer
			if err := format(t.Context(), s, &out, &Options{Line: end}); err != nil {
				t.Fatal(err)
			}
			for i, said := range []string{"first.", "left.", "left too.", "head."} {
				if got := strings.Contains(out.String(), said); got != want[i] {
					t.Errorf("line to %q: %q is written: %v, want %v", end, said, got, want[i])
				}
			}
		}
		if err := format(t.Context(), s, io.Discard, &Options{Line: "nowhere"}); !errors.Is(err, transcript.ErrNotFound) {
			t.Errorf("a line that is not there: %v", err)
		}
	}
}

// payloads broke pages in the past.
var payloads = []string{
	`<script>alert(1)</script>`, `"><img src=x onerror=alert(1)>`, `</style><script>alert(1)</script>`, `</title><script>alert(1)</script>`,
	`javascript:alert(1)`, `' onmouseover='alert(1)`, `<!--`, `]]><script>`, `<svg/onload=alert(1)>`, `{{.}}`, `<a href="javascript:alert(1)">x</a>`,
	"\u2028<script>", `<iframe srcdoc="<script>">`, `<meta http-equiv=refresh content=0>`, `<base href=//evil>`,
}

// No content of a session becomes markup of the page: its elements are those of a page with plain text.
func TestNothingIsMarkup(t *testing.T) {
	build := func(p string) string {
		s := session(t, p)
		q := fmt.Sprintf("%q", p)
		say(t, s, line("u", "", user(p)),
			line("a", "u", `{"role":"assistant","content":[{"type":"thinking","thinking":`+q+`},{"type":"text","text":`+q+`},{"type":"toolCall","id":"c","name":`+q+`,"arguments":{"x":`+q+`}}]}`),
			line("r", "a", `{"role":"toolResult","toolCallId":"c","toolName":`+q+`,"content":[{"type":"text","text":`+q+`}]}`),
			line("i", "r", `{"role":"user","content":[{"type":"image","mimeType":"image/png","data":`+q+`},{"type":"image","mimeType":`+q+`,"data":"QQ=="}]}`),
			line("o", "i", `{"role":`+q+`,"odd":`+q+`}`), line("v", "i", user(p)))
		if _, err := s.Label(t.Context(), "u", p); err != nil {
			t.Fatal(err)
		}
		return text(t, htmlOf, s)
	}
	tags := regexp.MustCompile(`<[^>]*>`)
	want := len(tags.FindAllString(build("plain words"), -1))
	for _, p := range payloads {
		page := build(p)
		if got := len(tags.FindAllString(page, -1)); got != want {
			t.Errorf("%q: the page has %d tags, want %d", p, got, want)
		}
		if strings.Contains(page, "<script") || strings.Contains(page, "javascript:alert(1)\"") && strings.Contains(page, "href=\"javascript") {
			t.Errorf("%q: it stands in the page as markup", p)
		}
		if !strings.Contains(page, `default-src &#39;none&#39;`) && !strings.Contains(page, `default-src 'none'`) {
			t.Error("the page has no policy")
		}
	}
}

// A session that holds nothing is a page too.
func TestEmpty(t *testing.T) {
	s := session(t, "")
	if _, err := s.Commit(t.Context(), coppice.Turn{State: 1}); err != nil {
		t.Fatal(err)
	}
	if page := text(t, htmlOf, s); !strings.Contains(page, "Session s") || !strings.HasSuffix(page, "</html>\n") {
		t.Errorf("got %s", page)
	}
	if md := text(t, markdownOf, s); !strings.HasPrefix(md, "# Session s\n") {
		t.Errorf("got %s", md)
	}
}

// A filter hides the same entries as in a tree.
func TestFilter(t *testing.T) {
	var b bytes.Buffer
	if err := Markdown(t.Context(), branched(t), &b, &Options{Filter: transcript.FilterUserOnly}); err != nil {
		t.Fatal(err)
	}
	if got := b.String(); strings.Contains(got, "## assistant") || !strings.Contains(got, "left behind") {
		t.Errorf("got %s", got)
	}
}

// Branches are named where they end and where what leads to them is folded, nested ones too; many are bounded.
func TestBranchNames(t *testing.T) {
	s := session(t, "")
	lines := []string{line("u", "", user("root"))}
	for i := range 12 { // versions of one point, each with one below it that was left
		lines = append(lines, line(fmt.Sprintf("v%d", i), "u", user("version")),
			line(fmt.Sprintf("w%d", i), fmt.Sprintf("v%d", i), user("left")), line(fmt.Sprintf("x%d", i), fmt.Sprintf("v%d", i), user("newest")))
	}
	say(t, s, lines...)
	for i := range 10 {
		if _, err := s.Branch(t.Context(), fmt.Sprintf("w%d", i), &coppice.BranchOptions{Name: fmt.Sprintf("b%d", i)}); err != nil {
			t.Fatal(err)
		}
	}
	for i := range 10 {
		if _, err := s.Branch(t.Context(), "w10", &coppice.BranchOptions{Name: fmt.Sprintf("same%d", i)}); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := s.Switch(t.Context(), "x11"); err != nil {
		t.Fatal(err)
	}
	page, md := text(t, htmlOf, s), text(t, markdownOf, s)
	for _, want := range []string{
		`<summary><span class="name">branch b3</span> · version 4 of 12`, `<a class="name" href="#e-w3">b3</a>`, // around the version that holds it, and above all
		`<span class="name">branches same0, same1, same2, same3, same4 and others</span> ends here`,
	} {
		if !strings.Contains(page, want) {
			t.Errorf("the page has no %s", want)
		}
	}
	for _, want := range []string{"# Another line, branch `b3`: version 1 of 2", "# Another branch: version 4 of 12", "· branch `b3` ends here"} {
		if !strings.Contains(md, want) {
			t.Errorf("the Markdown has no %s", want)
		}
	}
}

// The export of a line names the branches whose head is on it, and not those that continue after its end.
func TestBranchNamesOfALine(t *testing.T) {
	s := session(t, "")
	say(t, s, line("a", "", user("one")), line("b", "a", user("two")), line("c", "b", user("three")),
		line("d", "c", user("four")))
	if _, err := s.Branch(t.Context(), "b", &coppice.BranchOptions{Name: "kept"}); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Switch(t.Context(), "d"); err != nil {
		t.Fatal(err)
	}
	for end, want := range map[string]string{"c": "", "b": "branch `kept` ends here", "d": "branch `main` ends here"} {
		var b bytes.Buffer
		if err := Markdown(t.Context(), s, &b, &Options{Line: end}); err != nil {
			t.Fatal(err)
		}
		_, last, _ := strings.Cut(b.String(), "`"+end+"`")
		first, _, _ := strings.Cut(strings.TrimPrefix(last, " · "), "\n")
		if first != want {
			t.Errorf("the line to %s ends with %q, want %q", end, first, want)
		}
	}
}

// Entries that a filter hides have no names; the names are at the nearest shown ancestor.
func TestBranchNamesFiltered(t *testing.T) {
	var b bytes.Buffer
	if err := Markdown(t.Context(), providers(t), &b, &Options{Filter: transcript.FilterUserOnly}); err != nil {
		t.Fatal(err)
	}
	if got := b.String(); !strings.Contains(got, "`u2` · version 1 of 2 · branch `first <way>` ends here") {
		t.Errorf("got %s", got)
	}
}

// A result is folded next to its call, also if other results come first. A result with other versions, and one
// without a call, is an entry of its own. Nothing is shown twice.
func TestResultsAreNextToTheirCalls(t *testing.T) {
	s := session(t, "")
	call := func(id string) string {
		return `{"type":"toolCall","id":"` + id + `","name":"tool","arguments":{"n":"` + id + `"}}`
	}
	answer := func(id, text string) string {
		return `{"role":"toolResult","toolCallId":"` + id + `","toolName":"tool","content":[{"type":"text","text":"` + text + `"}]}`
	}
	say(t, s, line("u", "", user("go")),
		line("a", "u", `{"role":"assistant","content":[`+call("c1")+`,`+call("c2")+`,`+call("c2")+`]}`),
		line("r2", "a", answer("c2", "second")), line("r1", "r2", answer("c1", "first")),
		line("rx", "r1", answer("elsewhere", "stray")),
		line("b", "rx", `{"role":"assistant","content":[`+call("c3")+`]}`),
		line("v1", "b", answer("c3", "old version")), line("v2", "b", answer("c3", "new version")))
	page := text(t, htmlOf, s)
	at := func(text string) int {
		if n := strings.Count(page, "<pre>"+text+"</pre>"); n != 1 {
			t.Fatalf("%q is %d times in the page:\n%s", text, n, page)
		}
		return strings.Index(page, "<pre>"+text+"</pre>")
	}
	c1, c2 := strings.Index(page, `{ &#34;n&#34;: &#34;c1&#34; }`), strings.Index(page, `{ &#34;n&#34;: &#34;c2&#34; }`)
	if !(c1 < at("first") && at("first") < c2 && c2 < at("second")) {
		t.Errorf("the results are not next to their calls:\n%s", page)
	}
	for _, id := range []string{"rx", "v1", "v2"} {
		if !strings.Contains(page, `<article id="e-`+id+`"`) {
			t.Errorf("%s is no entry of its own", id)
		}
	}
	at("stray")
	at("old version")
	at("new version")
	if strings.Contains(page, "<details open") {
		t.Error("a fold is open")
	}
}

// Markdown of a model is rendered; a user's text is as it was written; nothing in it asks another host for anything.
func TestProse(t *testing.T) {
	for name, c := range map[string]struct{ text, want string }{
		"words":   {"a *b*\nc", "<p>a <em>b</em><br>\nc</p>\n"},
		"heading": {"# Title", "<h3>Title</h3>\n"},
		"link": {
			"[x](https://e.com/?a=1&b=2)",
			`<p><a rel="noopener noreferrer" href="https://e.com/?a=1&amp;b=2">x</a></p>` + "\n",
		},
		"script": {"[x](javascript:alert(1)) <javascript:1>", "<p>x javascript:1</p>\n"},
		"address": {
			"see https://e.com/a",
			`<p>see <a rel="noopener noreferrer" href="https://e.com/a">https://e.com/a</a></p>` + "\n",
		},
		"picture": {
			"![p](https://e.com/p.png)",
			`<p>[picture: <a rel="noopener noreferrer" href="https://e.com/p.png">p</a>]</p>` + "\n",
		},
		"badge": {
			"[![p](https://e.com/p.png)](https://e.com)",
			`<p><a rel="noopener noreferrer" href="https://e.com">[picture: p]</a></p>` + "\n",
		},
		"html": {"<div onclick=x>\n\nb <i>c</i>", `<p class="text">&lt;div onclick=x&gt;</p>` +
			"\n<p>b &lt;i&gt;c&lt;/i&gt;</p>\n"},
		"table":     {"|a|\n|-:|\n|b|", "<table>\n<thead>\n<tr>\n<th align=\"right\">a</th>\n</tr>\n</thead>\n<tbody>\n<tr>\n<td align=\"right\">b</td>\n</tr>\n</tbody>\n</table>\n"},
		"code":      {"```go\n<x>\n```", "<pre><code class=\"language-go\">&lt;x&gt;\n</code></pre>\n"},
		"relatives": {"[x](../y) [z](#e-a)", "<p>x z</p>\n"},
	} {
		got, ok := prose(c.text)
		if !ok || string(got) != c.want {
			t.Errorf("%s: %q, %v; want %q", name, got, ok, c.want)
		}
	}
	s := session(t, "")
	long := strings.Repeat("*x* ", maxProse/4+1)
	wide := strings.Repeat("|", 200) + "\n" + strings.Repeat("|-", 200) + strings.Repeat("\n|", 200)
	say(t, s, line("u", "", user("*mine*")), line("a", "u", `{"role":"assistant","content":"*its*"}`),
		line("l", "a", fmt.Sprintf(`{"role":"assistant","content":%q}`, long)),
		line("w", "l", fmt.Sprintf(`{"role":"assistant","content":%q}`, wide)))
	page := text(t, htmlOf, s)
	for _, want := range []string{
		`<div class="text">*mine*</div>`, `<p><em>its</em></p>`, `<div class="text">` + long,
		`<div class="text">` + wide,
	} {
		if !strings.Contains(page, want) {
			t.Errorf("the page has no %.80q", want)
		}
	}
}

// Answers show model and cost, the page shows the sums, and the table of contents links to user messages.
func TestModelsCostAndContents(t *testing.T) {
	s := session(t, "")
	answer := func(id, parent, model string, in int, cost float64) string {
		return line(id, parent, fmt.Sprintf(`{"role":"assistant","provider":"p","model":%q,"content":"yes","usage":{"input":%d,"output":2,"cost":{"total":%g}}}`, model, in, cost))
	}
	say(t, s, line("u1", "", user("first <question>")), answer("a1", "u1", "m1", 1200, 0.25),
		line("u2", "a1", user("second question")), answer("a2", "u2", "m2", 30, 0.5),
		answer("a3", "u2", "m2", 40, 0.25))
	page := text(t, htmlOf, s)
	for _, want := range []string{
		"<title>first &lt;question&gt;</title>", "<h1>first &lt;question&gt;</h1>",
		`<span class="model">p/m1</span> · `, "1,200 tokens in, 2 out, cost 0.2500",
		`<li><a href="#e-u1">first &lt;question&gt;</a></li>`, `<li><a href="#e-u2">second question</a></li>`,
		`<li><span class="model">p/m2</span>: 70 tokens in, 4 out, cost 0.7500</li>`,
		`<li><span class="model">all</span>: 1,270 tokens in, 6 out, cost 1.0000</li>`,
	} {
		if !strings.Contains(page, want) {
			t.Errorf("the page has no %s", want)
		}
	}
}
