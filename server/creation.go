package server

import (
	"context"
	"errors"
	"io/fs"

	coppice "github.com/coppice-go/coppice"
	"github.com/coppice-go/coppice/transcript"
)

// options returns how a new session is created. A token for sessions with a value in their metadata creates these.
func (n *newSession) options(only Only) *coppice.SessionOptions {
	if only.Key != "" {
		if n.Meta == nil {
			n.Meta = map[string]string{}
		}
		n.Meta[only.Key] = only.Value
	}
	return &coppice.SessionOptions{
		Title: n.Title, Cwd: n.Cwd, Parent: n.Parent, Relation: n.Relation, Meta: n.Meta, Again: n.Again,
		NameLeft: true,
	}
}

// maxCreations bounds how often a commit that may create its session finds that another client has just created or
// deleted it.
const maxCreations = 4

// birth is how a commit creates its session.
type birth struct {
	*newSession
	profile transcript.Profile
}

// createWith commits a turn by on, or, where there is no session, as the first commit of a new one.
func (s *Server) createWith(
	ctx context.Context, q *keyedWrite, n birth, on storing,
) (r coppice.Receipt, err error) {
	seen := seenOf(q.r)
	for range maxCreations {
		if !seen.absent { // else a session that came meanwhile may be none that this client may see
			if r, err = s.writeTurn(ctx, &q.request, on); !q.begins(n.Again, err) {
				return r, err
			}
		}
		r, err = s.firstCommit(ctx, q, n, on)
		if !errors.Is(err, fs.ErrExist) && !errors.Is(err, coppice.ErrConflict) {
			return r, err
		}
		if seen.absent = false; seen.on.Only.Key != "" {
			if err := s.narrowed(q.r, &operation{}, seen.on); err != nil {
				return r, err
			}
		}
	}
	return r, err
}

// begins reports whether the commit that failed with an error is to create its session.
func (q *keyedWrite) begins(again bool, err error) bool {
	switch {
	case q.made != coppice.Newest && q.made != noCommit: // it was made on a commit of the session
		return false
	case errors.Is(err, coppice.ErrDeleted):
		return again
	}
	return !q.found && errors.Is(err, fs.ErrNotExist)
}

// firstCommit creates a session with a turn.
func (s *Server) firstCommit(
	ctx context.Context, q *keyedWrite, n birth, on storing,
) (r coppice.Receipt, err error) {
	seen := seenOf(q.r)
	if err := s.roomForOne(seen); err != nil {
		return r, err
	}
	ctx, cancel := s.detached(ctx)
	defer cancel()
	o := n.options(q.on.Only)
	o.Profile = n.profile
	h, err := q.on.Store.Create(q.id, o)
	if err != nil {
		return r, err
	}
	q.find()
	if r, err = on(ctx, h); err != nil {
		r, err = s.settled(ctx, h, err)
	}
	_ = h.Close() // what was acknowledged is stored; what was not is in err
	seen.created = err == nil
	return r, err
}
