package codex

import (
	"github.com/google/uuid"

	"github.com/coppice-go/coppice/internal/rawjson"
)

// turnSettings are the settings of a turn_context that entries can change.
type turnSettings struct{ model, effort string }

// derivedID returns an ID that is the same for equal arguments.
func derivedID(kind, of string) string {
	return uuid.NewSHA1(uuid.NameSpaceURL, []byte("coppice:codex:"+kind+":"+of)).String()
}

// begin begins a turn. A turn from a rollout has lines of its own for that.
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

// complete ends the open turn.
func (w *writer) complete() {
	if w.turn != "" {
		w.event("task_complete", "turn_id", rawjson.AppendString(nil, w.turn), "last_agent_message", []byte("null"))
		w.turn = ""
	}
}

// broken writes that the turn was interrupted.
func (w *writer) broken() {
	id := []byte("null")
	if w.turn != "" {
		id = rawjson.AppendString(nil, w.turn)
	}
	w.event("turn_aborted", "turn_id", id, "reason", []byte(`"interrupted"`))
	w.turn, w.said.open, w.said.answer = "", false, false
}

// model sets the model in force to the first known name.
func (w *writer) model(names ...string) {
	for _, name := range names {
		if name != "" && name != "unknown" {
			w.now.model = name
			return
		}
	}
}

// level sets the reasoning effort.
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

// context writes model and reasoning effort if they differ from those in the file.
//
// The line has a turn ID of its own. If it had the turn's ID, Codex would assume that the model has the line's
// contents, such as the directory's rules, and not repeat them.
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

// count writes the token counts of the last answer and of the session.
func (w *writer) count(u writtenUsage) {
	w.total = w.total.Add(u)
	info := rawjson.Object("total_token_usage", w.total.Object(), "last_token_usage", u.Object(),
		"model_context_window", []byte("null"))
	w.event("token_count", "info", info, "rate_limits", []byte("null"))
	w.said.open = false
}
