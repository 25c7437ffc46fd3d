package browser

import (
	"fmt"
	"testing"

	"github.com/chromedp/chromedp"
)

// hide makes a page believe that it is hidden, or seen. Headless, all pages are seen.
func (p *tab) hide(hidden bool) {
	p.t.Helper()
	state := "visible"
	if hidden {
		state = "hidden"
	}
	eval[bool](p, `(() => {
		Object.defineProperty(document, "visibilityState", { configurable: true, value: %s });
		return document.dispatchEvent(new Event("visibilitychange"));
	})()`, state)
}

// streams waits until the server has so many streams of events.
func (s *site) streams(p *tab, want int) {
	s.t.Helper()
	p.until(fmt.Sprint(want, " streams"), func() (bool, error) {
		_, _, n := s.traffic()
		if n != want {
			return false, fmt.Errorf("there are %d", n)
		}
		return true, nil
	})
}

// A browser has six connections to a server for all of its tabs. Pages that were left, which the browser keeps for
// "back", and pages that are hidden have none, and go on without a gap when they are seen again.
func TestConnectionsOfPages(t *testing.T) {
	t.Parallel()
	s := withBundled(t)
	p := newTab(t, s, wide)
	for i := range 3 {
		p.navigate(fmt.Sprintf("/s/%s?seq=%d", bundled, 1+i%2))
		p.see(".talk article")
	}
	s.streams(p, 1)
	eval[bool](p, `history.back() ?? true`)
	p.wait(`location.search.includes("seq=2")`)
	s.streams(p, 1)

	for range 2 {
		p.hide(true)
		p = p.another("/s/" + bundled)
		p.see(".talk article|" + newest)
	}
	s.streams(p, 1)
}

// another opens a path in one more tab of the same profile.
func (p *tab) another(path string) *tab {
	p.t.Helper()
	p.shared = true
	ctx, err := equipped(chromedp.NewContext(p.ctx))
	ok(p.t, err)
	n := prepared(ctx, p.t, p.site, wide)
	n.shared = true
	n.navigate(path)
	return n
}
