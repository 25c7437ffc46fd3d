package export

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	coppice "github.com/coppice-go/coppice"
)

var (
	tag  = regexp.MustCompile(`<(/?[a-zA-Z!][a-zA-Z0-9]*)((?:[^>"']|"[^"]*"|'[^']*')*)>`)
	attr = regexp.MustCompile(`\s([^\s="'>/]+)(?:="([^"]*)")?`)
	own  = strings.Fields("!doctype html head meta title style body header h1 p main article span time a div pre details summary code img ol ul li h2 h3 h4 h5 h6 em strong del blockquote hr br table thead tbody tr th td footer")
)

// FuzzHTML puts any text wherever a session holds one. Whatever it is, the page has only tags and attributes
// of its own, links only into itself and, where Markdown has one, to the web, and images only of its own bytes.
func FuzzHTML(f *testing.F) {
	for _, s := range []string{
		"", "<script>alert(1)</script>", `"><img src=x onerror=alert(1)>`, "javascript:alert(1)", "</title></style></pre><svg/onload=x>", "<!--", "-->", "]]>", "\x00<b\x00>", "&lt;b&gt;", "' onclick='x",
		"data:text/html;base64,PHNjcmlwdD4=", "\u2028\u202e", "+ADw-script+AD4-", "{{.}}", "`${x}`", "https://example.com/x.png", "![x](javascript:1)", "QQ==",
		"[x](javascript:1)", "[x](JaVaScRiPt:1)", "[x](data:text/html,1)", "<javascript:1>", "[x](https://e.com/\"onclick=1)", "![x](https://e.com/p.png)", "[![b](https://e.com/b)](https://e.com)", "www.e.com/<script>",
		"| a | b |\n|:-|-:|\n| <b> | `x` |", "# h\n> q\n- i\n9. j\n~~d~~ **s** _e_\n***\n```js\"onclick=1\nx\n```",
		"<div>\n</div>\n", "<!-- x\n-->", "[x]: javascript:1\n[x]", "a@b.c",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, p string) {
		q := fmt.Sprintf("%q", strings.ToValidUTF8(p, "?"))
		if strings.Contains(q, `\x`) || strings.Contains(q, `\a`) || strings.Contains(q, `\v`) || strings.Contains(q, `\U`) {
			return // Go writes these, JSON does not
		}
		s := session(t, p)
		var lines []string
		for i, m := range []string{
			`{"role":"user","content":` + q + `}`, `{"role":` + q + `,"content":` + q + `,"odd":` + q + `}`,
			`{"role":"assistant","content":[{"type":"thinking","thinking":` + q + `},{"type":"text","text":` + q + `},{"type":"toolCall","id":` + q + `,"name":` + q + `,"arguments":{"x":` + q + `}}]}`,
			`{"role":"toolResult","toolCallId":` + q + `,"toolName":` + q + `,"content":[{"type":"text","text":` + q + `}]}`,
			`{"role":"user","content":[{"type":"image","mimeType":"image/png","data":` + q + `},{"type":"image","mimeType":` + q + `,"data":"QQ=="}]}`,
		} {
			lines = append(lines, line(fmt.Sprintf("e%d", i), "", m))
		}
		say(t, s, lines...)
		if _, err := s.Label(t.Context(), "e0", p); err != nil {
			return
		}
		if _, err := s.Branch(t.Context(), "e0", &coppice.BranchOptions{Summary: p}); err != nil {
			t.Fatal(err)
		}
		onlyOwn(t, text(t, htmlOf, s))
	})
}

// onlyOwn reads a page as a browser would: tag by tag.
func onlyOwn(t *testing.T, page string) {
	_, body, _ := strings.Cut(page, "</style>")
	for _, m := range tag.FindAllStringSubmatch(body, -1) {
		name := strings.ToLower(strings.TrimPrefix(m[1], "/"))
		if !slices.Contains(own, name) || name == "style" || name == "meta" {
			t.Fatalf("a tag %q", m[0])
		}
		for _, a := range attr.FindAllStringSubmatch(m[2], -1) {
			switch a[1] {
			case "class", "id", "alt", "start", "align":
			case "rel":
				if a[2] != "noopener noreferrer" {
					t.Fatalf("a relation in %q", m[0])
				}
			case "href":
				outside := regexp.MustCompile(`^(https?:|mailto:)`).MatchString(a[2]) &&
					strings.Contains(m[0], `rel="noopener noreferrer"`)
				if !outside && !strings.HasPrefix(a[2], "#e-") {
					t.Fatalf("a link in %q", m[0])
				}
			case "src":
				if !strings.HasPrefix(a[2], "data:image/") {
					t.Fatalf("a picture in %q", m[0])
				}
			default:
				t.Fatalf("an attribute in %q", m[0])
			}
		}
	}
	if _, rest, open := strings.Cut(tag.ReplaceAllString(body, ""), "<"); open {
		t.Fatalf("an open tag before %.80q", rest)
	}
}
