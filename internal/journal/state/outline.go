package state

import (
	"bytes"

	"github.com/coppice-go/coppice/checkpoint"
	"github.com/coppice-go/coppice/codec"
	"github.com/coppice-go/coppice/transcript"
)

// lookBack bounds the entries of the window that are looked at: if a commit has none of its own, and for the status of
// the conversation.
const lookBack = 64

// describe updates the summary's preview and status of the conversation at the head. A commit that moves the head to
// a place that its own entries do not describe carries the outline of that place, since a reader of the log may not
// have it in memory; those of earlier releases do not.
func (st *State) describe(before *State, rec *checkpoint.Record, entries []transcript.Entry) {
	if o := rec.Outline; o != nil {
		st.Summary.Preview, st.Summary.Status = o.Preview, o.Status
		return
	}
	if st.setOutline(newest(entries)) || st.HeadOrd == before.HeadOrd || len(entries) > 0 || st.Window == nil {
		return
	}
	kept := st.Window.Entries()
	st.setOutline(newest(kept[max(0, len(kept)-lookBack):]))
}

// Outline returns preview and status of a conversation that ends with these entries, of which it looks at the newest
// 64.
func Outline(entries []transcript.Entry) checkpoint.Outline {
	preview, status := newest(entries[max(0, len(entries)-lookBack):])
	return checkpoint.Outline{Preview: preview, Status: status}
}

// setOutline sets what is known. It returns false if that is nothing.
func (st *State) setOutline(preview, status string) bool {
	if preview != "" {
		st.Summary.Preview = preview
	}
	if status != "" {
		st.Summary.Status = status
	}
	return preview != ""
}

func rowOf(e *transcript.Entry) codec.Row {
	return transcript.RowOf(transcript.Line{Type: e.Type, ID: e.ID, Raw: e.Raw}, codec.NoParent)
}

// first is one line of the first message of a user, or of what carries out what a user typed.
func first(entries []transcript.Entry) string {
	for i := range entries {
		if e := &entries[i]; e.Type == "message" || e.Type == "custom_message" {
			if r := rowOf(e); r.Role == "user" && r.Preview != "" {
				return r.Preview
			}
		}
	}
	return ""
}

// newest returns one line of the newest message that has text, and the status by the newest message that determines
// one; "" = there is none.
func newest(entries []transcript.Entry) (preview, status string) {
	for i := len(entries) - 1; i >= 0 && (preview == "" || status == "" && i >= len(entries)-lookBack); i-- {
		e := &entries[i]
		if e.Type != "message" {
			continue
		}
		r := rowOf(e)
		if status == "" {
			status = statusOf(&r, e.Raw)
		}
		if preview == "" {
			preview = r.Preview
		}
	}
	return preview, status
}

func statusOf(r *codec.Row, raw []byte) string {
	switch r.Role {
	case "user":
		return "asked"
	case "toolResult", "tool", "function":
		return "working"
	case "assistant", "model":
	default:
		return "" // shells, notes: the message before determines it
	}
	switch {
	case r.Flags&codec.FlagFailed != 0 && bytes.Contains(raw, []byte(`"aborted"`)):
		return "aborted"
	case r.Flags&codec.FlagFailed != 0:
		return "failed"
	case r.Flags&codec.FlagCalls != 0:
		return "calling"
	}
	return "answered"
}
