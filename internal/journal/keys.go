package journal

import (
	"context"
	"errors"
	"fmt"

	"github.com/coppice-go/coppice/checkpoint"
	"github.com/coppice-go/coppice/internal/journal/state"
	"github.com/coppice-go/coppice/internal/journal/store"
)

// keyed is the commit that an idempotency key was applied with.
type keyed struct {
	commit checkpoint.Commit
	line   uint64 // its ordinal
	kept   string // the branch that has a turn that lost, or the line that a move left
}

func (k *keyed) result(st *state.State, pending int) Result {
	return Result{Commit: k.commit, State: st, Kept: k.kept, Repeated: true, Pending: pending, Line: k.line}
}

// lookUp looks for the key of a turn in the history of st. A key that is not known costs no read; one that may be is
// looked for in its commit line, which holds it whole, with the digest of its turn.
func (j *Journal) lookUp(ctx context.Context, st *state.State, t *turn) error {
	t.known = nil
	for _, ref := range st.KeyRefs(t.step.Key) {
		rec, err := j.keyedCommit(ctx, st, ref)
		if err != nil {
			return fmt.Errorf("find the idempotency key in commit %d: %w", ref.Seq, err)
		}
		if rec.Key != t.step.Key {
			continue // of the same hash
		}
		if rec.Digest != "" && t.step.Digest != "" && rec.Digest != t.step.Digest {
			t.lost = j.notApplied("commit", ErrKeyReused)
			return nil
		}
		t.known = &keyed{commit: rec.Commit(), line: ref.Ord, kept: rec.Kept}
		return nil
	}
	return nil
}

// Keyed returns the result of the commit that an idempotency key was applied with, in what the handle knows of the
// session; false: of none. It is for moves, which read the session before they make a step.
func (j *Journal) Keyed(ctx context.Context, key, digest string) (r Result, known bool, err error) {
	st, t := j.State(), newTurn(ctx, &Step{Key: key, Digest: digest})
	if err := j.lookUp(ctx, st, t); err != nil || t.lost != nil || t.known == nil {
		return Result{}, false, errors.Join(err, t.lost)
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	return t.known.result(st, len(j.waitingEntries())), true, nil
}

func (j *Journal) keyedCommit(ctx context.Context, st *state.State, ref checkpoint.KeyRef) (checkpoint.Record, error) {
	if ref.Ord != 0 {
		rec, err := j.past.RecordAt(ctx, st, ref.Ord)
		if err != nil || rec.Seq == ref.Seq {
			return rec, err
		}
		return rec, store.Corrupt("", 0, fmt.Errorf("line %d belongs to commit %d", ref.Ord, rec.Seq))
	}
	return j.past.Record(ctx, st, ref.Seq)
}
