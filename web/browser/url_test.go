package browser

import (
	"fmt"
	"strings"
	"testing"

	"github.com/coppice-go/coppice/internal/cli/demostore"
)

// shown is what a person sees of a view: which entry is selected, which commit, which pane and what is set in it.
type shown struct {
	Title, Selected, Seq, Pane, Branch, Filter, Mark, Value, A string
}

const fingerprint = `({
  Title: document.querySelector(".top h1")?.innerText ?? "",
  Selected: document.querySelector(".talk [aria-current=true]")?.id ?? "",
  Seq: document.querySelector(".rail-at strong")?.innerText ?? "",
  Pane: document.querySelector(".side .tabs [aria-current]")?.innerText ?? "",
  Branch: document.querySelector("select.branch")?.selectedOptions[0]?.innerText ?? "",
  Filter: document.querySelector("select[aria-label=Filter]")?.value ?? "",
  Mark: document.querySelector(".map-search")?.value ?? "",
  Value: document.querySelector(".past-list")?.ariaLabel ?? "",
  A: document.querySelector(".compare-choose select")?.value ?? "",
})`

// The URL of a view shows another person the same.
func TestURLs(t *testing.T) {
	t.Parallel()
	d := withDemo(t)
	const title = "tideline 0.2: exact, fast, and a calendar"
	tests := []struct {
		query string
		want  shown
	}{
		{"", shown{Seq: "seq 213", Pane: "Map", Filter: "default", Branch: headLine + " (head)"}},
		{"?at=905a9ab2&pane=state", shown{Selected: "e-a58b0db3", Seq: "seq 100", Pane: "State", Branch: headLine + " (head)"}},
		// the conversation is at the commit too
		{"?seq=40&pane=state&path=%2Fplan", shown{
			Selected: "e-36b845af", Seq: "seq 40", Pane: "State", Value: "History of /plan", Branch: "main, up to here",
		}},
		{"?line=036ea533&at=07963d71", shown{
			Selected: "e-07963d71", Seq: "seq 62", Pane: "Map", Filter: "default", Branch: "main, up to here",
		}},
		{"?line=5e2d90b7", shown{Seq: "seq 68", Pane: "Map", Filter: "default", Branch: "main"}},
		{"?at=9f36cd82&pane=compare&with=seq%3A40", shown{
			Selected: "e-9f36cd82", Seq: "seq 1", Pane: "Compare",
			Branch: headLine + " (head)", A: "seq:40",
		}},
		{"?filter=user-only&q=harbour", shown{
			Seq: "seq 213", Pane: "Map", Filter: "user-only", Mark: "harbour",
			Branch: headLine + " (head)",
		}},
		{"?pane=context&at=96478b11", shown{Selected: "e-96478b11", Seq: "seq 116", Pane: "Model saw", Branch: headLine + " (head)"}},
	}
	head := d.head(demostore.Main)
	p := newTab(t, d.site, wide)
	for _, test := range tests {
		test.want.Title = title
		url := ""
		for _, again := range []bool{false, true} {
			if again {
				p.reload()
			} else {
				p.turn("/s/" + demostore.Main + test.query)
			}
			p.until(test.query+" to be shown", func() (bool, error) {
				is, err := try[shown](p, fingerprint)
				if err == nil && is != test.want {
					err = fmt.Errorf("%+v, want %+v", is, test.want)
				}
				return true, err
			})
			p.settled()
			switch now := p.location(); {
			case !again:
				url = now // of a commit alone it names the place too
			case now != url:
				t.Errorf("%s became %s", url, now)
			}
		}
	}
	if now := d.head(demostore.Main); now != head {
		t.Errorf("looking moved the head from %v to %v", head, now)
	}
}

// Back and forward go through what was chosen.
func TestHistoryOfTheBrowser(t *testing.T) {
	t.Parallel()
	d := withDemo(t)
	p := visit(t, d.site, "/")
	p.click(".sessions a|" + "tideline 0.2")
	p.see(".talk article")
	p.click(".tabs a|State")
	p.see(".state-changed")
	p.click(".tabs a|Usage")
	p.see(".usage table")
	eval[bool](p, `history.back() ?? true`)
	p.see(".state-changed")
	eval[bool](p, `history.go(-2) ?? true`)
	p.wait(`location.pathname === "/"`)
	p.see(".home-page")
	eval[bool](p, `history.go(3) ?? true`)
	p.see(".usage table")
}

// A run of keys is one step of the browser's history: back leads to where it began, not out of the session.
func TestHistoryOfKeys(t *testing.T) {
	t.Parallel()
	d := withDemo(t)
	p := visit(t, d.site, "/")
	p.click(".sessions a|" + "tideline 0.2")
	p.see(".map .row")
	p.settled()
	back := func(name, want string) {
		t.Helper()
		p.settled()
		eval[bool](p, `history.back() ?? true`)
		p.wait(`location.pathname !== "/"`)
		p.waitQuery(name, want)
		p.settled()
	}
	p.write(".map-search", "Fiona") // the words are marked while they are entered
	p.wait(`/^\d+ of/.test(document.querySelector(".map output").innerText)`)
	p.press("Enter Enter")
	p.wait(`new URLSearchParams(location.search).get("at")`)
	back("at", "")
	p.press("Escape") // out of the field
	p.press(", , ,")
	p.waitQuery("seq", "210")
	back("seq", "")
	p.press("k k")
	p.wait(`new URLSearchParams(location.search).get("at")`)
	back("at", "")
}

// One pull of the timeline's cursor is a step of the browser's history, and so is the way to the head.
func TestHistoryOfTheTimeline(t *testing.T) {
	t.Parallel()
	d := withDemo(t)
	p := arrive(t, d.site, "/s/"+demostore.Main, ".map .row")
	p.drag(".axis", 0, at(0.2, 0.5), at(0.3, 0.5), at(0.4, 0.5))
	p.settled()
	first := p.query("seq")
	p.drag(".axis", 0, at(0.7, 0.5), at(0.8, 0.5))
	p.settled()
	second := p.query("seq")
	p.click("button.live")
	p.waitQuery("seq", "")
	for _, want := range []string{second, first, ""} {
		eval[bool](p, `history.back() ?? true`)
		p.waitQuery("seq", want)
		p.settled()
	}
	if first == "" || second == "" || first == second {
		t.Errorf("the cursor was at %q and %q", first, second)
	}
}

// The size of rows, the form of a context and of a state, and a phone's pane are in the URL.
func TestFormsInURLs(t *testing.T) {
	t.Parallel()
	d := withDemo(t)
	form := `document.querySelector(".saw select").value`
	p := arrive(t, d.site, "/s/"+demostore.Main, ".map .row")
	p.click(".zoom button|details")
	p.waitQuery("rows", "details")
	p.click(".tabs a|State")
	p.click(".state-tabs button|Text")
	p.waitQuery("as", "text")
	p.click(".tabs a|Model saw")
	p.choose(".saw select", "anthropic")
	p.waitQuery("form", "anthropic")
	p.reload()
	p.see(".saw ol li")
	if got := eval[string](p, form); got != "anthropic" {
		t.Errorf("the form is %q", got)
	}
	p.click(".tabs a|State")
	p.see(".state .editor")
	p.click(".tabs a|Map")
	p.see(".zoom button[aria-pressed=true]|details")

	q := visitAs(t, d.site, "/s/"+demostore.Main, phone)
	q.see(".talk article")
	q.click(".phone-bar button|Map and state")
	q.waitQuery("tab", "side")
	q.reload()
	q.see(".map .row")
	eval[bool](q, `history.back() ?? true`)
	q.see(".talk article")
}

// A link to what is not there is reported, and the rest of the page stays of use.
func TestLinksToNothing(t *testing.T) {
	t.Parallel()
	s := withBundled(t)
	p := visit(t, s, "/s/none")
	p.allow("status of 404")
	p.allow("status of 422")
	p.see("[role=alert]")
	p.click(".sessions a")
	p.see(".talk article|" + newest)
	release := s.hold(func(r string) bool { return strings.Contains(r, "/entries?") })
	p.navigate("/s/" + bundled + "?at=ffffffff&seq=999999999&pane=state")
	p.waitQuery("seq", "")
	release()
	p.see("[role=alert]|this session does not have")
	p.see(".talk article|" + newest)
	p.settled()
	p.see("[role=alert]|this session does not have")
	p.click("button.live")
	p.see(".talk article|" + newest)
	p.navigate("/s/" + bundled + "?seq=999")
	p.waitQuery("seq", "")
	p.see(".talk article|" + newest)
	p.settled() // what was read since has not taken the alert away
	p.see("[role=alert]|commit 999, which this session does not have")
	p.navigate("/s/" + bundled + "?pane=compare&with=none%2Fhead")
	p.see(".compare [role=alert]|There is no none/head to compare with")
}

// A link to a session that is not there is reported once, and offers nothing that acts on a session.
func TestNoSuchSession(t *testing.T) {
	t.Parallel()
	d := withDemo(t)
	p := newTab(t, d.site, wide)
	p.allow("status of 404")
	p.navigate("/s/none")
	p.see("h1|No such session")
	p.see(".sessions a|tideline 0.2")
	p.settled()
	if n := p.count("[role=alert]"); n != 1 {
		t.Errorf("%d alerts", n)
	}
	for _, selector := range []string{".badge.live", ".rail button", ".top button|Export", ".side a"} {
		p.miss(selector)
	}
	if list := d.requests("/v1/sessions/none"); len(list) == 0 || len(list) > 5 {
		t.Errorf("%d requests: %v", len(list), list)
	}
	p.click("main a|All sessions")
	p.see("h1|What your agents did, and the way back")
	p.waitQuery("at", "")
}
