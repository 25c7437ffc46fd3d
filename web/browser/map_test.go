package browser

import (
	"fmt"
	"testing"

	"github.com/coppice-go/coppice/internal/cli/demostore"
)

// The map shows every branch; a row is a link to its place, and never moves the head.
func TestMap(t *testing.T) {
	t.Parallel()
	d := withDemo(t)
	p := arrive(t, d.site, "/s/"+demostore.Main, ".map .row")
	kept := d.keepsHead(t, demostore.Main)
	p.see(".map .row|Low at 01:57 and 14:17") // the head is in sight
	p.wheelTo(".map-rows", ".map .row|I have to stop myself here", -1200)
	p.click(".map .row|I have to stop myself here")
	p.wait(`new URLSearchParams(location.search).get("at") === "036ea533"`)
	p.see(".talk article#e-036ea533")
	p.see(".map .row[aria-selected=true]|I have to stop myself here")
	p.see(".rail-at|seq 67")

	rows := func() string { return p.text(".map output") }
	all := rows()
	p.choose("select[aria-label=Filter]", "user-only")
	p.waitQuery("filter", "user-only")
	p.until("fewer rows than "+all, func() (bool, error) { return rows() != all, nil })

	heights := map[int]bool{}
	for _, zoom := range []string{"outline", "lines", "details"} {
		p.click(".zoom button|" + zoom)
		p.see(".zoom button[aria-pressed=true]|" + zoom)
		heights[eval[int](p, `Math.round(document.querySelector(".map .row").getBoundingClientRect().height)`)] = true
	}
	if len(heights) != 3 {
		t.Errorf("three levels of zoom have rows of heights %v", heights)
	}

	p.write(".map-search", "harbour")
	p.press("Enter")
	p.waitQuery("q", "harbour")
	p.see(".map mark|harbour")
	kept()
}

// The tree is drawn once, however the cursor moves: only another filter, other words, or a commit draw it again.
func TestMapIsDrawnOnce(t *testing.T) {
	t.Parallel()
	d := withDemo(t)
	p := arrive(t, d.site, "/s/"+demostore.Main, ".map .row")
	p.settled()
	drawn := func() int { return len(d.requests("/map?", "view=")) }
	before := drawn()
	for range 4 {
		at := eval[string](p, `location.search`)
		p.press("k")
		p.wait(`location.search !== %s`, at)
	}
	p.settled()
	if n := drawn(); before != 1 || n != before {
		t.Errorf("the tree was drawn %d times when the page was opened, want once, and %d times since", before, n-before)
	}
}

// Dragging the minimap scrolls the map from its first row to its last.
func TestMinimap(t *testing.T) {
	t.Parallel()
	d := withDemo(t)
	p := arrive(t, d.site, "/s/"+demostore.Main, ".map .row")
	kept := d.keepsHead(t, demostore.Main)
	first := func() int { return eval[int](p, `+document.querySelector(".minimap").ariaValueNow`) }
	p.drag(".minimap", 0, at(0.5, 0.5), at(0.5, 0.2), at(0.5, 0.001))
	p.wait(`document.querySelector(".map .row")?.ariaPosInSet === "1"`)
	if n := first(); n != 0 {
		t.Errorf("at the top the first row is %d", n)
	}
	p.drag(".minimap", 0, at(0.5, 0.1), at(0.5, 0.6), at(0.5, 0.999))
	p.wait(`[...document.querySelectorAll(".map .row")].at(-1)?.ariaPosInSet === document.querySelector(".map .row").ariaSetSize`)
	p.wheel(".map-rows", -100_000)
	p.wait(`document.querySelector(".map .row")?.ariaPosInSet === "1"`)
	p.click(".map-rows")
	p.press("ArrowDown ArrowDown")
	p.see(".map .row[aria-selected=true]")
	kept()
}

// A hit of the search on another branch switches the view to it.
func TestSearch(t *testing.T) {
	t.Parallel()
	d := withDemo(t)
	p := arrive(t, d.site, "/s/"+demostore.Main, ".talk article")
	kept := d.keepsHead(t, demostore.Main)
	p.press("Mod+k")
	p.see("dialog.palette")
	p.write("dialog.palette input", "raise the limit")
	p.see("dialog.palette [role=option]|Bay of Fundy")
	p.click("dialog.palette [role=option]|Bay of Fundy")
	p.miss("dialog")
	p.see(".talk article[aria-current=true]|Fiona here, on my laptop")
	p.wait(`new URLSearchParams(location.search).get("line")`)
	p.see(".talk article|Done: the four stations pass")

	p.click("header.top button|Search")
	p.write("dialog.palette input", "gauge at")
	p.see("dialog.palette [role=option]|watch the gauge")
	p.press("Enter")
	p.miss("dialog")
	p.see("h1|watch the gauge at Saint-Malo")

	p.press("Mod+k")
	p.write("dialog.palette input", "what the model saw")
	p.see("dialog.palette [role=option][aria-selected=true]|what the model saw")
	p.press("Enter")
	p.waitQuery("pane", "context")
	kept()
}

// Words that are marked in the map are counted, and Enter goes from hit to hit, on whichever branch it is.
func TestHitsOfTheMap(t *testing.T) {
	t.Parallel()
	d := withDemo(t)
	p := arrive(t, d.site, "/s/"+demostore.Main, ".map .row")
	p.press("/")
	p.see(".map-search:focus")
	p.write(".map-search", "fundy")
	var hits, rows int
	found := []string{}
	for range 40 {
		p.press("Enter")
		p.settled()
		at := eval[string](p, `document.querySelector(".map .row.at")?.dataset.id ?? ""`)
		if len(found) > 0 && at == found[0] {
			break
		}
		found = append(found, at)
		if !eval[bool](p, inSight, ".map .row.at", ".map-rows") {
			t.Errorf("hit %d is out of sight", len(found))
		}
	}
	_, err := fmt.Sscanf(p.text(".map output"), "%d of %d rows", &hits, &rows)
	ok(t, err)
	if hits != len(found) || hits < 3 {
		t.Errorf("%d hits of %d rows, Enter went to %d: %q", hits, rows, len(found), found)
	}
}

// The list of sessions is searched, and shows agents below what started them.
func TestSessions(t *testing.T) {
	t.Parallel()
	d := withDemo(t)
	p := arrive(t, d.site, "/", ".sessions a")
	p.see(".sessions a|tideline 0.2 >> .status|answered")
	p.see(".sessions a|watch the gauge >> .status|asked")
	p.see(".sessions a|with agents)")
	p.click(".sessions button|2 agents, 1 fork")
	p.see(".sessions ul ul a|windows")
	p.write(".sessions-search", "gauge")
	p.miss(".sessions a|tideline 0.2")
	p.click(".sessions a|watch the gauge")
	p.see(".talk article|Watch the gauge at Saint-Malo")
}

// A link to a commit alone shows its row too, though the cursor comes to it when the map is being read.
func TestMapShowsTheCommitOfALink(t *testing.T) {
	t.Parallel()
	d := withDemo(t)
	p := arrive(t, d.site, "/s/"+demostore.Main+"?seq=60", ".map .row.at")
	p.wait(`(() => {
		const row = document.querySelector(".map .row.at").getBoundingClientRect();
		const box = document.querySelector(".map-rows").getBoundingClientRect();
		return row.top >= box.top && row.bottom <= box.bottom;
	})()`)
}

// A row of another branch shows the line through it, to its newest end; what comes after the row is there.
func TestRowOfAnotherBranch(t *testing.T) {
	t.Parallel()
	d := withDemo(t)
	kept := d.keepsHead(t, demostore.Main)
	p := arrive(t, d.site, "/s/"+demostore.Main, ".map .row")
	p.wheelTo(".map-rows", ".map .row|Quick aside before we go on", -600)
	p.click(".map .row|Quick aside before we go on")
	p.see(".talk article.at|Quick aside before we go on")
	p.see(".talk article|And if they abolish them?")
	p.see(".talk article|They will, by 2035")
	p.see(".talk .edge|end of this line")
	p.see(".map .row.at|Quick aside before we go on")
	p.wheelTo(".map-rows", ".map .row|Good enough for today", 600)
	p.click(".map .row|Good enough for today")
	p.see(".talk article.at|Good enough for today")
	p.waitQuery("line", "")
	kept()
}

// Another filter and another size of rows keep in sight what was, and the map follows the head at its tail.
func TestMapKeepsItsPlace(t *testing.T) {
	t.Parallel()
	d := withDemo(t)
	p := arrive(t, d.site, "/s/"+demostore.Main, ".map .row")
	p.wheel(".map-rows", -1200)
	p.settled()
	prompt := eval[string](p, `(() => {
		const box = document.querySelector(".map-rows").getBoundingClientRect();
		const rows = [...document.querySelectorAll(".map .row.role-user.on-path")];
		return rows.find((e) => e.getBoundingClientRect().top > box.top + 200).dataset.id;
	})()`)
	row := `.map .row[data-id="` + prompt + `"]`
	p.click(row)
	p.see(row + ".at")
	for _, act := range []string{"details", "outline", "lines"} {
		p.click(".zoom button|" + act)
		p.settled()
		if !eval[bool](p, inSight, row, ".map-rows") {
			t.Errorf("%s: the row of the cursor is out of sight", act)
		}
	}
	for _, filter := range []string{"user-only", "all", "labeled-only", "no-tools", "default"} {
		p.choose("select[aria-label=Filter]", filter)
		p.settled()
		if filter != "labeled-only" && !eval[bool](p, inSight, row, ".map-rows") {
			t.Errorf("%s: the row of the cursor is out of sight", filter)
		}
	}

	p.click("button.live")
	p.settled()
	p.drag(".minimap", 0, at(0.5, 0.98), at(0.5, 1))
	p.settled()
	for i := range 5 {
		d.says(demostore.Main, fmt.Sprintf("A new message, %d.", i))
		p.see(fmt.Sprintf(".map .row|A new message, %d.", i))
	}
	// Where frames are slow a message comes before the map has moved to the one before.
	eval[bool](p, `((frame) => {
		window.requestAnimationFrame = (f) => setTimeout(() => frame(f), 500);
		return true;
	})(requestAnimationFrame)`)
	for i := 12; i < 30; i++ {
		d.says(demostore.Main, fmt.Sprintf("A new message, %d.", i))
		p.see(fmt.Sprintf(".map .row|A new message, %d.", i))
	}
	p.settled()
	if !eval[bool](p, inSight, `.map .row[data-id="`+d.head(demostore.Main).Entry+`"]`, ".map-rows") {
		t.Error("the map does not follow the head")
	}
}
