package repair_test

import (
	"bytes"
	"context"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/coppice-go/coppice/internal/check"
	"github.com/coppice-go/coppice/internal/journal"
	"github.com/coppice-go/coppice/internal/proof"
	"github.com/coppice-go/coppice/internal/repair"
)

func runRepair(w *proof.World, id string, dry bool) check.Report {
	w.T.Helper()
	r, err := repair.Repair(context.Background(), w.Config(id), nil, dry)
	if err != nil {
		w.T.Fatalf("repair: %v", err)
	}
	return r
}

// from is a world on a copy of the objects, one of which is changed; nil = it is gone.
func from(t testing.TB, kind string, all map[string][]byte, key string, p []byte, lim journal.Limits) *proof.World {
	t.Helper()
	b := proof.StoreOf(kind)
	for k, q := range all {
		if k != key {
			proof.Put(t, b, k, q)
		}
	}
	if p != nil {
		proof.Put(t, b, key, p)
	}
	w := proof.NewWorld(t, b)
	w.Rand = rand.NewChaCha8([32]byte{77})
	w.Lim = lim
	return w
}

// healthy checks what every repair promises: Verify finds no damage, the session opens, reads, and takes
// commits, and stays so. It returns the entries that are there.
func healthy(w *proof.World, what string) []string {
	w.T.Helper()
	for _, p := range w.Verify("s1", true).Problems {
		if p.Kind.Damage() {
			w.T.Errorf("%s: after the repair: %v", what, p)
		}
	}
	got := w.IDs("s1")
	j := w.Open("s1")
	w.Turn(j, "after")
	for b, err := range j.Since(context.Background(), j.State(), -1, nil) {
		if err != nil {
			w.T.Errorf("%s: history: %v", what, err)
		}
		_ = b
	}
	if err := j.Close(context.Background()); err != nil {
		w.T.Errorf("%s: close: %v", what, err)
	}
	for _, p := range w.Verify("s1", true).Problems {
		if p.Kind.Damage() {
			w.T.Errorf("%s: a commit later: %v", what, p)
		}
	}
	if now := w.IDs("s1"); len(now) != len(got)+1 || now[len(now)-1] != "after" {
		w.T.Errorf("%s: %d entries, and a commit later %d", what, len(got), len(now))
	}
	return got
}

// missing returns how many of the entries are not there, and checks that the rest have their places.
func missing(t testing.TB, what string, want, got []string) int {
	t.Helper()
	n := 0
	for i, id := range want {
		switch {
		case i >= len(got) || got[i] != id && !slices.Contains(got, id):
			n++
		case got[i] != id:
			t.Errorf("%s: entry %s is not in its place", what, id)
		}
	}
	return n
}

// differ returns where stores differ. cmp alone compares byte by byte, also equal stores: a tenth of the time here.
func differ(a, b map[string][]byte) string {
	if maps.EqualFunc(a, b, bytes.Equal) {
		return ""
	}
	return cmp.Diff(a, b)
}

func named(r check.Report, key string) bool {
	return slices.ContainsFunc(r.Problems, func(p *check.Problem) bool { return strings.HasPrefix(key, p.Object) })
}

func flip(rng *rand.Rand, p []byte) []byte {
	q := bytes.Clone(p)
	q[rng.IntN(len(q))] ^= 1 << rng.IntN(8)
	return q
}

// Nothing to repair: nothing is done.
func TestRepairHealthy(t *testing.T) {
	for _, kind := range proof.StoreKinds {
		w := proof.NewWorld(t, proof.StoreOf(kind))
		w.Session("s1", 10)
		before := proof.Objects(t, w.B)
		if r := runRepair(w, "s1", false); len(r.Problems) != 0 || r.Objects != 0 {
			t.Errorf("%s: %s", kind, proof.ListProblems(r))
		}
		if diff := differ(before, proof.Objects(t, w.B)); diff != "" {
			t.Errorf("%s: %s", kind, diff)
		}
	}
}
