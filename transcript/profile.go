package transcript

import (
	"bytes"

	"github.com/coppice-go/coppice/internal/rawjson"
)

// Profile names the rules by which a context is built from a path. The rules of a peer answer what that
// peer's own code answers for the same file; where it throws or hangs, ours answer and report.
type Profile string

// The profiles. All of them start from the same rules: the latest compaction on the path yields its summary,
// the entries that it keeps and those after it; branch summaries and custom messages are messages too;
// everything else is silent. What sets each apart:.
const (
	// Coppice is pi's rules; a leaf entry at the end of the path moves the head to its target, and answers that failed
	// without a text or a call are left out.
	Coppice Profile = ""
	// Pi: a later assistant message overrides a model_change; context_edit entries rewrite or hide messages.
	Pi Profile = "pi"
	// OMP: an explicit default model stays; failed and aborted assistant turns and calls without a result
	// are left out; a reset_boundary after the latest compaction starts afresh.
	OMP Profile = "omp"
	// Atomic: only compactions of strategy "verbatim-lines" count, and what they keep is flattened into
	// their text.
	Atomic Profile = "atomic"
	// Operator: only model_change names the model; empty branch summaries are kept; leaf entries move the
	// head; field names may be in snake case.
	Operator Profile = "operator"
)

// Valid reports whether p is one of the profiles. An unknown one behaves as Coppice.
func (p Profile) Valid() bool {
	switch p {
	case Coppice, Pi, OMP, Atomic, Operator:
		return true
	}
	return false
}

// rules are the differences between the profiles, one switch each.
type rules struct {
	moves        bool // leaf entries move the head
	edits        bool // context_edit entries count; compactions may carry a system message
	explicit     bool // an explicit default model_change is not overridden by assistant messages
	changesOnly  bool // assistant messages do not name the model at all
	resets       bool // reset_boundary entries count
	unbroken     bool // answers that failed without a text or a call are left out
	healthy      bool // failed turns and unanswered calls are left out of the messages
	verbatimOnly bool // only verbatim-lines compactions count; kept entries are flattened
	emptyBranch  bool // branch summaries without text are messages as well
	snake        bool // snake case field names are understood
}

// rulesOf returns the rules of a profile.
func rulesOf(p Profile) rules {
	switch p {
	case Pi:
		return rules{edits: true}
	case OMP:
		return rules{explicit: true, resets: true, healthy: true}
	case Atomic:
		return rules{verbatimOnly: true}
	case Operator:
		return rules{moves: true, changesOnly: true, emptyBranch: true, snake: true}
	case Coppice:
	}
	return rules{moves: true, edits: true, unbroken: true}
}

// value returns a field of an entry's body: by its camel case name, else, where the profile knows snake case,
// by that. nil = absent.
func (r rules) value(line []byte, camel, snake string) []byte {
	if v := rawjson.Field(line, camel); v != nil || !r.snake {
		return v
	}
	return rawjson.Field(line, snake)
}

// silent reports that an entry of this type reaches no context, whatever its body: only its id
// can matter, as the first entry that a compaction keeps.
func (r rules) silent(typ string) bool {
	switch typ {
	case "message", "custom_message", "branch_summary", "compaction", "model_change", "thinking_level_change",
		"mode_change":
		return false
	case "leaf":
		return !r.moves
	case "context_edit":
		return !r.edits
	case "reset_boundary":
		return !r.resets
	}
	return true
}

// boundary reports whether the entry ends what came before it: a compaction that counts, or a reset.
func (r rules) boundary(e Entry) bool {
	switch e.Type {
	case "compaction":
		return !r.verbatimOnly ||
			bytes.Equal(rawjson.Field(rawjson.Field(e.Raw, "details"), "strategy"), []byte(`"verbatim-lines"`))
	case "reset_boundary":
		return r.resets
	}
	return false
}

// selection is what of a path reaches the context.
type selection struct {
	boundary int    // index of the latest boundary; -1 = none
	kept     int    // from here up to the boundary entries are kept; == boundary: none are
	missing  string // the id that the boundary wants kept and that is not before it
}

// choose finds the latest boundary of the path and where its kept entries start. It is linear: the types
// are looked at from the end, ids only in front of a boundary.
func (r rules) choose(path []Entry) selection {
	for i := len(path) - 1; i >= 0; i-- {
		if !r.boundary(path[i]) {
			continue
		}
		s := selection{boundary: i, kept: i}
		from, after, wanted := r.keeps(path[i])
		if !wanted {
			return s
		}
		for k := 0; k < i; k++ {
			if path[k].ID == from {
				if s.kept = k; after {
					s.kept = k + 1
				}
				return s
			}
		}
		s.missing = from
		return s
	}
	return selection{boundary: -1}
}

// keeps returns what a boundary wants kept: from the entry with this id on (after: from the one after it).
// wanted false: nothing.
func (r rules) keeps(e Entry) (from string, after, wanted bool) {
	if e.Type != "compaction" {
		return "", false, false
	}
	if r.resets && remoteHistory(e) != nil {
		from = rawjson.Text(rawjson.Field(e.Raw, "providerReplayThroughEntryId"))
		return from, true, from != "" && from != e.ID
	}
	from = rawjson.Text(r.value(e.Raw, "firstKeptEntryId", "first_kept_entry_id"))
	return from, false, from != "" && from != e.ID
}

// remoteHistory returns the list of provider items that replaces the kept entries of a compaction made
// by the provider itself; nil = an ordinary compaction.
func remoteHistory(e Entry) []byte {
	remote := rawjson.Field(rawjson.Field(e.Raw, "preserveData"), "openaiRemoteCompaction")
	items := rawjson.Field(remote, "replacementHistory")
	if len(items) == 0 || items[0] != '[' || rawjson.Text(rawjson.Field(remote, "provider")) == "" {
		return nil
	}
	return items
}
