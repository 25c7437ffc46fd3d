package searchindex

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	coppice "github.com/coppice-go/coppice"
	"github.com/coppice-go/coppice/backend"
	"github.com/coppice-go/coppice/backend/memory"
	"github.com/coppice-go/coppice/entry"
	"github.com/coppice-go/coppice/internal/testutil"
	"github.com/coppice-go/coppice/internal/trace"
	"github.com/coppice-go/coppice/transcript"
)

// patient makes the closing of a store wait for as long as the recorder needs, however slow the machine is.
func patient(r *Recorder) *Recorder {
	r.within = time.Hour
	return r
}

// recorded opens a store whose commits a recorder takes in; end closes it.
func recorded(t testing.TB, b backend.Backend, r *Recorder) (st *coppice.Store, end func()) {
	t.Helper()
	st = storeOn(t, b, r.Hooks(coppice.Hooks{}))
	return st, func() { t.Helper(); testutil.OK(t, st.Close()) }
}

// recalled gives the prompts that an index file has, newest first.
func recalled(t testing.TB, path string) string {
	t.Helper()
	x := testutil.Must(Open(t.Context(), path))(t)
	defer func() { testutil.OK(t, x.Close()) }()
	return texts(t, x)
}

func texts(t testing.TB, x *Index) string {
	t.Helper()
	var out []string
	for _, p := range must2(x.Recall(t.Context(), "", nil))(t) {
		out = append(out, p.Text)
	}
	return strings.Join(out, "|")
}

// A store that is opened with the hooks of a recorder fills the history by itself, whatever makes the commits;
// what Update reads afterwards is the same as without it.
func TestRecorder(t *testing.T) {
	t.Parallel()
	for name, b := range map[string]backend.Backend{"replace": memory.New(), "append": memory.NewAppender()} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := filepath.Join(t.TempDir(), "sub", "h.db")
			r := patient(NewRecorderAt(path))
			var hooks []string
			st := storeOn(t, b, r.Hooks(coppice.Hooks{
				Opened:      func(*coppice.Store) { hooks = append(hooks, "opened") },
				AfterCommit: func(*coppice.Session, coppice.Receipt) { hooks = append(hooks, "commit") },
				Closing:     func(*coppice.Store) { hooks = append(hooks, "closing") },
			}))
			s := create(t, st, "s", "/a", "> one", "answer", "> two", "answer")
			say(t, s, "> three", "answer")
			testutil.Must(s.Edit(t.Context(), s.Head().Entry, entry.User("four, edited")))(t)
			lines := func(yield func(transcript.Draft, error) bool) {
				for _, line := range []string{
					`{"type":"session","version":3,"id":"x","timestamp":"2026-03-02T09:00:00.000Z","cwd":"/in"}`,
					`{"type":"message","id":"i1","parentId":null,"timestamp":"2026-03-02T09:00:00.000Z","message":{"role":"user","content":"imported"}}`,
					`{"type":"message","id":"i2","parentId":"i1","timestamp":"2026-03-02T09:00:01.000Z","message":{"role":"user","content":[{"type":"tool_result","tool_use_id":"t","content":"result"}]}}`,
				} {
					if !yield(entry.Line([]byte(line)), nil) {
						return
					}
				}
			}
			_ = testutil.Must(st.Import(t.Context(), lines, nil))(t)
			_ = testutil.Must(s.Fork(t.Context(), coppice.Target{Seq: 1}, "f", nil))(t)
			testutil.OK(t, st.Close())
			same(t, "missed", r.Missed(), 0)
			same(t, "prompts", recalled(t, path), "four, edited|three|two|one|imported")
			same(t, "the caller's hooks", strings.Join(hooks, " "), "opened commit commit commit commit commit closing")

			x, fresh := reopen(t, path), index(t)
			p := must2(x.Recall(t.Context(), "three", nil))(t)[0]
			same(t, "prompt", []any{p.Session, p.Cwd, p.Title, p.Uses}, []any{"s", "/a", "about s", 1})
			again := storeOn(t, b, coppice.Hooks{})
			update(t, x, again)
			update(t, fresh, again)
			same(t, "the index", dump(t, x), dump(t, fresh))
		})
	}
}

// Only the commits that are new are read: one read of the session on a store such as S3, however long it is.
func TestRecorderReadsWhatIsNew(t *testing.T) {
	t.Parallel()
	b := trace.New(memory.New())
	plain := storeOn(t, b, coppice.Hooks{})
	s := create(t, plain, "s", "/a", "> before")
	for i := range 300 {
		say(t, s, fmt.Sprint("> old ", i), "answer")
	}
	testutil.OK(t, plain.Close())
	path := filepath.Join(t.TempDir(), "h.db")
	r := NewRecorderAt(path)
	st := storeOn(t, b, coppice.Hooks{AfterCommit: r.AfterCommit})
	s = testutil.Must(st.Open(t.Context(), "s", nil))(t)
	say(t, s, "> new", "answer")
	say(t, s, "> newer", "answer")
	before := b.IO()
	r.Start(t.Context(), st)
	testutil.OK(t, r.Close(t.Context()))
	same(t, "prompts", recalled(t, path), "newer|new")
	if io := b.IO().Sub(before); io.Get != 1 || io.List+io.Stat+io.Put != 0 {
		t.Errorf("it asked %+v", io)
	}
}

// Both lines of a lost race are noted, whichever way the loser keeps its turn.
func TestRecorderKeepsBoth(t *testing.T) {
	t.Parallel()
	for _, keep := range []bool{true, false} {
		b := memory.New()
		path := filepath.Join(t.TempDir(), "h.db")
		r := patient(NewRecorderAt(path))
		other := storeOn(t, b, coppice.Hooks{})
		winner := create(t, other, "s", "/a", "> base")
		st, end := recorded(t, b, r)
		loser := testutil.Must(st.Open(t.Context(), "s", &coppice.SessionOptions{KeepBoth: keep}))(t)
		say(t, winner, "> the winner's")
		if keep {
			say(t, loser, "> the loser's")
		} else {
			testutil.Must(loser.Append(t.Context(), entry.User("the loser's")))(t)
			if _, err := loser.Commit(t.Context(), coppice.Turn{}); !errors.Is(err, coppice.ErrConflict) {
				t.Fatal(err)
			}
			if rc := testutil.Must(loser.Commit(t.Context(), coppice.Turn{KeepBoth: true}))(t); rc.Kept == "" {
				t.Fatal("nothing was kept")
			}
		}
		end()
		if got := recalled(t, path); !strings.Contains(got, "the loser's") || r.Missed() != 0 {
			t.Errorf("keep both %v: %q, %d missed", keep, got, r.Missed())
		}
	}
}

// Nobody reads the queue: commits go on, the recorder counts what it cannot hold, and Update makes up for it.
func TestQueueOverflow(t *testing.T) {
	t.Parallel()
	x := index(t)
	const most = 3
	r := newRecorder(func(context.Context) (*Index, error) { return x, nil }, most)
	st := store(t, coppice.Hooks{AfterCommit: r.AfterCommit})
	for i := range most + 2 {
		s := create(t, st, fmt.Sprintf("s%03d", i), "/a", "> hello")
		if r.Missed() != max(0, i+1-most) {
			t.Fatalf("session %d: missed %d", i, r.Missed())
		}
		if i == 0 {
			say(t, s, "> hello again") // of a session that waits already
		}
	}
	r.Start(t.Context(), st)
	testutil.OK(t, r.Close(t.Context()))
	testutil.OK(t, r.Close(t.Context()))
	same(t, "taken in", len(find(t, x, "hello", nil)), most+1)
	same(t, "missed", r.Missed(), 2)
	update(t, x, st)
	same(t, "found", len(find(t, x, "hello", nil)), most+3)
	say(t, testutil.Must(st.Open(t.Context(), "s000", nil))(t), "> after the end")
	same(t, "a commit after Close", r.Missed(), 3)
}

// A recorder that is told to stop at once does, and says what is missing; so does one that was never started.
func TestRecorderStops(t *testing.T) {
	t.Parallel()
	x := index(t)
	r, never := NewRecorder(x), NewRecorder(x)
	st := store(t, coppice.Hooks{AfterCommit: func(s *coppice.Session, rc coppice.Receipt) {
		r.AfterCommit(s, rc)
		never.AfterCommit(s, rc)
	}})
	s := create(t, st, "s", "/a", "> hello")
	say(t, s, "> again")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	r.Start(ctx, st)
	_ = r.Close(ctx)
	same(t, "missed", r.Missed(), 2)
	testutil.OK(t, never.Close(t.Context()))
	same(t, "missed by one that was not started", never.Missed(), 2)
	never.Start(t.Context(), st) // does nothing any more
	idle := NewRecorderAt(filepath.Join(t.TempDir(), "h.db"))
	idle.Start(t.Context(), st)
	testutil.OK(t, idle.Close(t.Context()))
}

// An index that is locked, damaged, full or nowhere to be made stops no turn and no closing: the commits are
// counted, what was there stays as it was, and Update makes up for it.
func TestRecorderWithoutAnIndex(t *testing.T) {
	t.Parallel()
	for name, spoil := range map[string]func(t *testing.T, path string) (undo func()){
		"locked": func(t *testing.T, path string) func() {
			testutil.OK(t, testutil.Must(Open(t.Context(), path))(t).Close())
			db := testutil.Must(sql.Open("sqlite", path))(t)
			conn := testutil.Must(db.Conn(t.Context()))(t)
			testutil.Must(conn.ExecContext(t.Context(), "BEGIN EXCLUSIVE"))(t)
			return func() { testutil.OK(t, errors.Join(conn.Close(), db.Close())) }
		},
		"damaged": func(t *testing.T, path string) func() {
			garbage := []byte(strings.Repeat("precious, and no database ", 500))
			testutil.OK(t, os.WriteFile(path, garbage, 0o600))
			return func() { same(t, "the file", string(testutil.Must(os.ReadFile(path))(t)), string(garbage)) }
		},
		"no folder": func(t *testing.T, path string) func() {
			testutil.OK(t, os.WriteFile(filepath.Dir(path), nil, 0o600))
			return func() { testutil.OK(t, os.Remove(filepath.Dir(path))) }
		},
		"full": func(t *testing.T, path string) func() {
			x := testutil.Must(Open(t.Context(), path))(t)
			testutil.Must(
				x.db.Exec("CREATE TRIGGER full BEFORE INSERT ON prompt BEGIN SELECT RAISE(ROLLBACK, 'no room'); END"))(t)
			return func() {
				testutil.Must(x.db.Exec("DROP TRIGGER full"))(t)
				testutil.OK(t, x.Close())
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			path := filepath.Join(dir, "h", "h.db")
			if name != "no folder" {
				testutil.OK(t, os.Mkdir(filepath.Dir(path), 0o700))
			}
			undo := spoil(t, path)
			b := memory.New()
			r := patient(NewRecorderAt(path))
			st, end := recorded(t, b, r)
			s := create(t, st, "s", "/a", "> one")
			for i := range 5 {
				say(t, s, fmt.Sprint("> prompt ", i))
			}
			end() // while the file is still locked
			same(t, "missed", r.Missed(), 6)
			undo()
			st = storeOn(t, b, coppice.Hooks{})
			x := reopen(t, path)
			update(t, x, st)
			same(t, "prompts after an update", texts(t, x), "prompt 4|prompt 3|prompt 2|prompt 1|prompt 0|one")
		})
	}
}

// How long a recorder waits for another process that writes is what SQLite was asked for; it is a small part of what
// the closing of a store may take, and of what Open waits.
func TestRecorderWaitsBriefly(t *testing.T) {
	t.Parallel()
	r := NewRecorderAt(filepath.Join(t.TempDir(), "h.db"))
	x := testutil.Must(r.index(t.Context()))(t)
	defer func() { testutil.OK(t, x.Close()) }()
	var wait time.Duration
	testutil.OK(t, x.db.QueryRow("PRAGMA busy_timeout").Scan(&wait))
	if wait *= time.Millisecond; wait != recordWait || wait > closeWithin/10 || wait > waitMost/10 {
		t.Errorf("it waits for %v", wait)
	}
}

// The closing of a store does not wait for an index that does not answer: what it did not come to is counted.
func TestClosingEnds(t *testing.T) {
	t.Parallel()
	r := newRecorder(func(ctx context.Context) (*Index, error) {
		<-ctx.Done()
		return nil, ctx.Err()
	}, queueMost)
	r.within = 0
	st, end := recorded(t, memory.New(), r)
	s := create(t, st, "s", "/a", "> one")
	say(t, s, "> two")
	end()
	same(t, "missed", r.Missed(), 2)
}

// What was recorded of a past that is no more is dropped by the next update, wherever that past ended.
func TestRecordedAndPutBack(t *testing.T) {
	t.Parallel()
	now, seed := clock(), byte(0)
	storeOn := func(t *testing.T, b backend.Backend, h coppice.Hooks) *coppice.Store {
		seed++ // ids never repeat
		st := testutil.Must(
			coppice.New(b, &coppice.Options{Now: now, Rand: rand.NewChaCha8([32]byte{seed}), Hooks: h}))(t)
		t.Cleanup(func() { _ = st.Close() })
		return st
	}
	for _, known := range []bool{false, true} {
		b := memory.NewAppender()
		st := storeOn(t, b, coppice.Hooks{})
		create(t, st, "s", "/a", "> kept")
		path := filepath.Join(t.TempDir(), "h.db")
		x := reopen(t, path)
		if known {
			update(t, x, st)
		}
		testutil.OK(t, st.Close())
		old := copyOf(t, b)
		r := patient(NewRecorder(x))
		st = storeOn(t, b, r.Hooks(coppice.Hooks{}))
		say(t, testutil.Must(st.Open(t.Context(), "s", nil))(t), "> lost one", "answer", "> lost two")
		testutil.OK(t, st.Close())
		same(t, "recorded", texts(t, x), map[bool]string{true: "lost two|lost one|kept", false: "lost two|lost one"}[known])
		back := storeOn(t, old, coppice.Hooks{})
		fresh := index(t)
		update(t, x, back)
		update(t, fresh, back)
		same(t, "the index", dump(t, x), dump(t, fresh))
		say(t, testutil.Must(back.Open(t.Context(), "s", nil))(t), "> another")
		update(t, x, back)
		same(t, "prompts", texts(t, x), "another|kept")
	}
}

// copyOf copies a store in memory.
func copyOf(t testing.TB, b backend.Backend) backend.Backend {
	t.Helper()
	to := memory.NewAppender()
	for info, err := range b.List(t.Context(), backend.ListOptions{}) {
		testutil.OK(t, err)
		p, _, err := b.Get(t.Context(), info.Key, backend.Range{})
		testutil.OK(t, err)
		testutil.Must(to.Put(t.Context(), info.Key, p, backend.Cond{}))(t)
	}
	return to
}
