package salvage_test

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/coppice-go/coppice/backend"
	"github.com/coppice-go/coppice/internal/check"
	"github.com/coppice-go/coppice/internal/journal"
	"github.com/coppice-go/coppice/internal/salvage"
)

func (w *world) repair(id string, dry bool) check.Report {
	w.t.Helper()
	r, err := salvage.Repair(context.Background(), w.config(id), dry)
	if err != nil {
		w.t.Fatalf("repair: %v", err)
	}
	return r
}

// from is a world on a copy of the objects, one of which is changed; nil = it is gone.
func from(t testing.TB, kind string, all map[string][]byte, key string, p []byte, lim journal.Limits) *world {
	t.Helper()
	b := storeOf(kind)
	for k, q := range all {
		if k != key {
			put(t, b, k, q)
		}
	}
	if p != nil {
		put(t, b, key, p)
	}
	w := newWorld(t, b)
	w.rand = rand.NewChaCha8([32]byte{77})
	w.lim = lim
	return w
}

// healthy checks what every repair promises: Verify finds no damage, the session opens, reads, and takes
// commits, and stays so. It gives the entries that are there.
func (w *world) healthy(what string) []string {
	w.t.Helper()
	for _, p := range w.verify("s1", true).Problems {
		if p.Kind.Damage() {
			w.t.Errorf("%s: after the repair: %v", what, p)
		}
	}
	got := w.ids("s1")
	j := w.open("s1")
	w.turn(j, "after")
	for b, err := range j.Since(context.Background(), j.State(), -1) {
		if err != nil {
			w.t.Errorf("%s: history: %v", what, err)
		}
		_ = b
	}
	if err := j.Close(context.Background()); err != nil {
		w.t.Errorf("%s: close: %v", what, err)
	}
	for _, p := range w.verify("s1", true).Problems {
		if p.Kind.Damage() {
			w.t.Errorf("%s: a commit later: %v", what, p)
		}
	}
	if now := w.ids("s1"); len(now) != len(got)+1 || now[len(now)-1] != "after" {
		w.t.Errorf("%s: %d entries, and a commit later %d", what, len(got), len(now))
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

// Every segment and the checkpoint, each damaged in every way: repaired, all else is there.
func TestRepairEach(t *testing.T) {
	for _, kind := range kinds {
		t.Run(kind, func(t *testing.T) {
			w := newWorld(t, storeOf(kind))
			w.session("s1", 22)
			want := w.ids("s1")
			all := objects(t, w.b)
			rng := rand.New(rand.NewPCG(3, 4))
			names := keys(all, "/transcript/")
			if testing.Short() {
				names = []string{names[0], names[len(names)/2], names[len(names)-1]}
			}
			for _, key := range append(names, "checkpoint_latest/s1") {
				for name, q := range map[string][]byte{
					"flipped": flip(rng, all[key]), "cut": all[key][:rng.IntN(len(all[key]))], "gone": nil, "zeroed": zero(rng, all[key]),
				} {
					what := key + " " + name
					if !named(from(t, kind, all, key, q, w.lim).verify("s1", true), key) {
						continue // nothing refers to it
					}
					hurt := from(t, kind, all, key, q, w.lim)
					before := objects(t, hurt.b)
					dry := hurt.repair("s1", true)
					if diff := cmp.Diff(before, objects(t, hurt.b)); diff != "" {
						t.Errorf("%s: a dry run changed the store: %s", what, diff)
					}
					r := hurt.repair("s1", false)
					if len(r.Problems) == 0 || len(dry.Problems) == 0 {
						t.Errorf("%s: the repair says nothing; dry run: %v", what, dry.Problems)
					}
					if q != nil {
						kept(t, what, hurt.b, q)
					}
					lost := missing(t, what, want, hurt.healthy(what))
					if most := mostLost(kind, key, name); lost > most {
						t.Errorf("%s: %d entries are lost, at most %d may be:\n%s", what, lost, most, list(r))
					}
					if t.Failed() {
						t.Fatalf("%s", list(r))
					}
				}
			}
		})
	}
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
	for _, p := range objects(t, b) {
		if bytes.Contains(p, q) {
			return
		}
	}
	tail := q[len(q)/2:]
	for _, p := range objects(t, b) {
		if bytes.Contains(p, tail) {
			return
		}
	}
	t.Errorf("%s: the damaged bytes are nowhere", what)
}

// A bit of the active segment, each eighth: at most the entry that it hits is lost, and the numbers of all
// others stay (I6).
func TestRepairActive(t *testing.T) {
	w := newWorld(t, storeOf("append"))
	w.lim.RollEntries = 100
	w.session("s1", 12)
	want := w.ids("s1")
	all := objects(t, w.b)
	for _, key := range keys(all, ".jsonl") {
		p := all[key]
		step := max(1, len(p)/60)
		if testing.Short() {
			step = max(1, len(p)/10)
		}
		for at := 0; at < len(p); at += step {
			q := bytes.Clone(p)
			q[at] ^= 1 << (at % 8)
			what := fmt.Sprintf("%s at %d", key, at)
			hurt := from(t, "append", all, key, q, w.lim)
			r := hurt.repair("s1", false)
			if lost := missing(t, what, want, hurt.healthy(what)); lost > 1 {
				t.Errorf("%s: %d entries are lost", what, lost)
			}
			if t.Failed() {
				t.Fatal(list(r))
			}
		}
	}
}

// Nothing to repair: nothing is done.
func TestRepairHealthy(t *testing.T) {
	for _, kind := range kinds {
		w := newWorld(t, storeOf(kind))
		w.session("s1", 10)
		before := objects(t, w.b)
		if r := w.repair("s1", false); len(r.Problems) != 0 || r.Objects != 0 {
			t.Errorf("%s: %s", kind, list(r))
		}
		if diff := cmp.Diff(before, objects(t, w.b)); diff != "" {
			t.Errorf("%s: %s", kind, diff)
		}
	}
}
