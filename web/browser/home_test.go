package browser

import (
	"testing"

	coppice "github.com/coppice-go/coppice"
	"github.com/coppice-go/coppice/backend/memory"
	"github.com/coppice-go/coppice/entry"
	"github.com/coppice-go/coppice/internal/cli/demostore"
)

// The home page shows what this is, and the newest sessions by day, each with a drawing of the agents and forks that it
// started, its folder, its failures and its cost; filters narrow them.
func TestHome(t *testing.T) {
	t.Parallel()
	d := withDemo(t)
	p := arrive(t, d.site, "/", ".newest li")
	p.see(".home-page p|every branch, and the agent's exact state")
	p.see(".newest h2")
	card := ".newest a|tideline 0.2"
	p.see(card)
	p.see(card + " >> .facts|tideline")
	p.see(card + " >> .facts .failed|failed")
	p.see(card + " >> .facts|$")
	p.wait(`document.querySelectorAll(".newest .twigs .agent").length === 2`)
	p.wait(`document.querySelectorAll(".newest .twigs .fork").length === 1`)
	if n := len(d.requests("GET /v1/sessions/")); n > 0 {
		t.Errorf("%d requests for single sessions", n)
	}
	all := p.count(".newest li")
	p.click(".newest .filters button|failed")
	p.see(card)
	p.wait(`document.querySelectorAll(".newest li").length < %s`, all)
	p.click(card)
	p.see(".talk article")
}

// The home page shows which program made a session, and can be narrowed to one of them.
func TestProgramsOfSessions(t *testing.T) {
	t.Parallel()
	st := stored(t, memory.New())
	for id, program := range map[string]string{"tides": "codex", "chart": "claude-code", "own": ""} {
		o := &coppice.SessionOptions{Title: id, Meta: map[string]string{"program": program}}
		if program == "" {
			o.Meta = nil
		}
		h, err := st.Create(id, o)
		ok(t, err)
		_, err = h.Commit(t.Context(), coppice.Turn{Entries: drafts(entry.User("begin"))})
		ok(t, err)
		ok(t, h.Close())
	}
	p := arrive(t, newSite(t, st), "/", ".newest li")
	p.see(".newest a|tides >> .facts|codex")
	p.choose("select[aria-label=Program]", "claude-code")
	p.miss(".newest a|tides")
	p.miss(".newest a|own")
	p.see(".newest a|chart >> .facts|claude-code")
}

// A store that has nothing shows the command that imports.
func TestEmptyStore(t *testing.T) {
	t.Parallel()
	s := newSite(t, stored(t, memory.New()))
	p := arrive(t, s, "/", ".empty-store")
	p.see(".empty-store code|coppice import")
	p.click(".empty-store button|Copy")
	p.see(".toast")
}

// The demo opens where a prompt has two versions, with three hints. Once they are dismissed they stay away.
func TestHintsOfTheDemo(t *testing.T) {
	t.Parallel()
	d := withDemo(t)
	path := "/s/" + demostore.Main + "?hints=1&at=" + demostore.Point
	p := arrive(t, d.site, path, ".hints li")
	p.see(".talk article.at|" + rephrased)
	p.see(".talk article.at .picker")
	if n := p.count(".hints li"); n != 3 {
		t.Errorf("%d hints", n)
	}
	p.click(".hints button")
	p.miss(".hints")
	p.navigate(path)
	p.see(".talk article.at|" + rephrased)
	p.miss(".hints")
}

// The phone shows the whole title of a session and what its branch is called.
func TestTitleOnAPhone(t *testing.T) {
	t.Parallel()
	d := withDemo(t)
	p := visitAs(t, d.site, "/s/"+demostore.Main, phone)
	p.see(".top .branch")
	p.settled()
	cut := eval[[]string](p, `[...document.querySelectorAll(".top h1, .top .branch")].filter((e) => {
		const r = e.getBoundingClientRect();
		const cut = e.scrollWidth > e.clientWidth + 1 || e.scrollHeight > e.clientHeight + 1;
		return cut || r.right > innerWidth || r.width < 100;
	}).map((e) => e.className + e.innerText)`)
	if len(cut) > 0 {
		t.Errorf("cut: %q", cut)
	}
}
