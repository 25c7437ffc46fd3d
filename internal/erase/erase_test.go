package erase_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"testing"

	"github.com/coppice-go/coppice/backend"
	"github.com/coppice-go/coppice/checkpoint"
	"github.com/coppice-go/coppice/entry"
	"github.com/coppice-go/coppice/internal/check"
	"github.com/coppice-go/coppice/internal/erase"
	"github.com/coppice-go/coppice/internal/fault"
	"github.com/coppice-go/coppice/internal/gc"
	"github.com/coppice-go/coppice/internal/journal"
	"github.com/coppice-go/coppice/internal/journal/state"
	"github.com/coppice-go/coppice/internal/layout"
	"github.com/coppice-go/coppice/internal/proof"
	"github.com/coppice-go/coppice/internal/repair"
	"github.com/coppice-go/coppice/transcript"
)

const secret = "zorbalonquist"

// world is a session with a secret in one entry of many.
func world(t *testing.T, kind string, turns int) (*proof.World, *journal.Journal) {
	t.Helper()
	w := proof.NewWorld(t, proof.StoreOf(kind))
	w.Session("s1", turns)
	j := w.Open("s1")
	e := proof.Message(j, "secret", secret+" "+secret+" opens the door")
	w.Commit(j, &journal.Step{Entries: []*journal.Entry{e}})
	return w, j
}

func run(t *testing.T, w *proof.World, ids ...string) erase.Result {
	t.Helper()
	r, err := erase.Run(context.Background(), w.Config("s1"), erase.Target{Entries: ids}, "asked for", erase.Calls{})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// gone fails if an object has the secret.
func gone(t *testing.T, w *proof.World) {
	t.Helper()
	p, err := erase.Prove(context.Background(), w.B, secret)
	if err != nil || len(p.Found) > 0 {
		t.Errorf("the text is in %v: %v", p.Found, err)
	}
}

func healthy(t *testing.T, w *proof.World) {
	t.Helper()
	for _, deep := range []bool{false, true} {
		r, err := check.Verify(context.Background(), w.Config("s1"), deep)
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range r.Problems {
			if p.Kind != check.Erased {
				t.Errorf("deep %v: %v", deep, p)
			}
		}
	}
}

func TestErase(t *testing.T) {
	for _, kind := range proof.StoreKinds {
		for _, turns := range []int{1, 7, 60} {
			t.Run(fmt.Sprintf("%s/%d", kind, turns), func(t *testing.T) {
				w, j := world(t, kind, turns)
				before := w.IDs("s1")
				r := run(t, w, "secret")
				gone(t, w)
				healthy(t, w)
				if !slices.Equal(r.Entries, []string{"secret"}) || r.Commit.Commit == "" {
					t.Errorf("%+v", r)
				}
				if after := w.IDs("s1"); !slices.Equal(after[:len(before)], before) {
					t.Errorf("entries %v became %v", before, after)
				}
				// the writer commits again
				e := proof.Message(j, "later", "later")
				if _, err := j.Commit(context.Background(),
					&journal.Step{Reason: "turn", Entries: []*journal.Entry{e}}); err != nil {
					t.Errorf("the writer that was there: %v", err)
				}
				if err := j.Close(context.Background()); err != nil {
					t.Error(err)
				}
				gone(t, w)
				healthy(t, w)
				if again := run(t, w, "secret"); again.Commit.Commit != "" || len(again.Already) != 1 {
					t.Errorf("again: %+v", again)
				}
			})
		}
	}
}

// Neither a repair nor a collection brings anything back, nor a lost checkpoint.
func TestEraseThenRepair(t *testing.T) {
	for _, kind := range proof.StoreKinds {
		t.Run(kind, func(t *testing.T) {
			w, j := world(t, kind, 30)
			if err := j.Close(context.Background()); err != nil {
				t.Fatal(err)
			}
			run(t, w, "secret")
			ids := w.IDs("s1")
			if _, err := gc.Run(context.Background(), w.Config("s1"), false); err != nil {
				t.Fatal(err)
			}
			if _, disk := w.B.(backend.Appender); disk {
				if err := w.B.Delete(context.Background(), "checkpoint_latest/s1"); err != nil {
					t.Fatal(err)
				}
			}
			if got := w.IDs("s1"); !slices.Equal(got, ids) {
				t.Errorf("without a checkpoint: %v, want %v", got, ids)
			}
			if _, err := repair.Repair(context.Background(), w.Config("s1"), nil, false); err != nil {
				t.Fatal(err)
			}
			gone(t, w)
			healthy(t, w)
		})
	}
}

// A snapshot that was made before the erasure and arrives after it is for no reader and no repair; a collection, or
// the next erasure, removes it. Those that were there stay.
func TestLateSnapshot(t *testing.T) {
	ctx := context.Background()
	for _, kind := range proof.StoreKinds {
		for how, remove := range map[string]func(w *proof.World) error{
			"gc": func(w *proof.World) error {
				_, err := gc.Run(ctx, w.Config("s1"), false)
				return err
			},
			"erase": func(w *proof.World) error {
				_, err := erase.Run(ctx, w.Config("s1"), erase.Target{Entries: []string{"next"}}, "", erase.Calls{})
				return err
			},
		} {
			t.Run(kind+"/"+how, func(t *testing.T) {
				w, j := world(t, kind, 5)
				kept, err := j.Snapshot(ctx, j.State(), "kept")
				if err != nil {
					t.Fatal(err)
				}
				late, err := j.Snapshot(ctx, j.State(), "late")
				if err != nil {
					t.Fatal(err)
				}
				key := layout.SnapshotKey("s1", late.ID)
				body := proof.Objects(t, w.B)[key]
				if err := errors.Join(j.Close(ctx), w.B.Delete(ctx, key)); err != nil {
					t.Fatal(err)
				}
				run(t, w, "secret")
				next := w.Open("s1")
				w.Commit(next, &journal.Step{Entries: []*journal.Entry{proof.Message(next, "next", "next")}})
				proof.Put(t, w.B, key, body)
				if _, err := next.ReadSnapshot(ctx, late.ID); !errors.Is(err, fs.ErrNotExist) {
					t.Errorf("the late one is read: %v", err)
				}
				if _, err := repair.Repair(ctx, w.Config("s1"), nil, false); err != nil {
					t.Fatal(err)
				}
				if err := errors.Join(next.Close(ctx), remove(w)); err != nil {
					t.Fatal(err)
				}
				gone(t, w)
				healthy(t, w)
				if st, err := w.Open("s1").ReadSnapshot(ctx, kept.ID); err != nil || st.Erased == 0 {
					t.Errorf("the one that was there: %v", err)
				}
			})
		}
	}
}

// completing is the configuration of a collection that completes erasures, as package coppice makes it.
func completing(w *proof.World) journal.Config {
	cfg := w.Config("s1")
	cfg.Unfinished = func(ctx context.Context, cfg journal.Config) error {
		_, err := erase.Run(ctx, cfg, erase.Target{}, "", erase.Calls{})
		return err
	}
	return cfg
}

// dies erases the secret with a process that dies before its nth change of the store; false = it has fewer changes.
func dies(t *testing.T, w *proof.World, n int) bool {
	t.Helper()
	changes := 0
	cfg := w.Config("s1")
	cfg.Backend = fault.New(w.B, 1, fault.Rule{Count: -1, Err: errors.New("dead"), When: func(c fault.Call) bool {
		if c.Op != "get" && c.Op != "stat" && c.Op != "list" && changes < n {
			changes++
		}
		return changes == n
	}})
	what := erase.Target{Entries: []string{"secret"}}
	_, err := erase.Run(context.Background(), cfg, what, "asked for", erase.Calls{})
	if (err == nil) != (changes < n) {
		t.Fatalf("change %d of %d: %v", n, changes, err)
	}
	return err != nil
}

// A collection completes an erasure at whichever change it was broken off; a dry run reports it.
func TestCollectionCompletesAnErasure(t *testing.T) {
	for _, kind := range proof.StoreKinds {
		t.Run(kind, func(t *testing.T) {
			for n := 1; ; n++ {
				w, j := world(t, kind, 12)
				if err := j.Close(context.Background()); err != nil {
					t.Fatal(err)
				}
				if !dies(t, w, n) {
					break
				}
				begun := len(proof.KeysWith(proof.Objects(t, w.B), "/erasures/")) > 0
				was := proof.Objects(t, w.B)
				r, err := gc.Run(context.Background(), completing(w), true)
				if err != nil || len(proof.Objects(t, w.B)) != len(was) {
					t.Fatalf("dry run after change %d: %v", n, err)
				}
				noted := slices.ContainsFunc(r.Problems, func(p *check.Problem) bool {
					return strings.Contains(p.Object, "/erasures/") && p.Kind == check.Leftover
				})
				if noted != begun {
					t.Errorf("change %d: begun %v, reported %v", n, begun, noted)
				}
				if !begun { // the death was before the pending object
					continue
				}
				if _, err := gc.Run(context.Background(), completing(w), false); err != nil {
					t.Fatalf("change %d: %v", n, err)
				}
				gone(t, w)
				healthy(t, w)
				if left := proof.KeysWith(proof.Objects(t, w.B), "/erasures/"); len(left) > 0 {
					t.Errorf("change %d: %v is left", n, left)
				}
			}
		})
	}
}

// hold commits a hold, or with nil ends it.
func hold(t *testing.T, w *proof.World, j *journal.Journal, reason *string) {
	t.Helper()
	d := entry.Custom(transcript.MetaKind, checkpoint.MetaChange{checkpoint.MetaHold: reason})
	id := "hold"
	if reason == nil {
		id = "release"
	}
	head, err := d.Parsed(id, j.State().Summary.Entry, w.Now())
	if err != nil {
		t.Fatal(err)
	}
	w.Commit(j, &journal.Step{Reason: state.ReasonHold, Note: true, Entries: []*journal.Entry{{
		Raw: head.Raw, Head: head, ID: head.ID, Parent: journal.PlaceOf(j.State()), Aside: true,
	}}})
}

// An erasure that is not in force stays as it is while the session is held: a collection reports it.
func TestCollectionLeavesHeldEntries(t *testing.T) {
	for _, kind := range proof.StoreKinds {
		t.Run(kind, func(t *testing.T) {
			w, j := world(t, kind, 12)
			if !dies(t, w, 2) {
				t.Fatal("it did not die")
			}
			reason := "case 7"
			hold(t, w, j, &reason)
			r, err := gc.Run(context.Background(), completing(w), false)
			if err != nil {
				t.Fatal(err)
			}
			held := func(p *check.Problem) bool { return errors.Is(p.Err, journal.ErrHeld) }
			if !slices.ContainsFunc(r.Problems, held) {
				t.Errorf("the hold is not reported: %v", r.Problems)
			}
			if p, err := erase.Prove(context.Background(), w.B, secret); err != nil || len(p.Found) == 0 {
				t.Errorf("a held entry is erased: %v", err)
			}
			hold(t, w, j, nil)
			if err := j.Close(context.Background()); err != nil {
				t.Fatal(err)
			}
			if _, err := gc.Run(context.Background(), completing(w), false); err != nil {
				t.Fatal(err)
			}
			gone(t, w)
			healthy(t, w)
		})
	}
}

func TestEraseRefuses(t *testing.T) {
	w, j := world(t, proof.StoreKinds[0], 3)
	for id, want := range map[string]error{"nothing": fs.ErrNotExist, j.State().Summary.Commit: nil} {
		what := erase.Target{Entries: []string{id}}
		_, err := erase.Run(context.Background(), w.Config("s1"), what, "", erase.Calls{})
		if err == nil || want != nil && !errors.Is(err, want) {
			t.Errorf("%s: %v", id, err)
		}
	}
	long := strings.Repeat("x", erase.MaxReason+1)
	what := erase.Target{Entries: []string{"secret"}}
	if _, err := erase.Run(context.Background(), w.Config("s1"), what, long, erase.Calls{}); err == nil {
		t.Error("a long reason is taken")
	}
	for _, what := range []erase.Target{
		{States: []string{"plan"}}, {States: []string{"/" + strings.Repeat("x", 1<<10)}}, {Docs: []string{"a b"}},
	} {
		if _, err := erase.Run(context.Background(), w.Config("s1"), what, "", erase.Calls{}); err == nil {
			t.Errorf("%v is taken", what)
		}
	}
}
