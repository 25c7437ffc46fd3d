package browser

import (
	"os"
	"strings"
	"testing"

	"github.com/coppice-go/coppice/internal/cli/demostore"
)

// finding is a rule that axe-core finds broken.
type finding struct {
	ID, Impact, Help string
	Nodes            []string
}

// axe returns what axe-core finds that is serious, in the page as it is.
func (p *tab) axe(source string) []finding {
	p.t.Helper()
	if !eval[bool](p, `Boolean(window.axe)`) {
		eval[bool](p, source+"\n;Boolean(window.axe)")
	}
	return eval[[]finding](p, `axe.run(document, { resultTypes: ["violations"] }).then((r) => r.violations
		.filter((v) => v.impact === "serious" || v.impact === "critical")
		.map((v) => ({ ID: v.id, Impact: v.impact, Help: v.help,
			Nodes: v.nodes.slice(0, 4).map((n) => n.target.join(" ") + ": " + n.html.slice(0, 160) + " " + (n.any[0]?.message ?? "")) })))`)
}

// Nothing serious is wrong with any pane and dialog, light and dark, on a wide screen and on a phone.
func TestAccessible(t *testing.T) {
	t.Parallel()
	source, err := os.ReadFile("../node_modules/axe-core/axe.min.js")
	if err != nil {
		if os.Getenv("REQUIRE_CHROMIUM") == "1" {
			t.Fatal(err)
		}
		t.Skipf("axe-core is not installed (npm ci in web): %v", err)
	}
	d := withDemo(t)
	views := []struct{ name, query, ready, press string }{
		{"map", "?at=3206c58d", ".map .row", ""},
		{"open tools", "?at=3206c58d", ".talk article", "o t"},
		{"state", "?seq=100&pane=state&path=%2Fcost", ".past-list li", ""},
		{"context", "?seq=150&pane=context", ".saw ol li", ""},
		{"compare", "?seq=150&pane=compare&with=seq%3A100", ".compare .verdict", ""},
		{"usage", "?pane=usage", ".usage table", ""},
		{"edit", "?at=6e900cc7", ".talk article", "e"},
		{"help", "", ".talk article", "?"},
		{"search", "", ".talk article", "Mod+k"},
		{"export", "", ".talk article", "x"},
		{"roll back", "?seq=100", ".talk article", "R"},
	}
	looks := map[string]look{"wide": wide, "night": night}
	if soak > 0 {
		looks["dark"], looks["phone"] = dark, phone
	}
	for name, as := range looks {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newTab(t, d.site, as)
			check := func(view string) {
				t.Helper()
				for _, f := range p.axe(string(source)) {
					t.Errorf("%s: %s (%s): %s\n%s", view, f.ID, f.Impact, f.Help, strings.Join(f.Nodes, "\n"))
				}
			}
			p.navigate("/")
			p.wait(`document.querySelector(".sessions a") !== null`)
			p.settled()
			check("list")
			for _, v := range views {
				p.navigate("/s/" + demostore.Main + v.query)
				p.wait(`document.querySelector(%s) !== null`, v.ready)
				p.wait(`/(seq|turn) \d/.test(document.querySelector(".rail-at strong").innerText)`)
				if v.press != "" {
					p.press(v.press)
				}
				p.settled()
				check(v.name)
				if as.phone && p.count("dialog") == 0 {
					p.click(".phone-bar button|Map and state")
					p.settled()
					check(v.name + ", second screen")
				}
			}
			p.wide()
		})
	}
}

// wide reports what sticks out of the page to the right.
func (p *tab) wide() {
	p.t.Helper()
	if n := eval[int](p, `document.documentElement.scrollWidth - innerWidth`); n > 0 {
		p.t.Errorf("the page is %d px wider than the window", n)
	}
}
