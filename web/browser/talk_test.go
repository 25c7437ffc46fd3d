package browser

import (
	"fmt"
	"strings"
	"testing"

	coppice "github.com/coppice-go/coppice"
	"github.com/coppice-go/coppice/backend/memory"
	"github.com/coppice-go/coppice/entry"
	"github.com/coppice-go/coppice/internal/cli/demostore"
	"github.com/coppice-go/coppice/transcript"
)

// Entries of the demo's main session.
const (
	rephrased = "Before I log off: does it build for Windows" // a prompt of two versions; this is the second
	firstOne  = "Before I log off: what would it take"
	leftLine  = "036ea533"                                // the end of the line that was left by a rollback
	headLine  = "Agreed: no cache, make the computation…" // what the branch of the head is called
)

// readsHead reports that what a person does is looking: the head is where it was.
func (s *site) keepsHead(t *testing.T, id string) func() {
	t.Helper()
	was := s.head(id)
	return func() {
		t.Helper()
		if now := s.head(id); now != was {
			t.Errorf("the head moved from %v to %v", was, now)
		}
		if writes := append(s.requests("POST "), s.requests("PUT ")...); len(writes) > 0 {
			t.Errorf("looking wrote: %v", writes)
		}
	}
}

// ‹1/2› changes what is read, and the URL, and never the head.
func TestVersions(t *testing.T) {
	t.Parallel()
	d := withDemo(t)
	p := arrive(t, d.site, "/s/"+demostore.Main, ".talk article")
	kept := d.keepsHead(t, demostore.Main)
	second := ".talk article|" + rephrased
	p.see(second)
	p.click(second + " >> [aria-label='previous version']")
	p.see(".talk article|" + firstOne)
	p.miss(second)
	p.wait(`new URLSearchParams(location.search).get("line")`)
	p.see(".talk .edge|end of this line")
	was := p.location()
	p.reload()
	p.see(".talk article|" + firstOne)
	p.settled()
	if now := p.location(); now != was {
		t.Errorf("%s became %s", was, now)
	}
	p.click(".talk article|" + firstOne + " >> [aria-label='next version']")
	p.see(second)
	p.waitQuery("line", "")
	p.hover(second + " >> .picker")
	p.see(".peek button|" + firstOne)
	p.wait(`document.querySelector(".scroller").scrollWidth === document.querySelector(".scroller").clientWidth`) // nothing moves for it
	p.click(".peek [aria-label='compare with version 1']")
	p.see("dialog.versions|Version 1 and version 2")
	p.see(".version-sides section|" + firstOne) // they have little in common
	p.see(".version-sides section|" + rephrased)
	p.press("Escape")
	p.miss("dialog")
	p.see(second)
	kept()
}

// A conversation can be left in any frame in which it is drawn: nothing waits for what is gone. The tab reports exceptions.
func TestLeavesWhileDrawing(t *testing.T) {
	t.Parallel()
	p := arrive(t, withBundled(t), "/", ".sessions a")
	eval[bool](p, `(async () => {
		const until = async (css, is) => {
			while ((document.querySelector(css) !== null) !== is) await new Promise(requestAnimationFrame);
		};
		for (let n = 0; n < 12; n++) {
			document.querySelector(".sessions a").click();
			await until(".talk article", true);
			for (let i = 0; i < n % 6; i++) await new Promise(requestAnimationFrame);
			document.querySelector(".top .home").click();
			await until(".talk", false);
		}
		return true;
	})()`)
	p.settled()
}

// What a tool answered, and what the model thought, are one line each until they are opened.
func TestFolds(t *testing.T) {
	t.Parallel()
	d := withDemo(t)
	p := arrive(t, d.site, "/s/"+demostore.Main+"?at=a397b379", ".talk article")
	article := "#e-3206c58d"
	p.see(article)
	if p.count(article+" .folded") != 0 {
		t.Error("something is open")
	}
	p.click(article + " .fold.tool button|README.md")
	p.see(article + " .folded|tideline")
	p.click(article + " .fold.thinking button")
	p.see(article + " .fold.thinking .folded")
	p.click(article + " .fold.thinking button")
	p.miss(article + " .fold.thinking .folded")
}

// Agents are shown where they were started, inline at any depth, and as pages of their own with the way back.
func TestAgents(t *testing.T) {
	t.Parallel()
	d := withDemo(t)
	p := arrive(t, d.site, "/s/"+demostore.Main, ".talk article")
	p.click(".agent-card button|fundy")
	p.see(".agent-card .inline|What do we have?")
	p.click(".inline .agent-card button|ranges")
	p.see(".inline .inline|The tables of 2026 are in docs.")
	p.click(".inline .agent-card > a|as a page")
	p.see(".talk article|overloaded_error")
	p.click("nav.breadcrumb a|fundy")
	p.see(".talk article|Saint John and Digby are right")

	p.navigate("/s/" + demostore.Main + "?seq=177") // a turn that lost, on a line that no agent was started on
	p.see(".talk article|edit")
	p.settled()
	p.miss(".agent-card|windows")
}

// Numbers that JavaScript would round are shown digit by digit: what a tool is called with, folded and opened, also where the
// call comes in while one looks; contents that are not known, and notes. The figures of a message count as before.
func TestDigitsOfMessages(t *testing.T) {
	t.Parallel()
	st := stored(t, memory.New())
	s := newSite(t, st)
	h, err := st.Create("digits", nil)
	ok(t, err)
	const cost = `"usage":{"totalTokens":12,"cost":{"total":0.2500000000000000000001}}`
	call := func(n string) transcript.Draft {
		return transcript.Draft{Type: "message", Body: jsonText(`{"message":{"role":"assistant",` + cost +
			`,"content":[{"type":"toolCall","id":"` + n + `","name":"add","arguments":{"n":` + n + `}}]}}`)}
	}
	_, err = h.Commit(t.Context(), coppice.Turn{Entries: drafts(entry.User("add"), call("9007199254740993"),
		transcript.Draft{Type: "message", Body: jsonText(`{"message":{"role":"assistant","content":[{"odd":-9007199254740995}]}}`)},
		transcript.Draft{Type: "custom", Body: jsonText(`{"customType":"sum","data":0.12345678901234567890}`)})})
	ok(t, err)
	ok(t, h.Close())
	p := arrive(t, s, "/s/digits?events=all", ".talk article|1 sum event")
	s.commits("digits", coppice.Turn{Entries: drafts(call("9007199254740997"),
		transcript.Draft{Type: "custom", Body: jsonText(`{"customType":9007199254740993}`)})})
	for _, n := range []string{"9007199254740993", "9007199254740997"} {
		p.see(".fold.tool .argument|" + n)
		p.click(".fold.tool button|" + n)
		p.see(".folded pre|\"n\": " + n)
	}
	p.click(".fold.tool button|other content")
	p.see(".folded pre|-9007199254740995")
	p.click(".run .fold button|1 sum event")
	p.click(".run .folded .fold button|sum")
	p.see(".run pre|0.12345678901234567890")
	p.see(".talk .figures|12 tok · $0.25")
}

// An image is loaded by its own request, as bytes, and is shown in full when it is clicked.
func TestImages(t *testing.T) {
	t.Parallel()
	d := withDemo(t)
	p := arrive(t, d.site, "/s/"+demostore.Main, ".talk article")
	p.click(".fold.tool button|1 image")
	p.wait(`document.querySelector(".picture img")?.naturalWidth > 0`)
	if src := eval[string](p, `document.querySelector(".picture img").src`); !strings.HasPrefix(src, "blob:") {
		t.Errorf("the source of the image is %.60s", src)
	}
	if b := p.box(".picture button"); b.Height < 58 || b.Height > 64 { // the image has 480 by 120
		t.Errorf("the thumbnail has %v by %v pixels", b.Width, b.Height)
	}
	p.click(".picture button")
	p.see("dialog.full-picture img")
	if b := p.box("dialog.full-picture header button"); b.Width > 60 || b.Height > 60 {
		t.Errorf("the button that closes an image has %v by %v pixels", b.Width, b.Height)
	}
	p.click("dialog.full-picture header button")
	p.miss("dialog")
}

// Editing a prompt makes another version of it. The first one stays.
func TestEdit(t *testing.T) {
	t.Parallel()
	d := withDemo(t)
	p := arrive(t, d.site, "/s/"+demostore.Main, ".talk article")
	before := d.head(demostore.Main)
	p.ask(lastPrompt, "edit")
	p.write("form.ask textarea", "Draw me Saturday instead.")
	p.click("form.ask button|Add this version")
	p.see(".talk article|Draw me Saturday instead. >> .picker|2/2")
	p.see(".toast|The other one stays")
	after := d.head(demostore.Main)
	if after.Seq != before.Seq+1 || after.Entry == before.Entry {
		t.Errorf("the head is %v after %v", after, before)
	}
	h := d.open(demostore.Main)
	e, err := h.Entry(t.Context(), after.Entry)
	ok(t, err)
	if m, _ := e.Message(); !strings.Contains(string(m.Raw), "Draw me Saturday instead.") {
		t.Errorf("the head is %s", e.Raw)
	}
	if _, err := h.Entry(t.Context(), before.Entry); err != nil {
		t.Errorf("the first version: %v", err)
	}
	ok(t, h.Close())

	// The line that was left has a name, the map shows the new head, and another note takes no way back away.
	p.see(".toast|The line that was left stays, in the list of branches")
	p.wait(`[...document.querySelector("select.branch").options].some((o) => o.value === %s)`, before.Entry)
	p.wait(inSight, `.map .row[data-id="`+after.Entry+`"]`, ".map-rows")
	p.click(".talk article|Draw me Saturday >> [aria-label='previous version']")
	p.see(".talk article|friday.png")

	p.press("Escape")
	p.press("y")
	p.see(".toast p|link")
	p.click(".toast button|Undo")
	p.see(".toast|Undone")
	if now := d.head(demostore.Main); now.Entry != before.Entry {
		t.Errorf("undone, the head is %v, was %v", now, before)
	}
}

// A label is set in place, and removed.
func TestLabel(t *testing.T) {
	t.Parallel()
	d := withDemo(t)
	p := arrive(t, d.site, "/s/"+demostore.Main, ".talk article")
	p.hover(".talk article|Good enough for today")
	p.see(".talk article|Good enough for today >> .actions button[title='label this message'] svg")
	p.click(".talk article|Good enough for today >> button|label")
	p.write("form.ask input", "the picture")
	p.press("Enter")
	p.see(".talk article|Good enough for today >> .label|the picture")
	p.see(".map .row .label|the picture")
	p.hover(".talk article|Good enough for today")
	p.click(".talk article|Good enough for today >> button|label")
	p.write("form.ask input", "")
	p.click("form.ask button|Remove the label")
	p.miss(".talk .label|the picture")

	p.press("G")
	p.press("k")
	p.press("j") // the cursor is at the last message, and nothing is below it
	p.settled()
	p.press("L")
	p.see("form.ask input")
	p.settled()
	if !eval[bool](p, inSight, "form.ask button", ".scroller") {
		t.Error("the form at the last message is out of sight")
	}
}

// "Continue from here" moves the head, once it is confirmed.
func TestContinue(t *testing.T) {
	t.Parallel()
	d := withDemo(t)
	p := arrive(t, d.site, "/s/"+demostore.Main+"?line="+leftLine, ".talk article")
	before := d.head(demostore.Main)
	article := "#e-" + leftLine
	p.hover(article)
	p.click(article + " >> button|continue")
	p.see("dialog|The head moves to this message")
	p.press("Escape")
	p.miss("dialog")
	if now := d.head(demostore.Main); now != before {
		t.Errorf("the head moved without a confirmation")
	}
	p.hover(article)
	p.click(article + " >> button|continue")
	p.click("dialog button|Move the head here")
	p.see(".toast|The head is here now")
	p.see(".toast button|Undo")
	p.wait(`[...document.querySelector("select.branch").options].some((o) => o.text === %s)`, headLine)
	p.waitQuery("line", "")
	if now := d.head(demostore.Main); now.Entry != leftLine || now.Seq != before.Seq+1 {
		t.Errorf("the head is %v", now)
	}
}

// says commits messages of an agent to a session, from another writer.
func (s *site) says(id string, texts ...string) coppice.Receipt {
	s.t.Helper()
	t := coppice.Turn{Reason: "answer"}
	for _, text := range texts {
		t.Entries = append(t.Entries, entry.Assistant(text))
	}
	return s.commits(id, t)
}

// commits commits a turn to a session, from another writer.
func (s *site) commits(id string, t coppice.Turn) coppice.Receipt {
	s.t.Helper()
	h, err := s.store.Open(s.t.Context(), id, nil)
	ok(s.t, err)
	r, err := h.Commit(s.t.Context(), t)
	ok(s.t, err)
	ok(s.t, h.Close())
	return r
}

// A long text is read piece by piece, and is whole in the end: its headings, and a block of code that is longer than a piece.
func TestLongText(t *testing.T) {
	t.Parallel()
	s := withBundled(t)
	p := arrive(t, s, "/s/"+bundled, ".talk article|"+newest)
	var text strings.Builder
	for n := range 20 {
		fmt.Fprintf(&text, "## Part %d\n\n%s\n\n", n, strings.Repeat("some words of it ", 65)+"*last*")
	}
	fmt.Fprintf(&text, "```go\n%s```\n\nThe **end** of it.", strings.Repeat("x := f()\n\n", 900))
	s.says(bundled, text.String())
	p.see(".talk article strong|end")
	p.wait(`document.querySelectorAll(".talk .unread").length === 0`)
	last := `[...document.querySelectorAll(".talk article")].at(-1)`
	if n := eval[int](p, last+`.querySelectorAll("h2").length`); n != 20 {
		t.Errorf("%d of 20 headings", n)
	}
	if n := eval[int](p, last+`.querySelector("pre").innerText.split("f()").length`); n != 901 {
		t.Errorf("the block of code has %d of 901 parts", n)
	}
	if n := eval[int](p, last+`.querySelectorAll("button.link").length`); n != 0 {
		t.Error("the text counts as cut")
	}
}

// A date is above the first article of each day, and messages have times alone. A block of code can be copied.
func TestDaysAndCode(t *testing.T) {
	t.Parallel()
	st := stored(t, memory.New())
	s := newSite(t, st)
	h, err := st.Import(t.Context(), func(yield func(transcript.Draft, error) bool) {
		code := `04T12|third, with code:\n\n` + "```" + `\nmake all\n` + "```"
		for i, text := range []string{"02T12|first", "02T13|second", code} {
			at, words, _ := strings.Cut(text, "|")
			parent := "null"
			if i > 0 {
				parent = fmt.Sprintf(`"day-%d"`, i-1)
			}
			raw := fmt.Sprintf(`{"type":"message","id":"day-%d","parentId":%s,"timestamp":"2025-03-%s:00:00Z",`+
				`"message":{"role":"user","content":"%s"}}`, i, parent, at, words)
			if !yield(transcript.Draft{Raw: []byte(raw)}, nil) {
				return
			}
		}
	}, &coppice.SessionOptions{ID: "days"})
	ok(t, err)
	ok(t, h.Close())
	p := arrive(t, s, "/s/days", ".talk article|third")
	days := eval[string](p, `[...document.querySelectorAll(".talk article")].map((e) =>
		(e.querySelector(".day")?.innerText ?? "") + "|" + /^\d\d:\d\d$/.test(e.querySelector("header time").innerText))
		.join(", ")`)
	if want := "2 Mar 2025|true, |true, 4 Mar 2025|true"; days != want {
		t.Errorf("%q, want %q", days, want)
	}
	p.hover(".talk .code pre")
	if got := p.copied(".talk .code button"); got != "make all\n" && got != "make all" {
		t.Errorf("copied %q", got)
	}
}

// What a person wrote has its lines, and the tags of it are words.
func TestLinesOfAPrompt(t *testing.T) {
	t.Parallel()
	s := withBundled(t)
	const text = "It says:\npanic: nil map  at 3\n\n<log level=\"warn\">\n  goroutine 1\n</log>"
	s.commits(bundled, coppice.Turn{Entries: drafts(entry.User(text))})
	p := arrive(t, s, "/s/"+bundled, ".talk article|panic")
	p.wait(`[...document.querySelectorAll(".talk article")].at(-1).querySelector(".md").innerText === %s`, text)
}
