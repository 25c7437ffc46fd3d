package codex

import (
	"strings"

	"github.com/coppice-go/coppice/internal/message"
	"github.com/coppice-go/coppice/internal/rawjson"
	"github.com/coppice-go/coppice/interop/internal/piwriter"
	"github.com/coppice-go/coppice/transcript"
)

// lastSaid describes the last item.
type lastSaid struct {
	answer bool // it was part of an answer
	open   bool // no later line shows where the answer ends
}

// entry writes an entry.
func (w *writer) entry(l transcript.Line) {
	if w.fold != nil {
		w.fold.count++
	}
	switch l.Type {
	case "message", "custom_message", "branch_summary":
		for _, raw := range w.convert(l, w.lose) {
			w.spoken(raw)
		}
	case "compaction":
		w.compaction(l.Raw)
	case "model_change":
		w.model(rawjson.Text(rawjson.Field(l.Raw, "modelId")), rawjson.Text(rawjson.Field(l.Raw, "model")))
	case "thinking_level_change":
		w.level(rawjson.Text(rawjson.Field(l.Raw, "thinkingLevel")))
	case "custom":
		w.custom(l.Raw)
	case "context_edit":
		w.lose(lostEdit)
	case "session_info", "title_change": // the header's title is the newest one
	default:
		w.lose(lostEntryType(l.Type))
	}
}

// spoken writes a line in pi's form.
func (w *writer) spoken(raw []byte) {
	said := rawjson.Field(raw, "message")
	switch rawjson.Text(rawjson.Field(raw, "type")) {
	case "message":
	case "custom_message":
		w.told(rawjson.Text(rawjson.Field(raw, "customType")), rawjson.Field(raw, "content"))
		return
	case "branch_summary":
		w.lose(lostSummary)
		w.tell(conversationItem{}, "developer", rawjson.Field(raw, "summary"))
		return
	default:
		w.lose(lostCustom)
		return
	}
	switch role := rawjson.Text(rawjson.Field(said, "role")); role {
	case "user":
		if isInserted(said) {
			w.tell(conversationItem{}, "user", rawjson.Field(said, "content"))
			return
		}
		w.user(rawjson.Field(said, "content"))
	case "assistant":
		w.assistant(said)
	case "toolResult":
		w.result(said)
	case "bashExecution":
		w.command(said)
	case "custom":
		w.told(rawjson.Text(rawjson.Field(said, "customType")), rawjson.Field(said, "content"))
	default: // system
		w.lose(lostTold)
		w.tell(conversationItem{system: role == "system"}, "developer", rawjson.Field(said, "content"))
	}
}

// isInserted reports whether a program wrote a message in the user's name. No event repeats it, and it begins no turn.
func isInserted(raw []byte) bool { return message.Decode(raw).Speaker == message.Program }

// told writes a message of a program to the model.
func (w *writer) told(kind string, content []byte) {
	switch role := strings.TrimPrefix(kind, "codex."); {
	case !strings.HasPrefix(kind, "codex."):
		w.lose(lostTold)
		w.tell(conversationItem{}, "developer", content)
	case role == "context", role == "user", role == "replacement":
		w.tell(conversationItem{}, "user", content)
	case role == "system":
		w.tell(conversationItem{}, "system", content)
	default:
		w.tell(conversationItem{}, "developer", content)
	}
}

// tell writes a message that neither user nor model wrote. If it has images, its role is user.
func (w *writer) tell(p conversationItem, role string, content []byte) {
	list := contentParts(content, "input_text")
	if len(list) == 0 {
		w.lose(lostEmpty)
		return
	}
	if w.picture(list) {
		return
	}
	for _, b := range list {
		if role == "developer" && string(rawjson.Field(b, "type")) == `"input_image"` {
			role = "user"
		}
	}
	w.abortUnanswered()
	p.payload = messageItem(role, rawjson.List(list))
	w.say(p)
	w.said = lastSaid{}
}

// user writes a user message and begins a turn.
func (w *writer) user(content []byte) {
	for m := rawjson.Walk(content); m.Closing == ']' && m.Next(); {
		if string(rawjson.Field(m.Val, "type")) == `"encrypted_content"` {
			w.lose(lostSealed)
		}
	}
	list := contentParts(content, "input_text")
	if len(list) == 0 {
		w.lose(lostEmpty)
		return
	}
	w.abortUnanswered()
	w.begin()
	all := rawjson.List(list)
	w.say(conversationItem{payload: messageItem("user", all)})
	w.event("user_message", "message", spokenText(list, all), "local_images", []byte("[]"), "text_elements",
		[]byte("[]"))
	w.said = lastSaid{}
}

// command writes a command that the user ran.
func (w *writer) command(message []byte) {
	if rawjson.IsTrue(rawjson.Field(message, "excludeFromContext")) {
		w.lose(lostHidden)
		return
	}
	w.lose(lostCommand)
	text := func(name string) string { return rawjson.Text(rawjson.Field(message, name)) }
	said := "<user_shell_command>\n<command>\n" + text("command") + "\n</command>\n<result>\n"
	if code := rawjson.Field(message, "exitCode"); rawjson.IsNumber(code) {
		said += "Exit code: " + string(code) + "\n"
	}
	w.tell(conversationItem{}, "user", rawjson.AppendString(nil,
		said+"Output:\n"+text("output")+"\n</result>\n</user_shell_command>"))
}

// custom writes the lines that the reader kept. Codex does not know entries of other programs.
func (w *writer) custom(raw []byte) {
	kind, data := rawjson.Text(rawjson.Field(raw, "customType")), rawjson.Field(raw, "data")
	switch {
	case strings.HasPrefix(kind, "coppice."):
	case piwriter.HasStub(data):
		w.lose(piwriter.LostStub)
	case !strings.HasPrefix(kind, "codex."):
		w.lose(lostCustom)
	default:
		w.back(data)
	}
}
