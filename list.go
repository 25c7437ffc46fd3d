package coppice

import (
	"context"
	"errors"
	"iter"

	"github.com/coppice-go/coppice/checkpoint"
	"github.com/coppice-go/coppice/internal/journal"
	"github.com/coppice-go/coppice/internal/listing"
)

// List yields sessions, newest activity first, by the time that their summaries show. It costs two listings side by
// side, of checkpoints and of session folders, and one read of at most 4 KiB for each session that is looked at:
// those that were written later than the last result, among them old ones that were imported or moved since. After is
// the last id of the previous page; an unknown id is an error, and a page reads again what the pages before it had.
//
// A session is there as long as its checkpoint or a segment is. One without a checkpoint costs one listing more, and
// on a disk its log is read. A session whose summary cannot be read or rebuilt is listed with only its id and its
// last activity (Head.Commit is ""): opening it returns the reason. Results are yielded as they are read, sixteen
// ahead; Progress receives the counts.
func (s *Store) List(ctx context.Context, o ListOptions) iter.Seq2[checkpoint.Summary, error] {
	return func(yield func(checkpoint.Summary, error) bool) {
		if o.Limit < 0 {
			yield(checkpoint.Summary{}, fail("list", "", errors.New("negative limit")))
			return
		}
		for sum, err := range listing.Sessions(ctx, s.b, listing.Options(o), s.rebuilt) {
			if !yield(sum, fail("list", "", err)) {
				return
			}
		}
	}
}

// rebuilt returns the summary of a session without a checkpoint: on a disk the log has all of it.
func (s *Store) rebuilt(ctx context.Context, id string) (checkpoint.Summary, error) {
	h, err := s.session(id, &SessionOptions{ReadOnly: true})
	if err != nil {
		return checkpoint.Summary{}, err
	}
	j, err := journal.Open(ctx, h.config())
	if err != nil {
		return checkpoint.Summary{}, err
	}
	return j.State().Summary, j.Close(ctx)
}
