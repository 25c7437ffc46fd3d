package codex

import (
	"bytes"
	"cmp"
	"strings"

	"github.com/coppice-go/coppice/internal/rawjson"
	"github.com/coppice-go/coppice/interop"
	"github.com/coppice-go/coppice/interop/internal/jsonl"
	"github.com/coppice-go/coppice/transcript"
)

// setHeader sets the session's header from its first line. A line without a payload contains no header.
func (r *Reader) setHeader(l rolloutLine) error {
	p := l.Payload
	h := interop.Header{ID: textField(p, "id"), Cwd: textField(p, "cwd"), Version: 1, Made: p == nil}
	agent, spawn := begunBy(p)
	forked := textField(p, "forked_from_id")
	h.Parent = cmp.Or(forked, textField(p, "parent_thread_id"), textField(spawn, "parent_thread_id"))
	r.costs.before = forked != "" // its first count includes answers of the parent that were not copied
	stamp := r.o.Now
	for _, val := range [][]byte{l.Stamp, rawjson.Field(p, "timestamp")} {
		if t, ok := jsonl.Stamp(val); ok {
			stamp, h.Created = t, t
		}
	}
	r.last = stamp
	if h.ID == "" {
		h.ID = jsonl.MadeID(h.Created, append(bytes.Clone(l.Payload), l.Ordinal...), 0)
	} else {
		if err := r.title(&h); err != nil {
			r.diag.Add("", 0, transcript.DiagNoted, err.Error())
		}
	}
	text := func(s string) []byte {
		if s == "" {
			return nil
		}
		return rawjson.AppendString(nil, s)
	}
	var internal []byte
	r.paged = string(rawjson.Field(p, "history_mode")) == `"paginated"`
	if r.agent = agent != ""; r.agent {
		internal = []byte("true")
	}
	var relation []byte
	if forked != "" && !r.agent {
		relation = []byte(`{"relation":"fork"}`)
	}
	h.Raw = rawjson.Object("type", []byte(`"session"`), "version", []byte("3"), "id", text(h.ID),
		"timestamp", jsonl.AppendTime(nil, stamp),
		"cwd", rawjson.AppendString(nil, h.Cwd), "title", text(h.Title), "parentSession", text(h.Parent), "internal",
		internal, "agent", text(agent), "coppice", relation)
	r.header = h
	if r.provider = textField(p, "model_provider"); r.provider == "" {
		r.provider = "openai"
	}
	return nil
}

// title sets the title to the name that the thread has in Codex's list of sessions.
func (r *Reader) title(h *interop.Header) (err error) {
	if r.src.Beside != nil {
		h.Title, err = threadTitle(r.src.Beside, h.ID)
	}
	return err
}

func textField(object []byte, name string) string { return rawjson.Text(rawjson.Field(object, name)) }

// begunBy returns the name of the agent that this thread belongs to, if Codex itself began the thread: the agent's
// nickname, role, purpose or thread; "" = the user began it. spawn is the record of the thread's origin.
//
// Codex stores the origin in three ways, of which older versions have one or two: parent_thread_id, thread_source, and
// source. source is {"subagent":"review"}, {"subagent":{"other":"guardian"}}, {"subagent":{"thread_spawn":{...}}} or
// {"internal":"memory_consolidation"}. For a thread of the user it is a string such as "cli".
func begunBy(meta []byte) (agent string, spawn []byte) {
	source, kind := rawjson.Field(meta, "source"), ""
	began := textField(meta, "parent_thread_id") != ""
	for _, name := range []string{"subagent", "subAgent", "internal"} {
		sub := rawjson.Field(source, name)
		if sub == nil {
			continue
		}
		began = true
		if spawn = rawjson.Field(sub, "thread_spawn"); spawn == nil {
			kind = rawjson.Text(sub)
		}
		if kind == "" {
			kind = textField(sub, "other")
		}
	}
	switch val := bytes.ToLower(rawjson.Field(meta, "thread_source")); {
	case string(val) == `"subagent"`, string(val) == `"memory_consolidation"`,
		strings.HasPrefix(strings.ToLower(rawjson.Text(source)), "subagent"):
		began = true
	}
	if !began {
		return "", nil
	}
	for _, name := range []string{
		textField(meta, "agent_nickname"), textField(spawn, "agent_nickname"), textField(meta, "agent_role"),
		textField(spawn, "agent_role"),
		textField(spawn, "agent_type"), kind, textField(meta, "id"),
	} {
		if name != "" {
			return name, spawn
		}
	}
	return "agent", spawn
}
