package codex

import (
	"bufio"
	"fmt"
	"io"
	"iter"
	"strconv"
	"strings"
	"time"

	"github.com/coppice-go/coppice/internal/rawjson"
	"github.com/coppice-go/coppice/interop"
	"github.com/coppice-go/coppice/interop/internal/jsonl"
	"github.com/coppice-go/coppice/interop/internal/piwriter"
	"github.com/coppice-go/coppice/transcript"
)

// hostedTypes are the types of blocks for calls that the provider answers itself, for their results, and for encrypted
// content.
var hostedTypes = []string{"web_search_call", "image_generation_call", "image", "encrypted_content"}

// writer converts the entries of one path to lines.
type writer struct {
	w       *bufio.Writer
	err     error
	h       interop.Header
	plan    *linePlan
	losses  interop.Losses
	convert func(l transcript.Line, lose func(kind string)) [][]byte
	ids     piwriter.CallIDs // for calls without an ID
	session string
	source  []byte // payload of the first line of the session's rollout; nil = it is from none
	own     string // the file's provider

	end     *originalEnd // of the file to which lines are appended; nil = none
	ordinal uint64       // of the next line, if lines have ordinals
	way     continuation
	mute    bool          // the file has the current entries already
	known   int           // number of entries in that file
	owed    []pendingCall // calls that have no result in that file

	at    int // place on the path
	item  transcript.Line
	last  time.Time
	calls callTracker
	keep  keptItems
	fold  *openCompaction // compaction that is not written yet
	turn  string          // the open turn; "" = no turn of this writer
	said  lastSaid        // the last item
	drawn []byte          // call of the last answer whose image may follow
	now   turnSettings    // in force
	was   turnSettings    // in the file
	base  []byte          // other settings of the last turn_context; nil = unknown
	total writtenUsage    // of the file
}

func newWriter(w io.Writer, h interop.Header, p *linePlan, losses interop.Losses) *writer {
	out := &writer{
		w: bufio.NewWriterSize(w, 1<<16), h: h, plan: p, losses: losses, ids: piwriter.CallIDs{},
		session: SessionID(h), source: p.Meta,
		way: continuation{LastKnown: -1}, last: time.Unix(0, 0),
	}
	program := piwriter.Program{Shape: piwriter.Dialect{Blocks: hostedTypes}}
	out.convert = piwriter.Preparer{}.Target(program.Target()).Convert
	out.calls.left = p.Answers()
	out.own = "openai"
	if own := rawjson.Text(rawjson.Field(p.Meta, "model_provider")); own != "" {
		out.own = own
	}
	return out
}

// lose counts a loss, unless the file has the entry already.
func (w *writer) lose(what string) {
	if !w.mute {
		w.losses[what]++
	}
}

// run iterates over the entries and writes those on the path.
func (w *writer) run(entries iter.Seq2[transcript.Draft, error]) error {
	i, on := 0, 0
	for d, err := range entries {
		l, ok, err := piwriter.LineOf(d, err)
		if err != nil {
			return err
		}
		if !ok {
			continue
		}
		if i >= len(w.plan.Lines) || w.plan.Lines[i].ID != l.ID {
			return piwriter.ErrSequence
		}
		message := rawjson.Field(l.Raw, "message")
		if is := w.ids.Message(l.ID, l.ParentID, message); len(is) != len(message) ||
			len(is) > 0 && &is[0] != &message[0] {
			l.Raw = rawjson.WithField(l.Raw, "message", is)
		}
		if on < len(w.plan.Path) && w.plan.Path[on] == i {
			w.step(on, l)
			on++
		}
		if i++; w.err != nil {
			return w.err
		}
	}
	if i != len(w.plan.Lines) {
		return piwriter.ErrSequence
	}
	w.finish()
	if w.err == nil {
		if err := w.w.Flush(); err != nil {
			w.err = fmt.Errorf("write: %w", err)
		}
	}
	return w.err
}

// step handles the entry at a place of the path.
func (w *writer) step(at int, l transcript.Line) {
	if w.mute && at > w.way.LastKnown {
		w.unmute()
	}
	w.at, w.item = at, l
	w.stamp(l.Time)
	if w.fold != nil && !strings.HasPrefix(l.ID, w.fold.id+".") {
		w.compacted()
	}
	w.keep.moveTo(at, w.plan.Wants(at), w.fold == nil)
	w.entry(l)
	w.calls.pass(w.plan.Results[w.plan.Path[at]])
}

// stamp sets the time of the next lines if it is valid.
func (w *writer) stamp(at time.Time) {
	if y := at.Year(); !at.IsZero() && y >= 1970 && y <= 9999 {
		w.last = at
	}
}

// unmute ends the part that the file has already. It writes the lines that connect it to the path; further entries are
// written.
func (w *writer) unmute() {
	if w.fold != nil {
		w.compacted()
	}
	w.mute = false
	w.stamp(w.way.Last)
	switch {
	case w.way.Again:
		w.again()
	case w.way.Turns > 0:
		w.event("thread_rolled_back", "num_turns", strconv.AppendInt(nil, int64(w.way.Turns), 10))
		w.said = lastSaid{}
		for _, p := range w.owed {
			if w.way.Undone(p.raw) {
				w.abort(p)
			}
		}
	}
}

// finish closes everything that is open after the last entry.
func (w *writer) finish() {
	if w.fold != nil {
		w.compacted()
	}
	w.picture(nil)
	finished := w.said.answer && len(w.calls.open) == 0
	if w.mute {
		w.unmute()
		for _, p := range w.calls.unanswered(true) {
			if w.way.Undone(p.raw) {
				w.abort(p)
			}
		}
		return
	}
	w.answerAll()
	if finished {
		w.complete()
	}
}

// retold reports whether the current entry is in the file already and is written again.
func (w *writer) retold() bool { return !w.mute && w.plan.Path[w.at] < w.known }

// fromCodex reports whether the current entry came from a rollout.
func (w *writer) fromCodex() bool { return strings.HasPrefix(w.item.ID, ownIDPrefix) }

// line writes a line.
func (w *writer) line(typ string, payload []byte) {
	if w.mute || w.err != nil {
		return
	}
	out := make([]byte, 0, len(payload)+len(typ)+100)
	out = jsonl.AppendTime(append(out, `{"timestamp":`...), w.last)
	if w.end != nil && w.end.Paged {
		out = strconv.AppendUint(append(out, `,"ordinal":`...), w.ordinal, 10)
		w.ordinal++
	}
	out = append(append(append(out, `,"type":"`...), typ...), `","payload":`...)
	if _, err := w.w.Write(append(append(out, payload...), '}', '\n')); err != nil {
		w.err = fmt.Errorf("write: %w", err)
	}
}

// event writes an event. fields are names and values in turn.
func (w *writer) event(kind string, fields ...any) {
	if w.fold == nil {
		w.line("event_msg", rawjson.Object(append([]any{"type", []byte(`"` + kind + `"`)}, fields...)...))
	}
}

// say writes an item of the conversation, or keeps it for the history of a compaction.
func (w *writer) say(p conversationItem) {
	w.keep.add(p)
	if w.fold != nil {
		w.fold.pieces = append(w.fold.pieces, p)
		return
	}
	w.line("response_item", p.payload)
}
