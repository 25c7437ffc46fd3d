package transcript

import (
	"fmt"
)

// What was found about a line's parent; one byte a line.
const (
	parentFine uint8 = iota
	parentMissing
	parentSelf
	parentCycle
	parentDone // only while cycles are looked for: known to lead to a root
)

// ResolveParents returns for each line the index of its parent, -1 for a root, over a whole file at once: a
// parent may follow its child, and of several lines with one id the last answers to it. A parent that
// is missing, or the line itself, makes a root. Cycles are cut where a walk from the last line of the file
// that leads into them would meet a line again; so every walk over the result ends. Each such thing is
// reported in file order, Ordinal being the line's index; the list holds at most 100 and then a count. Time
// and memory are linear in the number of lines.
func ResolveParents(lines []Line) ([]int64, []Diagnostic) {
	last := make(map[string]int64, len(lines))
	for i, l := range lines {
		if l.ID != "" {
			last[l.ID] = int64(i)
		}
	}
	parents := make([]int64, len(lines))
	marks := make([]uint8, len(lines))
	for i, l := range lines {
		parents[i] = -1
		if !l.HasParent || l.ParentID == "" {
			continue
		}
		switch p, ok := last[l.ParentID]; {
		case !ok:
			marks[i] = parentMissing
		case p == int64(i):
			marks[i] = parentSelf
		default:
			parents[i] = p
		}
	}
	cutCycles(parents, marks)
	return parents, parentDiagnostics(lines, last, marks)
}

// cutCycles makes a root of the line that closes a cycle, and marks it.
func cutCycles(parents []int64, marks []uint8) {
	state := make([]uint8, len(parents)) // parentFine = not walked yet, parentCycle = on the walk, parentDone
	var walked []int64
	for i := len(parents) - 1; i >= 0; i-- {
		walked = walked[:0]
		at := int64(i)
		for at >= 0 && state[at] == parentFine {
			state[at] = parentCycle
			walked = append(walked, at)
			at = parents[at]
		}
		if at >= 0 && state[at] == parentCycle {
			end := walked[len(walked)-1]
			parents[end] = -1
			marks[end] = parentCycle
		}
		for _, w := range walked {
			state[w] = parentDone
		}
	}
}

func parentDiagnostics(lines []Line, last map[string]int64, marks []uint8) []Diagnostic {
	var d DiagnosticList
	for i, l := range lines {
		at := uint64(i)
		switch marks[i] {
		case parentMissing:
			d.Add(l.ID, at, DiagOrphan, fmt.Sprintf("parent %q is not in the file: a root from here on", l.ParentID))
		case parentSelf:
			d.Add(l.ID, at, DiagSelfParent, "its own parent: a root from here on")
		case parentCycle:
			d.Add(l.ID, at, DiagCycle, fmt.Sprintf("parent %q leads back here: a root from here on", l.ParentID))
		}
		if n, ok := last[l.ID]; ok && n != int64(i) {
			d.Add(l.ID, at, DiagDuplicateID, fmt.Sprintf("line %d has the same id and answers to it", n))
		}
	}
	return d.All()
}
