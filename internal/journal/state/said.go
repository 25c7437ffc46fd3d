package state

import (
	"bytes"

	"github.com/coppice-go/coppice/codec"
	"github.com/coppice-go/coppice/transcript"
	"github.com/coppice-go/coppice/transcript/tree"
)

// lookBack bounds the entries of the window that are looked at where a commit has none of its own.
const lookBack = 64

// said brings up to date what the summary tells of the conversation: what was asked first, the newest thing that was
// said on the way to the head, and how far that is.
func (st *State) said(before *State, entries []transcript.Entry) {
	if st.Summary.Entries == uint64(len(entries)) { // they are the first: later, a state that was made anew from the end of a log could not know
		st.Summary.First = first(entries)
	}
	if preview, status, ok := newest(entries); ok {
		st.Summary.Preview, st.Summary.Status = preview, status
		return
	}
	if st.HeadOrd == before.HeadOrd || len(entries) > 0 || st.Window == nil {
		return
	}
	kept := st.Window.Entries()
	if preview, status, ok := newest(kept[max(0, len(kept)-lookBack):]); ok {
		st.Summary.Preview, st.Summary.Status = preview, status
	}
}

func rowOf(e *transcript.Entry) codec.Row {
	return tree.Row(transcript.Line{Type: e.Type, ID: e.ID, Raw: e.Raw}, codec.NoParent)
}

// first is one line of the first message of a user.
func first(entries []transcript.Entry) string {
	for i := range entries {
		if e := &entries[i]; e.Type == "message" {
			if r := rowOf(e); r.Role == "user" && r.Preview != "" {
				return r.Preview
			}
		}
	}
	return ""
}

// newest is one line of the newest message that says something, and how far the newest message is.
func newest(entries []transcript.Entry) (preview string, status string, ok bool) {
	for i := len(entries) - 1; i >= 0; i-- {
		e := &entries[i]
		if e.Type != "message" {
			continue
		}
		r := rowOf(e)
		if status == "" {
			status = statusOf(&r, e.Raw)
		}
		if r.Preview != "" {
			return r.Preview, status, true
		}
	}
	return "", status, false
}

func statusOf(r *codec.Row, raw []byte) string {
	switch r.Role {
	case "user":
		return "asked"
	case "toolResult", "tool", "function":
		return "working"
	case "assistant", "model":
	default:
		return "" // shells, notes: the message before tells
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
