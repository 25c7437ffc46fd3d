package browser

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/browser"
	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/chromedp"

	coppice "github.com/coppice-go/coppice"
	"github.com/coppice-go/coppice/entry"
	"github.com/coppice-go/coppice/internal/cli/demostore"
	"github.com/coppice-go/coppice/server"
)

// What an agent commits appears at the tail; who reads elsewhere is told how much is new.
func TestAppends(t *testing.T) {
	t.Parallel()
	s := withBundled(t)
	p := arrive(t, s, "/s/"+bundled, ".talk article|"+newest)
	s.says(bundled, "The first message that came.")
	p.see(".talk article|The first message that came.")
	p.wait(`(() => {
		const r = [...document.querySelectorAll(".talk article")].at(-1).getBoundingClientRect();
		return r.bottom <= document.querySelector(".scroller").getBoundingClientRect().bottom + 1;
	})()`)
	p.see(".map .row|The first message that came.")

	p.wheel(".scroller", -2_000)
	p.see("[aria-label='To the end']")
	p.mouse(input.DispatchMouseEventTypeMouseMoved, 10, 10, 0) // what the pointer is over shows more
	p.settled()
	reading := eval[string](p, `[...document.querySelectorAll(".talk article")].find((e) => e.getBoundingClientRect().top > 200).id`)
	top := func() float64 {
		return eval[float64](p, `document.getElementById(%s).getBoundingClientRect().top`, reading)
	}
	was := top()
	s.says(bundled, "The second.", "The third.")
	p.see(".below button|2 new below")
	p.settled()
	if by := top() - was; by <= -1 || by >= 1 { // pages scroll by whole pixels, and heights are parts of them
		t.Errorf("what is read moved by %v px", by)
	}
	p.click(".below button|2 new below")
	p.see(".talk article|The third.")
	p.miss(".below button|new below")
}

// What is being written is shown as it comes, and is replaced by what was committed.
func TestPartialOutput(t *testing.T) {
	t.Parallel()
	s := withBundled(t)
	p := arrive(t, s, "/s/"+bundled, ".talk article|"+newest)
	h, err := s.store.Open(t.Context(), bundled, nil)
	ok(t, err)
	ok(t, h.Partial(t.Context(), jsonText(`{"role":"assistant","content":[{"type":"text","text":"I am at it"}]}`)))
	p.see(".streaming|I am at it")
	_, err = h.Commit(t.Context(), coppice.Turn{Entries: drafts(entry.Assistant("I was at it, and am done."))})
	ok(t, err)
	ok(t, h.Close())
	p.see(".talk article|and am done")
	p.miss(".streaming")
}

// A turn that lost is not lost: it appears as a branch, while the head stays with the winner.
func TestConflictAppears(t *testing.T) {
	t.Parallel()
	s := withBundled(t)
	p := arrive(t, s, "/s/"+bundled, ".talk article|"+newest)
	loser, err := s.store.Open(t.Context(), bundled, nil)
	ok(t, err)
	base := loser.Head().Commit
	s.says(bundled, "I won.")
	r, err := loser.Commit(t.Context(), coppice.Turn{
		Base: base, KeepBoth: true, Entries: drafts(entry.Assistant("I lost, and stay.")),
	})
	ok(t, err)
	ok(t, loser.Close())
	p.see(".talk article|I won.")
	p.see(".map .row|I lost, and stay.")
	p.miss(".talk article|I lost, and stay.")
	p.see(".talk article|I won. >> .picker|/2")
	p.wait(`[...(document.querySelector("select.branch")?.options ?? [])].some((o) => o.text.startsWith("conflict"))`)
	p.click(".map .row|I lost, and stay.")
	p.see(".talk article|I lost, and stay.")
	if now := s.head(bundled); now.Seq < r.Seq || s.path(bundled, "")[0] == r.Entry {
		t.Errorf("the head is %v", now)
	}
}

// A connection that was cut is opened again after the newest commit that came: nothing is missed, nothing comes twice.
func TestReconnects(t *testing.T) {
	t.Parallel()
	s := withBundled(t)
	p := arrive(t, s, "/s/"+bundled, ".talk article|"+newest)
	p.allow("ERR_")
	for i := range 3 {
		release := s.hold(func(r string) bool { return strings.Contains(r, "/events?") })
		s.cut()
		p.see(".badge.lost")
		s.says(bundled, fmt.Sprintf("Said while it was cut, %d.", i))
		release()
		p.see(fmt.Sprintf(".talk article|Said while it was cut, %d.", i))
		p.see(".badge.live")
	}
	p.samePath(bundled)
}

// samePath waits until the loaded end of the conversation is that of the head's line, in order and without repeats.
func (p *tab) samePath(id string) {
	p.t.Helper()
	p.until("the path of the head", func() (bool, error) {
		shown, err := try[[]string](p, `[...document.querySelectorAll(".talk article")].map((e) => e.dataset.key)`)
		if err != nil {
			return false, err
		}
		path := p.site.path(id, "") // the head first
		for i, j := len(shown)-1, 0; i >= 0; i-- {
			for j < len(path) && path[j] != shown[i] {
				if j++; i == len(shown)-1 && j > 12 {
					return false, fmt.Errorf("%d newer entries are not shown", j)
				}
			}
			if j == len(path) {
				return false, fmt.Errorf("%s is shown twice, or out of order: %v", shown[i], shown)
			}
			j++
		}
		return true, nil
	})
}

// A server that refuses writes is shown without what it would refuse.
func TestReadOnly(t *testing.T) {
	t.Parallel()
	for name, set := range map[string]func(*server.Options){"the server": readOnly, "the client": readers} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := withDemo(t, set)
			p := arrive(t, d.site, "/s/"+demostore.Main, ".talk article")
			p.see(".badge|read-only")
			p.hover(".talk article|Good enough for today")
			p.see(".talk article .actions button|link")
			p.press("R e L")
			for _, name := range []string{"edit", "label", "continue", "Roll back…", "Snapshot…"} {
				if eval[bool](p, find+` !== null`, ".actions button, .rail button|"+name) {
					t.Errorf("there is a button %q", name)
				}
			}
			p.press(",") // the head has nothing to roll back
			p.see(".rail-at|seq 212")
			p.press("R")
			p.settled()
			if p.count("dialog, form.ask, .toast p") > 0 {
				t.Error("a key opened what cannot be done")
			}
			p.press("?")
			p.see("dialog.help dt|?")
			for _, key := range []string{"L", "e", "R"} {
				if eval[bool](p, `[...document.querySelectorAll(".help-keys kbd")].some((k) => k.innerText === %s)`, key) {
					t.Errorf("the help has the key %s, which does nothing", key)
				}
			}
			p.press("Escape")
			p.miss("dialog")
			p.press("Mod+k")
			p.write("dialog.palette input", "this point")
			p.see("dialog.palette [role=option]|compare")
			if eval[bool](p, find+` !== null`, "dialog.palette [role=option]|roll back") {
				t.Error("the palette offers what cannot be done")
			}
		})
	}
}

// The title of the session is that of the page, and follows.
func TestTitleFollows(t *testing.T) {
	t.Parallel()
	s := withBundled(t)
	p := arrive(t, s, "/s/"+bundled, ".talk article|"+newest)
	p.wait(`document.title.startsWith("tideline 0.2")`)
	h, err := s.store.Open(t.Context(), bundled, nil)
	ok(t, err)
	title := "Tides, exactly"
	_, err = h.SetInfo(t.Context(), coppice.InfoChange{Title: &title})
	ok(t, err)
	ok(t, h.Close())
	p.see(".top h1|" + title)
	p.wait(`document.title === %s`, title+" · coppice")
	p.see(".sessions a|" + title)
}

// An export is saved as a file, of the line or of the tree.
func TestExport(t *testing.T) {
	t.Parallel()
	s := withBundled(t)
	p := arrive(t, s, "/s/"+bundled, ".talk article")
	dir := p.downloads()
	for _, test := range []struct{ button, file, want string }{
		{"Markdown", bundled + "-line.md", newest},
		{"as pi reads it", bundled + "-pi.jsonl", `"id":"78c04532"`},
	} {
		p.press("x")
		p.click("dialog button|" + test.button)
		p.downloaded(dir, test.file, test.want)
		p.miss("dialog")
	}
}

// downloads returns the folder in which the tab saves files.
func (p *tab) downloads() string {
	p.t.Helper()
	dir, yes := p.t.TempDir(), true
	_, err := chromedp.CallBrowser(p.ctx, browser.SetDownloadBehavior, browser.SetDownloadBehaviorParams{
		Behavior: browser.SetDownloadBehaviorBehaviorAllow, DownloadPath: dir, EventsEnabled: &yes,
		BrowserContextID: chromedp.FromContext(p.ctx).BrowserContextID,
	})
	ok(p.t, err)
	return dir
}

func (p *tab) downloaded(dir, file, want string) {
	p.t.Helper()
	p.until(file, func() (bool, error) {
		text, err := os.ReadFile(filepath.Join(dir, file))
		return strings.Contains(string(text), want), err
	})
}

// A session with credentials has a mark, which leads to them. The note about a link to it has their number, and it is
// exported after a question: without them, or with them.
func TestExportAsksAboutCredentials(t *testing.T) {
	t.Parallel()
	s := withBundled(t)
	h, err := s.store.Open(t.Context(), bundled, nil)
	ok(t, err)
	token := "ghp_" + "w7Kq2Vx9Lm4Rt8Zb3Nc6Yd1Pf5Hs0JgAeUi3" // of no account
	_, err = h.Append(t.Context(), entry.User("log in with "+token))
	ok(t, err)
	_, err = h.Commit(t.Context(), coppice.Turn{})
	ok(t, err)
	ok(t, h.Close())
	p := arrive(t, s, "/s/"+bundled, ".talk article|log in with")
	p.allow("status of 409")
	p.click(".top .badge|1 credential")
	p.see(".talk article.at|log in with")
	p.allow("clipboard")
	p.press("y")
	p.see(".toast|1 credential")
	dir := p.downloads()
	p.press("x")
	for _, test := range []struct{ format, button, file, want string }{
		{"Markdown", "Replace them", bundled + "-line.md", "log in with [secret: github-pat]"},
		{"as pi reads it", "Save with them", bundled + "-pi.jsonl", token},
	} {
		p.click("dialog button|" + test.format)
		p.see("dialog [role=alert]|credential")
		p.click("dialog button|" + test.button)
		p.downloaded(dir, test.file, test.want)
		p.miss("dialog")
		p.press("x")
	}
}

// A map and a timeline that could not be read are read when the server answers again, without a commit that would cause it.
func TestReadAgain(t *testing.T) {
	t.Parallel()
	s := withBundled(t)
	s.refuse(func(r string) bool {
		return strings.Contains(r, "/rows?") || strings.Contains(r, "/commits?at=") || strings.Contains(r, "/events?")
	})
	p := newTab(t, s, wide)
	p.allow("status of 503")
	p.navigate("/s/" + bundled)
	p.see(".talk article|" + newest)
	p.see(".map [role=alert]")
	p.until("the commits", func() (bool, error) { return len(s.requests("/commits?at=")) > 0, nil })
	s.refuse(nil)
	p.see(".map .row")
	p.miss(".map [role=alert]")
	p.see(".rail-at strong|turn")
	p.settled()
	if list := s.requests("/rows?"); len(list) > 6 {
		t.Errorf("%d reads of the rows: %v", len(list), list)
	}
}
