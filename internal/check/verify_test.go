package check_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/coppice-go/coppice/internal/check"
	"github.com/coppice-go/coppice/internal/proof"
)

// A healthy store has no problems, and looking at it changes nothing (I14).
func TestVerifyClean(t *testing.T) {
	for _, kind := range proof.StoreKinds {
		t.Run(kind, func(t *testing.T) {
			w := proof.NewWorld(t, proof.StoreOf(kind))
			w.Session("s1", 30)
			w.Session("S2", 0)
			before := proof.Objects(t, w.B)
			for _, deep := range []bool{false, true} {
				r := w.Verify("", deep)
				if len(r.Problems) > 0 {
					t.Errorf("deep %v: %s", deep, proof.ListProblems(r))
				}
				if r.Sessions != 2 || r.Objects != len(before) || r.Bytes == 0 {
					t.Errorf("deep %v: %d sessions, %d objects of %d, %d bytes", deep, r.Sessions, r.Objects, len(before), r.Bytes)
				}
			}
			if diff := cmp.Diff(before, proof.Objects(t, w.B)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// Sessions of so many segments that references fold are as clean.
func TestVerifyFolded(t *testing.T) {
	for _, kind := range proof.StoreKinds {
		t.Run(kind, func(t *testing.T) {
			w := proof.NewWorld(t, proof.StoreOf(kind))
			w.Lim.SealEntries, w.Lim.RollEntries, w.Lim.PublishCommits = 2, 2, 1
			w.Session("s1", 140)
			all := proof.Objects(t, w.B)
			if len(proof.KeysWith(all, "/index/")) == 0 {
				t.Fatal("no index object")
			}
			for _, deep := range []bool{false, true} {
				if r := w.Verify("s1", deep); len(r.Problems) > 0 {
					t.Errorf("deep %v: %s", deep, proof.ListProblems(r))
				}
			}
			damageTable(t, kind, w, proof.KeysWith(all, "/index/")[:1])
		})
	}
}

// damages are ways in which an object goes bad.
var damages = []struct {
	name string
	do   func(rng *rand.Rand, p, other []byte) []byte // nil = it is gone
}{
	{"flipped", func(rng *rand.Rand, p, _ []byte) []byte {
		q := bytes.Clone(p)
		q[rng.IntN(len(q))] ^= 1 << rng.IntN(8)
		return q
	}},
	{"cut", func(rng *rand.Rand, p, _ []byte) []byte { return bytes.Clone(p[:rng.IntN(len(p))]) }},
	{"gone", func(*rand.Rand, []byte, []byte) []byte { return nil }},
	{"another session's", func(_ *rand.Rand, _, other []byte) []byte { return other }},
	{"zeroed", func(rng *rand.Rand, p, _ []byte) []byte {
		q := bytes.Clone(p)
		n := min(512, len(q))
		at := rng.IntN(len(q)-n+1) / 512 * 512
		clear(q[at : at+n])
		return q
	}},
}

// Every class of damage to every object that matters is found, and named.
func TestVerifyFindsDamage(t *testing.T) {
	for _, kind := range proof.StoreKinds {
		t.Run(kind, func(t *testing.T) {
			w := proof.NewWorld(t, proof.StoreOf(kind))
			w.Session("s1", 20)
			w.Session("s2", 20)
			damageTable(t, kind, w, proof.KeysWith(proof.Objects(t, w.B), "s1"))
		})
	}
}

func damageTable(t *testing.T, kind string, w *proof.World, list []string) {
	all := proof.Objects(t, w.B)
	rng := rand.New(rand.NewPCG(1, 2))
	rounds := 4
	if testing.Short() {
		rounds, list = 1, some(list, 6)
	}
	for _, key := range list {
		others := proof.KeysWith(all, strings.Split(strings.ReplaceAll(key, "s1", "s2"), "-")[0])
		for _, d := range damages {
			for range rounds {
				other := []byte("nothing")
				if len(others) > 0 {
					other = all[others[rng.IntN(len(others))]]
				}
				q := d.do(rng, all[key], other)
				if bytes.Equal(q, all[key]) && q != nil {
					continue
				}
				oneDamage(t, kind, w, all, key, d.name, q)
				if d.name == "gone" || t.Failed() {
					break
				}
			}
		}
	}
}

// some are at most so many of the keys, from all over the list.
func some(list []string, most int) []string {
	var out []string
	for i := 0; i < len(list); i += len(list)/most + 1 {
		out = append(out, list[i])
	}
	return out
}

func oneDamage(t *testing.T, kind string, w *proof.World, all map[string][]byte, key, name string, q []byte) {
	t.Helper()
	b := proof.StoreOf(kind)
	for k, p := range all {
		if k != key {
			proof.Put(t, b, k, p)
		}
	}
	if q != nil {
		proof.Put(t, b, key, q)
	}
	hurt := proof.NewWorld(t, b)
	hurt.Lim = w.Lim
	r := hurt.Verify("s1", true)
	if unnoticed(key, name, q) {
		return
	}
	for _, p := range r.Problems {
		if p.Object == key || name == "gone" && strings.HasPrefix(key, p.Object) {
			if p.Offset < 0 || p.Offset > int64(max(len(q), len(all[key]))) {
				t.Errorf("%s, %s: offset %d of %d bytes", key, name, p.Offset, len(q))
			}
			return
		}
	}
	t.Errorf("%s, %s: not found; problems are:\n%s", key, name, fmt.Sprint(r.Problems))
}

// unnoticed are losses that nothing refers to: a snapshot that is gone was pruned.
func unnoticed(key, name string, _ []byte) bool {
	return strings.Contains(key, "/snapshots/") && name == "gone"
}

// Objects of others are told apart, do not count, and do not crowd out damage.
func TestVerifyForeign(t *testing.T) {
	w := proof.NewWorld(t, proof.StoreOf("replace"))
	w.Session("s1", 10)
	want := w.Verify("", true)
	foreign := []string{
		"readme", "other/x", "checkpoint_latest/Upper", "checkpoint_latest/a/b", "sessions/loose", "sessions/Upper/x",
		"sessions/s1/loose", "sessions/s1/transcript/x.jsonl", "sessions/s1/transcript/a/b", "sessions/s1/index/x",
		"sessions/s1/snapshots/x", "sessions/s1/blobs/x", "sessions/s1/originals/x.zst", "sessions/s1/torn/x", "sessions/s1/other/x",
	}
	for i := range 300 {
		foreign = append(foreign, fmt.Sprintf("sessions/s1/blobs/noise%d", i))
	}
	for _, key := range foreign {
		proof.Put(t, w.B, key, []byte("x"))
	}
	blob := proof.KeysWith(proof.Objects(t, w.B), "/originals/")[0]
	proof.Put(t, w.B, blob, []byte("damaged"))
	r := w.Verify("", true)
	if r.Objects != want.Objects || r.Sessions != want.Sessions {
		t.Errorf("%d objects of %d sessions, want %d of %d", r.Objects, r.Sessions, want.Objects, want.Sessions)
	}
	named, damage := 0, 0
	for _, p := range r.Problems {
		switch {
		case p.Kind == check.ForeignObject:
			named++
		case p.Object == blob && p.Kind == check.Damaged:
			damage++
		default:
			t.Errorf("unexpected: %v", p)
		}
	}
	if named < 100 || named > 120 || damage != 1 {
		t.Errorf("%d foreign objects named, %d damaged", named, damage)
	}
}
