package hostile

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"unicode"

	coppice "github.com/coppice-go/coppice"
	"github.com/coppice-go/coppice/backend/memory"
	"github.com/coppice-go/coppice/entry"
	"github.com/coppice-go/coppice/export"
)

// steering is a text of control sequences that terminals interpret.
const steering = "\x1b[2J\x1b]0;owned\x07\x1b]8;;http://x\x07link\x1b]8;;\x07\x9b31m\u009b31m\x08\x0d\u202e\u2066evil\x7f\x00\x1bP1$r\x1b\\"

// terminals puts steering into every text of a session, and runs every command that shows one.
func terminals(a *attack) {
	dir := a.TempDir()
	store := filepath.Join(dir, "store")
	q, err := json.Marshal(steering)
	a.must(err)
	e := string(q)
	line := func(id, parent, body string) string {
		return fmt.Sprintf(`{"type":"message","id":"%s","parentId":%s,"timestamp":"2026-01-01T00:00:00.000Z","message":%s}`, id, parent, body)
	}
	file := strings.Join([]string{
		`{"type":"session","version":3,"id":"s","timestamp":"2026-01-01T00:00:00.000Z","cwd":` + e + `}`,
		line("u", "null", `{"role":"user","content":`+e+`}`),
		line("w", `"u"`, `{"role":"assistant","content":[{"type":"thinking","thinking":`+e+`},{"type":"text","text":`+e+`},{"type":"toolCall","id":`+e+`,"name":`+e+`,"arguments":{"x":`+e+`}}],"model":`+e+`,"provider":`+e+`}`),
		line("r", `"w"`, `{"role":"toolResult","toolCallId":`+e+`,"toolName":`+e+`,"content":[{"type":"text","text":`+e+`}]}`),
		line("o", `"r"`, `{"role":`+e+`,"content":`+e+`}`),
		`{"type":` + e + `,"id":"t","parentId":"o","timestamp":` + e + `}`,
		`{"type":"message","id":` + e + `,"parentId":"o","timestamp":"2026-01-01T00:00:00.000Z","message":{"role":"user","content":"odd id"}}`,
		`{"type":"session_info","id":"i","parentId":"o","timestamp":"2026-01-01T00:00:00.000Z","name":` + e + `}`,
		`{"type":"label","id":"l","parentId":"o","timestamp":"2026-01-01T00:00:00.000Z","targetId":"u","label":` + e + `}`,
		`{"type":"model_change","id":"m","parentId":"o","timestamp":"2026-01-01T00:00:00.000Z","provider":` + e + `,"modelId":` + e + `}`,
		`{"type":"compaction","id":"c","parentId":"o","timestamp":"2026-01-01T00:00:00.000Z","summary":` + e + `,"firstKeptEntryId":` + e + `,"tokensBefore":1}`,
	}, "\n")
	path := filepath.Join(dir, "x.jsonl")
	a.must(os.WriteFile(path, []byte(file), 0o600))
	// No argument can hold a NUL.
	arg := strings.ReplaceAll(steering, "\x00", "")
	for _, args := range [][]string{
		{"import", path},
		{"append", "s", "--state", path},
		{"append", "s", "--reason", arg},
		{"label", "s", "u", arg},
		{"branch", "s", "u", "--name", arg},
		{"branch", "s", "u", "--summary", arg},
		{"snapshot", "create", "s", "--tag", arg},
		{"create", "--title", arg, "--cwd", arg},
		{"list"},
		{"tree", "s", "--filter", "all"},
		{"tree", "s"},
		{"show", "s"},
		{"show", "s", "u"},
		{"show", "s", "w"},
		{"show", "s", "r"},
		{"log", "s"},
		{"resume", "s"},
		{"context", "s"},
		{"search", "evil"},
		{"diff", "s", "seq:0", "head"},
		{"snapshot", "list", "s"},
		{"verify"},
		{"verify", "s", "--deep"},
		{"gc"},
		{"repair", "s"},
		{"switch", "s", "u"},
		{"rollback", "s", "seq:1"},
		{"fork", "s"},
		{"snapshot", "prune", "s", "--keep-last", "1"},
		{"show", arg},
		{"show", "s", arg},
		{"rollback", "s", arg},
		{"resume", "s", "--" + strings.ReplaceAll(arg, "=", "")},
		{arg},
		{"export", "s", "--format", arg},
		{"--store", "nosuch://" + arg, "list"},
		{"import", arg},
		{"delete", "s", "--yes"},
	} {
		for _, asJSON := range []bool{false, true} {
			all := args
			if asJSON {
				all = append([]string{"--json"}, args...)
			}
			out, errs, code := a.coppice(store, `{"role":"user","content":"x"}`, all...)
			if strings.ContainsFunc(errs, steers) || strings.ContainsFunc(out, steers) && !asJSON || strings.ContainsAny(out, "\x1b\x07\x00") && asJSON {
				a.broken("%.60q ends with %d and steers the terminal: %q %q", all, code, found(out), found(errs))
			}
			a.try(1)
		}
	}
}

// steers reports whether a terminal interprets a character.
func steers(r rune) bool {
	return r != '\n' && r != '\t' && unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r)
}

// found returns the text around a control sequence.
func found(s string) string {
	at := strings.IndexFunc(s, steers)
	if at < 0 {
		return ""
	}
	return s[max(0, at-40):min(len(s), at+20)]
}

// markup are texts that a browser would interpret.
var markup = []string{
	`<script>alert(1)</script>`, `"><img src=x onerror=alert(1)>`, `</title><svg/onload=alert(1)>`, `javascript:alert(1)`, `</style><style>*{background:url(//x)}`, `<iframe srcdoc="<script>1</script>">`, `<a href="javascript:1">x</a>`,
	`[x](javascript:alert(1))`, `![x](https://x/y.png)`, `</pre></div></article><form action=//x><input name=q>`, `<!--`, `<![CDATA[`, `&#60;script&#62;`, `' autofocus onfocus='alert(1)`, "<scr\x00ipt>", `<meta http-equiv=refresh content="0;url=//x">`, `<base href=//x>`,
}

var (
	tag   = regexp.MustCompile(`<[/!a-zA-Z](?:[^>"']|"[^"]*"|'[^']*')*>`)
	named = regexp.MustCompile(`^</?[a-zA-Z!]+`)
)

// prose matches the part of a page that is rendered from a model's Markdown, which contains no element of the page
// itself; own are the tags permitted in it.
var (
	prose = regexp.MustCompile(`(?s)<div class="prose">.*?</div>`)
	own   = regexp.MustCompile(`^</?(p|br|em|strong|del|code|pre|ul|ol|li|blockquote|h[3-6]|hr|table|thead|tbody|tr|th|td)[ >]|` +
		`^</a>$|^<a rel="noopener noreferrer" href="(https?:|mailto:)[^"]*">$`)
)

// pages: a page of a session whose every text is markup has the same tags as a page of one with plain texts, except for
// those of Markdown in a model's text. Its policy permits no script and no request.
func pages(a *attack) {
	fair := tagsOf(a, "fair")
	for _, m := range markup {
		if got := tagsOf(a, m); !slices.Equal(got, fair) {
			a.broken("%s changes the tags of a page: %q, want %q", quoted(m), got, fair)
		}
		a.try(1)
	}
}

func tagsOf(a *attack, text string) (tags []string) {
	s, err := a.store(memory.New()).Create("s", &coppice.SessionOptions{Title: text, Cwd: text})
	a.must(err)
	ids, err := s.Append(a.Context(), entry.User(text), entry.Assistant(text, entry.Call("c", text, map[string]string{"x": text})), entry.ToolResult("c", text, text, false), entry.CustomMessage(text, text, true))
	a.must(err)
	_, err = s.Commit(a.Context(), coppice.Turn{State: text})
	a.must(err)
	_, err = s.Label(a.Context(), ids[0], text)
	a.must(err)
	_, err = s.Branch(a.Context(), ids[0], &coppice.BranchOptions{Summary: text})
	a.must(err)
	var page bytes.Buffer
	a.must(export.HTML(a.Context(), s, &page, nil))
	if !strings.Contains(page.String(), `http-equiv="Content-Security-Policy" content="default-src &#39;none&#39;;`) || strings.Contains(page.String(), "script-src") {
		a.broken("the page of %s has another policy", quoted(text))
	}
	_, body, _ := strings.Cut(page.String(), "</style>")
	body = prose.ReplaceAllStringFunc(body, func(words string) string {
		for _, t := range tag.FindAllString(strings.TrimSuffix(strings.TrimPrefix(words, `<div class="prose">`),
			"</div>"), -1) {
			if !own.MatchString(t) {
				a.broken("%s becomes %q in the words of a model", quoted(text), t)
			}
		}
		return `<div class="prose"></div>`
	})
	for _, t := range tag.FindAllString(body, -1) {
		tags = append(tags, named.FindString(t))
	}
	return tags
}
