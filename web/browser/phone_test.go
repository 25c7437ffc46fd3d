package browser

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/coppice-go/coppice/internal/cli/demostore"
)

// inSight reports whether an element is in sight in another one.
const inSight = `((css, box) => {
	const e = document.querySelector(css)?.getBoundingClientRect(), b = document.querySelector(box).getBoundingClientRect();
	return e !== undefined && e.height > 0 && e.bottom > b.top && e.top < b.bottom;
})(%s, %s)`

// On a phone one pane fills the screen. If the cursor moved while a pane was hidden, the pane shows it when it is opened.
func TestPhonePanes(t *testing.T) {
	t.Parallel()
	d := withDemo(t)
	p := visitAs(t, d.site, "/s/"+demostore.Main, phone)
	p.see(".talk article|Low at 01:57")
	p.settled()
	if !eval[bool](p, `[...document.querySelectorAll(".talk article")].at(-1).getBoundingClientRect().bottom <=
		document.querySelector(".scroller").getBoundingClientRect().bottom + 1`) {
		t.Error("a phone does not begin at the newest message")
	}
	if h := eval[float64](p, `Math.min(...[...document.querySelectorAll(".talk .fold > button")].map((e) => e.clientHeight))`); h < 44 {
		t.Errorf("what a finger opens has %v pixels", h)
	}

	p.click(".phone-bar button|Map and state")
	p.see(".map .row")
	p.settled()
	if head := d.head(demostore.Main).Entry; !eval[bool](p, inSight, `.map .row[data-id="`+head+`"]`, ".map-rows") {
		t.Errorf("the map does not show the head: %s", eval[string](p, `document.querySelector(".map-rows").innerText`))
	}
	for _, x := range []float64{0.84, 0.3, 0.85, 0.6} {
		p.drag(".axis", 0, at(x-0.1, 0.5), at(x, 0.5))
		p.settled()
		p.click(".phone-bar button|Conversation")
		p.settled()
		if !eval[bool](p, inSight, ".talk article[aria-current=true]", ".scroller") {
			t.Errorf("seq %s: the conversation does not show the cursor", p.query("seq"))
		}
		p.click(".phone-bar button|Map and state")
		p.settled()
		if !eval[bool](p, inSight, ".map .row.at", ".map-rows") {
			t.Errorf("seq %s: the map does not show the cursor", p.query("seq"))
		}
	}
}

// Between a phone and a wide screen the list of sessions makes room while one is open: no pane scrolls sideways, but code does,
// and what tools are called and what is compared can be read.
func TestNarrowScreen(t *testing.T) {
	t.Parallel()
	d := withDemo(t)
	p := newTab(t, d.site, look{width: 1000, height: 800})
	for _, pane := range []string{"map", "state", "context", "compare", "usage"} {
		p.turn("/s/" + demostore.Main + "?seq=150&with=seq%3A100&pane=" + pane)
		p.see(".talk article")
		p.see(".side > section")
		if pane == "compare" {
			p.wait(`document.querySelector(".merge")?.shadowRoot?.querySelector(".cm-content")`)
		}
		for _, width := range []int{760, 1000} {
			p.resize(look{width: width, height: 800})
			p.settled()
			p.narrow(fmt.Sprint(width, " ", pane))
		}
	}
	p.click(".top .home")
	p.see(".sessions a")
}

// narrow reports what does not fit on a narrow screen.
func (p *tab) narrow(name string) {
	p.t.Helper()
	if eval[bool](p, find+` !== null`, ".sessions a") {
		p.t.Errorf("%s: the list takes the room", name)
	}
	if wide := eval[[]string](p, `[...document.querySelectorAll(".app *")].filter((e) =>
		e.scrollWidth > e.clientWidth + 1 && /auto|scroll/.test(getComputedStyle(e).overflowX) && !e.matches("pre, .cm-scroller, .merge"))
		.map((e) => e.outerHTML.slice(0, 100))`); len(wide) > 0 {
		p.t.Errorf("%s: scrolls sideways: %q", name, wide)
	}
	if names := eval[[]string](p, `[...document.querySelectorAll(".talk .fold b")]
		.filter((e) => e.scrollWidth > e.clientWidth).map((e) => e.innerText)`); len(names) > 0 {
		p.t.Errorf("%s: names of tools are cut: %q", name, names)
	}
	if w := eval[float64](p, `Math.min(...[
		...document.querySelector(".merge")?.shadowRoot.querySelectorAll(".cm-content") ?? []].map((e) => e.clientWidth), 1000)`); w < 130 {
		p.t.Errorf("%s: a side of what is compared has %v pixels", name, w)
	}
}

// A finger that swipes a message sideways goes to its other versions, as ‹ and › do; the head stays.
func TestSwipe(t *testing.T) {
	t.Parallel()
	d := withDemo(t)
	p := visitAs(t, d.site, "/s/"+demostore.Main, phone)
	second := ".talk article|" + rephrased
	p.see(second)
	kept := d.keepsHead(t, demostore.Main)
	p.swipe(second+" >> .md", -300) // there is no third one
	p.settled()
	p.see(second)
	p.swipe(second+" >> .md", 300)
	p.see(".talk article|" + firstOne)
	p.miss(second)
	p.swipe(".talk article|"+firstOne+" >> .md", -300)
	p.see(second)
	p.waitQuery("line", "")
	kept()
}

// What a finger has to hit on a phone is at least 44 px high, but for links within texts.
func TestTargetsOnAPhone(t *testing.T) {
	t.Parallel()
	d := withDemo(t)
	p := newTab(t, d.site, phone)
	for _, pane := range []string{"", "?tab=sessions", "?tab=side", "?pane=state", "?pane=context", "?pane=usage"} {
		p.turn("/s/" + demostore.Main + pane)
		p.see(".phone-bar button")
		p.settled()
		const targets = `a, button, select, input, summary, [role=treeitem]`
		small := eval[[]string](p, `[...document.querySelectorAll(%s)].filter((e) => {
			const r = e.getBoundingClientRect();
			const inSight = r.bottom > 0 && r.top < innerHeight && r.left < innerWidth;
			return r.height > 0 && r.height < 43.5 && inSight && !e.closest(".md, .hidden-text, .json, svg");
		}).map((e) => e.outerHTML.slice(0, 90) + " " + e.getBoundingClientRect().height)`, targets)
		if len(small) > 0 {
			t.Errorf("%q: too small: %s", pane, strings.Join(small, "\n"))
		}
	}
}

// The map and the timeline show what is in sight of the conversation, and words that are looked for are marked in it.
func TestPositionFollowsTheConversation(t *testing.T) {
	t.Parallel()
	d := withDemo(t)
	p := arrive(t, d.site, "/s/"+demostore.Main+"?q=limit", ".map .row")
	p.wait(`CSS.highlights.get("hits") !== undefined`)
	if n := p.count(".map .row.seen"); n != 0 {
		t.Errorf("%d rows are marked while the conversation follows its end", n)
	}
	eval[bool](p, `(document.querySelector(".scroller").scrollTop -= 6000) > 0`)
	p.see(".map .row.seen")
	p.see(".axis .in-sight")
	p.settled()
	row := eval[string](p, `document.querySelector(".map .row.seen").dataset.id`)
	first := eval[string](p, `(() => {
		const edge = document.querySelector(".scroller").getBoundingClientRect().top;
		const articles = [...document.querySelectorAll(".talk article")];
		return articles.find((e) => e.getBoundingClientRect().bottom > edge + 1).dataset.key;
	})()`)
	path := d.site.path(demostore.Main, "") // from the head on
	if at, of := slices.Index(path, row), slices.Index(path, first); of < 0 || at < of || at-of > 4 {
		t.Errorf("row %s is marked, %d entries before what is in sight", row, at-of)
	}
	p.press("n")
	p.wait(`[...CSS.highlights.get("hits")].some((r) =>
		r.startContainer.parentElement?.closest("article[aria-current]"))`)
}
