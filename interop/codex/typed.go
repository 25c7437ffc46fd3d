package codex

import (
	"bytes"
	"slices"
	"strconv"
	"strings"

	"github.com/coppice-go/coppice/internal/rawjson"
)

// Bounds of the lines that are held until the author of a message is known.
const (
	maxUndecided     = 64
	maxUndecidedSize = 4 << 20 // bytes
)

// typedFilter separates messages that a person typed from those that Codex wrote in the user's name: an event of type
// user_message follows a typed message. Lines from a message of role user on are held until that event, the next
// answer, or the end. A filter serves one file.
//
// If no event follows, the message is Codex's own if the file has such events; else its text decides. The text also
// decides in files of versions before 0.92, which write no event for messages typed during a turn. Codex itself uses
// only the text when it rolls back.
type typedFilter struct {
	begun  bool // the first line of a session was read
	every  bool // this version writes an event for every typed message
	events bool // the file has such events
	loose  bool // one such event follows no message
	held   []undecided
	size   int
}

// undecided is a line that is held.
type undecided struct {
	*rolloutPiece
	matched bool // an event belongs to it
}

// everyMessage reports whether a version writes an event for every typed message.
func everyMessage(version []byte) bool {
	major, rest, _ := strings.Cut(rawjson.Text(version), ".")
	minor, _, _ := strings.Cut(rest, ".")
	const since = 92 // of 0.x
	m, err := strconv.Atoi(major)
	n, _ := strconv.Atoi(minor)
	return err == nil && (m > 0 || n >= since)
}

// begin reads the version from the first line of the session. Further such lines belong to its bases and are ignored.
func (f *typedFilter) begin(p *rolloutPiece) {
	f.every = f.every || !f.begun && everyMessage(rawjson.Field(p.Payload, "cli_version"))
	f.begun = true
}

// hear handles a line, or holds it.
func (r *Reader) hear(p *rolloutPiece) {
	f := &r.typed
	if string(p.Type) == `"session_meta"` {
		f.begin(p)
	}
	if !f.every {
		r.take(p)
		return
	}
	event := p.Typed && !p.User
	switch {
	case event:
		f.match(p)
	case p.Act == actAnswer, p.Act == actOutput, string(p.Type) == `"compacted"`, p.Cut, endsTurn(p.Kind):
		r.decide()
	}
	if !p.User && (event || len(f.held) == 0) {
		r.decide()
		r.take(p)
		return
	}
	kept := *p
	kept.Raw = bytes.Clone(p.Raw)
	(&pieceMaker{}).work(&kept)
	f.held = append(f.held, undecided{rolloutPiece: &kept})
	if f.size += len(kept.Raw); len(f.held) > maxUndecided || f.size > maxUndecidedSize {
		r.decide()
	}
}

// endsTurn reports whether an event of this kind ends a turn.
func endsTurn(kind string) bool {
	switch kind {
	case "task_complete", "turn_complete", "turn_aborted", "thread_rolled_back":
		return true
	}
	return false
}

// match finds the message of an event: the last one with its text, else the one right before the event.
func (f *typedFilter) match(event *rolloutPiece) {
	legacy := event.Kind == "user_message"
	f.events = f.events || legacy
	for i, p := range slices.Backward(f.held) {
		if p.User && !p.matched && slices.Contains(p.Texts, event.Texts[0]) {
			f.held[i].matched = true
			return
		}
	}
	if n := len(f.held); n > 0 && f.held[n-1].User && !f.held[n-1].matched {
		f.held[n-1].matched = true
		return
	}
	f.loose = f.loose || legacy
}

// decide handles the held lines.
func (r *Reader) decide() {
	f := &r.typed
	all := f.events && !f.loose
	held := f.held
	f.held, f.size = nil, 0
	for _, p := range held {
		switch {
		case p.User && (p.matched || p.Typed):
			p.Act = actUser
		case p.User && all && p.Act == actUser:
			p.Act, p.Name = actUnsaid, "codex.user"
		}
		r.take(p.rolloutPiece)
	}
}
