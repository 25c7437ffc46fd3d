package journal

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"testing"

	"github.com/coppice-go/coppice/backend"
	"github.com/coppice-go/coppice/backend/memory"
	"github.com/coppice-go/coppice/internal/fault"
	"github.com/coppice-go/coppice/internal/journal/state"
	"github.com/coppice-go/coppice/internal/journal/store"
	"github.com/coppice-go/coppice/internal/layout"
)

// again makes a handle on a new session under an id that may have been deleted, on a store of its own.
func (w *world) again(b backend.Backend) *Journal {
	cfg := w.config("s")
	cfg.Backend, cfg.Again = b, true
	j := Create(cfg, state.Genesis{Header: header("s"), Title: "again", Cwd: "/w"})
	w.closes(j)
	return j
}

const image = "an image" // that deletable stores, too

// life commits an image and several segments in a new incarnation, and makes a snapshot.
func (w *world) life(j *Journal, name string) error {
	ctx := w.t.Context()
	if _, err := j.PutBlob(ctx, []byte(image)); err != nil {
		return err
	}
	for i := range 6 {
		e := say(j, fmt.Sprint(name, i), name)
		if _, err := j.Commit(ctx, &Step{Reason: "turn", Entries: []*Entry{e}}); err != nil {
			return err
		}
	}
	if _, err := j.Snapshot(ctx, j.State(), "tag"); err != nil {
		return err
	}
	return j.Close(ctx)
}

// whole checks that the session is what a life of this name left, by a fresh handle.
func (w *world) whole(where, name string) {
	w.t.Helper()
	ctx := w.t.Context()
	j, err := Open(ctx, w.config("s"))
	if err != nil {
		w.t.Errorf("%s: open: %v", where, err)
		return
	}
	defer j.Close(ctx)
	var want []string
	for i := range 6 {
		want = append(want, fmt.Sprint(name, i))
	}
	if got := w.ids(j); !slices.Equal(got, want) {
		w.t.Errorf("%s: entries %v, want %v", where, got, want)
	}
	sum := layout.BlobKey("s", j.State().Since, "")
	for _, key := range w.objects(sum) {
		if data, err := j.GetBlob(ctx, j.State(), key[len(sum):]); err != nil || string(data) != image {
			w.t.Errorf("%s: image: %q, %v", where, data, err)
		}
	}
	if len(w.objects(sum)) != 1 {
		w.t.Errorf("%s: images %v", where, w.objects(layout.SessionPrefix("s")+layout.Blobs))
	}
	n := 0
	for info, err := range j.Snapshots(ctx) {
		if err != nil {
			w.t.Errorf("%s: snapshots: %v", where, err)
			return
		}
		if st, err := j.ReadSnapshot(ctx, info.ID); err != nil || st.Since != j.State().Since {
			w.t.Errorf("%s: snapshot %s: %v", where, info.ID, err)
		}
		n++
	}
	if n != 1 {
		w.t.Errorf("%s: %d snapshots", where, n)
	}
}

// old returns the keys of objects of incarnations before the one that is there.
func (w *world) old() (keys []string) {
	w.t.Helper()
	st := w.open("s").State()
	for _, key := range w.objects(layout.SessionPrefix("s")) {
		if layout.Epoch(key) < st.Since {
			keys = append(keys, key)
		}
	}
	return keys
}

// The id of a deleted session is used again on request alone, as often as it is deleted. A handle on the deleted one
// gets ErrDeleted for ever.
func TestAgain(t *testing.T) {
	backends(t, func(t *testing.T, b backend.Backend) {
		w, _ := deletable(t, b)
		before := w.open("s")
		last := before.State().Summary.Epoch
		for n := range 3 {
			if err := Delete(t.Context(), w.config("s")); err != nil {
				t.Fatal(err)
			}
			plain := w.create("s")
			if _, err := plain.Commit(t.Context(), &Step{Reason: "turn"}); !errors.Is(err, fs.ErrExist) {
				t.Errorf("%d: created without being asked for again: %v", n, err)
			}
			name := fmt.Sprint("n", n, "-")
			if err := w.life(w.again(w.b), name); err != nil {
				t.Fatalf("%d: %v", n, err)
			}
			w.whole(fmt.Sprint("incarnation ", n), name)
			st := w.open("s").State()
			if st.Since <= last || st.Summary.Epoch < st.Since || st.Summary.Title != "again" {
				t.Errorf("%d: since %d, epoch %d, after epoch %d", n, st.Since, st.Summary.Epoch, last)
			}
			last = st.Summary.Epoch
		}
		e := say(before, "late", "late")
		for name, call := range map[string]func() error{
			"commit": func() error {
				_, err := before.Commit(t.Context(), &Step{Reason: "turn", Entries: []*Entry{e}})
				return err
			},
			"reload": func() error { return before.Reload(t.Context()) },
			"latest": func() error { _, err := before.Latest(t.Context()); return err },
		} {
			if err := call(); !errors.Is(err, store.ErrDeleted) {
				t.Errorf("%s by a handle of the deleted session: %v", name, err)
			}
		}
		if err := before.Close(t.Context()); err != nil {
			t.Error(err)
		}
		w.whole("at the end", "n2-")
		if left := w.old(); len(left) > 0 {
			t.Errorf("left of earlier incarnations: %v", left)
		}
	})
}

// meanwhile is a store of one process on which something happens just before call number at; where names the call.
func meanwhile(b backend.Backend, at int, happens func()) (_ backend.Backend, where *string) {
	calls, where := 0, new(string)
	return fault.New(b, 1, fault.Rule{Count: -1, When: func(c fault.Call) bool {
		if calls++; calls == at {
			*where = fmt.Sprintf("%T, call %d, %s %s", b, at, c.Op, c.Key)
			happens()
		}
		return false
	}}), where
}

// both are the kinds of store as two processes see them.
func both(t *testing.T, test func(t *testing.T, open func() backend.Backend)) {
	t.Run("replace", func(t *testing.T) { test(t, func() backend.Backend { return memory.New() }) })
	t.Run("append", func(t *testing.T) { test(t, func() backend.Backend { return memory.NewAppender() }) })
}

// A deletion runs late: at any of its calls another process deletes the session too, and begins a new one under its id,
// with an image that both have. The deletion removes nothing of that, and finishes.
func TestLateDeletionLeavesTheNextIncarnation(t *testing.T) {
	both(t, func(t *testing.T, open func() backend.Backend) {
		for at, more := 1, true; more; at++ {
			w, commit := deletable(t, open())
			b, where := meanwhile(w.b, at, func() {
				if err := Delete(t.Context(), w.config("s")); err != nil {
					t.Fatal(err)
				}
				if err := w.life(w.again(w.b), "new"); err != nil {
					t.Fatal(err)
				}
			})
			cfg := w.config("s")
			cfg.Backend = b
			err := DeleteAt(t.Context(), cfg, commit)
			if more = *where != ""; !more {
				break
			}
			// Before it looked at the session, it may find the next one, which has another commit.
			if err != nil && !errors.Is(err, store.ErrDeleted) && !errors.Is(err, ErrConflict) {
				t.Errorf("%s: %v", *where, err)
			}
			w.whole(*where, "new")
			if left := w.old(); len(left) > 0 {
				t.Errorf("%s: left: %v", *where, left)
			}
		}
	})
}

// Delete deletes the session that it found. Its first request is applied, and the answer is lost; by the time of its
// next try another session has the id.
func TestDeleteIsOfOneIncarnation(t *testing.T) {
	both(t, func(t *testing.T, open func() backend.Backend) {
		w, _ := deletable(t, open())
		applied, lost := false, false
		b := fault.New(w.b, 1, fault.Rule{Kind: fault.After, When: func(c fault.Call) bool {
			applied = c.Op == "append" || c.Op == "put"
			return applied
		}})
		cfg := w.config("s")
		cfg.Backend = fault.New(b, 1, fault.Rule{Count: -1, When: func(c fault.Call) bool {
			if applied && !lost {
				lost = true
				if err := w.life(w.again(w.b), "new"); err != nil {
					t.Fatal(err)
				}
			}
			return false
		}})
		if err := Delete(t.Context(), cfg); err != nil || !lost {
			t.Errorf("%v, %v", err, lost)
		}
		w.whole("the session of the id then", "new")
	})
}

// Two processes begin a session under a deleted id. At any call of the one the other begins its own, and then deletes
// it, and then begins another: exactly one session exists at the end, and the call that created it returned no error.
func TestTwoBeginAgain(t *testing.T) {
	acts := map[string][]string{"begins": {"a"}, "deletes": {"a", "delete"}, "begins twice": {"a", "delete", "c"}}
	both(t, func(t *testing.T, open func() backend.Backend) {
		for name, act := range acts {
			for at, more := 1, true; more; at++ {
				w, _ := deletable(t, open())
				if err := Delete(t.Context(), w.config("s")); err != nil {
					t.Fatal(err)
				}
				there := ""
				b, where := meanwhile(w.b, at, func() {
					for _, step := range act {
						err := error(nil)
						if there = step; step == "delete" {
							err = Delete(t.Context(), w.config("s"))
						} else if err = w.life(w.again(w.b), step); errors.Is(err, fs.ErrExist) {
							there = "b" // it was first
							return
						}
						if err != nil {
							t.Fatal(err)
						}
					}
				})
				err := w.life(w.again(b), "b")
				if more = *where != ""; !more {
					break
				}
				what := fmt.Sprintf("%s %s", name, *where)
				switch {
				case there == "b" && err == nil:
					w.whole(what, "b")
				case there == "b":
					t.Errorf("%s: it was first, and: %v", what, err)
				case err == nil && there == "delete":
					if *where != "" { // what was deleted was not the other's: it began after the deletion
						w.whole(what, "b")
					}
				case err == nil:
					t.Errorf("%s: both began", what)
				case !errors.Is(err, fs.ErrExist) && !errors.Is(err, store.ErrDeleted):
					t.Errorf("%s: %v", what, err)
				case there == "delete":
					if _, err := Open(t.Context(), w.config("s")); !errors.Is(err, store.ErrDeleted) {
						t.Errorf("%s: open: %v", what, err)
					}
				default:
					w.whole(what, there)
				}
			}
		}
	})
}

// A process that begins a session under a deleted id dies at any of its calls, or loses the answer. The session is
// there then or it is not: a reader, and the next creator, see the same. What was acknowledged is there, also after a
// loss of power.
func TestBeginAgainDies(t *testing.T) {
	both(t, func(t *testing.T, open func() backend.Backend) {
		for _, kind := range []fault.Kind{fault.Before, fault.After} {
			for at, more := 1, true; more; at++ {
				w, _ := deletable(t, open())
				if err := Delete(t.Context(), w.config("s")); err != nil {
					t.Fatal(err)
				}
				calls, where := 0, ""
				dead := func(c fault.Call) bool {
					if calls++; calls == at {
						where = fmt.Sprintf("%v call %d, %s %s", kind, at, c.Op, c.Key)
					}
					return calls >= at
				}
				faulty := fault.New(w.b, 1, fault.Rule{Kind: kind, When: dead},
					fault.Rule{Count: -1, When: func(fault.Call) bool { return calls >= at }})
				_, err := w.again(faulty).Commit(t.Context(),
					&Step{Reason: "turn", Entries: []*Entry{under("first", "x", "", -1)}})
				if more = where != ""; !more {
					if err != nil {
						t.Error(err)
					}
					break
				}
				after := []backend.Backend{w.b}
				if a, ok := w.b.(*memory.Appender); ok {
					for seed := range uint64(8) {
						after = append(after, a.Crash(seed))
					}
				}
				for i, b := range after {
					w.afterDeath(fmt.Sprint(where, ", ", i), b, err)
				}
			}
		}
	})
}

// afterDeath opens the session on what a dead creator left, and begins it again if it is not there.
func (w *world) afterDeath(where string, b backend.Backend, told error) {
	w.t.Helper()
	ctx := w.t.Context()
	left := *w
	left.b = b
	_, err := Open(ctx, left.config("s"))
	switch {
	case err == nil:
		if ids := left.ids(left.open("s")); !slices.Equal(ids, []string{"first"}) {
			w.t.Errorf("%s: entries %v", where, ids)
		}
		if told != nil && !errors.Is(told, ErrUnknown) {
			w.t.Errorf("%s: the session is there, and its creator was told: %v", where, told)
		}
	case !errors.Is(err, store.ErrDeleted):
		w.t.Errorf("%s: open: %v", where, err)
	case told == nil:
		w.t.Errorf("%s: acknowledged, and gone: %v", where, err)
	}
	there := err == nil
	switch err := left.life(left.again(b), "second"); {
	case there && !errors.Is(err, fs.ErrExist):
		w.t.Errorf("%s: begun twice: %v", where, err)
	case !there && err != nil:
		w.t.Errorf("%s: not begun: %v", where, err)
	case !there:
		left.whole(where, "second")
	}
}

// The answer to the first commit under a deleted id is lost: Settle finds out what happened, and sends it again if
// nothing did.
func TestBeginAgainSettles(t *testing.T) {
	both(t, func(t *testing.T, open func() backend.Backend) {
		for _, kind := range []fault.Kind{fault.Before, fault.After} {
			w, _ := deletable(t, open())
			if err := Delete(t.Context(), w.config("s")); err != nil {
				t.Fatal(err)
			}
			n := 0
			_, disk := w.b.(backend.Appender)
			at := func(c fault.Call) bool {
				if c.Op == "put" && disk == strings.Contains(c.Key, layout.Transcript) {
					n++
				}
				return n > 0
			}
			faulty := fault.New(w.b, 1, fault.Rule{Kind: kind, Count: DefaultLimits.Attempts, When: at})
			j := w.again(faulty)
			r, err := j.Commit(t.Context(), &Step{Reason: "turn", Entries: []*Entry{under("first", "x", "", -1)}})
			if errors.Is(err, ErrUnknown) {
				r, err = j.Settle(t.Context(), "")
			}
			if err != nil || r.State.Since == 0 {
				t.Errorf("%v: %v", kind, err)
				continue
			}
			if ids := w.ids(w.open("s")); !slices.Equal(ids, []string{"first"}) {
				t.Errorf("%v: entries %v", kind, ids)
			}
		}
	})
}

// On a disk the checkpoint of a later incarnation is lost while objects of the earlier one are there still: the log of
// the later one counts. So it does before its first checkpoint.
func TestAgainWithoutCheckpoint(t *testing.T) {
	w, _ := deletable(t, memory.NewAppender())
	gone := errors.New("the process died")
	w.b.(*memory.Appender).SetHook(func(s memory.Step) error {
		if s.Op == "delete" && strings.Contains(s.Key, layout.Transcript) {
			return gone // all other objects go first
		}
		return nil
	})
	if err := Delete(t.Context(), w.config("s")); !errors.Is(err, gone) {
		t.Fatal(err)
	}
	w.b.(*memory.Appender).SetHook(nil)
	if err := w.life(w.again(w.b), "new"); err != nil {
		t.Fatal(err)
	}
	if len(w.old()) == 0 {
		t.Fatal("nothing is left of the deleted session")
	}
	if err := w.b.Delete(t.Context(), layout.CheckpointKey("s")); err != nil {
		t.Fatal(err)
	}
	w.whole("without its checkpoint", "new")
	w.turn(w.open("s"), "more", "1")
	if err := Delete(t.Context(), w.config("s")); err != nil {
		t.Fatal(err)
	}
	if left := w.objects(layout.SessionPrefix("s")); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
}

// A PUT of a writer of the deleted session arrives when another one has its id: it changes nothing.
func TestDelayedPutMeetsTheNextIncarnation(t *testing.T) {
	w := newWorld(t, memory.New())
	j := w.create("s")
	w.turn(j, "a", "1")
	var late func() error
	cfg := w.config("s")
	cfg.Backend = &delaying{w.b, &late}
	slow, err := Open(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	_, err = slow.Commit(t.Context(), &Step{Reason: "turn", Entries: []*Entry{say(slow, "b", "b")}})
	if !errors.Is(err, ErrUnknown) {
		t.Fatal(err)
	}
	if err := Delete(t.Context(), w.config("s")); err != nil {
		t.Fatal(err)
	}
	if err := w.life(w.again(w.b), "new"); err != nil {
		t.Fatal(err)
	}
	if err := late(); !errors.Is(err, backend.ErrPrecondition) {
		t.Errorf("the delayed PUT: %v", err)
	}
	if _, err := slow.Settle(t.Context(), ""); err == nil || errors.Is(err, ErrUnknown) {
		t.Errorf("settle: %v", err)
	}
	w.whole("after the delayed PUT", "new")
}

// delaying is a store whose PUTs are not answered, and come late.
type delaying struct {
	backend.Backend
	late *func() error
}

func (d *delaying) Put(_ context.Context, key string, p []byte, c backend.Cond) (backend.Info, error) {
	*d.late = func() error {
		_, err := d.Backend.Put(context.Background(), key, p, c)
		return err
	}
	return backend.Info{}, &backend.Error{Op: "put", Key: key, Err: errors.New("no answer")}
}
