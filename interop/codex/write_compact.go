package codex

import (
	"slices"
	"strings"
	"time"

	"github.com/coppice-go/coppice/internal/rawjson"
)

// maxKept bounds what is held for the histories of compactions, in bytes.
const maxKept = 32 << 20

// keptItems holds what compactions further on keep.
type keptItems struct {
	list  []conversationItem
	size  int
	at    int
	on    bool
	fold  bool               // what comes is the history of a compaction
	over  int                // the place after which it was too much; 0 = it never was
	front []conversationItem // what the last compaction begins with
	whole bool               // that is all of its history
	from  int                // its place
}

// moveTo moves to a place; what is before from is not wanted any more, unless a compaction has still to be written.
func (k *keptItems) moveTo(at, from int, free bool) {
	k.at, k.on, k.fold = at, from <= at, !free
	if free {
		k.list = slices.DeleteFunc(k.list, func(p conversationItem) bool {
			if p.at < from {
				k.size -= len(p.payload)
				return true
			}
			return false
		})
	}
}

func (k *keptItems) add(p conversationItem) {
	if !k.on {
		return
	}
	if k.size+len(p.payload) > maxKept {
		clear(k.list)
		k.list, k.size, k.over = k.list[:0], 0, k.at+1
		return
	}
	p.at, p.fold = k.at, k.fold
	p.payload = slices.Clone(p.payload) // of a line, which goes
	k.list, k.size = append(k.list, p), k.size+len(p.payload)
}

// since returns what is kept from a place on; false: some of it was too much.
func (k *keptItems) since(from int) ([]conversationItem, bool) {
	if k.over > from {
		return nil, false
	}
	i := slices.IndexFunc(k.list, func(p conversationItem) bool { return p.at >= from })
	if i < 0 {
		return nil, true
	}
	return k.list[i:], true
}

// openCompaction is a compaction whose own history may still come: a reader makes entries of it that follow.
type openCompaction struct {
	id      string
	at      int
	when    time.Time
	count   int // of its entries
	pieces  []conversationItem
	summary []byte
	codex   []byte // what the line said beside its history; nil = it came from none
	history []byte // as the line had it, if some of it is for the provider alone
}

// compaction takes a compaction; it is written once all of its history is there.
func (w *writer) compaction(raw []byte) {
	f := &openCompaction{id: w.item.ID, at: w.at, when: w.last, summary: slices.Clone(rawjson.Field(raw, "summary"))}
	if !rawjson.IsString(f.summary) || len(f.summary) == 2 {
		f.summary = []byte(`"(nothing)"`) // a message without words would look like one that Codex keeps elsewhere
	}
	if c := rawjson.Field(rawjson.Field(raw, "details"), "codex"); w.fromCodex() && len(c) > 0 && c[0] == '{' {
		f.codex = slices.Clone(c)
	}
	if h := rawjson.Field(rawjson.Field(rawjson.Field(raw, "preserveData"), "openaiRemoteCompaction"),
		"replacementHistory"); areItems(h) && w.fromCodex() {
		f.history = slices.Clone(h)
	} else if h != nil {
		w.lose(lostEncrypted)
	}
	w.complete()
	for _, p := range w.calls.open { // each has its output in what was said so far
		w.line("response_item", abortedOutput(p).payload)
		if !w.mute {
			w.lose(lostAborted)
		}
	}
	w.calls.shut()
	w.said, w.fold = lastSaid{}, f
}

// summaryLead precedes a summary, which the model sees as the user's words.
const summaryLead = "What was said before, in short:\n\n"

func summaryItem(summary []byte) conversationItem {
	text := rawjson.AppendString(nil, summaryLead+rawjson.Text(summary))
	return conversationItem{payload: messageItem("user", rawjson.List([][]byte{textPart("input_text", text)}))}
}

// compacted writes the compaction whose history is complete.
func (w *writer) compacted() {
	f := w.fold
	w.fold = nil
	w.keep.front, w.keep.whole, w.keep.from = []conversationItem{summaryItem(f.summary)}, false, f.at
	list := slices.Clone(w.keep.front)
	if from, ok := w.plan.Keeps(f.at); ok {
		if kept, ok := w.keep.since(from); ok {
			kept = slices.DeleteFunc(slices.Clone(kept),
				func(p conversationItem) bool { return p.at >= f.at || p.system })
			list = append(list, kept...)
		} else {
			w.lose(lostKept)
		}
	}
	list, open := w.paired(append(list, f.pieces...))
	w.calls.reopen(open)
	payload := rawjson.Object("message", f.summary)
	history := payloads(list)
	if complete := f.count == w.plan.Parts[f.id]; f.history != nil && complete {
		history, w.keep.whole = f.history, true
		w.keep.front = itemsOf(f.history)
		if m := rawjson.Field(f.codex, "message"); rawjson.IsString(m) {
			payload = rawjson.Object("message", m)
		}
	} else if f.history != nil {
		w.lose(lostEncrypted)
	}
	for _, name := range []string{"window_number", "first_window_id", "previous_window_id", "window_id"} {
		if v := rawjson.Field(f.codex, name); rawjson.IsString(v) && strings.HasSuffix(name, "_id") ||
			rawjson.IsNumber(v) && isCount(v) {
			payload = rawjson.WithField(payload, name, v)
		}
	}
	now := w.last
	w.last = f.when
	w.line("compacted", rawjson.WithField(payload, "replacement_history", history))
	w.last = now
}

func payloads(list []conversationItem) []byte {
	items := make([][]byte, len(list))
	for i, p := range list {
		items[i] = p.payload
	}
	return rawjson.List(items)
}

func itemsOf(history []byte) (list []conversationItem) {
	for m := rawjson.Walk(history); m.Closing == ']' && m.Next(); {
		list = append(list, conversationItem{payload: m.Val})
	}
	return list
}

// again says all of the context at the last place that the file has said, where Codex cannot go back to it.
func (w *writer) again() {
	var list []conversationItem
	if w.way.Said >= 0 {
		from, _ := w.plan.Keeps(w.way.Said)
		kept, ok := w.keep.since(from)
		if !ok {
			w.lose(lostKept)
		}
		list = slices.Clone(w.keep.front)
		for _, p := range kept {
			if p.at < w.keep.from && (p.system || w.keep.whole) || p.fold && w.keep.whole {
				continue // no compaction keeps it, or it is in front
			}
			list = append(list, p)
		}
	}
	list, w.calls.open = w.paired(list)
	w.line("compacted", rawjson.Object("message", []byte(`"The conversation goes on from an earlier place."`),
		"replacement_history", payloads(list)))
	w.said = lastSaid{}
}
