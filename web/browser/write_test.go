package browser

import (
	"strings"
	"testing"

	"github.com/coppice-go/coppice/internal/cli/demostore"
)

// lastPrompt is the newest prompt of the demo's main session.
const lastPrompt = ".talk article|Good enough for today"

// ask presses a button of an article, which shows them to who points at it.
func (p *tab) ask(article, button string) {
	p.t.Helper()
	p.see(article)
	p.hover(article)
	p.click(article + " >> button|" + button)
}

// writes chooses the requests that write.
func writes(request string) bool { return strings.HasPrefix(request, "POST ") }

// A write whose answer is lost is made once, and the page shows what is known: also where the browser sends it again by
// itself, and where a person does. It never reports that another writer was first.
func TestLostAnswers(t *testing.T) {
	t.Parallel()
	edit := func(p *tab) {
		p.ask(lastPrompt, "edit")
		p.write("form.ask textarea", "Draw me Sunday.")
	}
	for name, write := range map[string]struct {
		url       string
		ask       func(p *tab)
		act, said string
	}{
		"roll back": {"?seq=199", func(p *tab) {
			p.click(".rail button|Roll back…")
			p.see("dialog h3|values change")
		}, "dialog button|Roll back to seq 199", "Rolled back to seq 199"},
		"edit":     {"", edit, "form.ask button|Add this version", "The new version is the head"},
		"continue": {"", func(p *tab) { p.ask(lastPrompt, "continue") }, "dialog button|Move the head here", "The head is here now"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := withDemo(t)
			p := arrive(t, d.site, "/s/"+demostore.Main+write.url, ".talk article")
			p.allow("ERR_")
			before := d.head(demostore.Main)
			write.ask(p)
			d.lose(writes)
			p.click(write.act)
			p.see("[role=alert]|It may be stored all the same. Trying again does not store it twice.")
			p.see(".top .badge|seq 214") // it was stored, and the page knows of the commit
			p.settled()
			d.lose(nil)
			p.click(".ask button|Try again")
			p.see(".toast|" + write.said)
			if now := d.head(demostore.Main); now.Seq != before.Seq+1 {
				t.Errorf("%d commits were made", now.Seq-before.Seq)
			}
			p.miss("[role=alert]")

			lost := false
			d.lose(func(request string) bool {
				first := writes(request) && !lost
				lost = lost || first
				return first
			})
			p.click(".toast button|Undo")
			p.see(".toast") // the browser may have sent it again, or not
			p.wait(`/Undone|may be stored/.test(document.querySelector(".toast").innerText)`)
			if strings.Contains(p.text(".toast"), "may be stored") {
				p.click(".toast button|Undo")
				p.see(".toast|Undone")
			}
			if now := d.head(demostore.Main); now.Seq != before.Seq+2 || now.Entry != before.Entry {
				t.Errorf("undone, the head is %v, was %v", now, before)
			}
		})
	}
}

// A key that is held, and an impatient finger, write once.
func TestHeldKeyWritesOnce(t *testing.T) {
	t.Parallel()
	d := withDemo(t)
	p := arrive(t, d.site, "/s/"+demostore.Main, ".talk article")
	before := d.head(demostore.Main)
	p.ask(lastPrompt, "edit")
	p.write("form.ask textarea", "  ")
	p.press("Mod+Enter") // nothing is no message
	p.write("form.ask textarea", "Draw me Sunday.")
	release := d.hold(writes)
	for range 5 {
		p.press("Mod+Enter")
	}
	p.wait(`document.querySelector("form.ask button.primary").disabled`)
	p.press("Mod+Enter")
	release()
	p.see(".toast|The new version is the head")
	p.settled()
	if now := d.head(demostore.Main); now.Seq != before.Seq+1 {
		t.Errorf("%d commits were made", now.Seq-before.Seq)
	}
	if n := len(d.requests("POST ")); n != 1 {
		t.Errorf("%d requests", n)
	}
}

// An open form shows what is committed meanwhile. A click right after the figures of a rollback changed does not
// confirm them.
func TestCommitsWhileAFormIsOpen(t *testing.T) {
	t.Parallel()
	d := withDemo(t)
	p := arrive(t, d.site, "/s/"+demostore.Main, ".talk article")
	p.ask(lastPrompt, "edit")
	p.see("form.ask textarea")
	p.miss("form.ask .warn")
	d.says(demostore.Main, "I went on.")
	p.see("form.ask .warn|A commit came since you opened this")
	p.press("Escape")

	p.press(",")
	p.see(".rail-at|seq 213")
	p.press("R")
	p.see("dialog h3|1 entry leaves the line")
	// A click in the moment in which the figures change was meant for the earlier figures.
	eval[bool](p, `(() => {
		const dialog = document.querySelector("dialog");
		new MutationObserver((_, o) => {
			const button = dialog.querySelector("button.primary");
			if (!dialog.innerText.includes("2 entries") || button.disabled) return;
			o.disconnect();
			button.click();
		}).observe(dialog, { subtree: true, childList: true, characterData: true, attributes: true });
		return true;
	})()`)
	d.says(demostore.Main, "And on.")
	p.see("dialog [role=alert]|The figures changed just before you confirmed")
	p.see("dialog .warn|A commit came")
	if n := len(d.requests("POST ")); n != 0 {
		t.Errorf("%d requests", n)
	}
	p.confirm("dialog button.primary", "Rolled back to seq 213")
}

// confirm clicks a button until its dialog is closed, and a note shows what was done: a click that comes right after
// the figures changed does nothing.
func (p *tab) confirm(button, note string) {
	p.t.Helper()
	p.until(note, func() (bool, error) {
		return try[bool](p, filled(`(() => {
			document.querySelector(%s)?.click();
			return document.querySelector("dialog") === null && document.querySelector(".toast").innerText.includes(%s);
		})()`, []any{button, note}))
	})
}

// The text of an edit that was not sent is there when the form is opened again, also after the page was loaded again.
func TestDrafts(t *testing.T) {
	t.Parallel()
	s := withBundled(t)
	p := arrive(t, s, "/s/"+bundled, ".talk article|"+newest)
	const prompt = ".talk article|Thank you. My sister says"
	open := func() {
		p.ask(prompt, "edit")
		p.see("form.ask textarea")
	}
	value := func(text string) {
		t.Helper()
		p.wait(`document.querySelector("form.ask textarea").value.includes(%s)`, text)
	}
	open()
	p.write("form.ask textarea", "Half a thought")
	p.press("Escape")
	p.miss("form.ask")
	open()
	value("Half a thought")
	p.reload()
	open()
	value("Half a thought")
	p.click("form.ask button|start from the text as it is")
	value("Thank you. My sister says")
	p.press("Escape")
	p.reload()
	open()
	value("Thank you. My sister says")
}

// Undone, an edit leads back to the message that was edited, in every pane.
func TestUndoOfAnEditReturns(t *testing.T) {
	t.Parallel()
	d := withDemo(t)
	p := arrive(t, d.site, "/s/"+demostore.Main, ".talk article")
	p.click(lastPrompt + " >> .md")
	p.wait(`new URLSearchParams(location.search).get("at")`)
	at := p.query("at")
	p.ask(lastPrompt, "edit")
	p.write("form.ask textarea", "Draw me Sunday.")
	p.click("form.ask button|Add this version")
	p.see(".talk article|Draw me Sunday.")
	p.click(".toast button|Undo")
	p.see(".toast|Undone")
	p.waitQuery("at", at)
	p.see(lastPrompt)
	p.wait(`document.querySelector(".talk article[aria-current=true]")?.dataset.key === %s`, at)
	p.wait(`document.querySelector(".map .row.at")?.dataset.id === %s`, at)
}

// If an edit was stored and its answer lost, and the text is changed before it is sent again, the page reports it.
func TestChangedAfterALostAnswer(t *testing.T) {
	t.Parallel()
	d := withDemo(t)
	p := arrive(t, d.site, "/s/"+demostore.Main, ".talk article")
	p.allow("ERR_|status of 422")
	before := d.head(demostore.Main)
	p.ask(lastPrompt, "edit")
	p.write("form.ask textarea", "Draw me Sunday.")
	d.lose(writes)
	p.click("form.ask button|Add this version")
	p.see("[role=alert]|It may be stored")
	d.lose(nil)
	p.write("form.ask textarea", "Draw me Monday.")
	p.click(".ask button|Try again")
	p.see("[role=alert]|It was stored as it was before your last change")
	if now := d.head(demostore.Main); now.Seq != before.Seq+1 {
		t.Errorf("%d commits were made", now.Seq-before.Seq)
	}
}

// Where a commit has several messages, a rollback shows that it does not end at the one that is looked at.
func TestRollBackFromWithinACommit(t *testing.T) {
	t.Parallel()
	s := withBundled(t)
	p := arrive(t, s, "/s/"+bundled+"?at=6e900cc7", ".talk article[aria-current=true]")
	p.see(".rail-at strong|turn 2")
	p.settled()
	p.press("R")
	p.see("dialog .warn|is not the last one of this commit")
}
