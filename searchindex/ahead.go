package searchindex

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"

	coppice "github.com/coppice-go/coppice"
	"github.com/coppice-go/coppice/transcript"
)

// What a Recorder puts in is ahead of what Update has read: the rows of prompts alone, at their ordinals,
// at session.next or after it. They are what Update will put there, or the store was put back meanwhile; so
// Update drops them where it comes to them, and those after the end of the session.

// note puts the prompts of a session's commits after a seq in; 0 = all of the session.
func (x *Index) note(ctx context.Context, st *coppice.Store, id string, after uint64) error {
	s, err := st.Open(ctx, id, &coppice.SessionOptions{ReadOnly: true})
	if errors.Is(err, fs.ErrNotExist) { // deleted meanwhile: Update forgets it
		return nil
	}
	if err != nil {
		return err
	}
	w := &writer{x: x, info: s.Info()}
	if !w.info.Internal {
		err = w.ahead(ctx, s, after)
	}
	return errors.Join(err, s.Close())
}

func (w *writer) ahead(ctx context.Context, s *coppice.Session, after uint64) error {
	take := func(e transcript.Entry) error {
		r, ok := w.row(e)
		if !ok || !r.prompt {
			return nil
		}
		w.rows = append(w.rows, r)
		if w.bytes += len(r.text); len(w.rows) < batchEntries && w.bytes < batchBytes {
			return nil
		}
		return w.flushAhead(ctx)
	}
	if err := since(ctx, s, after, take); err != nil {
		return err
	}
	return w.flushAhead(ctx)
}

// since returns the entries of the commits after a seq that are there by now; 0 = all of the session.
func since(ctx context.Context, s *coppice.Session, after uint64, take func(transcript.Entry) error) error {
	last := s.Info().Seq
	if after == 0 {
		for e, err := range s.Entries(ctx) {
			if err != nil {
				return &unreadableError{err}
			}
			if err := take(e); err != nil {
				return err
			}
		}
		return nil
	}
	if last <= after {
		return nil // Watch would wait for the next one
	}
	for change, err := range s.Watch(ctx, after) {
		if err != nil {
			return &unreadableError{err}
		}
		for _, e := range change.Entries {
			if err := take(e); err != nil {
				return err
			}
		}
		if change.Commit.Seq >= last {
			return nil
		}
	}
	return fmt.Errorf("read session %s: %w", s.ID(), context.Cause(ctx))
}

// flushAhead writes the batch, but for what Update was faster with.
func (w *writer) flushAhead(ctx context.Context) error {
	if len(w.rows) == 0 {
		return nil
	}
	err := w.x.write(ctx, func(tx *sql.Tx) error {
		have, err := placeOf(ctx, tx, w.info.ID)
		if err != nil {
			return err
		}
		if err := addSession(ctx, tx, w.info, &have); err != nil {
			return err
		}
		for len(w.rows) > 0 && w.rows[0].ordinal < have.next {
			w.rows = w.rows[1:]
		}
		return w.writeRows(ctx, tx, have.n)
	})
	w.rows, w.bytes = nil, 0
	return err
}

// dropAhead takes out of a session what is ahead, from an ordinal up to before another. Entries newer than
// one are of commits that were made meanwhile, and stay.
func dropAhead(ctx context.Context, tx *sql.Tx, session, from, end, newest int64) error {
	const those = "SELECT n FROM entry WHERE session=? AND ordinal>=? AND ordinal<? AND n<=?"
	for _, q := range []string{
		"DELETE FROM words WHERE rowid IN (" + those + ")", "DELETE FROM prompt WHERE n IN (" + those + ")",
		"DELETE FROM entry WHERE n IN (" + those + ")",
	} {
		if _, err := tx.ExecContext(ctx, q, session, from, end, newest); err != nil {
			return fmt.Errorf("read prompts again: %w", err)
		}
	}
	return nil
}
