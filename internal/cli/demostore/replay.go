package demostore

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"time"

	coppice "github.com/coppice-go/coppice"
	"github.com/coppice-go/coppice/entry"
	"github.com/coppice-go/coppice/examples/session"
	"github.com/coppice-go/coppice/transcript"
)

// The reasons of the demo's commits.
const (
	reasonPrompt  = "prompt" // the user said something
	reasonStep    = "step"   // the model answered, and calls tools
	reasonTools   = "tools"  // tools answered
	reasonAnswer  = "answer" // the model answered
	reasonCompact = "compaction"
)

// Entries of the main session.
const (
	entryGreen     = "4f994405" // the label "tests green"
	entryGivenUp   = "5e2d90b7" // a label that the demo adds
	entryCommitted = "41d2416a" // the last one before Fiona wrote
	entryAsked     = "c832abc3" // what Mara asked while Fiona's agent worked
	entryReleased  = "1c54f9e5" // the title after the release
)

// line is a line of the bundled session.
type line struct {
	transcript.Line
	role, stop string // of a message
}

func (l *line) reason() string {
	switch {
	case l.Type == "compaction":
		return reasonCompact
	case l.role == "toolResult":
		return reasonTools
	case l.role == "assistant" && l.stop == "stop":
		return reasonAnswer
	case l.role == "assistant":
		return reasonStep
	}
	return reasonPrompt
}

// turn are lines of one commit.
type turn struct {
	reason string
	lines  []line
}

// turns splits the bundled session into commits: prompts, answers of the model and results of tools. Settings and
// labels belong to what is before them, unless they begin the session or a branch.
func turns() (header transcript.Line, list []turn, err error) {
	for i, text := range bytes.Split(bytes.TrimSpace(session.JSONL), []byte("\n")) {
		l, err := parse(text)
		if err != nil {
			return header, nil, fmt.Errorf("line %d of the bundled session: %w", i+1, err)
		}
		if i == 0 {
			header = l.Line
			continue
		}
		if n := len(list); n == 0 || begins(l, list[n-1]) {
			list = append(list, turn{reason: l.reason()})
		}
		t := &list[len(list)-1]
		t.lines = append(t.lines, l)
	}
	return header, list, nil
}

func parse(text []byte) (line, error) {
	head, err := transcript.ParseLine(text)
	if err != nil {
		return line{}, err
	}
	var of struct {
		Message struct{ Role, StopReason string }
	}
	err = json.Unmarshal(text, &of)
	return line{head, of.Message.Role, of.Message.StopReason}, err
}

// begins reports whether a line is the first of a commit of its own.
func begins(l line, before turn) bool {
	above := before.lines[len(before.lines)-1]
	switch {
	case l.ParentID != above.ID || l.Type == "compaction":
		return true
	case l.role == "toolResult":
		return above.role != "toolResult"
	}
	if first := before.lines[0]; first.ParentID == "" && above.role == "" {
		return false // the settings before the first prompt: a listing shows the prompt of the first commit
	}
	return l.role != ""
}

// replay commits the bundled session.
func (d *demo) replay(ctx context.Context) error {
	header, list, err := turns()
	if err != nil {
		return err
	}
	d.clock.set(header.Time)
	if d.main, err = d.begin(header.ID, coppice.SessionOptions{}); err != nil {
		return err
	}
	d.content.Main = d.main.h.ID()
	for _, t := range list {
		if err := d.move(ctx, t); err != nil {
			return err
		}
		d.clock.set(t.lines[len(t.lines)-1].Time)
		drafts := make([]transcript.Draft, len(t.lines))
		for i, l := range t.lines {
			drafts[i] = entry.Line(l.Raw)
		}
		err := d.main.commit(ctx, coppice.Turn{Reason: t.reason, Entries: drafts})
		if err == nil {
			err = d.besides(ctx, d.main.last)
		}
		if err != nil {
			return fmt.Errorf("commit %s: %w", t.lines[0].ID, err)
		}
	}
	return nil
}

// move goes to the entry from which a turn grows: by a rollback if the turn says why the line before was left.
func (d *demo) move(ctx context.Context, t turn) error {
	w, first := d.main, t.lines[0]
	if first.ParentID == w.last {
		return nil
	}
	d.clock.set(first.Time.Add(-time.Second))
	undone := first.Type == "branch_summary"
	if undone {
		mark := transcript.Draft{
			Type: "label", ID: entryGivenUp,
			Body: fmt.Appendf(nil, `{"targetId":%q,"label":"cache: given up"}`, w.last),
		}
		if err := w.commit(ctx, coppice.Turn{Reason: "note", Entries: []transcript.Draft{mark}}); err != nil {
			return err
		}
	}
	to := first.ParentID
	if err := w.back(to); err != nil {
		return err
	}
	if undone {
		_, err := w.h.Rollback(ctx, coppice.Target{Commit: w.at[to].commit})
		return err
	}
	_, err := w.h.Branch(ctx, to, nil)
	return err
}

// besides does what happened beside the bundled session when an entry of it had become the head.
func (d *demo) besides(ctx context.Context, head string) error {
	switch head {
	case entryGreen:
		return d.snapshot(ctx, "tests-green")
	case entryReleased:
		return d.snapshot(ctx, "v0.2.0")
	case entryAsked:
		return d.conflict(ctx)
	}
	return nil
}

func (d *demo) snapshot(ctx context.Context, tag string) error {
	_, err := d.main.h.Snapshot(ctx, tag)
	return err
}

// conflict commits a turn of the second writer on the commit before the newest: it loses, and is kept as a branch.
func (d *demo) conflict(ctx context.Context) error {
	base := d.main.at[entryCommitted]
	w, err := d.join(ctx, fiona, d.main.h.ID())
	if err != nil {
		return err
	}
	w.p = base.p.clone()
	edit := w.call("edit", args{
		"path": "internal/station/check.go", "oldText": "maxMean      = 15.0 // metres",
		"newText": "maxMean      = 20.0 // metres",
	})
	d.clock.wait(20 * time.Second)
	return w.turn(ctx, coppice.Turn{Reason: reasonStep, Base: base.commit, KeepBoth: true},
		prompt("Fiona here, on my laptop. `tideline check` refuses four stations of the Bay of Fundy: their mean "+
			"level is "+
			"over 15 m. Please raise the limit."),
		w.answer("", "The limit is a constant in `check.go`. I set it to 20 m.", edit),
		result(edit, "Successfully replaced text in internal/station/check.go.", nil),
		w.answer("", "Done: the four stations pass. I have not looked at whether 16.2 m can be a mean level."),
	)
}
