package coppice

import (
	"context"
	"errors"
	"iter"

	"github.com/coppice-go/coppice/checkpoint"
	"github.com/coppice-go/coppice/internal/journal"
	"github.com/coppice-go/coppice/internal/layout"
	"github.com/coppice-go/coppice/internal/listing"
)

// List yields sessions: newest activity first, or in another Order. A summary, its documents included, has every commit
// that was acknowledged before the call, by whichever handle, and List chooses by it. Activity is the time of the last
// commit, but not later than the store, by its own clock, was written. What is dated over a day after Options.Now, by
// a wrong clock, is behind all others. Where a clock is set back, by up to a day, the commits of a session keep the
// time of the last one before.
//
// ByCreated and ByID are complete while others write: page by page, every session that exists from the first page to
// the last is yielded exactly once. By activity a commit moves its session to the front: one that becomes active
// between two pages is missed by those that follow, or was yielded before, and if all are active no end is certain.
//
// That all holds with Exact, for a store of fewer than 1,000 sessions, and by creation and by id. Else a list by
// activity may be answered from the store's catalogue: it can miss what others created or wrote in the last 30 seconds
// (or twice the time that an exact list takes, if that is more), and Age receives how long that is. Each session is
// looked at before it is yielded, so it is as it is now, and no deleted one is yielded; those that this Store wrote
// are in it at once. An older catalogue is refreshed first, at the cost of an exact list; it is an object of a store
// that only replaces, and elsewhere in Options.ListCache (without one every list is exact). If the store refuses to
// write it, lists are exact. The clocks of hosts that list should agree within seconds.
//
// From the catalogue, the newest n sessions cost two listings that end at their first page (none for a Store that
// found the store large, and on a disk), a read of its head, at most 8 MiB, one of each block, at most 4,096 rows and
// about 4 MiB, that the page begins or ends in, and one read of each session, on a disk two looks. Cwd, Parent and
// Meta choose by its rows, and read only the sessions that fit, or of which only the name is known.
//
// An exact list ByActivity costs two listings at once, of checkpoints and of session folders, and one read of at most
// 4 KiB for each session that is looked at: those that were written later than the last result, among them old ones
// that were imported or moved since, and those of the pages before. ByID lists from After on, in runs of 1,000
// sessions if there is a Limit, and reads the sessions of the page. ByCreated costs two listings and reads every
// session, then those of the page once more; it keeps a name and a time of each. Deleted sessions are read too.
//
// A store that appends remembers what it found out: a session that has not changed since costs two looks (size and time
// of its checkpoint and of its newest segment), and no read. Options.ListCache keeps that for the next program.
//
// There a listing of the segments of every other session is added, about one request for each MiB of its log (ByID and
// ByCreated: of the sessions of the page); and for each session that is looked at and whose log has more than its
// checkpoint, at most three reads: the checkpoint, at most 8 MiB, and twice the end of the log, as Open reads it, which
// is usually below 512 KiB. Those are sessions that a handle has written since its last checkpoint, or that
// one left behind in a crash, and those whose checkpoint an earlier release wrote.
//
// A session is there as long as its checkpoint or a segment is. One without a checkpoint costs one listing more, and on
// a disk its log is read. A session whose summary cannot be read or rebuilt is listed with only its id and its last
// activity (Head.Commit is ""; ByCreated it is the last): opening it returns the reason. With Docs that goes for one
// whose checkpoint cannot be decoded as a whole, and each session that is looked at costs one read of its whole
// checkpoint and the short one where Cwd, Parent or Meta choose. Results are yielded as they are read, sixteen ahead.
func (s *Store) List(ctx context.Context, o ListOptions) iter.Seq2[checkpoint.Summary, error] {
	return func(yield func(checkpoint.Summary, error) bool) {
		if o.Limit < 0 {
			yield(checkpoint.Summary{}, fail("list", "", errors.New("negative limit")))
			return
		}
		if len(o.Docs) > checkpoint.MaxDocs {
			err := layout.TooLarge("documents asked for", checkpoint.MaxDocs, len(o.Docs))
			yield(checkpoint.Summary{}, fail("list", "", err))
			return
		}
		rebuilt := func(ctx context.Context, id string) (checkpoint.Summary, error) {
			return s.rebuilt(ctx, id, o.Docs)
		}
		for sum, err := range s.lists.Sessions(ctx, s.cfg.Backend, listing.Options(o), s.cfg.Now(), rebuilt) {
			if !yield(readableInfo(sum), fail("list", "", err)) {
				return
			}
		}
	}
}

// rebuilt returns the summary of a session, and some of its documents, as the log has them where there is one.
func (s *Store) rebuilt(ctx context.Context, id string, docs []string) (checkpoint.Summary, error) {
	h, err := s.session(id, &SessionOptions{ReadOnly: true})
	if err != nil {
		return checkpoint.Summary{}, err
	}
	j, err := journal.Open(ctx, h.cfg)
	if err != nil {
		return checkpoint.Summary{}, err
	}
	sum := j.State().Summary
	sum.Docs, sum.Missing = listing.Chosen(j.State().Doc.Docs, docs), j.State().Missing
	return sum, j.Close(ctx)
}
