package searchindex

import (
	"context"
	"database/sql"
	"fmt"
)

// mergePages bounds the pages that one transaction of a purge merges, so that no other process waits long.
const mergePages = 500

// Erase takes a session that was deleted out of the index, and every byte of it out of the file and its log. That takes
// the longer the larger the whole index is: SQLite writes the full-text index again without the session. If ctx ends
// first, the session is not found any more, and the next Update or Erase does the rest.
func (x *Index) Erase(ctx context.Context, id string) error {
	if err := x.erase(ctx, id); err != nil {
		return x.fail("erase", err)
	}
	return x.fail("erase", x.purge(ctx))
}

// erase is remove, and notes that what is left of the session is to be purged.
func (x *Index) erase(ctx context.Context, id string) error {
	return x.write(ctx, func(tx *sql.Tx) error {
		at, err := placeOf(ctx, tx, id)
		if err != nil || at.n == 0 {
			return err
		}
		if _, err := tx.ExecContext(ctx, "INSERT INTO purge(begun) VALUES(0)"); err != nil {
			return fmt.Errorf("erase session %s: %w", id, err)
		}
		return removeFrom(ctx, tx, id)
	})
}

// purge takes out of the file what erased sessions left there: FTS5 only marks as deleted what it has of a row, until
// it merges, and the log of SQLite keeps old pages.
func (x *Index) purge(ctx context.Context) error {
	some, more := false, true
	for more {
		var err error
		if more, err = x.merge(ctx); err != nil {
			return err
		}
		some = some || more
	}
	if !some || x.path == "" {
		return nil
	}
	return x.with(func(db *sql.DB) error {
		// A reader in another process may hold the log longer than it is waited for: then the log goes with the next
		// purge, or when the last process closes the index.
		if _, err := db.ExecContext(ctx, "PRAGMA wal_checkpoint(TRUNCATE)"); err != nil {
			return fmt.Errorf("empty the log of the index: %w", err)
		}
		return nil
	})
}

// merge goes one step on in merging all of the full-text index into one, and reports whether there was a step to go.
func (x *Index) merge(ctx context.Context) (more bool, err error) {
	err = x.write(ctx, func(tx *sql.Tx) error {
		var rows, begun, before, after int64
		err := tx.QueryRowContext(ctx, "SELECT count(*), coalesce(sum(begun), 0), total_changes() FROM purge").
			Scan(&rows, &begun, &before)
		if err != nil || rows == 0 {
			return err
		}
		more = true
		pages := int64(mergePages)
		if begun == 0 { // negative: all parts of the index are to become one
			pages = -pages
			if _, err := tx.ExecContext(ctx, "UPDATE purge SET begun=1"); err != nil {
				return err
			}
			before += rows
		}
		if _, err := tx.ExecContext(ctx, "INSERT INTO words(words, rank) VALUES('merge', ?)", pages); err != nil {
			return err
		}
		if err := tx.QueryRowContext(ctx, "SELECT total_changes()").Scan(&after); err != nil {
			return err
		}
		if after-before < 2 { // the command itself is one change: nothing is left to merge
			_, err = tx.ExecContext(ctx, "DELETE FROM purge WHERE begun=1")
		}
		return err
	})
	if err != nil {
		return false, fmt.Errorf("purge erased sessions: %w", err)
	}
	return more, nil
}
