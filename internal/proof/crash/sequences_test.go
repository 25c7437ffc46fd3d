package crash

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/coppice-go/coppice"
	"github.com/coppice-go/coppice/backend"
	"github.com/coppice-go/coppice/entry"
	"github.com/coppice-go/coppice/internal/gc"
	"github.com/coppice-go/coppice/internal/journal"
	"github.com/coppice-go/coppice/internal/proof"
	"github.com/coppice-go/coppice/internal/vfs/vfstest"
)

// user makes calls on a session, one after another.
type user struct {
	*World
	h    *coppice.Session
	root string // the first entry
	made int    // branches
}

// alphabet are the public operations in sequences.
var alphabet = []struct {
	name string
	do   func(ctx context.Context, u *user) error
}{
	{"turn", func(ctx context.Context, u *user) error { return u.Live(ctx, u.h, 20) }},
	{"append", func(ctx context.Context, u *user) error {
		_, err := u.h.Append(ctx, entry.Message(map[string]string{"role": "user", "content": "x"}))
		if err != nil {
			return err
		}
		return u.Receipt(u.h.Commit(ctx, coppice.Turn{Reason: "append"}))
	}},
	{"branch", func(ctx context.Context, u *user) error {
		u.made++
		return u.Receipt(u.h.Branch(ctx, u.root, &coppice.BranchOptions{Name: fmt.Sprintf("b%d", u.made)}))
	}},
	{"switch", func(ctx context.Context, u *user) error {
		return u.Receipt(u.h.Switch(ctx, "main"))
	}},
	{"rollback", func(ctx context.Context, u *user) error {
		var first coppice.Target
		if err := first.UnmarshalText([]byte("seq:0")); err != nil {
			return err
		}
		return u.Receipt(u.h.Rollback(ctx, first))
	}},
	{"snapshot", func(ctx context.Context, u *user) error {
		info, err := u.h.Snapshot(ctx, "")
		if err == nil {
			u.Told.Snapshots = append(slices.Clip(u.Told.Snapshots), info.ID)
		}
		return err
	}},
	{"label", func(ctx context.Context, u *user) error {
		return u.Receipt(u.h.Label(ctx, u.root, "here"))
	}},
	{"claim", func(ctx context.Context, u *user) error { return u.Receipt(u.h.Claim(ctx)) }},
	{"tidy", func(ctx context.Context, u *user) error {
		j, err := journal.Open(ctx, u.Config())
		if err == nil {
			err = j.Tidy(ctx)
		}
		return err
	}},
	{"collect", func(ctx context.Context, u *user) error {
		_, err := gc.Run(ctx, u.Config(), false)
		return err
	}},
	{"reopen", func(ctx context.Context, u *user) error {
		err := u.h.Close()
		if err != nil {
			return err
		}
		h, err := u.Open()
		if err == nil { // a deleted session has none: the closed handle stays, and refuses
			u.h = h
		}
		return err
	}},
	{"rival", func(ctx context.Context, u *user) error {
		other, err := u.opened(ctx, nil)
		if err == nil {
			err = other.turn(ctx, 20)
		}
		return err
	}},
	{"look", func(ctx context.Context, u *user) error { return u.look(ctx) }},
	{"cancel", func(ctx context.Context, u *user) error {
		u.made++
		err := u.watch.cancelled(ctx, u.made%4, func(ctx context.Context) error { return u.Live(ctx, u.h, 20) })
		if errors.Is(err, journal.ErrUnknown) {
			err = u.Receipt(u.h.Settle(ctx, ""))
		}
		if errors.Is(err, context.Canceled) || errors.Is(err, backend.ErrBusy) { // the entry is in the buffer
			err = u.Receipt(u.h.Commit(ctx, coppice.Turn{}))
		}
		return err
	}},
	{"group", func(ctx context.Context, u *user) error { return u.Group(ctx, u.h, 2) }},
	{"delete", func(ctx context.Context, u *user) error {
		u.Told.Deleting = true
		err := journal.Delete(ctx, u.Config())
		u.Told.Deleted = err == nil
		return err
	}},
}

// look is two processes that commit nothing: one that could, and one that may not.
func (u *user) look(ctx context.Context) error {
	j, err := journal.Open(ctx, u.Config())
	commit := ""
	if err == nil {
		commit = j.State().Summary.Commit
	}
	for _, readOnly := range []bool{false, true} {
		if err := u.Peek(ctx, readOnly, commit); err != nil {
			return err
		}
	}
	return nil
}

// step does one operation. One that conflicts with a rival is kept as a branch; on a deleted session only operations
// without an effect succeed.
func (u *user) step(ctx context.Context, op int) error {
	commits := u.Told.Commits
	err := alphabet[op].do(ctx, u)
	switch {
	case u.Told.Deleted && u.Told.Commits > commits:
		return fmt.Errorf("%s: a commit to a deleted session was acknowledged", alphabet[op].name)
	case u.Told.Deleted:
		return nil
	case errors.Is(err, journal.ErrConflict), errors.Is(err, journal.ErrFenced):
		err = u.keep(ctx)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", alphabet[op].name, err)
	}
	return nil
}

// keep stores the buffer as a branch, and moves to the newest state.
func (u *user) keep(ctx context.Context) error {
	if err := u.Receipt(u.h.Commit(ctx, coppice.Turn{KeepBoth: true})); err != nil {
		return err
	}
	return u.h.Reload(ctx)
}

// sequence returns the operations of sequence number n, the shortest first, so that a sequence follows its prefixes.
func sequence(n int) []int {
	size, count := 1, len(alphabet)
	for n >= count {
		n -= count
		size, count = size+1, count*len(alphabet)
	}
	ops := make([]int, size)
	for i := range ops {
		ops[size-1-i], n = n%len(alphabet), n/len(alphabet)
	}
	return ops
}

func named(ops []int) string {
	var words []string
	for _, op := range ops {
		words = append(words, alphabet[op].name)
	}
	return strings.Join(words, ", ")
}

// run plays a sequence; the moments are those of its last operation, since the others end shorter sequences.
func (u *user) run(ctx context.Context, ops []int) ([]Moment, *History, error) {
	base := Scenario{Before: 2}
	err := base.Begin(ctx, u.World)
	if err == nil {
		u.h, err = u.Open()
	}
	var h *History
	if err == nil {
		u.root = u.h.Head().Entry
		h, err = u.History(ctx)
	}
	if err != nil {
		return nil, nil, err
	}
	var moments []Moment
	for i, op := range ops {
		if alphabet[op].name == "delete" && !u.Told.Deleting { // afterwards it cannot be read
			if h, err = u.History(ctx); err != nil {
				return nil, nil, err
			}
		}
		step := func() error { return u.step(ctx, op) }
		if i == len(ops)-1 {
			moments, err = u.Track(step)
		} else {
			err = step()
		}
		if err != nil {
			return nil, nil, fmt.Errorf("step %d, %w", i, err)
		}
	}
	if !u.Told.Deleting {
		if h, err = u.History(ctx); err == nil {
			err = h.Keeps(u.given, u.refused)
		}
	}
	return moments, h, err
}

// Power is lost in every sequence of up to three operations, before every change of the last one, with the extreme
// states that it may leave.
func TestProofSequences(t *testing.T) {
	defer debug.SetGCPercent(debug.SetGCPercent(400))
	r := proof.Begin(t, "sequences")
	jobs := 0
	for size, count := 1, len(alphabet); size <= proof.Pick(t, 2, 3, 4); size, count = size+1, count*len(alphabet) {
		jobs += count
	}
	var blank sync.Map
	plan := Plan{
		First:  vfstest.Spread{Contents: 10, States: proof.Pick(t, 2, 5, 100)},
		Second: vfstest.Spread{Contents: 3, States: proof.Pick(t, 1, 2, 8)},
		Every:  proof.Pick(t, 8, 24, 4), Kill: proof.Pick(t, 8, 8, 1), Verify: 32,
	}
	stride := proof.Pick(t, 4, 1, 1)
	each(r, (jobs+stride-1)/stride, func(job int) {
		job *= stride
		ops := sequence(job)
		where := "sequence " + named(ops)
		lim := journal.Limits{RollEntries: []int{6, 16384}[job%2], PublishCommits: []int{1, 64, 2}[job%3], Keyframe: 4, WholeDoc: 8, Attempts: 4}
		u := &user{World: NewWorld(vfstest.NewCrashFS(), uint64(job), lim)}
		u.watch = &watch{}
		moments, h, err := u.run(t.Context(), ops)
		if err != nil {
			r.Violation("%s: without a crash: %v", where, err)
			return
		}
		x := NewExplorer(lim, where, plan, &blank, r.Violation)
		x.Explore(t.Context(), moments, h)
		x.Report(r)
	})
}
