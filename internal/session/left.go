package session

import (
	"fmt"
	"slices"
	"strings"

	"github.com/coppice-go/coppice/checkpoint"
	"github.com/coppice-go/coppice/internal/journal"
)

// nameLeft makes a move name the line that it leaves, if no branch ends on it after the move: Options.NameLeft. A
// branch that the caller did not choose is not moved off the line that it names. A session with many names gets no more
// of these: the line that is left has none then, and is found by its entries.
func nameLeft(m *Moment, mv *move) {
	if mv.kept != "" || len(m.State.Branches) >= maxLeft {
		return
	}
	now := m.State.Summary.Branch
	to := mv.branch
	if to == "" {
		to = now
	}
	if b, ok := m.State.Branch(to); ok && !mv.named && to != now && b.Head != "" &&
		!m.passes(mv.at, journal.Place{ID: b.Head, Ord: b.Ord}) {
		to = freshName(m, to, "")
		mv.branch = to
	}
	if m.Head.ID == "" || m.passes(mv.at, m.Head) {
		return
	}
	for _, b := range m.State.Branches {
		if b.Name != to && b.Head != "" && m.passes(journal.Place{ID: b.Head, Ord: b.Ord}, m.Head) {
			return
		}
	}
	mv.kept = freshName(m, now, to)
}

// maxLeft bounds the names of a session to which moves add one of their own; the others are for callers.
const maxLeft = checkpoint.MaxBranches / 2

// passes reports whether the way from a place to its root passes another, or ends there.
func (m *Moment) passes(from, place journal.Place) bool {
	if from.Is(place) {
		return true
	}
	ord, ok := m.Ordinal(from)
	at, known := m.Ordinal(place)
	return ok && known && m.above(at, ord)
}

// freshName returns the first of base, base-2, base-3 and so on that names no branch, and is not another name that is
// about to.
func freshName(m *Moment, base, other string) string {
	name := base
	if at := strings.LastIndexByte(base, '-'); at > 0 && strings.Trim(base[at+1:], "0123456789") == "" {
		base = base[:at] // main-2 is followed by main-3
	}
	for n := 2; ; n++ {
		taken := slices.ContainsFunc(m.State.Branches, func(b checkpoint.BranchRef) bool { return b.Name == name })
		if !taken && name != other && name != "" && len(name) <= checkpoint.MaxName {
			return name
		}
		name = fmt.Sprintf("%.*s-%d", checkpoint.MaxName-8, base, n)
	}
}
