package gc_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/coppice-go/coppice/backend"
	"github.com/coppice-go/coppice/backend/memory"
	"github.com/coppice-go/coppice/checkpoint"
	"github.com/coppice-go/coppice/internal/check"
	"github.com/coppice-go/coppice/internal/fault"
	"github.com/coppice-go/coppice/internal/gc"
	"github.com/coppice-go/coppice/internal/journal"
	"github.com/coppice-go/coppice/internal/journal/state"
	"github.com/coppice-go/coppice/internal/journal/store"
	"github.com/coppice-go/coppice/internal/segment"
	"github.com/coppice-go/coppice/internal/testutil"
)

// world is a store on which writers, readers and collections interleave in an order that a seed decides.
type world struct {
	t    *testing.T
	b    backend.Backend
	rng  *rand.Rand
	rand io.Reader
	time time.Time
	jobs []func() // pending background work
}

func newWorld(t *testing.T, kind string, seed uint64) *world {
	w := &world{t: t, b: memory.New(), rng: rand.New(rand.NewPCG(seed, 7)), time: testutil.Shifted(time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC))}
	if kind == "append" {
		w.b = memory.NewAppender()
	}
	w.rand = rand.NewChaCha8([32]byte{byte(seed), byte(seed >> 8)})
	return w
}

func (w *world) config() journal.Config {
	return journal.Config{
		Backend: w.b, Session: "s1", Writer: "w", Rand: w.rand,
		Now:    func() time.Time { w.time = w.time.Add(time.Millisecond); return w.time },
		Go:     func(job func()) { w.jobs = append(w.jobs, job) },
		Sleep:  func(ctx context.Context, _ time.Duration) error { return ctx.Err() },
		Limits: journal.Limits{SealEntries: 3, RollEntries: 3, PublishCommits: 2, Keyframe: 4, Attempts: 4},
	}
}

// work runs some of the background work, or all of it.
func (w *world) work(all bool) {
	for len(w.jobs) > 0 {
		i := w.rng.IntN(len(w.jobs))
		job := w.jobs[i]
		w.jobs = append(w.jobs[:i:i], w.jobs[i+1:]...)
		job()
		if !all {
			return
		}
	}
}

func (w *world) create() *journal.Journal {
	j := journal.Create(w.config(), state.Genesis{Header: []byte(`{"type":"session","version":3,"id":"s1"}`)})
	w.turn(j, "root")
	return j
}

func (w *world) open() *journal.Journal {
	w.t.Helper()
	j, err := journal.Open(context.Background(), w.config())
	if err != nil {
		w.t.Fatalf("open: %v", err)
	}
	return j
}

// turn commits one entry; after a conflict the handle is at the newest head, and the entry is dropped.
func (w *world) turn(j *journal.Journal, id string) bool {
	w.t.Helper()
	st := j.State()
	e := &journal.Entry{
		ID: id, Parent: journal.Place{ID: st.Summary.Entry, Ord: st.HeadOrd},
		Raw: fmt.Appendf(nil, `{"type":"message","id":%q,"parentId":null,"timestamp":"2026-01-01T00:00:01.000Z","message":{"role":"user","content":"x"}}`, id),
	}
	_, err := j.Commit(context.Background(), &journal.Step{
		Reason: "turn", Entries: []*journal.Entry{e},
		Edit: func(d checkpoint.Document) checkpoint.Document {
			d.State = json.RawMessage(fmt.Sprintf("%q", id))
			return d
		},
	})
	if errors.Is(err, journal.ErrConflict) {
		if err := j.Reload(context.Background()); err != nil {
			w.t.Fatalf("reload: %v", err)
		}
		return false
	}
	if err != nil {
		w.t.Fatalf("commit %s: %v", id, err)
	}
	return true
}

func (w *world) collect(dry bool) check.Report {
	w.t.Helper()
	r, err := gc.Run(context.Background(), w.config(), dry)
	if err != nil {
		w.t.Fatalf("collect: %v", err)
	}
	return r
}

// read returns the ids of all entries of st, as a reader that holds st sees them.
func (w *world) read(j *journal.Journal, st *state.State) []string {
	w.t.Helper()
	var out []string
	for l, err := range j.Lines(context.Background(), st, nil) {
		if err != nil {
			w.t.Fatalf("read: %v", err)
		}
		if e, err := segment.Entry(l.Ord, l.Raw); err == nil && !l.Commit {
			out = append(out, e.ID)
		}
	}
	return out
}

func (w *world) keys(of string) []string {
	w.t.Helper()
	var out []string
	for info, err := range w.b.List(context.Background(), backend.ListOptions{}) {
		if err != nil {
			w.t.Fatal(err)
		}
		if strings.Contains(info.Key, of) {
			out = append(out, info.Key)
		}
	}
	return out
}

// dangling checks that everything the newest head refers to can be read.
func (w *world) dangling() {
	w.t.Helper()
	r, err := check.Verify(context.Background(), w.config(), false)
	if err != nil {
		w.t.Fatalf("verify: %v", err)
	}
	for _, p := range r.Problems {
		if p.Kind.Damage() {
			w.t.Errorf("verify: %v", p)
		}
	}
}

// onlyReachable checks that each remaining object of an earlier epoch is reachable from the head: each has a different
// first ordinal then.
func (w *world) onlyReachable() {
	w.t.Helper()
	first := map[string]string{}
	for _, key := range w.keys("/transcript/") {
		at, _, _ := strings.Cut(key[strings.LastIndexByte(key, '/')+1:], "-")
		if other := first[at]; other != "" {
			w.t.Errorf("%s and %s are both there", other, key)
		}
		first[at] = key
	}
}

// A writer that dies between the PUT of a segment and the commit that names it leaves an orphan. It is removed after
// another writer has committed, and not before.
func TestOrphanOfADeadWriter(t *testing.T) {
	w := newWorld(t, "replace", 1)
	j := w.create()
	for i := range 4 {
		w.turn(j, fmt.Sprintf("e%d", i))
	}
	w.work(true)                                                  // the segment is stored, no commit names it
	orphans := append(w.keys("/transcript/"), w.keys("/ids/")...) // its lines are indexed too
	if len(orphans) == 0 {
		t.Fatal("no segment was written")
	}
	if r := w.collect(false); r.Removed != 0 {
		t.Errorf("its writer may still name it, and %d objects are gone", r.Removed)
	}
	w.turn(w.open(), "other")
	before := w.keys("")
	dry := w.collect(true)
	if diff := cmp.Diff(before, w.keys("")); diff != "" {
		t.Errorf("a dry run changed the store: %s", diff)
	}
	if dry.Removed != len(orphans) || len(dry.Problems) != len(orphans) || dry.Problems[0].Object != orphans[0] || dry.Problems[0].Kind != check.Leftover {
		t.Errorf("dry run: %d objects, %v", dry.Removed, dry.Problems)
	}
	if r := w.collect(false); r.Removed != dry.Removed || r.Bytes != dry.Bytes || len(r.Problems) != 0 {
		t.Errorf("collected %d objects of %d bytes, the dry run said %d of %d", r.Removed, r.Bytes, dry.Removed, dry.Bytes)
	}
	if left := w.keys(orphans[0]); len(left) != 0 {
		t.Errorf("%v is left", left)
	}
	w.turn(j, "late") // the dead writer was only slow: it gets a conflict and continues
	w.turn(j, "later")
	w.dangling()
}

// On a disk two orphans are removed: the next segment of a writer that died before it closed the previous one, and the
// plain form of a segment whose sealed form is published.
func TestOrphansOnDisk(t *testing.T) {
	w := newWorld(t, "append", 1)
	j := w.create()
	for i := range 7 {
		w.turn(j, fmt.Sprintf("e%d", i))
	}
	st := j.State()
	ctx := context.Background()
	prelude := checkpoint.Prelude{ID: "p", Time: w.time, Session: "s1", First: st.Next + 1, FirstSeq: st.Summary.Seq + 2, Epoch: st.Summary.Epoch, Key: 5, PrevName: st.Plain[len(st.Plain)-1].Name}
	line, err := prelude.Line()
	if err != nil {
		t.Fatal(err)
	}
	orphan := fmt.Sprintf("sessions/s1/transcript/%020d-%020d-00000000000000aa.jsonl", prelude.First, prelude.Epoch)
	if _, err := w.b.Put(ctx, orphan, append(line, '\n'), backend.IfAbsent()); err != nil {
		t.Fatal(err)
	}
	if r := w.collect(false); r.Removed != 0 {
		t.Errorf("its writer may still link it, and %d objects are gone", r.Removed)
	}
	plain := map[string][]byte{}
	for _, key := range w.keys(".jsonl") {
		p, _, err := w.b.Get(ctx, key, backend.Range{})
		if err != nil {
			t.Fatal(err)
		}
		plain[key] = p
	}
	other := w.open()
	w.turn(other, "other")
	w.work(true)
	if err := other.Close(ctx); err != nil {
		t.Fatal(err)
	}
	for key, p := range plain { // as if the process had died before it removed them
		if !strings.HasSuffix(key, ".zst") {
			_, _ = w.b.Put(ctx, key, p, backend.IfAbsent())
		}
	}
	r := w.collect(false)
	if r.Removed < 3 || len(w.keys(orphan)) != 0 {
		t.Errorf("%d objects collected: %v", r.Removed, w.keys(".jsonl"))
	}
	w.onlyReachable()
	if got := w.read(other, w.open().State()); len(got) != 9 {
		t.Errorf("%d entries are left", len(got))
	}
}

// On a disk an orphan that cannot be read is kept: it may hold the only copy. Damage is reported, and a store that does
// not answer ends the collection.
func TestOrphanThatCannotBeReadStays(t *testing.T) {
	ctx := context.Background()
	w := newWorld(t, "append", 2)
	j := w.create()
	for i := range 7 {
		w.turn(j, fmt.Sprintf("e%d", i))
	}
	st := j.State()
	name := func(n int) string {
		return fmt.Sprintf("sessions/s1/transcript/%020d-%020d-%016x.jsonl", n, st.Summary.Epoch, n)
	}
	prelude := checkpoint.Prelude{ID: "p", Time: w.time, Session: "s1", First: 3, FirstSeq: 2, Epoch: st.Summary.Epoch, Key: 5, PrevName: st.Plain[len(st.Plain)-1].Name}
	line, err := prelude.Line()
	if err != nil {
		t.Fatal(err)
	}
	orphans := map[string][]byte{
		name(1):          []byte("no line of ours\n"),
		name(2) + ".zst": []byte("no frame"),
		name(3):          append(append(line, '\n'), `{"type":"message","id":"x"`...), // contains only a torn append
	}
	for key, p := range orphans {
		if _, err := w.b.Put(ctx, key, p, backend.IfAbsent()); err != nil {
			t.Fatal(err)
		}
	}
	for i := range 2 {
		other := w.open()
		w.turn(other, fmt.Sprintf("other%d", i))
		w.work(true)
		if err := other.Close(ctx); err != nil {
			t.Fatal(err)
		}
	}
	r := w.collect(false)
	reported := map[string]bool{}
	for _, p := range r.Problems {
		reported[p.Object] = p.Kind == check.Mismatch
	}
	for key := range orphans {
		if len(w.keys(key)) != 1 || !reported[key] {
			t.Errorf("an orphan that cannot be read: %d objects of the name %s are left, reported: %v", len(w.keys(key)), key, reported[key])
		}
	}

	cfg := w.config()
	cfg.Backend = fault.New(w.b, 1, fault.Rule{Count: -1, When: func(c fault.Call) bool { return c.Op == "get" && orphans[c.Key] != nil }})
	if _, err := gc.Run(ctx, cfg, false); err == nil {
		t.Error("a collection that could not read a segment reports no error")
	}
	for key := range orphans {
		if len(w.keys(key)) != 1 {
			t.Errorf("an orphan that the store did not give is gone: %s", key)
		}
	}
}

// Everything of a deleted session is removed, late objects included; the tombstone stays. A session that was never
// created, and one whose head cannot be read, keep their objects.
func TestSessionsWithoutHead(t *testing.T) {
	for _, kind := range []string{"replace", "append"} {
		t.Run(kind, func(t *testing.T) {
			ctx := context.Background()
			w := newWorld(t, kind, 3)
			j := w.create()
			for i := range 8 {
				w.turn(j, fmt.Sprintf("e%d", i))
				w.work(true)
			}
			if _, err := gc.Run(ctx, journal.Config{Backend: w.b, Session: "none"}, false); !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("no such session: %v", err)
			}
			before := w.keys("")
			p, _, err := w.b.Get(ctx, "checkpoint_latest/s1", backend.Range{})
			if err != nil {
				t.Fatal(err)
			}
			bad := append([]byte(nil), p...)
			bad[len(bad)/2] ^= 1
			if _, err := w.b.Put(ctx, "checkpoint_latest/s1", bad, backend.Cond{}); err != nil {
				t.Fatal(err)
			}
			r := w.collect(false)
			if len(r.Problems) != 1 || r.Removed != 0 || cmp.Diff(before, w.keys("")) != "" {
				t.Errorf("damaged head: %d removed, %v", r.Removed, r.Problems)
			}
			if _, err := w.b.Put(ctx, "checkpoint_latest/s1", p, backend.Cond{}); err != nil {
				t.Fatal(err)
			}
			cfg := w.config()
			cfg.Go = func(job func()) { job() }
			if err := journal.Delete(ctx, cfg); err != nil {
				t.Fatal(err)
			}
			for _, late := range []string{"sessions/s1/blobs/" + strings.Repeat("0", 64), "sessions/s1/transcript/" + strings.Repeat("0", 20) + "-" + strings.Repeat("0", 20) + "-" + strings.Repeat("a", 16) + ".jsonl.zst"} {
				if _, err := w.b.Put(ctx, late, []byte("late"), backend.IfAbsent()); err != nil {
					t.Fatal(err)
				}
			}
			r, err = gc.Run(ctx, journal.Config{Backend: w.b}, false)
			if err != nil || r.Removed != 2 {
				t.Errorf("%d removed, %v", r.Removed, err)
			}
			if diff := cmp.Diff([]string{"checkpoint_latest/s1"}, w.keys("")); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// A deletion was written to the log only. Verify reports the remaining objects, a collection removes them, and a
// tombstone is durable before the first object is removed, also if an earlier sync of it failed.
func TestUnfinishedDeletion(t *testing.T) {
	b := memory.NewAppender()
	w := newWorld(t, "append", 4)
	w.b = b
	j := w.create()
	for i := range 8 {
		w.turn(j, fmt.Sprintf("e%d", i))
		w.work(true)
	}
	const tombstone = "checkpoint_latest/s1"
	for _, stage := range []memory.Stage{memory.Begun, memory.Visible} {
		b.SetHook(func(s memory.Step) error {
			if s.Op == "put" && s.Key == tombstone && s.Stage == stage {
				return errors.New("the disk fails")
			}
			return nil
		})
		if err := journal.Delete(t.Context(), w.config()); !errors.Is(err, journal.ErrUnfinished) {
			t.Fatal(err)
		}
		b.SetHook(nil)
		r, err := check.Verify(t.Context(), w.config(), true)
		if err != nil || len(r.Problems) != 1 || r.Problems[0].Kind != check.Leftover {
			t.Errorf("verify: %v, %v", r.Problems, err)
		}
	}
	objects := len(w.keys("sessions/s1/"))
	if r := w.collect(true); r.Removed != objects || len(w.keys("sessions/s1/")) != objects {
		t.Errorf("a dry run: %d of %d would be removed, %d are left", r.Removed, objects, len(w.keys("sessions/s1/")))
	}
	if r := w.collect(false); r.Removed != objects || len(w.keys("")) != 1 {
		t.Errorf("%d of %d objects were removed, left: %v", r.Removed, objects, w.keys(""))
	}
	for seed := range uint64(16) {
		left := *w
		left.b = b.Crash(seed)
		if _, err := journal.Open(t.Context(), left.config()); !errors.Is(err, store.ErrDeleted) {
			t.Fatalf("after a loss of power, seed %d: %v", seed, err)
		}
	}
}
