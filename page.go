package coppice

import (
	"context"
	"iter"

	"github.com/coppice-go/coppice/internal/session"
	"github.com/coppice-go/coppice/transcript"
)

// A Page says which entries Session.Page and View.Page return, and in which order. The zero Page is the path to the
// head, root first. Ids may be unique prefixes.
//
//	coppice.Page{Reverse: true, Limit: 50}                  // the newest 50 of the conversation
//	coppice.Page{Reverse: true, Limit: 50, After: oldest}   // the 50 before them
//	coppice.Page{Limit: 50, After: newest}                  // the 50 that follow on the path to the head
//	coppice.Page{All: true, Limit: 50, After: id}           // the next 50 in append order, whatever their branch
type Page struct {
	All     bool   // all entries in append order, pending ones last; false = those on a path
	To      string // the entry at which the path ends; "" = the head; with Reverse, From or After: that entry
	From    string // the first entry to return; "" = the first one in this order
	After   string // the entry before the first one to return, in this order: for the next page the last one seen
	Reverse bool   // the other way round: towards the root, or backwards in append order
	Limit   int    // the most entries to return; 0 = all
}

// Page returns entries from any place in either direction. Its cost depends on what it returns, not on the length of
// the session: it reads a page of up to 512 entries at once, neighbours with one range read, and never more than 4 MiB
// or one entry ahead. As Path, it leaves out entries that are hidden; with All they come as in Entries. It needs the
// tree, which the first call reads. Only the newest entries of the path to the head (Reverse with a Limit of at most
// 512, and no To, From or After) are read from the end of the log, unless an amendment is there or the path leads
// further back. From or After that is not on the path is fs.ErrNotExist.
func (s *Session) Page(ctx context.Context, p Page) iter.Seq2[transcript.Entry, error] {
	return iterate(ctx, s, "page", func(yield func(transcript.Entry, error) bool) error {
		return s.h.ReadPage(ctx, session.Page(p), yield)
	})
}
