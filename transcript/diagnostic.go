package transcript

import "github.com/coppice-go/coppice/internal/diag"

// Diagnostic is something unusual about one entry. Nothing is changed and nothing is hidden because of
// it: a diagnostic is how a transcript says that it met a missing parent, a cycle or a call without a
// result, where other programs lose the history in silence or hang.
type Diagnostic = diag.Diagnostic

// Kinds of diagnostics.
const (
	DiagOrphan       = diag.Orphan       // the named parent does not exist: the entry starts a root
	DiagSelfParent   = diag.SelfParent   // the entry names itself as its parent: it starts a root
	DiagCycle        = diag.Cycle        // the parents of the entry lead back to it: the cycle is cut here
	DiagDuplicateID  = diag.DuplicateID  // a later entry has the same id: that one answers to it
	DiagBadLine      = diag.BadLine      // a line that is no JSON object: skipped
	DiagTornLine     = diag.TornLine     // the last line is cut off: skipped
	DiagNoHeader     = diag.NoHeader     // a file without a session header: one was made
	DiagOversize     = diag.Oversize     // a line over the limit: a stub is in its place
	DiagConverted    = diag.Converted    // something was changed to make a pi v3 line of it
	DiagOpenCall     = diag.OpenCall     // a tool call without a result
	DiagOrphanResult = diag.OrphanResult // a tool result without a call
	DiagNoted        = diag.Noted        // something that was reported in full when the entry was committed
	DiagMore         = diag.More         // diagnostics past the bound of the list, counted in Detail
	DiagKeptMissing  = diag.KeptMissing  // a compaction keeps from an entry that is not before it: nothing is kept
	DiagNoMessage    = diag.NoMessage    // an entry that should hold a message and does not: left out
)
