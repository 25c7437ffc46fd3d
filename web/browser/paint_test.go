package browser

import (
	"slices"
	"strings"
	"testing"
)

// A session opens at its newest message, for which the page needs four answers: itself, its style, its code and a page
// of entries. Everything else may come later, or never.
func TestFirstPaint(t *testing.T) {
	t.Parallel()
	s := withBundled(t)
	release := s.hold(func(r string) bool { return strings.Contains(r, "/v1/") && !strings.Contains(r, "/entries?") })
	p := visit(t, s, "/s/"+bundled)
	p.see(".talk article|" + newest)
	release()
	p.see(".map .row")
	p.wait(`document.querySelector(".rail-at strong").innerText.startsWith("turn ")`) // it was imported

	const most = 26 // of the whole page; it had as many when this was written
	p.settled()
	list := s.requests()
	if len(list) > most {
		t.Errorf("%d requests, want at most %d: %v", len(list), most, list)
	}
	slices.Sort(list)
	for i := 1; i < len(list); i++ {
		if list[i] == list[i-1] {
			t.Errorf("asked twice: %s", list[i])
		}
	}
	if n := p.count("*"); n >= 3_000 {
		t.Errorf("%d elements, want fewer than 3,000", n)
	}
}
