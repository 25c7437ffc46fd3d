package claudecode

import (
	"strconv"

	"github.com/coppice-go/coppice/internal/rawjson"
	"github.com/coppice-go/coppice/interop/internal/jsonl"
	"github.com/coppice-go/coppice/interop/internal/piwriter"
)

// lostStart is the kind of loss of a head before the first message.
const lostStart = "the place where the session stands: before the first message, and Claude Code goes on at one"

// wentBack is the text of the system line that leads to the head.
const wentBack = "Continued from here"

// pointed notes that a line of the file names the one at which it continues, whatever follows it.
func (w *writer) pointed(it sourceEntry) {
	data := rawjson.Field(it.Raw, "data")
	leaf := rawjson.Text(rawjson.Field(data, "leafUuid"))
	if it.Type != "custom" || rawjson.Text(rawjson.Field(it.Raw, "customType")) != "claude-code.last-prompt" ||
		leaf == "" {
		return
	}
	if rawjson.IsTrue(rawjson.Field(data, "explicit")) {
		w.named = leaf
	} else if leaf != w.named {
		w.named = ""
	}
}

// pointAtHead writes what leads to the head, where the file does not continue there by itself: the line
// by which Claude Code notes that the user went back, and after it one that hangs there, for those who
// go by the last line. entries is how many the session has: an id that is made with it is in no file of
// fewer.
func (w *writer) pointAtHead(entries int) {
	w.head = w.upFrom(w.head)
	if w.head == "" && w.opens != "" {
		w.lose(lostStart)
	}
	if w.head == "" || w.head == w.opens && (w.named == "" || w.named == w.head || !w.added) {
		return
	}
	if w.agent == "" {
		w.line(rawjson.Object("type", []byte(`"last-prompt"`), "leafUuid", piwriter.OrNull(w.head),
			"explicit", []byte("true"), "sessionId", rawjson.AppendString(nil, w.session)))
	}
	if w.head == w.opens {
		return
	}
	it := sourceEntry{at: jsonl.AppendTime(nil, w.last)}
	id := derivedUUID("head", w.head+" "+strconv.Itoa(entries))
	w.tree(id, w.envelope(it, id, w.head, `"system"`, "subtype", []byte(`"informational"`),
		"content", []byte(`"`+wentBack+`"`),
		"isMeta", []byte("false"), "level", []byte(`"info"`)))
}
