package claudecode

import (
	"strconv"

	"github.com/coppice-go/coppice/internal/rawjson"
	"github.com/coppice-go/coppice/interop/internal/jsonl"
	"github.com/coppice-go/coppice/interop/internal/piwriter"
)

// lostStart is the loss of a head before the first message.
const lostStart = "the place where the session stands: before the first message, and Claude Code goes on at one"

// wentBack is the text of the system line that moves Claude Code to the head.
const wentBack = "Continued from here"

// pointed records a line of the file that names the line at which the session continues.
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

// pointAtHead writes two lines that move the file's end to the head, if it is elsewhere: the line by which Claude Code
// records that the user went back, and then a line below the head, for programs that use the last line. entries is the
// session's number of entries. IDs derived from it do not collide with those of an earlier export.
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
