package coppice

import (
	"context"
	"encoding/json"
	"iter"

	"github.com/coppice-go/coppice/internal/rawjson"
)

// Partial says what the assistant has streamed of its answer so far, as any JSON of at most 256 KiB without white space
// (backend.ErrTooLarge); it replaces what was there. nil or null clears it. It is in memory: WatchPartial yields it, on
// any handle of this session that was opened on the same Store, read-only or not. It is not an entry, and no context
// contains it.
//
// The next turn ends it: a Commit clears what was set before the call, once it is acknowledged. So does every commit
// that moves the head: Branch, Switch, Edit and Rollback, and at PerAppend an Append. Reload and Close forget what this
// handle set. Claim leaves it as it is; Claim and Rebase clear it if they store the turn that was to end it.
//
// With SessionOptions.PartialEvery it is also written: by the first call that comes PartialEvery after the first one of
// the answer, or after the last write, in the background. Close waits for a write on its way, and so does a turn, which
// ends what it wrote. It is a commit with the reason "partial", which makes no entry durable, not even pending ones: to
// have the question survive as well, commit it before. It moves no head, and other writers' turns do not conflict with
// it. The next turn takes it out of the document again, in the same commit. A write that fails, or that meets another
// writer's turn or claim, is dropped, and the next turn gets no other answer for it. A session that does not exist yet
// begins with a turn: nothing is written before.
//
// Partial does no I/O itself, but for one case: clearing what is durable is a commit, which Partial waits for, with any
// PartialEvery. On an error of that commit it is cleared in memory all the same.
func (s *Session) Partial(ctx context.Context, p json.RawMessage) error {
	return s.fail("partial", s.h.Partial(ctx, p))
}

// Interrupted returns the partial output that was durable at the last acknowledged commit; nil = none. After Open,
// which has read it already, it is the answer that another process was streaming when it stopped, unless it still runs:
// Claim keeps it from committing. The next turn ends it; Partial(ctx, nil) does without one. It must not be changed.
func (s *Session) Interrupted() json.RawMessage { return rawjson.ValidText(s.h.State().Doc.Partial) }

// WatchPartial yields what Watch yields, and partial output (Session.Partial): a Change without a commit, whose Partial
// is the newest, or nil once there is none any more. What is set through any handle of the same Store comes at once;
// what another process sets comes when it is durable. There is no queue: who is slow gets the newest. A commit that
// ended partial output comes before the Change that says so.
func (s *Session) WatchPartial(ctx context.Context, after uint64) iter.Seq2[Change, error] {
	return func(yield func(Change, error) bool) {
		s.watch(ctx, after, yield, func(p json.RawMessage) bool { return yield(Change{Partial: p}, nil) })
	}
}
