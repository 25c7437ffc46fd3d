package browser

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	coppice "github.com/coppice-go/coppice"
	"github.com/coppice-go/coppice/backend/memory"
	"github.com/coppice-go/coppice/entry"
	"github.com/coppice-go/coppice/internal/cli/demostore"
	"github.com/coppice-go/coppice/web/browser/fixture"
)

// stateAt returns the state of a commit as the store has it.
func (s *site) stateAt(id string, seq int) string {
	s.t.Helper()
	h := s.open(id)
	v, err := h.At(s.t.Context(), coppice.Target{Seq: uint64(seq)})
	ok(s.t, err)
	text := string(v.Document().State)
	ok(s.t, h.Close())
	if text == "" {
		text = "null"
	}
	return text
}

// copied returns what "Copy" puts into the clipboard, which is put in the clipboard's place.
func (p *tab) copied(button string) string {
	p.t.Helper()
	eval[bool](p, `(() => {
		window.__copied = null;
		Object.defineProperty(navigator, "clipboard", { configurable: true, value: {
			writeText: (text) => { window.__copied = text; return Promise.resolve(); } } });
		return true;
	})()`)
	p.click(button)
	p.wait(`window.__copied !== null`)
	return eval[string](p, `window.__copied`)
}

// scrub drags the cursor along the timeline, waits until every pane is at its place, and returns the number of that
// commit.
func (p *tab) scrub(r *rand.Rand) (seq int) {
	p.t.Helper()
	from, to := r.Float64(), 0.03+0.9*r.Float64()
	p.drag(".axis", 0, at(from, 0.5), at((from+to)/2, 0.5), at(to, 0.5))
	p.settled() // the address follows a moment later
	p.wait(`new Set([document.querySelector(".rail-at strong").innerText, document.querySelector(".state-head strong").innerText,
		"seq " + new URLSearchParams(location.search).get("seq")]).size === 1`)
	if _, err := fmt.Sscan(p.query("seq"), &seq); err != nil {
		p.t.Fatalf("seq=%s: %v", p.query("seq"), err)
	}
	return seq
}

// Scrubbing the timeline moves state, conversation and context; the states are those of the store, byte for byte.
func TestScrub(t *testing.T) {
	t.Parallel()
	d := withDemo(t)
	p := arrive(t, d.site, "/s/"+demostore.Main+"?pane=state", ".state .json")
	kept := d.keepsHead(t, demostore.Main)
	newest := int(d.head(demostore.Main).Seq)
	r := rand.New(rand.NewPCG(1, 2))
	for range 6 {
		seq := p.scrub(r)
		if seq < 0 || seq >= newest {
			t.Fatalf("seq %d", seq)
		}
		want := d.stateAt(demostore.Main, seq)
		if want == "null" {
			continue // nothing to copy
		}
		if got := p.copied(".state-tabs button|Copy"); got != want {
			t.Errorf("seq %d is shown as %.200q, stored as %.200q", seq, got, want)
		}
		if at := p.query("at"); at != "" && p.count(`.talk [id="e-`+at+`"], .talk [aria-current=true]`) == 0 {
			t.Errorf("seq %d: the conversation does not show %s", seq, at)
		}
	}
	p.click("button.live")
	p.waitQuery("seq", "")
	p.see(fmt.Sprintf(".rail-at strong|seq %d", newest))
	kept()
}

// What scrubbing over many commits shows is what the command prints, byte for byte.
func TestScrubAsResume(t *testing.T) {
	t.Parallel()
	commits, samples := 150, 4
	if soak > 0 {
		commits, samples = 10_000, 100
	}
	f := &written{write: func(ctx context.Context, dir string) error { return fixture.Commits(ctx, dir, commits) }}
	s := made(t, f)
	t.Cleanup(func() { ok(t, os.RemoveAll(f.dir)) })
	program := command(t)
	p := arrive(t, s, "/s/"+fixture.CommitsID+"?pane=state", ".state .json")
	r := rand.New(rand.NewPCG(3, 4))
	seen := map[int]bool{}
	for range samples {
		seq := p.scrub(r)
		seen[seq] = true
		if got, want := p.copied(".state-tabs button|Copy"), resumed(t, program, f.dir, seq); got != want {
			t.Errorf("seq %d is shown as %.200q, printed as %.200q", seq, got, want)
		}
	}
	if len(seen) < samples*3/4 {
		t.Errorf("only %d commits were looked at", len(seen))
	}
	t.Logf("%d commits: %d of %d states equal `coppice resume --at`", commits, len(seen), samples)
}

// Before the first message the conversation is empty, and live again at its end.
func TestSeqZero(t *testing.T) {
	t.Parallel()
	d := withDemo(t)
	p := arrive(t, d.site, "/s/"+demostore.Main+"?seq=0&pane=state", ".state-head")
	p.see(".talk .edge|there was no message yet")
	p.settled()
	if n := p.count(".talk article"); n != 0 {
		t.Errorf("%d articles before the first message", n)
	}
	p.click(".talk .edge button|go to the head")
	p.see(".talk article|Low at 01:57")
	p.navigate("/s/" + demostore.Main + "?seq=1")
	p.see(".rail-at|seq 1 of")
	p.press(",")
	p.see(".talk .edge|there was no message yet")
	p.miss(".talk article")
	p.press(".")
	p.see(".talk article")
}

// The page shows whether the head is on the line of an earlier commit.
func TestEarlierCommit(t *testing.T) {
	t.Parallel()
	d := withDemo(t)
	p := arrive(t, d.site, "/s/"+demostore.Main+"?seq=200", ".talk article")
	branch := func() string {
		return eval[string](p, `document.querySelector("select.branch").selectedOptions[0].text`)
	}
	p.see(".talk .edge|the end at seq 200. The session goes on from here: go to the head of " + headLine)
	p.wait(`document.querySelector("select.branch").selectedOptions[0].text === %s`, headLine+", up to here")

	p.navigate("/s/" + demostore.Main + "?seq=177") // a turn that lost
	p.see(".talk .edge|The head of the session is on another line")
	if got := branch(); !strings.HasPrefix(got, "Fiona here, on my laptop.") {
		t.Errorf("the branch of a turn that lost is called %q", got)
	}
	p.navigate("/s/" + demostore.Main + "?seq=178&pane=state") // the commit after it keeps the state
	p.see(".state-changed|This commit changed no value")
	p.navigate("/s/" + demostore.Main + "?seq=177")
	p.see(".talk .edge|on another line") // then it stays where it is
	p.click(".talk .edge button|go to the head")
	p.see(".talk article|Low at 01:57")
	if got := branch(); got != headLine+" (head)" {
		t.Errorf("the branch of the head is called %q", got)
	}
}

// After an undo two branches end at the head. The list has one name for it: that of its first prompt.
func TestRollbacksCollectNoNames(t *testing.T) {
	t.Parallel()
	d := withDemo(t)
	p := arrive(t, d.site, "/s/"+demostore.Main+"?seq=199", ".talk article")
	p.rollBack(199)
	p.click(".toast button|Undo")
	p.see(".toast|Undone")
	p.wait(`document.querySelector("select.branch").options[0].text === %s`, headLine+" (head)")
}

// The timeline shows what the session had cost at a commit, and what a commit that arrives adds.
func TestCostOnTimeline(t *testing.T) {
	t.Parallel()
	d := withDemo(t)
	p := arrive(t, d.site, "/s/"+demostore.Main+"?seq=100&pane=state", ".rail-at .spent")
	spent := func() (sum float64) {
		_, err := fmt.Sscanf(p.text(".rail-at .spent"), "$%f", &sum)
		ok(t, err)
		return sum
	}
	before := spent()
	p.click("button.live")
	p.see(".rail-at strong|seq 213")
	now := spent()
	if before <= 0 || now <= before {
		t.Errorf("$%v at seq 100, $%v at the head", before, now)
	}
	h, err := d.store.Open(t.Context(), demostore.Main, nil)
	ok(t, err)
	answer := entry.Assistant("That was dear.")
	answer.Body = bytes.Replace(answer.Body, []byte(`"total":0}`), []byte(`"total":2}`), 1)
	_, err = h.Commit(t.Context(), coppice.Turn{Entries: drafts(answer)})
	ok(t, errors.Join(err, h.Close()))
	p.see(".rail-at strong|seq 214")
	if got := spent(); got < now+1.99 || got > now+2.01 {
		t.Errorf("$%v after an answer of $2, $%v before", got, now)
	}
	p.see(".sessions a[aria-current] .line|That was dear.")
	p.see(fmt.Sprintf(".sessions a[aria-current]|$%.2f", now+2))
}

// resumed returns the state that `coppice resume --at` prints.
func resumed(t *testing.T, command, dir string, seq int) string {
	t.Helper()
	args := []string{"resume", "--store", dir, "--json", fixture.CommitsID, "--at", fmt.Sprint("seq:", seq)}
	out, err := exec.CommandContext(t.Context(), command, args...).Output()
	if failed := (*exec.ExitError)(nil); errors.As(err, &failed) {
		t.Fatalf("resume: %v: %s", err, failed.Stderr)
	}
	ok(t, err)
	var document struct{ State json.RawMessage }
	ok(t, json.Unmarshal(out, &document))
	return string(document.State)
}

// command builds the command, and returns its path.
func command(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "coppice")
	build := exec.CommandContext(t.Context(), "go", "build", "-C", "../..", "-o", path, "./cmd/coppice")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build the command: %v: %s", err, out)
	}
	return path
}

// Numbers are shown digit by digit: what JavaScript would round, and what it would write differently.
func TestDigits(t *testing.T) {
	t.Parallel()
	st := stored(t, memory.New())
	s := newSite(t, st)
	h, err := st.Create("digits", nil)
	ok(t, err)
	for _, state := range []string{
		`{"big":9007199254740993,"price":1.10,"tiny":1e-400,"__proto__":{"a":1},"text":"a\u2028b","n":0}`,
		`{"big":9007199254740992,"price":1.1,"tiny":1e-400,"__proto__":{"a":1},"text":"a\u2028b","n":0}`,
	} {
		_, err = h.Commit(t.Context(), coppice.Turn{Entries: drafts(entry.User("count")), State: jsonText(state)})
		ok(t, err)
	}
	ok(t, h.Close())
	p := arrive(t, s, "/s/digits?pane=state", ".state .json")
	for _, want := range []string{"/big|9007199254740993", "/big|9007199254740992", "/price|1.10", "/price|1.1"} {
		path, value, _ := strings.Cut(want, "|")
		p.see(".changes li|" + path + " >> button|" + value)
	}
	p.see(".state .line|1e-400")
	p.see(".state .line|__proto__")
	if got, want := p.copied(".state-tabs button|Copy"), s.stateAt("digits", 2); got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

// A value that is nested deeper than rows are indented can be read, and its row shows its depth.
func TestDeepState(t *testing.T) {
	t.Parallel()
	const depth = 490
	st := stored(t, memory.New())
	s := newSite(t, st)
	h, err := st.Create("deep", nil)
	ok(t, err)
	state := strings.Repeat(`{"0":`, depth) + `"innermost"` + strings.Repeat("}", depth)
	_, err = h.Commit(t.Context(), coppice.Turn{Entries: drafts(entry.User("dig")), State: jsonText(state)})
	ok(t, err)
	ok(t, h.Close())
	p := arrive(t, s, "/s/deep?pane=state", ".state .json")
	eval[bool](p, `document.querySelector(".state .json").focus() ?? true`)
	p.press("End")
	p.see(".state .line.focused|490")
	for _, css := range []string{".line.focused .value.string", ".line[aria-level='490'] .value.nested"} {
		if !eval[bool](p, `((e) => e.scrollWidth <= e.clientWidth && e.getBoundingClientRect().right <
			document.querySelector(".json").getBoundingClientRect().right)(document.querySelector(%s))`, css) {
			t.Errorf("%s is out of sight", css)
		}
	}
}

// What a commit changed is marked, and every value has a history that leads to the commits that set it.
func TestBlame(t *testing.T) {
	t.Parallel()
	d := withDemo(t)
	p := arrive(t, d.site, "/s/"+demostore.Main+"?pane=state", ".changes li")
	kept := d.keepsHead(t, demostore.Main)
	if text := p.text(".state-changed"); text != "This commit changed 6 values" {
		t.Errorf("%q", text)
	}
	p.wheel(".state .json", 10_000)
	p.see(".state .line.replace|cost")
	p.click(".changes button|/cost")
	p.waitQuery("path", "/cost")
	p.see(".past-list li [aria-current=true]|seq 213")
	before := p.text(".past-list li:nth-child(3) button span")
	p.click(".past-list li:nth-child(3) button")
	seq := strings.TrimPrefix(strings.Split(before, " ·")[0], "seq ")
	p.waitQuery("seq", seq)
	p.see(".state-head strong|seq " + seq)
	p.see(".talk article[aria-current=true]")
	p.click(".state-tabs button|Text")
	p.see(".state .editor")
	kept()
}

// What the model saw is what the store has as its context.
func TestContext(t *testing.T) {
	t.Parallel()
	d := withDemo(t)
	p := arrive(t, d.site, "/s/"+demostore.Main+"?pane=context&seq=150", ".saw ol li")
	kept := d.keepsHead(t, demostore.Main)
	h := d.open(demostore.Main)
	v, err := h.At(t.Context(), coppice.Target{Seq: 150})
	ok(t, err)
	c, err := v.Context(t.Context())
	ok(t, err)
	ok(t, h.Close())
	p.see(fmt.Sprintf(".saw-figures strong|%d messages", len(c.Messages)))
	p.see(".saw-figures|A compaction replaced the older ones")
	h = d.open(demostore.Main)
	v, err = h.At(t.Context(), coppice.Target{Seq: 149})
	ok(t, err)
	before, err := v.Context(t.Context())
	ok(t, err)
	ok(t, h.Close())
	added := len(c.Messages) - len(before.Messages)
	p.see(fmt.Sprintf(".saw-figures .turn|%d added", added))
	p.until("the messages that were added", func() (bool, error) { return p.count(".saw li.added") == added, nil })
	p.click(".saw .removed button|messages that the compaction removed")
	p.see(".saw .removed li .words|Agreed: no cache")
	p.click(".saw li:last-child button.message-line")
	p.see(".saw li:last-child button[aria-expanded=true]")
	kept()
}

// What the bound of the context leaves out is in grey, and counted.
func TestContextBeyondItsBound(t *testing.T) {
	t.Parallel()
	st := stored(t, memory.New())
	h, err := st.Create("bounded", &coppice.SessionOptions{ContextBytes: 2_000})
	ok(t, err)
	for i := range 9 {
		text := fmt.Sprint(i, strings.Repeat(" tide", 80))
		_, err = h.Commit(t.Context(), coppice.Turn{Entries: drafts(entry.User(text))})
		ok(t, err)
	}
	c, err := h.Context(t.Context())
	ok(t, errors.Join(err, h.Close()))
	p := arrive(t, newSite(t, st), "/s/bounded?pane=context", ".saw ol li")
	left := c.Window.OmittedEntries
	p.see(fmt.Sprintf(".saw-figures .bound|the %d oldest messages, in grey", left))
	if grey := p.count(".saw li.beyond"); left < 2 || grey != left || p.count(".saw ol li") != 9 {
		t.Errorf("%d messages are in grey, want %d", grey, left)
	}
	p.see(".saw li.beyond:first-child|0 tide")
	p.choose(".saw select", "anthropic")
	p.see(".saw-figures .bound|the " + fmt.Sprint(left) + " oldest messages: with")
	p.miss(".saw li.beyond")
	p.navigate("/s/bounded?pane=context&seq=2")
	p.see(".saw ol li|1 tide")
	p.miss(".saw-figures .bound")
}

// Any two points are compared, with a verdict.
func TestCompare(t *testing.T) {
	t.Parallel()
	d := withDemo(t)
	p := arrive(t, d.site, "/s/"+demostore.Main+"?pane=compare", ".compare-choose select")
	kept := d.keepsHead(t, demostore.Main)
	choose := func(label string) {
		p.wait(`[...document.querySelector(".compare-choose select").options].some((o) => o.text.includes(%s))`, label)
		eval[bool](p, `(() => {
			const s = document.querySelector(".compare-choose select");
			s.value = [...s.options].find((o) => o.text.includes(%s)).value;
			return s.dispatchEvent(new Event("change", { bubbles: true }));
		})()`, label)
	}
	for _, point := range []string{"main", "tests-green", "web form for stations"} {
		choose(point)
		p.see(".compare .verdict")
		p.wait(`new URLSearchParams(location.search).get("with")`)
		if text := p.text(".compare .verdict"); len(text) < 20 {
			t.Errorf("%s: the verdict is %q", point, text)
		}
		p.see(".compare .merge")
		if point == "web form for stations" {
			p.see(".compare .verdict|9 entries more, $0.02 dearer") // the whole lines, whatever a model saw of them
			p.see(".compare-sides h3|What the model saw only in B")
		} else {
			p.see(".compare-sides h3|Only B")
		}
		text := eval[string](p, `document.querySelector(".compare-sides").innerText`)
		if strings.Contains(text, "no result") {
			t.Errorf("%s: a call is shown without its result: %s", point, text)
		}
	}
	p.click(".compare button|Mark the cursor as A")
	p.waitQuery("with", "seq:213") // not whatever the head is later
	p.see(".compare .verdict")
	p.wait(`document.querySelector(".compare-choose select").selectedOptions[0].text.startsWith("seq 213 · answer")`)
	p.drag(".axis", shift, at(0.2, 0.5), at(0.4, 0.5))
	p.wait(`/^seq:\d+$/.test(new URLSearchParams(location.search).get("with"))`)
	p.see(".compare .verdict")
	kept()
}

// rollBack rolls back to the commit that is shown, and waits until that is done.
func (p *tab) rollBack(seq int) {
	p.t.Helper()
	p.click(".rail button|Roll back…")
	p.see("dialog h3|values change")
	p.click(fmt.Sprintf("dialog button|Roll back to seq %d", seq))
	p.see(fmt.Sprintf(".toast|Rolled back to seq %d", seq))
}

// A rollback shows what it does before it does it, and can be undone.
func TestRollBack(t *testing.T) {
	t.Parallel()
	d := withDemo(t)
	p := arrive(t, d.site, "/s/"+demostore.Main+"?seq=199&pane=state", ".state .json")
	before := d.head(demostore.Main)
	state := func() string { return d.stateAt(demostore.Main, int(d.head(demostore.Main).Seq)) }
	was := state()
	p.click(".rail button|Roll back…")
	p.see("dialog h3|values change")
	p.see("dialog h3|entries leave the line and stay on the branch")
	p.see("dialog|Files on disk do not change")
	p.see("dialog .changes li")
	p.press("Escape")
	p.miss("dialog")
	if now := d.head(demostore.Main); now != before {
		t.Fatalf("a dialog that was closed moved the head to %v", now)
	}
	p.rollBack(199)
	p.wait(`document.querySelector(".top .badge").innerText.includes("214")`)
	p.press("R")
	p.see(".toast|This is the head")
	if now := state(); now != d.stateAt(demostore.Main, 199) {
		t.Errorf("the state is %.200s", now)
	}
	p.click(".toast button|Undo")
	p.see(".toast|Undone")
	if now := d.head(demostore.Main); now.Seq != 215 || now.Entry != before.Entry || state() != was {
		t.Errorf("undone, the head is %v, was %v", now, before)
	}
}

// A rollback that meets a newer commit reports it, with the figures of the new head, and does nothing unasked.
func TestRollBackLosesARace(t *testing.T) {
	t.Parallel()
	d := withDemo(t)
	p := arrive(t, d.site, "/s/"+demostore.Main+"?seq=199&pane=state", ".state .json")
	p.click(".rail button|Roll back…")
	p.see("dialog h3|values change")
	release := d.hold(func(r string) bool { return strings.Contains(r, "/rollback") || strings.Contains(r, "/events") })
	p.click("dialog button|Roll back to seq 199")
	r := d.says(demostore.Main, "I was faster.")
	release()
	p.allow("status of 412")
	p.see("dialog [role=alert]|was first")
	p.see("dialog .others code|tester:1") // who else writes
	if now := d.head(demostore.Main); now.Commit != r.Commit {
		t.Errorf("the head is %v, want %s", now, r.Commit)
	}
	p.confirm("dialog button.primary", "Rolled back to seq 199")
}

// An undo that meets a newer commit does nothing, and leaves a way back that shows what it would do now.
func TestUndoLosesARace(t *testing.T) {
	t.Parallel()
	d := withDemo(t)
	p := arrive(t, d.site, "/s/"+demostore.Main+"?seq=199&pane=state", ".state .json")
	before := d.head(demostore.Main)
	p.rollBack(199)
	r := d.says(demostore.Main, "I go on from there.")
	p.see(".top .badge|seq 215")
	p.allow("status of 412")
	p.click(".toast button|Undo")
	p.see(".toast|was first")
	if now := d.head(demostore.Main); now.Commit != r.Commit {
		t.Errorf("the head is %v, want %s", now, r.Commit)
	}
	p.click(".toast button|Roll back to seq 213…")
	p.see("dialog h3|1 entry leaves the line and stays on the branch")
	p.click("dialog button|Roll back to seq 213")
	p.see(".toast|Rolled back to seq 213")
	if now := d.head(demostore.Main); now.Entry != before.Entry {
		t.Errorf("undone, the head is %v, was %v", now, before)
	}
}

// A snapshot is taken with a tag, and shown on the timeline.
func TestSnapshot(t *testing.T) {
	t.Parallel()
	d := withDemo(t)
	p := arrive(t, d.site, "/s/"+demostore.Main, ".talk article")
	p.click(".rail button|Snapshot…")
	p.write("dialog input", "before lunch")
	p.click("dialog button|Take a snapshot")
	p.see(".toast|Snapshot of seq 213")
	h := d.open(demostore.Main)
	defer func() { ok(t, h.Close()) }()
	for s, err := range h.Snapshots(t.Context()) {
		ok(t, err)
		if s.Tag == "before lunch" && s.Seq == 213 {
			return
		}
	}
	t.Error("there is no such snapshot")
}
