package searchindex

import (
	"context"
	"database/sql"
	"fmt"
)

// mergePages bounds the pages that one transaction of a purge merges, which bounds the time that other processes wait.
const mergePages = 500

// Erase removes a deleted session from the index, and every byte of it from the file and its log. The time it takes
// grows with the whole index: SQLite rewrites the full-text index without the session. If ctx ends first, searches no
// longer find the session, and the next Update or Erase completes the work.
func (x *Index) Erase(ctx context.Context, id string) error {
	if err := x.erase(ctx, id); err != nil {
		return x.fail("erase", err)
	}
	return x.fail("erase", x.purge(ctx))
}

// Holds reports whether a row of the index has a text.
func (x *Index) Holds(ctx context.Context, text string) (holds bool, err error) {
	err = x.with(func(db *sql.DB) error {
		return db.QueryRowContext(ctx, `SELECT EXISTS(SELECT 1 FROM entry WHERE instr(text, ?1)) OR
			EXISTS(SELECT 1 FROM session WHERE instr(title, ?1) OR instr(cwd, ?1))`, text).Scan(&holds)
	})
	return holds, x.fail("look for a text", err)
}

// erase removes the session and records that its remains must be purged.
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

// purge removes the remains of erased sessions from the file: FTS5 only marks a row as deleted until it merges, and
// SQLite's log keeps old pages.
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
		// A reader in another process may hold the log for too long. Then the next purge removes it, or the last
		// process that closes the index.
		if _, err := db.ExecContext(ctx, "PRAGMA wal_checkpoint(TRUNCATE)"); err != nil {
			return fmt.Errorf("empty the log of the index: %w", err)
		}
		return nil
	})
}

// merge makes one step in merging the full-text index into one segment, and reports whether there was one to make.
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
		if begun == 0 { // negative: merge all segments into one
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
		if after-before < 2 { // the command itself counts as one change: nothing is left to merge
			_, err = tx.ExecContext(ctx, "DELETE FROM purge WHERE begun=1")
		}
		return err
	})
	if err != nil {
		return false, fmt.Errorf("purge erased sessions: %w", err)
	}
	return more, nil
}
