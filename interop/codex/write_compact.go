package codex

import (
	"slices"
	"strings"
	"time"

	"github.com/coppice-go/coppice/internal/rawjson"
)

// maxKept bounds the bytes held for the histories of compactions.
const maxKept = 32 << 20

// keptItems holds the items that later compactions keep.
type keptItems struct {
	list  []conversationItem
	size  int
	at    int
	on    bool
	fold  bool               // the items belong to the history of a compaction
	over  int                // place after which the bound was reached; 0 = never
	front []conversationItem // first items of the last compaction's history
	whole bool               // front is its whole history
	from  int                // place of the last compaction
}

// moveTo moves to a place. If free, items before from are dropped; a compaction that is not written yet may need them.
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
	p.payload = slices.Clone(p.payload) // the line's buffer is reused
	k.list, k.size = append(k.list, p), k.size+len(p.payload)
}

// since returns the items from a place on, or false if some were dropped at the bound.
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

// openCompaction is a compaction whose history is not complete yet: the reader made the entries after it from that
// history.
type openCompaction struct {
	id      string
	at      int
	when    time.Time
	count   int // number of entries of its history
	pieces  []conversationItem
	summary []byte
	codex   []byte // the line's other fields; nil = not from a rollout
	history []byte // the line's history, if part of it is encrypted
}

// compaction records a compaction. It is written when its history is complete.
func (w *writer) compaction(raw []byte) {
	f := &openCompaction{id: w.item.ID, at: w.at, when: w.last, summary: slices.Clone(rawjson.Field(raw, "summary"))}
	if !rawjson.IsString(f.summary) || len(f.summary) == 2 {
		// Codex takes an empty message for a summary that is kept elsewhere.
		f.summary = []byte(`"(nothing)"`)
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
	for _, p := range w.calls.open { // each call has an output before the compaction
		w.line("response_item", abortedOutput(p).payload)
		if !w.mute {
			w.lose(lostAborted)
		}
	}
	w.calls.shut()
	w.said, w.fold = lastSaid{}, f
}

// summaryLead precedes a summary, which the model sees as a user message.
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

// again writes the whole context at the last place that the file contains, if Codex cannot roll back to it.
func (w *writer) again() {
	var list []conversationItem
	if w.way.LastKnown >= 0 {
		from, _ := w.plan.Keeps(w.way.LastKnown)
		kept, ok := w.keep.since(from)
		if !ok {
			w.lose(lostKept)
		}
		list = slices.Clone(w.keep.front)
		for _, p := range kept {
			if p.at < w.keep.from && (p.system || w.keep.whole) || p.fold && w.keep.whole {
				continue // no compaction keeps it, or front contains it
			}
			list = append(list, p)
		}
	}
	list, w.calls.open = w.paired(list)
	w.line("compacted", rawjson.Object("message", []byte(`"The conversation goes on from an earlier place."`),
		"replacement_history", payloads(list)))
	w.said = lastSaid{}
}
