package lifecycle_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/coppice-go/coppice"
	"github.com/coppice-go/coppice/backend"
	"github.com/coppice-go/coppice/backend/local"
	"github.com/coppice-go/coppice/entry"
	"github.com/coppice-go/coppice/internal/testutil"
	"github.com/coppice-go/coppice/internal/vfs"
	"github.com/coppice-go/coppice/internal/vfs/vfstest"
)

// process returns the store on a disk as a new process opens it: processes share only the disk. Equal names result in
// equal ids, so no two processes of a test have the same name.
func process(t testing.TB, disk vfs.FS, name string) *coppice.Store {
	t.Helper()
	b := must(local.Open("", &local.Options{FS: disk}))(t)
	return processOn(t, b, name)
}

// processOn is process for any backend.
func processOn(t testing.TB, b backend.Backend, name string) *coppice.Store {
	t.Helper()
	var seed [32]byte
	copy(seed[:], name)
	now := clockAt(time.Date(2026, 11, 20, 11, 0, 0, 0, time.UTC))
	s := newStore(t, b, &coppice.Options{Writer: name, Now: now, Rand: rand.NewChaCha8(seed)})
	setSleep(s, func(ctx context.Context) error { return ctx.Err() })
	return s
}

// firstTurn returns a disk with a session of one turn, closed.
func firstTurn(t testing.TB) *vfstest.CrashFS {
	t.Helper()
	testutil.SkipLong(t) // each image of the disk is tried
	disk := vfstest.NewCrashFS()
	s := create(t, process(t, disk, "first"), "s", nil)
	say(t, s, "u1", "a1")
	commit(t, s, state{Turns: 1})
	ok(t, s.Close())
	return disk
}

// opensAndCloses is a process that reads the session and commits nothing.
func opensAndCloses(t testing.TB, disk vfs.FS) {
	t.Helper()
	s := open(t, process(t, disk, "reader"), "s")
	texts(t, s)
	ok(t, s.Close())
}

// turnThree is a process that commits a turn, which is acknowledged. It is not closed.
func turnThree(t testing.TB, disk vfs.FS) *coppice.Session {
	t.Helper()
	s := open(t, process(t, disk, "three"), "s")
	say(t, s, "u3")
	commit(t, s, state{Turns: 3})
	return s
}

// powerIsLost restarts the disk in many of the states that a power loss may leave, and lets a next process continue in
// each: everything acknowledged exists, the next turn is committed, and it stays.
func powerIsLost(t *testing.T, when string, disk *vfstest.CrashFS, acked string, turns int) {
	t.Helper()
	n, failed := 0, 0
	var first error
	for img := range disk.Point().States(vfstest.Spread{Contents: 200, States: 200}, 1) {
		n++
		if err := goesOn(t, vfstest.Boot(img), acked, turns); err != nil {
			failed++
			first = cmp.Or(first, err)
		}
	}
	if failed > 0 {
		t.Errorf("power loss %s: %d of %d images fail, the first with: %v", when, failed, n, first)
	}
	if n == 0 {
		t.Errorf("power loss %s: no image", when)
	}
}

// goesOn opens the session after a crash, commits a turn, and reads it with another process. Verify finds no damage.
func goesOn(t *testing.T, disk vfs.FS, acked string, turns int) error {
	s, err := process(t, disk, "next").Open(bg, "s", nil)
	if err != nil {
		return err
	}
	said, state, err := heard(s)
	if err == nil && (!containsInOrder(said, acked) || state.Turns < turns) {
		err = fmt.Errorf("it holds %q and %+v, acknowledged was %q and turn %d", said, state, acked, turns)
	}
	if err != nil {
		return err
	}
	if _, err = s.Append(bg, entry.User("next")); err == nil {
		_, err = s.Commit(bg, coppice.Turn{State: map[string]int{"turns": 9}})
	}
	if err != nil {
		return fmt.Errorf("the next turn: %w", err)
	}
	if err := s.Close(); err != nil {
		return err
	}
	again, err := process(t, disk, "again").Open(bg, "s", nil)
	if err != nil {
		return fmt.Errorf("after the next turn: %w", err)
	}
	now, state, err := heard(again)
	if err == nil && (now != said+" next" || state.Turns != 9) {
		err = fmt.Errorf("after the next turn it holds %q and %+v", now, state)
	}
	if err := errors.Join(err, again.Close()); err != nil {
		return err
	}
	report, err := process(t, disk, "verify").Verify(bg, "s", true)
	for _, p := range report.Problems {
		if errors.Is(p, coppice.ErrCorrupt) {
			err = errors.Join(err, p)
		}
	}
	return err
}

// heard returns the texts of the context, and the state.
func heard(s *coppice.Session) (string, state, error) {
	c, err := s.Context(bg)
	var said []string
	for _, m := range c.Messages {
		said = append(said, m.Text())
	}
	var v state
	err = errors.Join(err, s.State(&v))
	return strings.Join(said, " "), v, err
}

// containsInOrder reports whether said contains all words of acked, in order.
func containsInOrder(said, acked string) bool {
	want := strings.Fields(acked)
	for word := range strings.FieldsSeq(said) {
		if len(want) > 0 && word == want[0] {
			want = want[1:]
		}
	}
	return len(want) == 0
}

// "What Commit acknowledged is in the history of every later head, on every host, after kill -9, power loss, a full
// disk or a lost answer." A writer's fdatasync fails with EIO, its commit is in doubt, and it dies. Its bytes can still
// be read, but are not on the disk. A process that only opens and closes the session does not change that for the next
// writer, whose acknowledged turn survives power loss.
func TestFailedSyncThenOpenAndClose(t *testing.T) {
	disk := firstTurn(t)
	losesItsSync(t, disk, coppice.Turn{State: state{Turns: 2}})
	takesTheNextTurn(t, disk)
}

// losesItsSync commits a turn whose sync of the log fails: the commit is in doubt, and the process dies.
func losesItsSync(t *testing.T, disk *vfstest.CrashFS, turn coppice.Turn) {
	t.Helper()
	doubtful := func(disk vfs.FS) error {
		s := open(t, process(t, disk, "two"), "s")
		say(t, s, "u2")
		_, err := s.Commit(bg, turn)
		return err
	}
	rehearsal := vfstest.NewFaultFS(disk.Point().Fork())
	ok(t, doubtful(rehearsal))
	at := -1
	for n, c := range rehearsal.Calls() {
		if strings.HasPrefix(c.Name, "fdatasync sessions/s/transcript/") {
			at = n
		}
	}
	if at < 0 {
		t.Fatalf("no sync of the log in %v", rehearsal.Calls())
	}
	err := doubtful(vfstest.NewFaultFS(disk, vfstest.Fault{At: at, Kind: vfstest.Lose, Errno: syscall.EIO}))
	if !errors.Is(err, coppice.ErrCommitUnknown) || !errors.Is(err, syscall.EIO) {
		t.Fatalf("commit: %v", err)
	}
}

// takesTheNextTurn opens and closes the session, and commits one more turn; power may be lost after each step.
func takesTheNextTurn(t *testing.T, disk *vfstest.CrashFS) {
	t.Helper()
	opensAndCloses(t, disk)
	powerIsLost(t, "after Open and Close", disk, "u1 a1", 1)
	s := turnThree(t, disk)
	powerIsLost(t, "after the acknowledged turn", disk, "u1 a1 u3", 3)
	ok(t, s.Close())
	powerIsLost(t, "after its writer closed", disk, "u1 a1 u3", 3)
}

// "What Commit acknowledged is in the history of every later head ... after kill -9, power loss": a writer is killed
// between the write of its turn and the fdatasync, another process opens and closes the session, and power is lost,
// before or after one more turn is acknowledged. The session accepts the next turn in every possible state of the disk.
func TestKilledBeforeTheSyncThenOpenAndClose(t *testing.T) {
	disk := firstTurn(t)
	var killed []*vfstest.Point
	disk.Watch(func(op vfstest.Op, at *vfstest.Point) {
		if op.Kind == "sync" && strings.HasPrefix(op.Name, "sessions/s/transcript/") {
			killed = append(killed, at)
		}
	})
	s := open(t, process(t, disk, "two"), "s")
	say(t, s, "u2", "a2 "+strings.Repeat("x", 1500))
	commit(t, s, state{Turns: 2})
	disk.Watch(nil)
	same(t, "syncs of the turn", len(killed), 1)

	takesTheNextTurn(t, killed[0].Fork())
}

// A receipt names only a commit that survives power loss, also the receipt of a move that has no effect. A writer is
// killed between the write of its turn and the fdatasync; the next process reads that turn, and Switch returns a
// receipt of it.
func TestMoveToWhereTheHeadIsConfirmsIt(t *testing.T) {
	disk := firstTurn(t)
	var killed []*vfstest.Point
	disk.Watch(func(op vfstest.Op, at *vfstest.Point) {
		if op.Kind == "sync" && strings.HasPrefix(op.Name, "sessions/s/transcript/") {
			killed = append(killed, at)
		}
	})
	s := open(t, process(t, disk, "two"), "s")
	say(t, s, "u2")
	second := commit(t, s, state{Turns: 2})
	disk.Watch(nil)

	disk = killed[0].Fork()
	s = open(t, process(t, disk, "three"), "s")
	moved := must(s.Switch(bg, "main"))(t)
	same(t, "receipt", moved.Head, second.Head)
	powerIsLost(t, "after the receipt of Switch", disk, "u1 a1 u2", 2)
	ok(t, s.Close())
}

// The receipt of a repeat names only a commit that survives power loss: the first writer's sync failed, and the turn is
// synced before it is acknowledged to another handle, whether that handle had read it before or finds it in the log.
func TestRepeatIsConfirmed(t *testing.T) {
	turn := coppice.Turn{State: state{Turns: 2}, Key: "k"}
	for name, behind := range map[string]bool{"opened before": true, "opened after": false} {
		t.Run(name, func(t *testing.T) {
			disk := firstTurn(t)
			store := process(t, disk, "three")
			s := open(t, store, "s")
			losesItsSync(t, disk, turn)
			if !behind {
				s = open(t, store, "s")
			}
			say(t, s, "u2")
			r := must(s.Commit(bg, turn))(t)
			same(t, "repeated", r.Repeated, true)
			powerIsLost(t, "after the receipt of the repeat", disk, "u1 a1 u2", 2)
		})
	}
}
