package searchindex

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
)

// place is the progress of a session in the index. next advances with every batch, commit and seq only with the last
// one: if commit is "", the session is indexed in part.
type place struct {
	n            int64  // 0 = the session is not indexed
	seen, commit string // the last commit, according to the listing and to the session
	seq          int64
	next         int64  // all entries before this ordinal are indexed
	last         string // ID of the row before it, which may be a commit: commit IDs are unique
	tail         int64  // the last entry of the current run; -1 = none
}

// placeColumns are the columns of a place, in the order of into.
const placeColumns = `n, seen, "commit", seq, next, last, tail`

// into returns the destinations for scanning the columns of a place.
func (at *place) into() []any {
	return []any{&at.n, &at.seen, &at.commit, &at.seq, &at.next, &at.last, &at.tail}
}

func placeOf(ctx context.Context, tx *sql.Tx, id string) (place, error) {
	at := place{tail: -1}
	err := tx.QueryRowContext(ctx, "SELECT "+placeColumns+" FROM session WHERE id=?", id).Scan(at.into()...)
	if err != nil && !errors.Is(err, sql.ErrNoRows) {
		return at, fmt.Errorf("find session %s: %w", id, err)
	}
	return at, nil
}

// places returns the indexed sessions, and the number of bytes read of each.
func (x *Index) places(ctx context.Context) (at map[string]place, bytes map[string]int64, err error) {
	at, bytes = map[string]place{}, map[string]int64{}
	err = x.with(func(db *sql.DB) error {
		return eachRow(ctx, db, func(scan func(...any) error) error {
			var p place
			var id string
			var n int64
			err := scan(append([]any{&id, &n}, p.into()...)...)
			at[id], bytes[id] = p, n
			return err
		}, "SELECT id, bytes, "+placeColumns+" FROM session")
	})
	if err != nil {
		return nil, nil, fmt.Errorf("read sessions: %w", err)
	}
	return at, bytes, nil
}

// write runs f in one transaction.
func (x *Index) write(ctx context.Context, f func(tx *sql.Tx) error) error {
	return x.with(func(db *sql.DB) error { return inTx(ctx, db, f) })
}

// remove removes a session from the index, to read it again.
func (x *Index) remove(ctx context.Context, id string) error {
	return x.write(ctx, func(tx *sql.Tx) error { return removeFrom(ctx, tx, id) })
}

func removeFrom(ctx context.Context, tx *sql.Tx, id string) error {
	at, err := placeOf(ctx, tx, id)
	if err != nil || at.n == 0 {
		return err
	}
	for _, q := range []string{
		"DELETE FROM words WHERE rowid IN (SELECT n FROM entry WHERE session=?)",
		"DELETE FROM prompt WHERE session=?", "DELETE FROM entry WHERE session=?",
		"DELETE FROM run WHERE session=?", "DELETE FROM branch WHERE session=?", "DELETE FROM session WHERE n=?",
	} {
		if _, err := tx.ExecContext(ctx, q, at.n); err != nil {
			return fmt.Errorf("remove session %s: %w", id, err)
		}
	}
	return nil
}

// noteSeen records that a session is up to date although its summary differs.
func noteSeen(ctx context.Context, session int64, listed string) func(db *sql.DB) error {
	return func(db *sql.DB) error {
		if _, err := db.ExecContext(ctx, "UPDATE session SET seen=? WHERE n=?", listed, session); err != nil {
			return fmt.Errorf("store a summary: %w", err)
		}
		return nil
	}
}
