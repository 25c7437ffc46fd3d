// Package diag holds what a transcript says about its oddities: a Diagnostic each, in a List with a bound.
// Package transcript names both for the world.
package diag

import (
	"fmt"
	"slices"
)

// Diagnostic is something unusual about one entry. Nothing is changed and nothing is hidden because of
// it: a diagnostic is how a transcript says that it met a missing parent, a cycle or a call without a
// result, where other programs lose the history in silence or hang.
type Diagnostic struct {
	Entry   string `json:"entry,omitempty"`   // the id of the entry, if it has one
	Kind    string `json:"kind"`              // one of the constants of this package
	Detail  string `json:"detail,omitempty"`  // one line for people
	Ordinal uint64 `json:"ordinal,omitempty"` // the entry's ordinal; in a file that is being read, the line's number from 1
}

// Kinds of diagnostics.
const (
	Orphan       = "orphan"        // the named parent does not exist: the entry starts a root
	SelfParent   = "self-parent"   // the entry names itself as its parent: it starts a root
	Cycle        = "cycle"         // the parents of the entry lead back to it: the cycle is cut here
	DuplicateID  = "duplicate-id"  // a later entry has the same id: that one answers to it
	BadLine      = "bad-line"      // a line that is no JSON object: skipped
	TornLine     = "torn-line"     // the last line is cut off: skipped
	NoHeader     = "no-header"     // a file without a session header: one was made
	Oversize     = "oversize"      // a line over the limit: a stub stands in its place
	Converted    = "converted"     // something was changed to make a pi v3 line of it
	OpenCall     = "open-call"     // a tool call without a result
	OrphanResult = "orphan-result" // a tool result without a call
	Noted        = "noted"         // something that was reported in full when the entry was committed
	More         = "more"          // diagnostics past the bound of the list, counted in Detail
	KeptMissing  = "kept-missing"  // a compaction keeps from an entry that is not before it: nothing is kept
	NoMessage    = "no-message"    // an entry that should hold a message and does not: left out
)

// Max bounds every list of diagnostics (I15).
const Max = 100

// List is a list with a bound: what comes after the first Max is counted only (I15). The zero List is empty.
type List struct {
	found []Diagnostic
	more  int
}

// Add adds one diagnostic about an entry.
func (l *List) Add(entry string, ordinal uint64, kind, detail string) {
	if len(l.found) >= Max {
		l.more++
		return
	}
	l.found = append(l.found, Diagnostic{Entry: entry, Kind: kind, Detail: detail, Ordinal: ordinal})
}

// AddMore counts diagnostics that are not told one by one.
func (l *List) AddMore(n int) { l.more += n }

// Clone returns a list that goes its own way.
func (l *List) Clone() List { return List{found: slices.Clone(l.found), more: l.more} }

// All returns a copy, with the count of what did not fit as the last element. nil = nothing to say.
func (l *List) All() []Diagnostic {
	if len(l.found) == 0 {
		return nil
	}
	out := append(make([]Diagnostic, 0, len(l.found)+1), l.found...)
	if l.more > 0 {
		out = append(out, Diagnostic{Kind: More, Detail: fmt.Sprintf("%d more", l.more)})
	}
	return out
}
