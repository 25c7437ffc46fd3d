package repair_test

import (
	"bytes"
	"fmt"
	"slices"
	"testing"

	"github.com/coppice-go/coppice/backend/memory"
	"github.com/coppice-go/coppice/internal/check"
	"github.com/coppice-go/coppice/internal/journal"
	"github.com/coppice-go/coppice/internal/proof"
)

// One line of a log is missing, twice there, or changed places with the next one; its writer was killed, so that no
// checkpoint shows where the log ended. Every other entry is where it was, the report names what is lost, and a second
// repair has nothing to do.
func TestRepairLineOutOfPlace(t *testing.T) {
	w := proof.NewWorld(t, memory.NewAppender())
	w.Lim.SealEntries, w.Lim.RollEntries, w.Lim.PublishCommits = 1000, 1000, 1000
	w.Session("s1", 3)
	j := w.Open("s1")
	for i := range 6 {
		var list []*journal.Entry
		for k := range 1 + i%3 {
			e := proof.Message(j, fmt.Sprintf("more-%d-%d", i, k), "more")
			if k > 0 {
				e.Parent = journal.PlaceAt(list[k-1])
				e.Raw = bytes.Replace(e.Raw, []byte(j.State().Summary.Entry), []byte(list[k-1].ID), 1)
			}
			list = append(list, e)
		}
		w.Commit(j, &journal.Step{Entries: list, Edit: proof.State(fmt.Sprintf(`{"turn":%d}`, i))})
	}
	want := w.IDs("s1")
	const last = 11 // line of those that checkpoint and snapshots know
	all := proof.Objects(t, w.B)
	plain := proof.KeysWith(all, "s1/transcript/")
	key := plain[len(plain)-1]
	lines := bytes.SplitAfter(all[key], []byte("\n"))
	lines = lines[:len(lines)-1]
	for i := 1; i < len(lines)-5; i++ { // of the last commit nothing shows that it was acknowledged
		for how, change := range map[string][][]byte{
			"dropped": {},
			"twice":   {lines[i], lines[i]},
			"swapped": {lines[i+1], lines[i]},
		} {
			what := fmt.Sprintf("line %d (%.60s) is %s", i, lines[i], how)
			to := i + 1
			if how == "swapped" {
				to = i + 2
			}
			q := bytes.Join(slices.Concat(lines[:i], change, lines[to:]), nil)
			hurt := from(t, "append", all, key, q, w.Lim)
			r := runRepair(hurt, "s1", false)
			if again := runRepair(hurt, "s1", false); len(damageOf(again)) > 0 || again.Objects > 0 {
				t.Errorf("%s: a second repair: %s", what, proof.ListProblems(again))
			}
			dropped := how == "dropped"
			lost := missing(t, what, want, healthy(hurt, what))
			if most := 1; lost > most || lost > 0 && !dropped {
				t.Errorf("%s: %d entries are lost\n%s", what, lost, proof.ListProblems(r))
			}
			named := slices.ContainsFunc(r.Problems, func(p *check.Problem) bool { return p.Kind == check.Lost })
			if dropped && (lost > 0 || i > last) && !named {
				t.Errorf("%s: the report names no loss\n%s", what, proof.ListProblems(r))
			}
		}
	}
}

func damageOf(r check.Report) (out []*check.Problem) {
	for _, p := range r.Problems {
		if p.Kind.Damage() {
			out = append(out, p)
		}
	}
	return out
}
