package manager

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"

	coppice "github.com/coppice-go/coppice"
	"github.com/coppice-go/coppice/entry"
	"github.com/coppice-go/coppice/transcript"
)

// Copy copies a session, with all of its branches, to a new session in a directory ("" = the same): all entries byte
// for byte, labels, branch names, the head, and the state of agent and manager there. The new header names the old
// session as its parent. o may be nil; it sets the id, and the title if it is to differ.
//
// The log of commits is not copied, so earlier states and snapshots stay with the old session. If copied entries
// contain another directory or title than the requested one, an additional entry next to the head sets it. Contexts are
// built by o.Profile, else by the rules of the old session. Copy streams like an import: 150 bytes an entry in memory,
// and 16 MiB of lines. A copy that fails leaves no session.
func Copy(ctx context.Context, st *coppice.Store, id, cwd string, o *coppice.SessionOptions) (*coppice.Session, error) {
	from, err := st.Open(ctx, id, &coppice.SessionOptions{ReadOnly: true})
	if err != nil {
		return nil, err
	}
	s, err := whole(ctx, st, from, cwd, o)
	if err = errors.Join(err, from.Close()); err == nil {
		return s, nil
	}
	err = fmt.Errorf("copy session %s: %w", id, err)
	if s == nil {
		return nil, err
	}
	return nil, errors.Join(err, s.Close(), st.Delete(context.WithoutCancel(ctx), s.ID()))
}

// whole makes the copy. With an error it returns the session that the caller has to remove, if there is one.
func whole(
	ctx context.Context, st *coppice.Store, from *coppice.Session, cwd string, o *coppice.SessionOptions,
) (*coppice.Session, error) {
	own := coppice.SessionOptions{}
	if o != nil {
		own = *o
	}
	info := from.Info()
	title := own.Title // the requested title
	if own.Title == "" {
		own.Title = info.Title
	}
	if cwd == "" {
		cwd = info.Cwd
	}
	if own.Profile == "" {
		own.Profile = from.Profile()
	}
	own.Cwd, own.Parent, own.Relation, own.Original = cwd, info.ID, cmp.Or(own.Relation, "fork"), nil
	at, err := positionOf(ctx, from)
	if err != nil {
		return nil, err
	}
	s, err := st.Import(ctx, lines(ctx, from), &own)
	if err != nil {
		return nil, err
	}
	if n := s.Info().Entries; n != info.Entries {
		return s, fmt.Errorf("copied %d of %d entries; run verify", n, info.Entries)
	}
	if err := introduce(ctx, s, title, cwd); err != nil {
		return s, err
	}
	return s, at.restore(ctx, s, "copy") // last: introduce has moved the head
}

// introduce appends an entry with title or directory if the copied entries contain others.
func introduce(ctx context.Context, s *coppice.Session, title, cwd string) error {
	var say []transcript.Draft
	now := s.Info()
	if title != "" && now.Title != title {
		say = append(say, entry.Title(title))
	}
	if now.Cwd != cwd {
		say = append(say, entry.Move(cwd))
	}
	if len(say) == 0 {
		return nil
	}
	if _, err := s.Append(ctx, say...); err != nil {
		return err
	}
	_, err := s.Commit(ctx, coppice.Turn{Reason: "copy"})
	return err
}

// lines returns the stored line of every entry of a session.
func lines(ctx context.Context, s *coppice.Session) iter.Seq2[transcript.Draft, error] {
	return func(yield func(transcript.Draft, error) bool) {
		for e, err := range s.Originals(ctx) {
			if !yield(entry.Line(e.Raw), err) || err != nil {
				return
			}
		}
	}
}
