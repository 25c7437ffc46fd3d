package browser

import (
	"context"
	"os"
	"strings"
	"sync"
	"testing"

	coppice "github.com/coppice-go/coppice"
	"github.com/coppice-go/coppice/backend/memory"
	"github.com/coppice-go/coppice/entry"
	"github.com/coppice-go/coppice/transcript"
	"github.com/coppice-go/coppice/web/browser/fixture"
)

// made writes a fixture once for all tests of the package, which only read it, and serves it.
func made(t testing.TB, f *written) *site {
	t.Helper()
	f.once.Do(func() {
		if f.dir == "" {
			f.dir, f.err = os.MkdirTemp("", "viewer")
		}
		if f.err == nil {
			f.err = f.write(context.Background(), f.dir)
		}
	})
	ok(t, f.err)
	st, err := coppice.Open(t.Context(), f.dir, nil)
	ok(t, err)
	t.Cleanup(func() { ok(t, st.Close()) })
	return newSite(t, st)
}

// written is a fixture that is written when it is first asked for.
type written struct {
	once  sync.Once
	write func(ctx context.Context, dir string) error
	dir   string // a store; "" = a new folder
	err   error
}

var hostile = written{write: fixture.Hostile, dir: "mem:hostile"}

// canary is what payloads call where they are not shown as text.
const canary = `window.` + fixture.Executed + ` = () => window.__seen.violations.push("a payload was executed");
	window.alert = window.` + fixture.Executed + `;`

// hostileTab opens a session of the hostile store.
func hostileTab(t *testing.T, s *site, as look, path, selector string) *tab {
	t.Helper()
	p := newTab(t, s, as)
	before(p, canary)
	p.navigate(path)
	p.see(selector)
	p.settled()
	return p
}

// few fails if there are too many elements in the page.
func (p *tab) few() {
	p.t.Helper()
	if n := p.count("*"); n >= 3_000 {
		p.t.Errorf("%d elements at %s", n, p.location())
	}
}

// A conversation whose every field is hostile is text: all of it, folded and unfolded.
func TestHostileConversation(t *testing.T) {
	t.Parallel()
	s := made(t, &hostile)
	p := hostileTab(t, s, look{width: 1440, height: 2_300}, "/s/"+fixture.HostileID, ".talk article")
	p.press("g g")
	p.see(".talk .edge|start of the session")
	p.press("o t")
	p.settled()
	// Down to the end, a step of what is drawn at a time.
	type walked struct{ Articles, Steps, Most int }
	var all walked
	for all.Steps = 0; all.Steps < 2_000; all.Steps += 5 {
		w := eval[walked](p, `(async () => {
			const box = document.querySelector(".scroller"), seen = (window.__ids ??= new Set());
			const frame = () => new Promise(requestAnimationFrame);
			let most = 0;
			for (let i = 0; i < 5; i++) {
				for (const e of document.querySelectorAll(".talk article")) seen.add(e.id);
				most = Math.max(most, document.getElementsByTagName("*").length);
				box.scrollTop += 2_000;
				await frame();
				await frame();
			}
			return { Articles: seen.size, Most: most };
		})()`)
		all.Articles, all.Most = w.Articles, max(all.Most, w.Most)
		if soak == 0 && all.Steps >= 20 { // the short form looks at the start, and at later places
			eval[bool](p, `(document.querySelector(".scroller").scrollTop += 15_000) > 0`)
		}
		if eval[bool](p, `(() => { const b = document.querySelector(".scroller");
			return b.scrollTop + b.clientHeight >= b.scrollHeight - 2 && document.querySelector("[aria-label='To the end']") === null; })()`) {
			p.settled()
			break
		}
	}
	t.Logf("%d articles in %d steps, at most %d elements", all.Articles, all.Steps, all.Most)
	if all.Most >= 3_000 {
		t.Errorf("%d elements", all.Most)
	}
	if want := len(s.path(fixture.HostileID, "")) / 8; all.Articles < want {
		t.Errorf("%d articles were drawn, want %d at least", all.Articles, want)
	}
}

// What a user wrote is to be read as it was written, whatever it would mean to a browser.
func TestHostileText(t *testing.T) {
	t.Parallel()
	s := made(t, &hostile)
	all := fixture.Payloads()
	at := s.prompts(fixture.HostileID)
	var p *tab
	for _, name := range []string{"script", "img onerror", "svg onload", "style end", "iframe", "comment"} {
		id := at[all[name]]
		if id == "" {
			t.Fatalf("no message says %s", all[name])
		}
		url, article := "/s/"+fixture.HostileID+"?at="+id, "#e-"+id
		if p == nil {
			p = hostileTab(t, s, wide, url, article)
		} else {
			p.turn(url)
		}
		p.wait(`document.querySelector(%s)?.innerText.includes(%s)`, article, all[name])
	}
}

// What turns the direction of a text around is shown, and does nothing: in Markdown, also written as an entity, in code, in
// plain text, in what a tool is called with and answers, and in titles. Letters that are written from the right stay.
func TestDirections(t *testing.T) {
	t.Parallel()
	st := stored(t, memory.New())
	s := newSite(t, st)
	h, err := st.Create("directions", nil)
	ok(t, err)
	const odd = "\u202eexe.gnp"
	message := func(role, content string) transcript.Draft {
		return transcript.Draft{Type: "message", Body: jsonText(`{"message":{"role":"` + role + `","toolCallId":"a","content":` + content + `}}`)}
	}
	_, err = h.Commit(t.Context(), coppice.Turn{Entries: drafts(
		entry.User(odd), entry.User("\u2066\u2069"), entry.Assistant("&#x202E;entity *"+odd+"*\n\n```\nblock "+odd+"\n```\n\nשלום"),
		message("assistant", `[{"type":"toolCall","id":"a","name":"read","arguments":{"path":"`+odd+`"}}]`),
		message("toolResult", `[{"type":"text","text":"result `+odd+`"}]`),
	)})
	ok(t, err)
	ok(t, h.Close())
	p := arrive(t, s, "/s/directions", ".talk article|שלום")
	p.press("o")
	for _, text := range []string{
		".md|\\u202eexe.gnp", ".md|\\u2066\\u2069", ".md|\\u202eentity", ".md em|\\u202eexe.gnp", ".md pre|block \\u202eexe.gnp",
		".argument|\\u202eexe.gnp", ".folded pre|\\u202eexe.gnp", ".folded pre|result \\u202eexe.gnp",
	} {
		p.see(".talk article " + text)
	}
	if eval[bool](p, `/[\u202a-\u202e\u2066-\u2069]/.test(document.body.innerText)`) {
		t.Error("a text of the page turns its direction around")
	}
}

// The same of every pane and dialog.
func TestHostilePanes(t *testing.T) {
	t.Parallel()
	s := made(t, &hostile)
	p := hostileTab(t, s, wide, "/s/"+fixture.HostileBranchesID, ".map .row")
	p.wait(`document.querySelector("select.branch")?.options.length > 50`)
	for _, zoom := range []string{"outline", "details", "lines"} {
		p.click(".zoom button|" + zoom)
		for range 3 {
			p.wheel(".map-rows", 1_000)
			p.settled()
		}
		p.few()
	}
	p.write(".map-search", "<img src=x onerror=executed(1)>")
	p.press("Enter")
	p.settled()
	eval[bool](p, `document.activeElement.blur() ?? true`)

	p.press("s")
	p.see(".state .json")
	for i := range 10 {
		p.drag(".axis", 0, at(0.09*float64(i)+0.02, 0.5), at(0.095*float64(i)+0.03, 0.5))
		p.wait(`document.querySelector(".state-head strong").innerText === document.querySelector(".rail-at strong").innerText`)
		p.hover(".axis")
	}
	p.settled()
	p.few()
	p.click(".changes button")
	p.see(".past-list")
	p.click(".state-tabs button|Text")
	p.see(".state .editor")
	p.settled()
	p.press("c")
	p.press("w")
	p.see(".saw ol li")
	p.click(".saw li:last-child button.message-line")
	p.settled()
	p.press("c")
	p.press(", , ,")
	p.see(".compare")
	p.settled()
	p.few()
	for _, form := range []string{"anthropic", "openai-chat", "openai-responses", "gemini"} {
		p.press("w")
		p.see(".saw select")
		eval[bool](p, `(() => { const s = document.querySelector(".saw select"); s.value = %s;
			return s.dispatchEvent(new Event("change", { bubbles: true })); })()`, form)
		p.settled()
		p.press("w")
	}
	p.press("u")
	p.see(".usage table")
	p.press("R")
	p.see("dialog[open]")
	p.settled()
	p.press("Escape")
	p.miss("dialog")
	p.press("x")
	p.see("dialog[open]")
	p.press("Escape")
	p.miss("dialog")
}

// The same of the list of sessions, of ids that mean something elsewhere and of the search.
func TestHostileLists(t *testing.T) {
	t.Parallel()
	s := made(t, &hostile)
	p := hostileTab(t, s, wide, "/", ".sessions a")
	for range 6 {
		if p.count(".sessions button.more") == 0 {
			break
		}
		p.click(".sessions button.more")
		p.settled()
	}
	p.few()
	p.hover(".sessions a")
	for _, words := range []string{"script", "onerror", "javascript"} {
		p.press("Mod+k")
		p.write("dialog.palette input", words)
		p.see("dialog.palette [role=option]")
		p.settled()
		p.press("Escape")
		p.wait(`document.querySelector("dialog") === null`)
	}
	for _, id := range []string{"__proto__", "constructor", "a..b", strings.Repeat("W", 128)} {
		p.turn("/s/" + id)
		p.see(".talk article")
		p.see("h1")
		p.settled()
	}
}
