package codex

import (
	"time"

	"github.com/coppice-go/coppice/internal/rawjson"
	"github.com/coppice-go/coppice/interop"
	"github.com/coppice-go/coppice/interop/internal/jsonl"
)

// writtenVersion is the version of Codex whose format is written.
const writtenVersion = "0.104.0"

// SessionID returns the ID under which Codex finds a session: its own if it is a UUID, else a UUID derived from it.
func SessionID(h interop.Header) string {
	if isUUID(h.ID) {
		return h.ID
	}
	return derivedID("session", h.ID)
}

func creationTime(h interop.Header) time.Time {
	if y := h.Created.Year(); h.Created.IsZero() || y < 1970 || y > 9999 {
		return time.Unix(0, 0).UTC()
	}
	return h.Created.UTC()
}

// meta writes the session's first line, with the fields of the original's first line, except for those that only hold
// for that file.
func (w *writer) meta() {
	if w.last = creationTime(w.h); w.last.Unix() == 0 && len(w.plan.Path) > 0 {
		if at := w.plan.Lines[w.plan.Path[0]].Time; !at.IsZero() && at.Year() >= 1970 && at.Year() <= 9999 {
			w.last = at
		}
	}
	field := func(name string, ok func(val []byte) bool) []byte {
		if v := rawjson.Field(w.source, name); v != nil && ok(v) {
			return v
		}
		return nil
	}
	or := func(val, def []byte) []byte {
		if val == nil {
			return def
		}
		return val
	}
	id := rawjson.AppendString(nil, w.session)
	cwd := rawjson.AppendString(nil, w.h.Cwd)
	if w.h.Cwd == "" {
		cwd = or(field("cwd", rawjson.IsString), cwd)
	}
	forked := field("forked_from_id", isThread)
	if isUUID(w.h.Parent) {
		forked = or(forked, rawjson.AppendString(nil, w.h.Parent))
	}
	payload := rawjson.Object("id", id, "session_id", id, "forked_from_id", forked,
		"parent_thread_id", field("parent_thread_id", isThread),
		"timestamp", jsonl.AppendTime(nil, w.last), "cwd", cwd,
		"originator", or(field("originator", rawjson.IsString), []byte(`"coppice"`)),
		"cli_version", or(field("cli_version", rawjson.IsString), []byte(`"`+writtenVersion+`"`)),
		"source", or(field("source", isSource), w.begunBy()), "thread_source", field("thread_source", isThreadSource),
		"agent_nickname", field("agent_nickname", rawjson.IsString), "agent_role",
		field("agent_role", rawjson.IsString),
		"agent_path", field("agent_path", rawjson.IsString),
		"model_provider", or(field("model_provider", func(v []byte) bool { return rawjson.Text(v) != "" }),
			rawjson.AppendString(nil, w.own)),
		"base_instructions", field("base_instructions", func(v []byte) bool { return hasTexts(v, "text") }),
		"memory_mode", field("memory_mode", rawjson.IsString), "git", field("git", isGit))
	w.line("session_meta", payload)
}

// begunBy returns the source of the session: the user, or an agent.
func (w *writer) begunBy() []byte {
	if !rawjson.IsTrue(rawjson.Field(w.h.Raw, "internal")) {
		return []byte(`"cli"`)
	}
	agent := rawjson.Text(rawjson.Field(w.h.Raw, "agent"))
	if agent == "" {
		agent = "agent"
	}
	return rawjson.Object("subagent", rawjson.Object("other", rawjson.AppendString(nil, agent)))
}
