package coppice

import (
	"context"
	"errors"
	"iter"

	"github.com/coppice-go/coppice/checkpoint"
	"github.com/coppice-go/coppice/internal/listing"
)

// List yields sessions, newest activity first. It costs one listing, and one read of at most 4 KiB for
// each session that is looked at; on a store that tells times to the second, also for those of the same
// second. After is the last id of the page before; one that is not there is an error. A session whose
// summary cannot be read is listed with its id and its last activity alone: opening it says why. Results
// come as they are read, sixteen ahead; Progress says how far that is.
func (s *Store) List(ctx context.Context, o ListOptions) iter.Seq2[checkpoint.Summary, error] {
	return func(yield func(checkpoint.Summary, error) bool) {
		if o.Limit < 0 {
			yield(checkpoint.Summary{}, fail("list", "", errors.New("negative limit")))
			return
		}
		for sum, err := range listing.Sessions(ctx, s.b, listing.Options(o)) {
			if !yield(sum, fail("list", "", err)) {
				return
			}
		}
	}
}
