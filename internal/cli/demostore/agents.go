package demostore

import (
	"context"
	"fmt"
	"time"

	coppice "github.com/coppice-go/coppice"
	"github.com/coppice-go/coppice/entry"
)

// What agents are asked to do.
const (
	taskWindows = "Find out whether tideline builds and passes its tests for Windows."
	taskFundy   = "Compare the four stations of the Bay of Fundy with published ranges."
	taskRanges  = "List the published mean levels of these four harbours."
)

// delegate is what follows the bundled session: a prompt of two versions, agents that work for the main one, and a
// picture.
func (d *demo) delegate(ctx context.Context) error {
	w := d.main
	w.asks(ctx, 14*time.Minute, "Before I log off: what would it take to ship this for Windows?")
	w.answers(ctx, 7*time.Second, "Little: the station files are embedded, so one `GOOS=windows go build` and a "+
		"release step.")
	if w.err == nil {
		w.err = d.rephrase(ctx, "Before I log off: does it build for Windows, and are Fiona's stations of the Bay "+
			"of Fundy right now? Let agents look at both at once.")
	}
	windows := w.call("agent", args{"name": "windows", "task": taskWindows})
	fundy := w.call("agent", args{"name": "fundy", "task": taskFundy})
	w.calls(ctx, 9*time.Second, "Two questions that have nothing to do with each other: an agent for each.",
		"I start two agents.", windows, fundy)
	w.gets(ctx, time.Second, d.agent(ctx, w, windows, "windows", d.windows))
	w.gets(ctx, 2*time.Second, d.agent(ctx, w, fundy, "fundy", d.fundy))
	w.answers(ctx, 11*time.Second, "It builds for Windows, and all tests pass there but one: "+
		"`TestTableIsAsFrozen` compares line feeds. Two of the four stations are right since Fiona corrected them; "+
		"Burntcoat Head and Minas Basin still have the range in the place of the mean level. I have changed nothing.")
	d.picture(ctx)
	return w.err
}

// rephrase replaces the newest prompt by another version of it, and continues there.
func (d *demo) rephrase(ctx context.Context, text string) error {
	w := d.main
	answer, err := w.h.Entry(ctx, w.last)
	if err != nil {
		return err
	}
	asked, err := w.h.Entry(ctx, answer.ParentID)
	if err != nil {
		return err
	}
	if err := w.back(asked.ParentID); err != nil {
		return err
	}
	d.clock.wait(50 * time.Second)
	drafts, err := w.drafts(prompt(text))
	if err != nil {
		return err
	}
	r, err := w.h.Edit(ctx, asked.ID, drafts[0])
	if err != nil {
		return err
	}
	err = w.note(drafts...)
	w.went(r)
	return err
}

// agent runs an agent in a session of its own, and returns the result of the call that started it.
func (d *demo) agent(
	ctx context.Context, parent *writer, call entry.Block, name string,
	work func(ctx context.Context, w *writer) (said string),
) spoken {
	if parent.err != nil {
		return spoken{}
	}
	d.clock.wait(time.Second)
	w, err := d.begin("", coppice.SessionOptions{
		Title: name, Parent: parent.h.ID(), Relation: "agent", Meta: map[string]string{"call": call.ID, "agent": name},
	})
	if err != nil {
		parent.err = err
		return spoken{}
	}
	d.content.Agents = append(d.content.Agents, w.h.ID())
	said := work(ctx, w)
	parent.err = w.err
	return result(call, said, args{"session": w.h.ID(), "agent": name})
}

// windows is the work of an agent.
func (d *demo) windows(ctx context.Context, w *writer) string {
	w.asks(ctx, 0, taskWindows)
	build := w.call("bash", args{"command": "GOOS=windows go build -o /tmp/tideline.exe ./cmd/tideline && " +
		"GOOS=windows go vet ./..."})
	w.calls(ctx, 4*time.Second, "", "First whether it builds at all.", build)
	w.gets(ctx, 6*time.Second, result(build, "(no output)", nil))
	test := w.call("bash", args{"command": "GOOS=windows go test -exec wine ./..."})
	w.calls(ctx, 3*time.Second, "", "It does. Now the tests.", test)
	w.gets(ctx, 41*time.Second, result(test, "ok  \ttideline.example/tideline/internal/harmonic\t0.610s\n"+
		"ok  \ttideline.example/tideline/internal/ical\t0.122s\n"+
		"ok  \ttideline.example/tideline/internal/station\t0.201s\n"+
		"--- FAIL: TestTableIsAsFrozen (0.19s)\n"+
		"    table_test.go:61: line 1: \"Brest  Thu 1 Jan 2026\\r\" is not \"Brest  Thu 1 Jan 2026\"\n"+
		"FAIL\ttideline.example/tideline/internal/table\t0.301s", nil))
	const said = "It builds. Of 4 packages 3 pass; TestTableIsAsFrozen fails because git wrote 2026.golden with " +
		"CRLF. A line `*.golden -text` in .gitattributes would do."
	w.answers(ctx, 8*time.Second, said)
	return said
}

// fundy is the work of an agent that starts another one.
func (d *demo) fundy(ctx context.Context, w *writer) string {
	w.asks(ctx, 0, taskFundy)
	list := w.call("bash", args{"command": "jq -r '.[] | [.id, .mean] | @tsv' ~/Downloads/fundy.json"})
	w.calls(ctx, 5*time.Second, "", "What do we have?", list)
	w.gets(ctx, time.Second, result(list,
		"burntcoat-head\t16.2\nminas-basin\t15.4\nsaint-john\t4.4\ndigby\t4.6\n", nil))
	ranges := w.call("agent", args{"name": "ranges", "task": taskRanges})
	w.calls(ctx, 6*time.Second, "Two look right. I need published figures, and that is a search.", "", ranges)
	w.gets(ctx, time.Second, d.agent(ctx, w, ranges, "ranges", d.ranges))
	w.answers(ctx, 9*time.Second, "Saint John and Digby are right. Burntcoat Head and Minas Basin have the range "+
		"as mean level; the agent that looked for published figures broke off after Burntcoat Head, so Minas Basin "+
		"is by its amplitudes alone.")
	return "saint-john and digby are right; burntcoat-head (16.2 m) and minas-basin (15.4 m) are ranges."
}

// ranges is the work of an agent that fails.
func (d *demo) ranges(ctx context.Context, w *writer) string {
	w.asks(ctx, 0, taskRanges)
	search := w.call("grep", args{"pattern": "Burntcoat|Minas|Saint John|Digby", "path": "docs/tables-2026.txt"})
	w.calls(ctx, 4*time.Second, "", "The tables of 2026 are in docs.", search)
	w.gets(ctx, time.Second, result(search, "docs/tables-2026.txt:812: Burntcoat Head  mean 8.1  range 16.3", nil))
	w.fails(ctx, 62*time.Second, "overloaded_error: the model is overloaded")
	return "Burntcoat Head: mean 8.1 m. Then the agent failed: overloaded_error."
}

// picture has the main agent draw a tide.
func (d *demo) picture(ctx context.Context) {
	w := d.main
	w.asks(ctx, 2*time.Minute, "Good enough for today. Can you draw me Friday at Saint-Malo? I want to send it to "+
		"my sister.")
	plot := w.call("bash", args{"command": "go run ./scratch/plot saint-malo 2026-03-20 > friday.png"})
	look := w.call("read", args{"path": "friday.png"})
	w.calls(ctx, 10*time.Second, "", "I draw it and look at it.", plot, look)
	w.gets(ctx, 3*time.Second, result(plot, "(no output)", nil),
		result(look, fmt.Sprintf("friday.png: %d x %d", pictureWidth, pictureHeight), nil,
			entry.Image("image/png", tidePNG())))
	w.answers(ctx, 5*time.Second, "Low at 01:57 and 14:17, high at 07:31 and 19:52: the picture is `friday.png`.")
}

// fork begins a session of its own at the release.
func (d *demo) fork(ctx context.Context) error {
	d.clock.wait(20 * time.Minute)
	from, err := d.join(ctx, mara, d.main.h.ID())
	if err != nil {
		return err
	}
	h, err := from.h.Fork(ctx, coppice.Target{Tag: "v0.2.0"}, "", &coppice.SessionOptions{
		Title: "tideline: a web form for stations", Cwd: cwd, Snapshots: snapshots,
	})
	if err != nil {
		return err
	}
	d.content.Fork = h.ID()
	w := writerOn(h, d.clock, from.ids)
	w.p = d.main.at[entryReleased].p.clone()
	w.asks(ctx, time.Minute, "Fiona would rather have a web form than `tideline check`. Can we do that on top of "+
		"v0.2.0?")
	w.answers(ctx, 12*time.Second, "Yes: the checks are a package already. One page, which calls them on every "+
		"change; "+
		"I would keep it out of the command.")
	return w.err
}
