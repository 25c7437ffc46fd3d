package coppice

import (
	"context"
	"errors"
	"iter"

	"github.com/coppice-go/coppice/checkpoint"
	"github.com/coppice-go/coppice/internal/journal"
	"github.com/coppice-go/coppice/internal/listing"
	"github.com/coppice-go/coppice/internal/session"
)

// List yields sessions, newest activity first, by the time that their summaries show. A summary, its documents
// included, has every commit that was acknowledged before the call, by whichever handle, and List chooses and orders
// by it. After is the last id of the previous page; one that is unknown, or was deleted meanwhile, is fs.ErrNotExist,
// and a page reads again what the pages before it had.
//
// It costs two listings side by side, of checkpoints and of session folders, and one read of at most 4 KiB for each
// session that is looked at: those that were written later than the last result, among them old ones that were imported
// or moved since. On a store that appends it also costs a listing of the segments of every session, about one for each
// MiB of its log; and for each session that is looked at and whose log has more than its checkpoint, at most three
// reads more: the checkpoint, at most 8 MiB, and twice the end of the log, as Open reads it, which is usually below
// 256 KiB. Those are sessions that a handle has written since its last checkpoint, or that one left behind in a
// crash, and those whose checkpoint an earlier release wrote.
//
// A session is there as long as its checkpoint or a segment is. One without a checkpoint costs one listing more, and
// on a disk its log is read. A session whose summary cannot be read or rebuilt is listed with only its id and its
// last activity (Head.Commit is ""): opening it returns the reason. With Docs that goes for one whose checkpoint cannot
// be decoded as a whole, and each session that is yielded, or passed over before After, costs one read of its whole
// checkpoint, beside the short one where Cwd, Parent or Meta choose. Results are yielded as they are read, sixteen
// ahead; Progress receives the counts.
func (s *Store) List(ctx context.Context, o ListOptions) iter.Seq2[checkpoint.Summary, error] {
	return func(yield func(checkpoint.Summary, error) bool) {
		if o.Limit < 0 {
			yield(checkpoint.Summary{}, fail("list", "", errors.New("negative limit")))
			return
		}
		if len(o.Docs) > checkpoint.MaxDocs {
			err := session.LimitError("documents asked for", checkpoint.MaxDocs, len(o.Docs))
			yield(checkpoint.Summary{}, fail("list", "", err))
			return
		}
		rebuilt := func(ctx context.Context, id string) (checkpoint.Summary, error) {
			return s.rebuilt(ctx, id, o.Docs)
		}
		for sum, err := range listing.Sessions(ctx, s.b, listing.Options(o), rebuilt) {
			if !yield(sum, fail("list", "", err)) {
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
	j, err := journal.Open(ctx, h.config())
	if err != nil {
		return checkpoint.Summary{}, err
	}
	sum := j.State().Summary
	sum.Docs = listing.Chosen(j.State().Doc.Docs, docs)
	return sum, j.Close(ctx)
}
