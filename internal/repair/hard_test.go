package repair_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"iter"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/coppice-go/coppice/backend"
	"github.com/coppice-go/coppice/backend/memory"
	"github.com/coppice-go/coppice/internal/check"
	"github.com/coppice-go/coppice/internal/fault"
	"github.com/coppice-go/coppice/internal/gc"
	"github.com/coppice-go/coppice/internal/journal"
	"github.com/coppice-go/coppice/internal/proof"
	"github.com/coppice-go/coppice/internal/repair"
	"github.com/coppice-go/coppice/internal/testutil"
)

// The same with so many segments that references fold: index objects are damaged too.
func TestRepairFolded(t *testing.T) {
	testutil.SkipLong(t)
	turns, cases := 140, 4 // two index objects
	for _, kind := range proof.StoreKinds {
		t.Run(kind, func(t *testing.T) {
			w := proof.NewWorld(t, proof.StoreOf(kind))
			w.Lim.SealEntries, w.Lim.RollEntries, w.Lim.PublishCommits = 2, 2, 1
			w.Session("s1", turns)
			all := proof.Objects(t, w.B)
			index := proof.KeysWith(all, "/index/")
			if len(index) == 0 {
				t.Fatal("no index object")
			}
			want := w.IDs("s1")
			segments := proof.KeysWith(all, "/transcript/")
			names := []string{index[0], segments[20], segments[0], segments[len(segments)-2]}
			for _, key := range names[:cases] {
				for _, q := range [][]byte{nil, flip(rand.New(rand.NewPCG(1, 1)), all[key])} {
					hurt := from(t, kind, all, key, q, w.Lim)
					r := runRepair(hurt, "s1", false)
					lost := missing(t, key, want, healthy(hurt, key))
					if strings.Contains(key, "/index/") && lost > 0 || lost > 3 {
						t.Errorf("%s: %d entries lost\n%s", key, lost, proof.ListProblems(r))
					}
				}
			}
		})
	}
}

// A repair that fails at any of its requests can be run again; a session that it did not get to is no worse.
func TestRepairInterrupted(t *testing.T) {
	testutil.SkipLong(t)
	for _, kind := range proof.StoreKinds {
		t.Run(kind, func(t *testing.T) {
			w := proof.NewWorld(t, proof.StoreOf(kind))
			w.Session("s1", 22)
			want := w.IDs("s1")
			all := proof.Objects(t, w.B)
			list := slices.DeleteFunc(proof.KeysWith(all, "/transcript/"), func(key string) bool {
				return !named(from(t, kind, all, key, nil, w.Lim).Verify("s1", true), key) // nothing refers to it
			})
			keys := []string{list[1], list[len(list)-1], "checkpoint_latest/s1"}
			for _, folder := range []string{"/originals/", "/blobs/", "/snapshots/"} {
				keys = append(keys, proof.KeysWith(all, folder)[0])
			}
			for _, key := range keys {
				cut := func() *proof.World { return from(t, kind, all, key, all[key][:len(all[key])*2/3], w.Lim) }
				for hurt, what := range interrupted(t, cut) {
					what = key + ", " + what
					if _, err := repair.Repair(context.Background(), hurt.Config("s1"), nil, false); err != nil {
						t.Fatalf("%s: the second run: %v", what, err)
					}
					if lost := missing(t, what, want, healthy(hurt, what)); lost > 8 {
						t.Errorf("%s: %d entries lost", what, lost)
					}
					if t.Failed() {
						t.Fatal(what)
					}
				}
			}
		})
	}
}

// interrupted yields every state in which a repair can leave a damaged session, once: each write is the first of those
// that fail, before it reaches the store and after. Most equal a state of the write before.
func interrupted(t *testing.T, damaged func() *proof.World) iter.Seq2[*proof.World, string] {
	const most = 64 // writes; a repair here makes up to 9
	return func(yield func(*proof.World, string) bool) {
		seen := map[[sha256.Size]byte]bool{}
		for n := range most {
			for _, fk := range []fault.Kind{fault.Before, fault.After} {
				hurt := damaged()
				inner := hurt.B
				writes := func(c fault.Call) bool { return c.Op == "put" || c.Op == "append" || c.Op == "delete" }
				faulty := fault.New(inner, 1, fault.Rule{When: writes, Skip: n, Count: -1, Kind: fk})
				hurt.B = faulty
				_, err := repair.Repair(context.Background(), hurt.Config("s1"), nil, false)
				hurt.B = inner
				what := fmt.Sprintf("write %d %v", n, fk)
				whole := len(faulty.Faults()) == 0 // so many writes it does not make
				if (err == nil) != whole {
					t.Errorf("%s: %d writes failed, and the repair says %v", what, len(faulty.Faults()), err)
				}
				if whole {
					if n < 2 {
						t.Errorf("%s: the repair wrote nothing that could fail", what)
					}
					return
				}
				if sum := sumOf(t, inner); !seen[sum] {
					seen[sum] = true
					if !yield(hurt, what) {
						return
					}
				}
			}
		}
		t.Errorf("after %d writes the repair is still at it", most)
	}
}

// sumOf is a hash of all that a store has.
func sumOf(t *testing.T, b backend.Backend) (sum [sha256.Size]byte) {
	t.Helper()
	all, h := proof.Objects(t, b), sha256.New()
	for _, key := range proof.KeysWith(all, "") {
		fmt.Fprintf(h, "%q %d ", key, len(all[key]))
		h.Write(all[key])
	}
	h.Sum(sum[:0])
	return sum
}

// Writers who knew the session before it was repaired can add nothing to what is no longer the log: they
// are told, and go on from the repaired head.
func TestRepairFencesStaleWriters(t *testing.T) {
	for _, kind := range proof.StoreKinds {
		t.Run(kind, func(t *testing.T) {
			w := proof.NewWorld(t, proof.StoreOf(kind))
			w.Session("s1", 20)
			all := proof.Objects(t, w.B)
			list := proof.KeysWith(all, "/transcript/")
			for _, key := range []string{list[2], list[len(list)-1]} {
				stale, idle := w.Open("s1"), w.Open("s1")
				w.Turn(stale, "stale-1")
				p, _, err := w.B.Get(context.Background(), key, backend.Range{})
				if err != nil {
					continue // sealed meanwhile
				}
				q := bytes.Clone(p)
				q[len(q)/2] ^= 1
				proof.Put(t, w.B, key, q)
				runRepair(w, "s1", false)
				for _, j := range []*journal.Journal{stale, idle} {
					_, err := j.Commit(context.Background(), &journal.Step{Reason: "turn", Entries: []*journal.Entry{proof.Message(j, "late", "late")}})
					if !errors.Is(err, journal.ErrFenced) && !errors.Is(err, journal.ErrConflict) {
						t.Errorf("%s: a writer of before: %v", key, err)
					}
					if err := j.Reload(context.Background()); err != nil {
						t.Errorf("%s: reload: %v", key, err)
					}
				}
				w.Turn(stale, "stale-2")
				w.Turn(w.Open("s1"), "other")
				for _, p := range w.Verify("s1", true).Problems {
					if p.Kind.Damage() {
						t.Errorf("%s: %v", key, p)
					}
				}
				if _, err := gc.Run(context.Background(), w.Config("s1"), false); err != nil {
					t.Error(err)
				}
				healthy(w, key)
			}
		})
	}
}

// A whole segment is gone: the entries around it stay, those in it have stand-ins, and the report counts them.
func TestRepairMissingMiddle(t *testing.T) {
	for _, kind := range proof.StoreKinds {
		t.Run(kind, func(t *testing.T) {
			w := proof.NewWorld(t, proof.StoreOf(kind))
			w.Session("s1", 30)
			want := w.IDs("s1")
			all := proof.Objects(t, w.B)
			key := proof.KeysWith(all, "/transcript/")[3]
			hurt := from(t, kind, all, key, nil, w.Lim)
			r := runRepair(hurt, "s1", false)
			lost := missing(t, key, want, healthy(hurt, key))
			told := 0
			for _, p := range r.Problems {
				if p.Kind == check.Lost {
					told++
				}
			}
			if lost > 7 || lost > 0 && told == 0 {
				t.Errorf("%d entries lost; the report:\n%s", lost, proof.ListProblems(r))
			}
			var left []string
			left = append(left, proof.KeysWith(proof.Objects(t, hurt.B), "/transcript/")...)
			if len(left) < 4 {
				t.Errorf("segments: %v", left)
			}
		})
	}
}

// Writers claimed the session several times since its last segment was sealed, and the head that records it is lost.
// The epoch of the repair is still above theirs, so that what they may still write refers to no object of the repair
// (I8).
func TestRepairWithoutAHeadRaisesTheEpoch(t *testing.T) {
	w := proof.NewWorld(t, proof.StoreOf("replace"))
	w.Session("s1", 8)
	for range 5 {
		j := w.Open("s1")
		w.Commit(j, &journal.Step{Reason: "claim", Claim: true})
	}
	late := w.Open("s1")
	w.Turn(late, "late")
	before := late.State().Summary.Epoch
	for i, harm := range [][]byte{nil, []byte("nothing of ours")} {
		all := proof.Objects(t, w.B)
		hurt := from(t, "replace", all, "checkpoint_latest/s1", harm, w.Lim)
		runRepair(hurt, "s1", false)
		if now := hurt.Open("s1").State().Summary.Epoch; now <= before {
			t.Errorf("case %d: the epoch was %d, and fell to %d with the repair (I8)", i, before, now)
		}
		healthy(hurt, "without a head")
	}
}

// A writer dies after a sync of the sealed form of a segment failed, and another segment is damaged. The repair finds
// both forms, and removes the plain one in the end: the sealed one is put once more before that, so that a loss of
// power leaves one of them (I13).
func TestRepairHardensWhatItFindsSealed(t *testing.T) {
	b := memory.NewAppender()
	w := proof.NewWorld(t, b)
	w.Session("s1", 12)
	both := func() bool {
		all := proof.Objects(t, b)
		return slices.ContainsFunc(proof.KeysWith(all, ".zst"), func(key string) bool { return all[strings.TrimSuffix(key, ".zst")] != nil })
	}
	b.SetHook(func(s memory.Step) error {
		if s.Stage == memory.Visible && strings.Contains(s.Key, "/transcript/") && strings.HasSuffix(s.Key, ".zst") {
			return errors.New("sync failed")
		}
		return nil
	})
	j := w.Open("s1")
	for i := 0; !both() && i < 8; i++ {
		w.Turn(j, fmt.Sprintf("last-%d", i))
	}
	b.SetHook(nil)
	if !both() {
		t.Fatal("no segment has both forms")
	}
	want := w.IDs("s1")
	proof.Put(t, b, proof.KeysWith(proof.Objects(t, b), "/transcript/")[1], []byte("damage"))
	runRepair(w, "s1", false)
	if both() {
		t.Fatal("the plain form is there still")
	}
	for seed := range uint64(16) {
		left := proof.NewWorld(t, b.Crash(seed))
		left.Rand, left.Lim = rand.NewChaCha8([32]byte{byte(seed), 6}), w.Lim
		what := fmt.Sprintf("a loss of power after the repair, seed %d", seed)
		for _, p := range left.Verify("s1", true).Problems {
			if p.Kind.Damage() {
				t.Fatalf("a sealed form that was found was not durable: %s: %v", what, p)
			}
		}
		if lost := missing(t, what, want, healthy(left, what)); lost > 8 {
			t.Fatalf("%s: %d entries lost", what, lost)
		}
	}
}

// A bit of a text is flipped, and the line still parses. Checkpoint or snapshots hold the entry as it was, so a repair
// takes it from there.
func TestRepairPrefersWhatVerifies(t *testing.T) {
	w := proof.NewWorld(t, memory.NewAppender())
	w.Lim.RollEntries = 1000 // one segment, and plain: each flip hits one line
	w.Session("s1", 6)
	text := func(w *proof.World, n int) string {
		j := w.Open("s1")
		for l, err := range j.Lines(context.Background(), j.State(), nil) {
			if err != nil {
				t.Fatal(err)
			}
			if bytes.Contains(l.Raw, fmt.Appendf(nil, `"id":"s1-e%d"`, n)) {
				return string(l.Raw)
			}
		}
		return ""
	}
	all := proof.Objects(t, w.B)
	key := proof.KeysWith(all, ".jsonl")[0]
	for n := range 6 {
		q := bytes.Clone(all[key])
		at := bytes.Index(q, fmt.Appendf(nil, `"text of s1-e%d"`, n))
		q[at+1] ^= 1
		q[at+2] ^= 1 // a single one would be flipped back
		hurt := from(t, "append", all, key, q, w.Lim)
		runRepair(hurt, "s1", false)
		if got, want := text(hurt, n), text(w, n); got != want {
			t.Errorf("an intact copy was not taken: entry %d is %s after the repair, and was %s", n, got, want)
		}
		healthy(hurt, fmt.Sprintf("entry %d", n))
	}
}
