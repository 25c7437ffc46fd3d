package check_test

import (
	"bytes"
	"context"
	"fmt"
	"iter"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/coppice-go/coppice/backend"
	"github.com/coppice-go/coppice/backend/memory"
	"github.com/coppice-go/coppice/internal/check"
	"github.com/coppice-go/coppice/internal/journal"
	"github.com/coppice-go/coppice/internal/journal/state"
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

// overtaken is a store in which another process seals the plain segments when the first of them is read.
type overtaken struct {
	backend.Appender // as it was before
	after            backend.Backend
	sealed           bool
}

func (o *overtaken) Get(ctx context.Context, key string, r backend.Range) ([]byte, backend.Info, error) {
	first := strings.HasSuffix(key, "-0000000000000000.jsonl")
	if o.sealed = o.sealed || first && r == (backend.Range{}); o.sealed {
		return o.after.Get(ctx, key, r)
	}
	return o.Appender.Get(ctx, key, r)
}

func (o *overtaken) List(ctx context.Context, l backend.ListOptions) iter.Seq2[backend.Info, error] {
	if o.sealed {
		return o.after.List(ctx, l)
	}
	return o.Appender.List(ctx, l)
}

// What another process sealed between the listing and the reading is no damage, though no commit was made since.
func TestVerifyDuringSealing(t *testing.T) {
	w := proof.NewWorld(t, proof.StoreOf("append"))
	var jobs []func()
	cfg := w.Config("s1")
	cfg.Go = func(job func()) { jobs = append(jobs, job) }
	j := journal.Create(cfg, state.Genesis{Header: proof.Header("s1")})
	for i := range 20 {
		w.Turn(j, fmt.Sprint("turn", i))
	}
	before := memory.NewAppender()
	for key, p := range proof.Objects(t, w.B) {
		if _, err := before.Put(t.Context(), key, []byte(p), backend.Cond{}); err != nil {
			t.Fatal(err)
		}
	}
	for len(jobs) > 0 {
		job := jobs[0]
		jobs = jobs[1:]
		job()
	}
	if err := j.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	o := &overtaken{Appender: before, after: w.B}
	w.B = o
	if r := w.Verify("s1", false); len(r.Problems) > 0 {
		t.Errorf("%s", proof.ListProblems(r))
	}
	if !o.sealed {
		t.Error("no plain segment was read")
	}
}

// A commit of a state alone is lost at the end of the log, and a checkpoint or a snapshot proves it: verify, quick and
// deep, reports it.
func TestVerifyLostState(t *testing.T) {
	for _, kind := range proof.StoreKinds {
		for _, witness := range []string{"checkpoint", "snapshot"} {
			if kind == "replace" && witness == "checkpoint" {
				continue // it is the log's end itself
			}
			t.Run(kind+" "+witness, func(t *testing.T) {
				w := proof.NewWorld(t, proof.StoreOf(kind))
				w.Session("s1", 5)
				before := proof.Objects(t, w.B)
				j := w.Open("s1")
				w.Commit(j, &journal.Step{Reason: "turn", Edit: proof.State(`{"n":99}`)})
				if witness == "snapshot" {
					if _, err := j.Snapshot(t.Context(), j.State(), "proof"); err != nil {
						t.Fatal(err)
					}
				}
				if err := j.Close(t.Context()); err != nil {
					t.Fatal(err)
				}
				const checkpoint = "checkpoint_latest/s1"
				if witness == "snapshot" {
					proof.Put(t, w.B, checkpoint, before[checkpoint])
				}
				for key, p := range before { // the log as it was before the commit
					if kind == "append" && strings.HasSuffix(key, ".jsonl") {
						proof.Put(t, w.B, key, p)
					}
				}
				for _, deep := range []bool{false, true} {
					found := 0
					for _, p := range w.Verify("s1", deep).Problems {
						if p.Kind.Damage() {
							found++
						}
					}
					if found != 1 {
						t.Errorf("deep %v: %d pieces of damage", deep, found)
					}
				}
			})
		}
	}
}
