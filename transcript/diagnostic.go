package transcript

import (
	"fmt"
	"slices"
)

// Diagnostic is something unusual about one entry. Nothing is changed and nothing is hidden because of
// it: a diagnostic is how a reader reports that it met a missing parent, a cycle or a call without a
// result, where other programs lose the history in silence or hang.
type Diagnostic struct {
	Entry  string `json:"entry,omitempty"`  // the id of the entry, if it has one
	Kind   string `json:"kind"`             // one of the constants of this package
	Detail string `json:"detail,omitempty"` // one line for people
	// the entry's ordinal; in a file that is being read, the line's number from 1
	Ordinal uint64 `json:"ordinal,omitempty"`
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
	DiagOversize     = "oversize"      // a line over the limit: a stub is in its place
	DiagConverted    = "converted"     // something was changed to make a pi v3 line of it
	DiagOpenCall     = "open-call"     // a tool call without a result
	DiagOrphanResult = "orphan-result" // a tool result without a call
	DiagNoted        = "noted"         // something that was reported in full when the entry was committed
	DiagMore         = "more"          // diagnostics past the bound of the list, counted in Detail
	DiagKeptMissing  = "kept-missing"  // a compaction keeps from an entry that is not before it: nothing is kept
	DiagUnknown      = "unknown-type"  // lines of a type that the reader of the format does not know: kept as they are
	DiagNoMessage    = "no-message"    // an entry that should hold a message and does not: left out
)

// MaxDiagnostics bounds every list of diagnostics (I15).
const MaxDiagnostics = 100

// DiagnosticList is a list with a bound: what comes after the first MaxDiagnostics is counted only (I15). The zero
// list is empty.
type DiagnosticList struct {
	found []Diagnostic
	more  int
}

// Add adds one diagnostic about an entry.
func (l *DiagnosticList) Add(entry string, ordinal uint64, kind, detail string) {
	if len(l.found) >= MaxDiagnostics {
		l.more++
		return
	}
	l.found = append(l.found, Diagnostic{Entry: entry, Kind: kind, Detail: detail, Ordinal: ordinal})
}

// AddMore counts diagnostics that are not told one by one.
func (l *DiagnosticList) AddMore(n int) { l.more += n }

// Clone returns a list that goes its own way.
func (l *DiagnosticList) Clone() DiagnosticList {
	return DiagnosticList{found: slices.Clone(l.found), more: l.more}
}

// All returns a copy, with the count of what did not fit as the last element. nil = there is none.
func (l *DiagnosticList) All() []Diagnostic {
	if len(l.found) == 0 {
		return nil
	}
	out := append(make([]Diagnostic, 0, len(l.found)+1), l.found...)
	if l.more > 0 {
		out = append(out, Diagnostic{Kind: DiagMore, Detail: fmt.Sprintf("%d more", l.more)})
	}
	return out
}
