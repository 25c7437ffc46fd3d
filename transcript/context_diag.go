package transcript

import "fmt"

// More kinds of diagnostics: what a context could not use.
const (
	DiagKeptMissing = "kept-missing" // a compaction keeps from an entry that is not before it: nothing is kept
	DiagNoMessage   = "no-message"   // an entry that should hold a message and does not: left out
)

// diagnostics is a list with a bound: what comes after the first maxDiagnostics is counted only (I15).
type diagnostics struct {
	found []Diagnostic
	more  int
}

func (d *diagnostics) add(e Entry, kind, detail string) { d.addAt(e.ID, e.Ordinal, kind, detail) }

func (d *diagnostics) addAt(entry string, ordinal uint64, kind, detail string) {
	if len(d.found) >= maxDiagnostics {
		d.more++
		return
	}
	d.found = append(d.found, Diagnostic{Entry: entry, Kind: kind, Detail: detail, Ordinal: ordinal})
}

// list gives a copy, with the count of what did not fit as the last element. nil = nothing to say.
func (d *diagnostics) list() []Diagnostic {
	if len(d.found) == 0 {
		return nil
	}
	out := append(make([]Diagnostic, 0, len(d.found)+1), d.found...)
	if d.more > 0 {
		out = append(out, Diagnostic{Kind: DiagMore, Detail: fmt.Sprintf("%d more", d.more)})
	}
	return out
}
