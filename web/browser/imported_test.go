package browser

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	coppice "github.com/coppice-go/coppice"
	"github.com/coppice-go/coppice/backend/memory"
	"github.com/coppice-go/coppice/entry"
	"github.com/coppice-go/coppice/internal/cli/demostore"
	"github.com/coppice-go/coppice/transcript"
)

// lines are the entries of a session that is imported, each a minute after the one before.
type lines struct {
	drafts []transcript.Draft
	last   string
}

// add appends an entry, and returns its id.
func (l *lines) add(typ string, fields map[string]any) string {
	id := fmt.Sprintf("line-%03d", len(l.drafts))
	fields["type"], fields["id"], fields["parentId"] = typ, id, nil
	if l.last != "" {
		fields["parentId"] = l.last
	}
	fields["timestamp"] = time.Date(2026, 3, 2, 9, len(l.drafts), 0, 0, time.UTC).Format(time.RFC3339)
	raw, err := json.Marshal(fields)
	if err != nil {
		panic(err) // the fields are texts and numbers
	}
	l.drafts, l.last = append(l.drafts, transcript.Draft{Raw: raw}), id
	return id
}

func (l *lines) event(name string, data map[string]any) string {
	return l.add("custom", map[string]any{"customType": name, "data": data})
}

func (l *lines) say(role, text string) string {
	return l.add("message", map[string]any{"message": map[string]any{"role": role, "content": text, "model": "m-1"}})
}

// call appends a call and its result, and returns the id of the result's entry.
func (l *lines) call(name string, args map[string]any, result string, failed bool) string {
	id := fmt.Sprint("call-", len(l.drafts))
	l.add("message", map[string]any{"message": map[string]any{"role": "assistant", "model": "m-1", "content": []any{
		map[string]any{"type": "toolCall", "id": id, "name": name, "arguments": args},
	}}})
	return l.add("message", map[string]any{"message": map[string]any{
		"role": "toolResult", "toolCallId": id, "toolName": name, "content": result, "isError": failed,
	}})
}

// withImported serves a session that looks as an imported one of a coding agent does.
func withImported(t testing.TB, build func(l *lines)) *site {
	t.Helper()
	var l lines
	build(&l)
	st := stored(t, memory.New())
	h, err := st.Import(t.Context(), func(yield func(transcript.Draft, error) bool) {
		for _, d := range l.drafts {
			if !yield(d, nil) {
				return
			}
		}
	}, &coppice.SessionOptions{ID: "imported"})
	ok(t, err)
	ok(t, h.Close())
	return newSite(t, st)
}

func progress(l *lines, n int) {
	for range n {
		l.event("claude-code.progress", map[string]any{
			"type": "progress", "data": map[string]any{"type": "hook_progress"},
		})
	}
}

// What programs note for themselves is hidden, and a line for each run where it is wanted. Commands, reminders and
// notifications look like what they are; output of terminals has its colours, and items of task lists have boxes.
func TestProgramEvents(t *testing.T) {
	t.Parallel()
	var within string
	s := withImported(t, func(l *lines) {
		progress(l, 2)
		l.say("user", "Plan the harbour\n\n- [ ] measure\n- [x] ask")
		progress(l, 37)
		l.say("assistant", "I begin.")
		l.say("user", "<command-name>/model</command-name><command-args>large</command-args>")
		l.say("user", "<system-reminder>The tide turns at noon.</system-reminder>")
		l.add("custom_message", map[string]any{
			"customType": "claude-code.inserted", "content": "[Request interrupted by user]", "display": false,
		})
		within = l.event("codex.token_count", map[string]any{"payload": map[string]any{"type": "token_count"}})
		l.call("bash", map[string]any{"command": "make"}, "\x1b[31mred\x1b[0m plain \x1b[2Kend", false)
	})
	p := arrive(t, s, "/s/imported", ".talk article|I begin.")
	p.miss(".talk article|event")
	p.see(".talk .task-list-item|☐ measure")
	p.see(".talk .task-list-item|☑ ask")
	p.see(".aside.command|/model large")
	p.see(".aside.reminder|The tide turns at noon.")
	p.see(".aside.notice|interrupted by the user")
	p.press("v")
	p.see(".talk article.note|37 progress events")
	p.see(".talk article.note|2 progress events")
	p.waitQuery("events", "all")
	p.click(".talk article.note|37 progress events >> button")
	p.wait(`document.querySelectorAll(".run .folded .fold").length === 37`)
	p.click(".talk-bar button|hide program events")
	p.miss(".talk article|37 progress events")
	p.navigate("/s/imported?at=" + within) // a link to an event shows it
	p.see(".talk article.at|1 token count event")
	p.miss(".talk article|37 progress events")
	p.press("o")
	p.see(".ansi-red|red")
	p.wait(`!/\x1b|\[31m|\[2K/.test(document.querySelector(".talk .plain .ansi-red").closest("pre").innerText)`)
}

// Calls that one answer made are side by side, each with a bar of how long it took, and one that started an agent whose
// conversation has its prompt and its result is that agent. A prompt stays in sight as the heading of its answers.
func TestCallsOfAnAnswer(t *testing.T) {
	t.Parallel()
	s := withImported(t, func(l *lines) {
		l.say("user", "Measure the harbour")
		var calls []any
		for _, name := range []string{"read", "grep", "task"} {
			args := map[string]any{"prompt": "Ask the pilot about the bar."}
			calls = append(calls, map[string]any{"type": "toolCall", "id": name, "name": name, "arguments": args})
		}
		l.add("message", map[string]any{"message": map[string]any{"role": "assistant", "content": calls}})
		for i, name := range []string{"read", "grep", "task"} {
			l.add("message", map[string]any{"message": map[string]any{
				"role": "toolResult", "toolCallId": name, "content": "The bar has four metres.",
				"details": map[string]any{"session": map[bool]string{true: "pilot"}[i == 2]},
			}})
		}
		for i := range 40 {
			l.say("assistant", fmt.Sprint("Sounding ", i+1))
		}
	})
	h, err := s.store.Create("pilot", &coppice.SessionOptions{Parent: "imported", Relation: "agent"})
	ok(t, err)
	_, err = h.Commit(t.Context(), coppice.Turn{Entries: drafts(
		entry.User("Ask the pilot about the bar."), entry.Assistant("The bar has four metres."))})
	ok(t, err)
	ok(t, h.Close())

	p := arrive(t, s, "/s/imported", ".talk article|Sounding 40")
	p.see(".heading|Measure the harbour")
	p.click(".heading button")
	p.see(".talk article.at|Measure the harbour")
	p.miss(".heading")
	p.see(".calls .agent-card|pilot")
	if n := p.count(".calls .fold.tool"); n != 2 {
		t.Errorf("%d calls beside the agent", n)
	}
	type bar struct{ Top, Width float64 }
	bars := eval[[]bar](p, `[...document.querySelectorAll(".calls .bar")].map((e) => {
		const r = e.getBoundingClientRect();
		return { Top: r.top, Width: r.width };
	})`)
	if len(bars) != 2 || bars[0].Top != bars[1].Top || bars[0].Width >= bars[1].Width {
		t.Errorf("the bars of a minute and of two: %v", bars)
	}
	p.click(".agent-card button|pilot")
	p.see(".agent-card .inline|The bar has four metres.")
	if n := strings.Count(p.text(".calls"), "The bar has four metres."); n != 1 {
		t.Errorf("the result is shown %d times", n)
	}
}

// What failed is red wherever the session is shown, counted in the header and in the list, and found by a key, on every
// line.
func TestFailures(t *testing.T) {
	t.Parallel()
	var first, second string
	s := withImported(t, func(l *lines) {
		l.say("user", "Measure the harbour")
		first = l.call("bash", map[string]any{"command": "make"}, "exit 2", true)
		for i := range 120 {
			l.call("read", map[string]any{"path": fmt.Sprint("chart-", i)}, "fine", false)
		}
		l.say("user", "And the tides")
		second = l.add("message", map[string]any{"message": map[string]any{
			"role": "assistant", "content": []any{}, "stopReason": "error", "errorMessage": "overloaded",
		}})
		l.say("assistant", "All is well now.")
	})
	p := arrive(t, s, "/s/imported", ".talk article|All is well now.")
	p.see(".top .badge.failed|2 failed")
	p.see(".sessions .facts|2 failed")
	bad := `getComputedStyle(document.documentElement).getPropertyValue("--bad")`
	p.wait(`getComputedStyle(document.querySelector(".map .row.failed .preview")).color === ` + bad)
	for _, want := range []string{first, second, first} {
		p.press("!")
		p.waitQuery("at", want)
		p.see(".talk article.at.has-failed")
	}
	p.see(".toast|failure 1 of 2")
	p.see(".talk article.at .fold.tool|failed")
	red := func(canvas string) string {
		return `(() => {
			const c = document.querySelector("` + canvas + `");
			const d = c.getContext("2d").getImageData(0, 0, c.width, c.height).data;
			const rgb = ` + bad + `.match(/\d+/g).map(Number);
			for (let i = 0; i < d.length; i += 4) if (rgb.every((v, k) => d[i + k] === v)) return true;
		})()`
	}
	p.wait(red(".minimap"))
	p.wait(red(".axis canvas"))
	p.click(".top .badge.failed")
	p.waitQuery("at", second)

	p.allow("status of 422")                // the line does not have it
	p.navigate("/s/imported?line=" + first) // on a line that ends before the other one
	p.see(".talk .edge|end of this line")
	p.settled()
	p.press("!")
	p.waitQuery("at", first)
	p.press("!")
	p.waitQuery("at", second)
	p.see(".talk article.at|overloaded")
}

// A session that was imported has a tick for each turn, by the times of its entries.
func TestTurnsOfAnImport(t *testing.T) {
	t.Parallel()
	var asks []string
	s := withImported(t, func(l *lines) {
		for i := range 5 {
			asks = append(asks, l.say("user", fmt.Sprint("Question ", i+1)))
			progress(l, 3)
			l.say("assistant", fmt.Sprint("Answer ", i+1))
		}
	})
	p := arrive(t, s, "/s/imported", ".rail-at strong|turn 5")
	p.see(".rail-at|of 5")
	p.see(".rail-at|Question 5")
	p.press(",")
	p.waitQuery("at", asks[3])
	p.see(".rail-at strong|turn 4")
	p.drag(".axis", 0, at(0.5, 0.5), at(0.01, 0.5))
	p.waitQuery("at", asks[0])
	p.see(".talk article.at|Question 1")
	p.see(".rail-at|Question 1")
	p.navigate("/s/imported?at=" + asks[2])
	p.see(".rail-at strong|turn 3")
	p.settled()
	p.press(".")
	p.see(".rail-at strong|turn 4")
}

// A session without a state explains so, and shows what its messages up to the cursor show.
func TestStateOfAnImport(t *testing.T) {
	t.Parallel()
	var early string
	s := withImported(t, func(l *lines) {
		l.say("user", "Plan it")
		early = l.call("Read", map[string]any{"file_path": "/harbour/tides.csv"}, "9 lines", false)
		l.call("TodoWrite", map[string]any{"todos": []any{
			map[string]any{"content": "measure", "status": "completed"},
			map[string]any{"content": "draw", "status": "pending"},
		}}, "ok", false)
		edit := map[string]any{"file_path": "/harbour/chart.svg", "old_string": "a", "new_string": "b"}
		l.call("Edit", edit, "no", true)
		l.say("assistant", "Done.")
	})
	p := arrive(t, s, "/s/imported?pane=state", ".state .derived")
	p.see(".state|No state is stored")
	p.see(".derived dd|m-1")
	p.see(".derived .tasks .done|measure")
	p.see(".derived .tasks .open|draw")
	p.see(".derived dd.failed|1 call")
	p.click(".derived [aria-label='Files written'] button|chart.svg")
	p.see(".talk article.at|Edit")
	p.navigate("/s/imported?pane=state&at=" + early)
	p.see(".derived|up to the cursor")
	p.see(".derived [aria-label='Files read']|tides.csv")
	p.miss(".derived .tasks li")
	p.miss(".derived|chart.svg")
}

// The search shows nothing of other words than those in the field, and Enter opens only what has them.
func TestPaletteShowsWhatWasAsked(t *testing.T) {
	t.Parallel()
	d := withDemo(t)
	p := arrive(t, d.site, "/", ".sessions a")
	p.press("Mod+k")
	p.see("#found [role=option]")
	p.write("dialog.palette input", "tide")
	p.see("#found [role=option] mark|tide")
	release := d.hold(func(r string) bool { return strings.Contains(r, "q=zzzz") })
	p.write("dialog.palette input", "zzzz")
	p.see("dialog.palette [role=status]|Searching")
	p.miss("#found [role=option]")
	p.press("Enter")
	p.see("dialog.palette[open]")
	if at := p.location(); at != "/" {
		t.Errorf("Enter led to %s", at)
	}
	release()
	p.see("dialog.palette [role=status]|Nothing has these words.")
}

// A session that is opened while the server is away is shown when it is back, and nothing of the one before.
func TestOpenedWhileAway(t *testing.T) {
	t.Parallel()
	d := withDemo(t)
	p := arrive(t, d.site, "/s/"+demostore.Main+"?pane=state", ".state .json")
	p.allow("503")
	other := eval[string](p, `[...document.querySelectorAll(".sessions a:not([aria-current])")].at(-1)
		.getAttribute("href")`)
	d.refuse(func(r string) bool { return strings.Contains(r, "/v1/") })
	p.click(".sessions a[href='" + other + "']")
	p.see(".failed|when it is back")
	p.see(".top .badge.lost")
	p.see(".rail-at strong|seq …")
	p.miss(".rail-at .spent")
	p.miss(".state .json")
	p.wait(`[...document.querySelectorAll(".rail button")].find((b) => b.innerText.startsWith("Roll back")).disabled`)
	d.refuse(nil)
	p.see(".talk article")
	p.wait(`/\d/.test(document.querySelector(".rail-at strong").innerText)`)
	p.miss(".failed|when it is back")
}

// What is chosen is in sight: a value that a commit changed, deep in a state, also on arrival; and of an entry that the
// filter of the map hides, the nearest ancestor that it shows.
func TestChosenIsInSight(t *testing.T) {
	t.Parallel()
	st := stored(t, memory.New())
	s := newSite(t, st)
	h, err := st.Create("deep", nil)
	ok(t, err)
	state := map[string]any{}
	for i := range 300 {
		state[fmt.Sprintf("key-%03d", i)] = i
	}
	_, err = h.Commit(t.Context(), coppice.Turn{Entries: drafts(entry.User("count")), State: state})
	ok(t, err)
	state["key-250"] = "new"
	told := entry.Assistant("counted")
	told.ID = "told"
	_, err = h.Commit(t.Context(), coppice.Turn{Entries: drafts(told), State: state})
	ok(t, err)
	ok(t, h.Close())
	p := arrive(t, s, "/s/deep?pane=state", ".state .json")
	inSight := `(() => {
		const line = document.querySelector(".json .line.replace")?.getBoundingClientRect();
		const box = document.querySelector(".json").getBoundingClientRect();
		return line && line.top >= box.top && line.bottom <= box.bottom;
	})()`
	p.wait(inSight)
	p.press(",")
	p.wait(`document.querySelector(".rail-at strong").innerText === "seq 1"`)
	p.press(".")
	p.wait(inSight)

	p.navigate("/s/deep?at=told&filter=user-only")
	p.see(".map .row.at|count")
	p.wait(`document.querySelector(".map .row.at").getAttribute("aria-selected") === "true"`)
}
