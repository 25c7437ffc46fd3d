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

// axe returns what axe-core finds that is serious, in the elements that a selector names, as they are.
func (p *tab) axe(source, within string) []finding {
	p.t.Helper()
	if !eval[bool](p, `Boolean(window.axe)`) {
		eval[bool](p, source+"\n;Boolean(window.axe)")
	}
	return eval[[]finding](p, `axe.run(%s, { resultTypes: ["violations"] }).then((r) => r.violations
		.filter((v) => v.impact === "serious" || v.impact === "critical")
		.map((v) => ({ ID: v.id, Impact: v.impact, Help: v.help,
			Nodes: v.nodes.slice(0, 4).map((n) => n.target.join(" ") + ": " + n.html.slice(0, 160) + " " + (n.any[0]?.message ?? "")) })))`, within)
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
	// Of the conversation and the list one check is enough.
	views := []struct{ name, query, ready, press, within string }{
		{"map", "?at=3206c58d", ".map .row", "", "html"},
		{"state", "?seq=100&pane=state&path=%2Fcost", ".past-list li", "", ".side"},
		{"context", "?seq=150&pane=context", ".saw ol li", "", ".side"},
		{"compare", "?seq=150&pane=compare&with=seq%3A100", ".compare .verdict", "", ".side"},
		{"usage", "?pane=usage", ".usage table", "", ".side"},
		{"help", "", ".talk article", "?", "dialog"},
		{"search", "", ".talk article", "Mod+k", "dialog"},
		{"export", "", ".talk article", "x", "dialog"},
		{"roll back", "?seq=100", ".talk article", "R", "dialog"},
		{"edit", "?at=6e900cc7", ".talk article", "e", ".talk"},
		{"open tools", "?at=3206c58d", ".talk article", "o t", ".talk"},
	}
	looks := map[string]look{"wide": wide, "night": night}
	if soak > 0 {
		looks["dark"], looks["phone"] = dark, phone
	}
	for name, as := range looks {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newTab(t, d.site, as)
			check := func(view, within string) {
				t.Helper()
				for _, f := range p.axe(string(source), within) {
					t.Errorf("%s: %s (%s): %s\n%s", view, f.ID, f.Impact, f.Help, strings.Join(f.Nodes, "\n"))
				}
			}
			p.navigate("/")
			p.wait(`document.querySelector(".sessions a") !== null`)
			p.settled()
			check("list", "html")
			for _, v := range views {
				p.turn("/s/" + demostore.Main + v.query)
				p.wait(`document.querySelector(%s) !== null`, v.ready)
				p.wait(`/(seq|turn) \d/.test(document.querySelector(".rail-at strong").innerText)`)
				if v.press != "" {
					p.settled()
					p.press(v.press)
				}
				p.see(v.within)
				p.settled()
				check(v.name, v.within)
				if as.phone && v.within == "html" {
					p.click(".phone-bar button|Map and state")
					p.settled()
					check(v.name+", second screen", ".side")
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
