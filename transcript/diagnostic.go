package transcript

import "encoding/json"

// Diagnostic is something unusual about one entry. Nothing is changed and nothing is hidden because of
// it: a diagnostic is how a transcript says that it met a missing parent, a cycle or a call without a
// result, where other programs lose the history in silence or hang.
type Diagnostic struct {
	Entry   string `json:"entry,omitempty"`   // the id of the entry, if it has one
	Kind    string `json:"kind"`              // one of the Diag constants
	Detail  string `json:"detail,omitempty"`  // one line for people
	Ordinal uint64 `json:"ordinal,omitempty"` // the entry's ordinal; in a file that is being read, the line's number from 1
}

// Kinds of diagnostics.
const (
	DiagOrphan       = "orphan"        // the named parent does not exist: the entry starts a root
	DiagSelfParent   = "self-parent"   // the entry names itself as its parent: it starts a root
	DiagCycle        = "cycle"         // the parents of the entry lead back to it: the cycle is cut here
	DiagDuplicateID  = "duplicate-id"  // a later entry has the same id: that one answers to it
	DiagBadLine      = "bad-line"      // a line that is no JSON object: skipped
	DiagTornLine     = "torn-line"     // the last line is cut off: skipped
	DiagNoHeader     = "no-header"     // a file without a session header: one was made
	DiagOversize     = "oversize"      // a line over the limit: a stub stands in its place
	DiagConverted    = "converted"     // something was changed to make a pi v3 line of it
	DiagOpenCall     = "open-call"     // a tool call without a result
	DiagOrphanResult = "orphan-result" // a tool result without a call
	DiagNoted        = "noted"         // something that was reported in full when the entry was committed
	DiagMore         = "more"          // diagnostics past the bound of the list, counted in Detail
)

// ToolCall is one call of a tool: the entry that holds it ("" = inline), the call's id and the tool's name.
type ToolCall struct{ Entry, ID, Name string }

// Settings are what a path says about how the model is run: the last word of the settings entries on it.
// Model is "provider/id", "" when no entry names one; ThinkingLevel is "off" when no entry names one.
type Settings struct {
	Model         string `json:"model,omitempty"`
	ThinkingLevel string `json:"thinkingLevel,omitempty"`
	Mode          string `json:"mode,omitempty"`
}

// Item is one element of an explicit context: an entry by id, or an inline message, one provider's JSON
// object. Exactly one of the two is set.
type Item struct {
	Entry   string          `json:"entry,omitempty"`
	Message json.RawMessage `json:"message,omitempty"`
}
