package repair_test

import (
	"bytes"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/coppice-go/coppice/internal/proof"
)

// An object of another session in the place of one: the repair takes nothing of it, keeps its bytes in torn/, and a
// second repair has nothing to do. Segments of one session that changed their places lose nothing. A dry run reports
// what the repair does.
func TestRepairOfMixedUpObjects(t *testing.T) {
	for _, kind := range proof.StoreKinds {
		t.Run(kind, func(t *testing.T) {
			w := proof.NewWorld(t, proof.StoreOf(kind))
			w.Session("s1", 30)
			w.Session("s2", 30)
			want, all := w.IDs("s1"), proof.Objects(t, w.B)
			own := proof.KeysWith(all, "sessions/s1/")
			for _, key := range append(own, "checkpoint_latest/s1") {
				class := strings.SplitAfterN(strings.ReplaceAll(key, "s1", "s2"), "/", 4)
				others := proof.KeysWith(all, strings.Join(class[:len(class)-1], ""))
				foreign := all[others[len(others)/2]]
				hurt := from(t, kind, all, key, foreign, w.Lim)
				dry := runRepair(hurt, "s1", true)
				r := runRepair(hurt, "s1", false)
				if len(dry.Problems) != len(r.Problems) {
					t.Errorf("%s: the dry run reports\n%sand the repair\n%s", key, proof.ListProblems(dry),
						proof.ListProblems(r))
				}
				again := proof.Objects(t, hurt.B)
				if r := runRepair(hurt, "s1", false); len(r.Problems) > 0 {
					t.Errorf("%s: a second repair: %s", key, proof.ListProblems(r))
				}
				if diff := differ(again, proof.Objects(t, hurt.B)); diff != "" {
					t.Errorf("%s: a second repair: %s", key, diff)
				}
				if n := missing(t, key, want, healthy(hurt, key)); n > 8 {
					t.Errorf("%s: %d entries lost", key, n)
				}
				for _, id := range hurt.IDs("s1") {
					if strings.HasPrefix(id, "s2") {
						t.Errorf("%s: entry %s of the other session", key, id)
					}
				}
				kept := false
				for _, p := range proof.Objects(t, hurt.B) {
					kept = kept || bytes.Equal(p, foreign)
				}
				if !kept {
					t.Errorf("%s: the bytes of the other session are gone", key)
				}
			}
			segments := proof.KeysWith(all, "sessions/s1/transcript/")
			first, second := segments[0], segments[1]
			hurt := from(t, kind, all, first, all[second], w.Lim)
			proof.Put(t, hurt.B, second, all[first])
			hurt.Rand = rand.NewChaCha8([32]byte{78})
			runRepair(hurt, "s1", false)
			if n := missing(t, "changed places", want, healthy(hurt, "changed places")); n > 0 {
				t.Errorf("changed places: %d entries lost", n)
			}
		})
	}
}
