package export

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// Terminal control sequences are removed, and all line ends are the same.
func TestPlain(t *testing.T) {
	for in, want := range map[string]string{
		"\x1b[1;32mok\x1b[0m\r\nnext\rlast":             "ok\nnext\nlast",
		"\x1b]0;title\x07a\x1b]8;;http://x\x1b\\b":      "ab",
		"\x1b]0;no end\nthe rest":                       "0;no end\nthe rest",
		"a\x00b\x08c\td\u2028e\u0085f":                  "a\ufffdb\ufffdc\td\ne\nf",
		"\u009b31mred \u202eنص\u202c stays as it is":    "red \u202eنص\u202c stays as it is",
		"nothing of the kind, and not a byte is copied": "nothing of the kind, and not a byte is copied",
	} {
		if got := plain(in); got != want {
			t.Errorf("%q became %q, want %q", in, got, want)
		}
	}
	if got := oneLine("a\u202e b\n\x1b[1mc"); got != "a b c" {
		t.Errorf("got %q", got)
	}
}

// scraps are what Markdown is made of.
var scraps = []string{
	"`", "``", "```", "````", "~~~", "\n", "\n", "\n", "\n\n", "> ", ">", "- ", "* ", "1. ", "2. ", "+", " ", "  ", "   ", "    ", "\t", "<b>", "</b>", "<!--",
	"-->", "<script>", "<details>", "<?x", "<![CDATA[", "[foo]: /u", "[^1]: x", "![x](http://e/x.png)", "[x](javascript:1)", "](", "|", "|---|---|", "\\", "## user",
	"\n## user\n", "\n---\n\n# Another branch", "===", "---", "***", "word", "<https://a.b>", "&lt;", "!", "]", "[", ":", "\r", "\u2028", "\x1b[1m", "→ `bash`",
}

// However messages open what they do not close, the document's own lines are found again by a reader that knows
// of quotations and fences only, and of each message every word.
func TestSectionsAreFound(t *testing.T) {
	for seed := range uint64(300) {
		rng := rand.New(rand.NewPCG(seed, 3))
		var texts []string
		for range 1 + rng.IntN(5) {
			var b strings.Builder
			for range rng.IntN(20) {
				b.WriteString(scraps[rng.IntN(len(scraps))])
			}
			texts = append(texts, b.String()+"<end>")
		}
		found(t, texts)
	}
}

// FuzzMarkdown is the same with any text.
func FuzzMarkdown(f *testing.F) {
	for _, s := range scraps {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		s = strings.ToValidUTF8(s, "?")
		found(t, []string{s + "<end>", s + "<end>", "plain"})
	})
}

// found exports messages and looks for them.
func found(t *testing.T, texts []string) {
	s := session(t, "")
	var lines, want []string
	for i, text := range texts {
		q := encode(t, text)
		id, result := fmt.Sprintf("e%d", i), fmt.Sprintf("r%d", i)
		lines = append(lines, line(id, "", `{"role":"assistant","content":[{"type":"thinking","thinking":`+q+`},{"type":"text","text":`+q+`},{"type":"toolCall","id":"c","name":`+q+`,"arguments":{"x":`+q+`}}]}`),
			line(result, id, `{"role":"toolResult","toolCallId":"c","toolName":"x","content":[{"type":"text","text":`+q+`}]}`))
		want = append(want, id, result)
	}
	say(t, s, lines...)
	md := text(t, markdownOf, s)
	var ids []string
	fence, said := "", strings.Builder{}
	for l := range strings.SplitSeq(md, "\n") {
		switch {
		case fence != "":
			if l == fence {
				fence = ""
			}
		case strings.HasPrefix(l, "```"):
			fence = strings.TrimRight(l, "json")
		case strings.HasPrefix(l, ">"):
			said.WriteString(strings.TrimPrefix(l[1:], " ") + "\n")
		case ours.MatchString(l):
			if m := idLine.FindStringSubmatch(l); m != nil {
				ids = append(ids, m[1])
			}
		default:
			t.Fatalf("%q: a line of nobody's: %q in\n%s", texts, l, md)
		}
	}
	slices.Sort(ids)
	slices.Sort(want)
	if fence != "" || !slices.Equal(ids, want) {
		t.Fatalf("%q: found %v, want %v, fence %q, in\n%s", texts, ids, want, fence, md)
	}
	letters := func(s string) string { return regexp.MustCompile(`[^a-z]+`).ReplaceAllString(s, "") }
	heard := letters(strings.ReplaceAll(strings.ReplaceAll(said.String(), "&lt;", "<"), "&#33;", "!"))
	for _, text := range texts {
		w := letters(strings.ReplaceAll(strings.ReplaceAll(plain(text), "&lt;", "<"), "&#33;", "!"))
		if strings.Count(heard, w) < 2 { // as thinking and as text
			t.Fatalf("%q is not whole in\n%s", text, md)
		}
	}
}

var (
	ours   = regexp.MustCompile("^$|^# |^- |^## (assistant|tool)$|^\\*(thoughts|said)\\*$|^---$|^It begins in place of |^→ `|^(←|✗) `x`$|^[0-9]{4}-.* · `")
	idLine = regexp.MustCompile("^[0-9]{4}-[^`]* · `([er][0-9]+)`")
)

func encode(t *testing.T, s string) string {
	t.Helper()
	b, err := json.Marshal(s)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}
