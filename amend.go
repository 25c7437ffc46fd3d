package coppice

import (
	"context"

	"github.com/coppice-go/coppice/transcript"
)

// Amend replaces what an entry says, by its id or a unique prefix: Body of d, in a commit of its own (reason "amend").
// Not a byte of the entry changes. An amendment is an annotation, as a label is: the head stays, and it applies on
// every branch from its commit on. Context, Entry, Entries, Path, Tree and what is exported to other formats have the
// newest amendment's text under the entry's id, with AmendedBy set; views of earlier commits have the earlier text,
// and Originals has what was appended. Going back does not take an amendment back: on the branch that Rollback makes
// it applies as well.
//
// d has the type of the entry; its id, parent and time do not count. A draft without type and body takes back what
// earlier amendments said, and shows an entry again that was hidden. An entry that says what d says already is left
// alone: the receipt has no entries. Of several amendments the newest counts, whichever host committed it.
//
// What can be amended: messages (results of tools too), custom messages, summaries of branches and compactions, and
// custom entries that are not coppice's own. Of a compaction the text may change, but not what it keeps. Everything
// else is transcript.ErrNotAmendable. An entry that is not committed is ErrUncommitted.
func (s *Session) Amend(
	ctx context.Context, entry string, d transcript.Draft, opts ...MoveOption,
) (Receipt, error) {
	r, err := s.h.Amend(ctx, optionsOf(opts), entry, &d)
	return s.receipt("amend", r, err)
}

// Hide leaves an entry out of contexts, paths, trees and exports to other formats, by an amendment. What grows from it
// stays. A later Amend shows it again. A call whose result is hidden has none: hide both. A compaction cannot be
// hidden.
func (s *Session) Hide(ctx context.Context, entry string, opts ...MoveOption) (Receipt, error) {
	r, err := s.h.Amend(ctx, optionsOf(opts), entry, nil)
	return s.receipt("hide", r, err)
}
