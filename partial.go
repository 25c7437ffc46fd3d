package coppice

import (
	"context"
	"encoding/json"
	"iter"
)

// Partial sets what the assistant has streamed of its answer so far, any JSON of at most 256 KiB without white space
// (backend.ErrTooLarge). It replaces what was there; nil or null clears it. It is in memory alone, is not an entry, and
// is in no context: WatchPartial yields it, on any handle of this session that was opened on the same Store, read-only
// or not. Partial does no I/O.
//
// The next turn ends it: a Commit clears what was set before the call, once it is acknowledged. So does every commit
// that moves the head: Branch, Switch, Edit and Rollback, and a Claim. Reload and Close
// forget what this handle set.
func (s *Session) Partial(ctx context.Context, p json.RawMessage) error {
	return s.fail("partial", s.h.Partial(ctx, p))
}

// WatchPartial yields what Watch yields, and partial output (Session.Partial): a Change without a commit, whose Partial
// is the newest, or nil once there is none any more. It is what handles of the same Store set. There is no queue: a
// slow caller gets the newest. A commit that ended partial output comes before the Change that says so.
func (s *Session) WatchPartial(ctx context.Context, after uint64) iter.Seq2[Change, error] {
	return func(yield func(Change, error) bool) {
		s.watch(ctx, after, yield, func(p json.RawMessage) bool { return yield(Change{Partial: p}, nil) })
	}
}
