package codex

import (
	"github.com/google/uuid"

	"github.com/coppice-go/coppice/internal/rawjson"
)

// turnSettings are what a turn_context says that entries may change.
type turnSettings struct{ model, effort string }

// derivedID makes an id that is the same each time.
func derivedID(kind, of string) string {
	return uuid.NewSHA1(uuid.NameSpaceURL, []byte("coppice:codex:"+kind+":"+of)).String()
}

// begin begins a turn. One that came from a rollout has the lines that say so.
func (w *writer) begin() {
	w.complete()
	if w.fromCodex() {
		return
	}
	if !w.mute && w.fold == nil {
		w.turn = derivedID("turn", w.session+" "+w.item.ID)
		w.event("task_started", "turn_id", rawjson.AppendString(nil, w.turn), "model_context_window", []byte("null"))
	}
	w.context()
}

// complete ends the turn that is open.
func (w *writer) complete() {
	if w.turn != "" {
		w.event("task_complete", "turn_id", rawjson.AppendString(nil, w.turn), "last_agent_message", []byte("null"))
		w.turn = ""
	}
}

// broken says that the turn was broken off.
func (w *writer) broken() {
	id := []byte("null")
	if w.turn != "" {
		id = rawjson.AppendString(nil, w.turn)
	}
	w.event("turn_aborted", "turn_id", id, "reason", []byte(`"interrupted"`))
	w.turn, w.said.open, w.said.answer = "", false, false
}

// model notes the model in force: the first of these that is one.
func (w *writer) model(names ...string) {
	for _, name := range names {
		if name != "" && name != "unknown" {
			w.now.model = name
			return
		}
	}
}

// level notes how hard the model thinks.
func (w *writer) level(level string) {
	switch {
	case level == "off":
		level = "none"
	case level == "none", level == "minimal", level == "low", level == "medium", level == "high", level == "xhigh",
		w.fromCodex():
	default:
		w.lose(lostLevel)
		return
	}
	w.now.effort = level
}

// context says which model is in force and how hard it thinks, where the file says otherwise.
//
// The line names a turn of its own. Of a turn's own line Codex takes it that the model has its contents, and
// the rules of the directory with it, and would not repeat them; the model does not have this one's.
func (w *writer) context() {
	if w.now.model == "" || w.now == w.was || w.mute || w.fold != nil {
		return
	}
	w.was = w.now
	base := w.base
	if base == nil {
		base = rawjson.Object("turn_id", []byte(`""`), "cwd", rawjson.AppendString(nil, w.h.Cwd),
			"approval_policy", []byte(`"on-request"`),
			"sandbox_policy", []byte(`{"type":"read-only"}`), "model", []byte(`""`), "summary", []byte(`"auto"`))
	}
	base = rawjson.WithField(base, "turn_id", rawjson.AppendString(nil,
		derivedID("context", w.session+" "+w.item.ID)))
	base = rawjson.WithField(base, "model", rawjson.AppendString(nil, w.now.model))
	var effort []byte
	if w.now.effort != "" {
		effort = rawjson.AppendString(nil, w.now.effort)
	}
	w.line("turn_context", rawjson.WithField(base, "effort", effort))
	w.said.open = false
}

// count says what was counted of the last answer, and of all.
func (w *writer) count(u writtenUsage) {
	w.total = w.total.Add(u)
	info := rawjson.Object("total_token_usage", w.total.Object(), "last_token_usage", u.Object(),
		"model_context_window", []byte("null"))
	w.event("token_count", "info", info, "rate_limits", []byte("null"))
	w.said.open = false
}
