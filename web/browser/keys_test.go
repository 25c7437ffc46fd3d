package browser

import (
	"fmt"
	"strings"
	"testing"

	"github.com/coppice-go/coppice/internal/cli/demostore"
)

// effects are what each action of the keyboard does: where it is pressed, and what can be seen after it. Every row of
// the help has one.
var effects = map[string]struct {
	at   string // query of the demo's main session; FIRST and SECOND are versions of one prompt
	then string // an expression that is false before, and true after
}{
	"next message":                           {"?at=b76a171b", selected("ec2c5948")},
	"previous message":                       {"?at=ec2c5948", selected("b76a171b")},
	"next prompt":                            {"?at=ec2c5948", selected("9d6a5f6f")},
	"previous prompt":                        {"?at=ec2c5948", selected("6e900cc7")},
	"next place of what is looked for":       {"?at=ec2c5948&q=limit", elsewhere},
	"previous place of what is looked for":   {"?at=ec2c5948&q=limit", elsewhere},
	"first message":                          {"", `document.querySelector(".talk .edge")?.innerText.includes("start of the session")`},
	"last message of this line":              {"?at=ec2c5948", `[...document.querySelectorAll(".talk article")].at(-1).innerText.includes("friday.png")`},
	"open or fold what the message contains": {"?at=b76a171b", `document.querySelector("#e-b76a171b .folded")`},
	"open or fold all tools":                 {"?at=b76a171b", `document.querySelectorAll(".fold.tool .folded").length > 1`},
	"open or fold all thinking":              {"?at=3206c58d", `document.querySelector(".fold.thinking .folded")`},
	"next failure, on any line":              {"", `new URLSearchParams(location.search).get("at")`},
	"show or hide program events":            {"", `location.search.includes("events=all")`},
	"follow what is new":                     {"?line=036ea533&at=07963d71", `!location.search.includes("line=")`},
	"previous version of this message":       {"?at=SECOND", `location.search.includes("line=")`},
	"next version of this message":           {"?line=FIRST&at=FIRST", `document.querySelector(".talk")?.innerText.includes("does it build for Windows")`},
	"previous fork":                          {"", `document.querySelector(".talk [aria-current=true] .picker")`},
	"next fork":                              {"?at=3206c58d", `document.querySelector(".talk [aria-current=true] .picker")`},
	"label this message":                     {"?at=b76a171b", `document.querySelector("form.ask input") === document.activeElement`},
	"edit this message":                      {"?at=6e900cc7", `document.querySelector("form.ask textarea") === document.activeElement`},
	"commit before":                          {"?seq=100", seq(99)},
	"commit after":                           {"?seq=100", seq(101)},
	"snapshot before":                        {"?seq=100", seq(18)},
	"snapshot after":                         {"?seq=100", seq(105)},
	"compare with what is marked":            {"?seq=100", `new URLSearchParams(location.search).get("with")`},
	"map":                                    {"?pane=usage", `document.querySelector(".map .row")`},
	"state":                                  {"", `document.querySelector(".state .json")`},
	"what the model saw":                     {"", `document.querySelector(".saw ol li")`},
	"tokens and cost":                        {"", `document.querySelector(".usage table")`},
	"export":                                 {"", `document.querySelector("dialog[open]")?.ariaLabel === "Export"`},
	"roll back to this point":                {"?seq=100", `document.querySelector("dialog[open]")?.ariaLabel === "Roll back to seq 100"`},
	"find in this session":                   {"?pane=usage", `document.activeElement?.classList.contains("map-search")`},
	"search everything":                      {"", `document.querySelector("dialog.palette[open]")`},
	"copy the link to this view":             {"", `document.querySelector(".toast p")`},
	"this help":                              {"", `document.querySelector("dialog.help[open]")`},
	"close what is open":                     {"?pane=state&path=%2Fcost", `!location.search.includes("path=")`},
}

// elsewhere holds once the cursor is at another entry.
const elsewhere = `!location.search.includes("at=ec2c5948")`

func selected(entry string) string {
	return fmt.Sprintf(`document.querySelector(".talk [aria-current=true]")?.id === "e-%s"`, entry)
}

func seq(n int) string {
	return fmt.Sprintf(`document.querySelector(".rail-at strong").innerText === "seq %d"`, n)
}

// Every key of the table, which the help shows, does what the help describes.
func TestKeys(t *testing.T) {
	t.Parallel()
	d := withDemo(t)
	p := arrive(t, d.site, "/s/"+demostore.Main, ".talk article")
	p.allow("clipboard")
	p.press("?")
	type row struct {
		Keys []string
		Help string
	}
	p.see("dialog.help dt")
	rows := eval[[]row](p, `[...document.querySelectorAll(".help-keys dt")].map((dt) => ({
		Keys: [...dt.querySelectorAll("kbd")].map((k) => k.innerText), Help: dt.nextElementSibling.innerText }))`)
	if len(rows) < 25 {
		t.Fatalf("the help has %d rows", len(rows))
	}
	first, second := versions(t, d)
	tried, there := 0, false
	for _, r := range rows {
		var name string
		for help := range effects {
			if strings.HasPrefix(r.Help, help) && len(help) > len(name) {
				name = help
			}
		}
		if name == "" {
			t.Errorf("no test knows what %v, %q does", r.Keys, r.Help)
			continue
		}
		e := effects[name]
		at := strings.NewReplacer("FIRST", first, "SECOND", second).Replace(e.at)
		for _, key := range r.Keys {
			for _, show := range []func(string){p.turn, p.navigate} { // a key may have left what is to be seen
				show("/s/" + demostore.Main + at)
				p.wait(`/seq \d/.test(document.querySelector(".rail-at strong")?.innerText)`)
				p.settled()
				if there = eval[bool](p, "Boolean("+e.then+")"); !there {
					break
				}
			}
			if there {
				t.Errorf("%s, %q: what is to be seen is there before", key, r.Help)
			}
			p.press(strings.Replace(key, "Ctrl+", "Mod+", 1))
			p.until(fmt.Sprintf("%s, %q", key, r.Help), func() (bool, error) {
				return try[bool](p, "Boolean("+e.then+")")
			})
			tried++
		}
	}
	t.Logf("%d keys of %d rows", tried, len(rows))
}

// The start page offers ? for the keys: it shows them where its field has the focus, until something is in it.
func TestHelpFromAnEmptyField(t *testing.T) {
	t.Parallel()
	p := arrive(t, withBundled(t), "/", ".sessions a")
	p.wait(`document.activeElement.matches(".sessions-search")`)
	p.press("?")
	p.see("dialog.help[open]")
	p.press("Escape")
	p.miss("dialog")
	p.press("w ?")
	p.wait(`document.querySelector(".sessions-search").value === "w?"`)
	p.miss("dialog")
}

// versions returns two versions of one prompt.
func versions(t *testing.T, d *demo) (first, second string) {
	t.Helper()
	h := d.open(demostore.Main)
	defer func() { ok(t, h.Close()) }()
	for e, err := range h.Entries(t.Context()) {
		ok(t, err)
		if m, is := e.Message(); is && strings.Contains(string(m.Raw), firstOne) {
			first = e.ID
		} else if is && strings.Contains(string(m.Raw), rephrased) {
			second = e.ID
		}
	}
	return first, second
}
