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

// List yields sessions, newest activity first, by the time that their summaries show. It costs two listings side by
// side, of checkpoints and of session folders, and one read of at most 4 KiB for each session that is looked at:
// those that were written later than the last result, among them old ones that were imported or moved since. After is
// the last id of the previous page; one that is unknown, or was deleted meanwhile, is fs.ErrNotExist, and a page reads
// again what the pages before it had.
//
// A session is there as long as its checkpoint or a segment is. One without a checkpoint costs one listing more, and
// on a disk its log is read. A session whose summary cannot be read or rebuilt is listed with only its id and its
// last activity (Head.Commit is ""): opening it returns the reason. With Docs that goes for one whose checkpoint cannot
// be decoded as a whole, and each session that is yielded, or passed over before After, costs one read of its whole
// checkpoint, beside the short one where Cwd, Parent or Meta choose. A summary, its documents included, is that of the
// newest checkpoint: on a store with a log, commits that came since are not in it until the handle writes the next one
// or is closed. So Summary.First and Preview may still show there what Amend has replaced or Hide has hidden. Results
// are yielded as they are read, sixteen ahead; Progress receives the counts.
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

// rebuilt returns the summary of a session without a checkpoint, and some of its documents: on a disk the log has all
// of it.
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
