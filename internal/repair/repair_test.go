package repair_test

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/coppice-go/coppice/backend"
	"github.com/coppice-go/coppice/internal/check"
	"github.com/coppice-go/coppice/internal/journal"
	"github.com/coppice-go/coppice/internal/proof"
	"github.com/coppice-go/coppice/internal/repair"
	"github.com/coppice-go/coppice/internal/testutil"
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
// commits, and stays so. It gives the entries that are there.
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
	for b, err := range j.Since(context.Background(), j.State(), -1) {
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

// missing is how many of the entries are not there, and checks that the rest stand where they stood.
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

// ways are how an object can be damaged. Nil = it is gone.
var ways = []struct {
	name string
	hurt func(rng *rand.Rand, p []byte) []byte
}{
	{"flipped", flip},
	{"cut", func(rng *rand.Rand, p []byte) []byte { return p[:rng.IntN(len(p))] }},
	{"gone", func(*rand.Rand, []byte) []byte { return nil }},
	{"zeroed", zero},
}

// Every segment and the checkpoint, each damaged in every way: repaired, all else is there.
func TestRepairEach(t *testing.T) {
	testutil.SkipSizes(t)
	for _, kind := range proof.StoreKinds {
		t.Run(kind, func(t *testing.T) {
			w := proof.NewWorld(t, proof.StoreOf(kind))
			w.Session("s1", 22)
			want := w.IDs("s1")
			all := proof.Objects(t, w.B)
			rng := rand.New(rand.NewPCG(3, 4))
			names := proof.KeysWith(all, "/transcript/")
			if testing.Short() {
				names = []string{names[0], names[len(names)/2], names[len(names)-1]}
			}
			repaired := 0
			for i, key := range append(names, "checkpoint_latest/s1") {
				for n, way := range ways {
					if testutil.RaceEnabled && i > 0 && i < len(names)-1 && (i+n)%2 == 0 {
						continue // of segments that stand between others each has two ways, and the next one the other two
					}
					q := way.hurt(rng, all[key])
					what := key + " " + way.name
					hurt := from(t, kind, all, key, q, w.Lim)
					if !named(hurt.Verify("s1", true), key) {
						continue // nothing refers to it
					}
					repaired++
					r := repairTwice(hurt, what)
					if q != nil {
						kept(t, what, hurt.B, q)
					}
					lost := missing(t, what, want, healthy(hurt, what))
					if most := mostLost(kind, key, way.name); lost > most {
						t.Errorf("%s: %d entries are lost, at most %d may be:\n%s", what, lost, most, proof.ListProblems(r))
					}
					if t.Failed() {
						t.Fatalf("%s", proof.ListProblems(r))
					}
				}
			}
			if repaired < 2*len(names) {
				t.Errorf("%d repairs of %d segments", repaired, len(names))
			}
		})
	}
}

// repairTwice repairs a session after a dry run, which changes nothing.
func repairTwice(hurt *proof.World, what string) check.Report {
	t := hurt.T
	t.Helper()
	before := proof.Objects(t, hurt.B)
	dry := runRepair(hurt, "s1", true)
	if diff := differ(before, proof.Objects(t, hurt.B)); diff != "" {
		t.Errorf("%s: a dry run changed the store: %s", what, diff)
	}
	r := runRepair(hurt, "s1", false)
	if len(r.Problems) == 0 || len(dry.Problems) == 0 {
		t.Errorf("%s: the repair says nothing; dry run: %v", what, dry.Problems)
	}
	return r
}

// differ says where stores differ. cmp goes byte by byte, even where they do not: a tenth of the time of these tests.
func differ(a, b map[string][]byte) string {
	if maps.EqualFunc(a, b, bytes.Equal) {
		return ""
	}
	return cmp.Diff(a, b)
}

func named(r check.Report, key string) bool {
	return slices.ContainsFunc(r.Problems, func(p *check.Problem) bool { return strings.HasPrefix(key, p.Object) })
}

// mostLost is how many entries a damaged object may cost: a segment here holds at most 7.
func mostLost(kind, key, name string) int {
	switch {
	case strings.HasPrefix(key, "checkpoint_latest") && kind == "append":
		return 0
	case name == "flipped" && strings.HasSuffix(key, ".jsonl"):
		return 1
	}
	return 8
}

func flip(rng *rand.Rand, p []byte) []byte {
	q := bytes.Clone(p)
	q[rng.IntN(len(q))] ^= 1 << rng.IntN(8)
	return q
}

func zero(rng *rand.Rand, p []byte) []byte {
	q := bytes.Clone(p)
	n := min(200, len(q))
	at := rng.IntN(len(q) - n + 1)
	clear(q[at : at+n])
	return q
}

// kept checks that the damaged bytes are somewhere still.
func kept(t testing.TB, what string, b backend.Backend, q []byte) {
	t.Helper()
	for _, p := range proof.Objects(t, b) {
		if bytes.Contains(p, q) {
			return
		}
	}
	tail := q[len(q)/2:]
	for _, p := range proof.Objects(t, b) {
		if bytes.Contains(p, tail) {
			return
		}
	}
	t.Errorf("%s: the damaged bytes are nowhere", what)
}

// A bit of the active segment, each eighth: at most the entry that it hits is lost, and the numbers of all
// others stay (I6).
func TestRepairActive(t *testing.T) {
	w := proof.NewWorld(t, proof.StoreOf("append"))
	w.Lim.RollEntries = 100
	w.Session("s1", 12)
	want := w.IDs("s1")
	all := proof.Objects(t, w.B)
	for _, key := range proof.KeysWith(all, ".jsonl") {
		p := all[key]
		step := max(1, len(p)/60)
		if testing.Short() {
			step = max(1, len(p)/10)
		}
		for at := 0; at < len(p); at += step {
			q := bytes.Clone(p)
			q[at] ^= 1 << (at % 8)
			what := fmt.Sprintf("%s at %d", key, at)
			hurt := from(t, "append", all, key, q, w.Lim)
			r := runRepair(hurt, "s1", false)
			if lost := missing(t, what, want, healthy(hurt, what)); lost > 1 {
				t.Errorf("%s: %d entries are lost", what, lost)
			}
			if t.Failed() {
				t.Fatal(proof.ListProblems(r))
			}
		}
	}
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
