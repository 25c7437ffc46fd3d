package export

import (
	"strings"
	"testing"
)

// A message is a quotation: code in it is unchanged, and elements with an effect outside of it become text.
func TestQuote(t *testing.T) {
	for _, c := range []struct{ name, in, want string }{
		{"plain", "a *b* [c](https://d) [e](f/g.go#L1)\n\nh  \ni", "> a *b* [c](https://d) [e](f/g.go#L1)\n>\n> h  \n> i"},
		{"an answer that was cut off", "see:\n```go\nfunc main() {", "> see:\n> ```go\n> func main() {\n> ```"},
		{"cut off in a longer fence, in a list", "1. a\n   ~~~~\n   ~~~", "> 1. a\n>    ~~~~\n>    ~~~\n>    ~~~~"},
		{"a comment", "a <!-- b", "> a \\<!-- b"},
		{"HTML", "<details>\n<b>x</b> <?p 1 < 2 <3", "> \\<details>\n> \\<b>x\\</b> \\<?p 1 < 2 <3"},
		{"HTML that was escaped", `\<b> \\<b>`, `> \<b> \\\<b>`},
		{
			"code", "`<b>` ``a ` <b>`` and\n    x\n\n    <b>\n\n\t<c>\n```\n<b> [a]: b ![c](d)\n```\n<b>",
			"> `<b>` ``a ` <b>`` and\n>     x\n>\n>     <b>\n>\n>     <c>\n> ```\n> <b> [a]: b ![c](d)\n> ```\n> \\<b>",
		},
		{"code in lists", "- a\n  ```\n  <b>\n  ```\n  <b>\n- ```\n  <c>\n<d>", "> - a\n>   ```\n>   <b>\n>   ```\n>   \\<b>\n> - ```\n>   <c>\n> \\<d>"},
		{"code in quotations", "> ```\n> <b>\n<c>", "> > ```\n> > <b>\n> \\<c>"},
		{"tabs of code", "```\n\tx\n```\n1. a\n\t```\n\t<b>\n\t```", "> ```\n> \tx\n> ```\n> 1. a\n>     ```\n>     <b>\n>     ```"},
		{"backticks without a partner", "a ` b\n` <b> `", "> a ` b\n> ` \\<b> `"},
		{"a table's cells", "|a|b|\n|-|-|\n|`|<b>`|\n|`<c>`|", "> |a|b|\n> |-|-|\n> |`|\\<b>`|\n> |`\\<c>`|"},
		{"definitions", "[a]: /b\n[^1]: c\n[d]", "> [a]\\: /b\n> [^1]\\: c\n> [d]"},
		{"pictures", "![a](https://b/c.png)", "> \\![a](https://b/c.png)"},
		{"links that run", "[a](javascript:b) [c](&#106;s:d) [e](mailto:f)", "> [a]\\(javascript:b) [c]\\(&#106;s:d) [e](mailto:f)"},
		{"a link of its own", "<https://a.b/c>", "> <https://a.b/c>"},
		{"behind a line's last backslash", "a\\\n<b> ![c](d)", "> a\\\n> &lt;b> &#33;[c](d)"},
		{"headings", "# a\nb\n===\n## user", "> # a\n> b\n> ===\n> ## user"},
	} {
		if got := quote(c.in); got != c.want {
			t.Errorf("%s: %q became\n%s\nwant\n%s", c.name, c.in, got, c.want)
		}
	}
}

// Lists in lists without end take time in proportion.
func TestDeep(t *testing.T) {
	in := strings.Repeat("- ", 100_000) + "`<b>`\n" + strings.Repeat("\n", 100_000) + strings.Repeat("> ", 100_000) + "<b>"
	if out := quote(in); !strings.HasSuffix(out, ` \<b>`) || !strings.Contains(out, "`\\<b>`") {
		t.Errorf("got …%.80q", out[len(out)-80:])
	}
}
