package transcript

import "github.com/coppice-go/coppice/internal/derive"

// Profile names the rules by which a context is built from a path. The rules of a peer answer what that
// peer's own code answers for the same file; where it throws or hangs, ours answer and report.
type Profile = derive.Profile

// The profiles. All of them start from the same rules: the latest compaction on the path yields its summary,
// the entries that it keeps and those after it; branch summaries and custom messages are messages too;
// everything else is silent. What sets each apart:.
const (
	// Coppice is pi's rules; a leaf entry at the end of the path moves the head to its target.
	Coppice = derive.Coppice
	// Pi: a later assistant message overrides a model_change; context_edit entries rewrite or hide messages.
	Pi = derive.Pi
	// OMP: an explicit default model stays; failed and aborted assistant turns and calls without a result
	// are left out; a reset_boundary after the latest compaction starts afresh.
	OMP = derive.OMP
	// Atomic: only compactions of strategy "verbatim-lines" count, and what they keep is flattened into
	// their text.
	Atomic = derive.Atomic
	// Operator: only model_change names the model; empty branch summaries are kept; leaf entries move the
	// head; field names may be in snake case.
	Operator = derive.Operator
)

type (
	// Context is what the model sees next, and what a reader should know about it.
	Context = derive.Context
	// Window says how much of the context is there. OmittedEntries counts the entries whose messages belong to
	// the context and were left out by the bound.
	Window = derive.Window
)

// BuildContext returns the context at the end of a path, root first, by the rules of a profile. It takes time
// linear in the path, never fails and changes nothing: a field of the wrong type counts as absent, an entry
// that should hold a message and does not is left out with a diagnostic. Messages share their bytes with
// the entries.
func BuildContext(path []Entry, p Profile) Context { return derive.Build(path, p) }
