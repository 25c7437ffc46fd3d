package searchindex

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"sync"

	"modernc.org/sqlite" // the driver, pure Go

	"github.com/coppice-go/coppice/internal/fold"
)

// Application and version of the file: an index of another version is rebuilt.
const (
	applicationID = 0x636f7069 // "copi"
	version       = 5          // 1: messages of agents were prompts; 2: other session names;
	// 3: letters with and without accents differed, and deleted text was kept; 4: prompts beyond MaxText
)

// schema of the index. words stores no text: rowid = entry.n, and it indexes the entry's folded text. The tokens are
// any three runes, so that a query finds parts of words, also in languages without spaces.
//
// A run is a sequence of entries, each with the one before as parent; its first entry identifies it, and the column
// parent is that entry's parent (-1 = a root). The runs determine which branches contain an entry.
//
// purge has a row for each erased session with possible remains in words; see Index.purge.
const schema = `
CREATE TABLE session(
	n INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, title TEXT NOT NULL, cwd TEXT NOT NULL, bytes INTEGER NOT NULL,
	seen TEXT NOT NULL, "commit" TEXT NOT NULL, seq INTEGER NOT NULL, next INTEGER NOT NULL, last TEXT NOT NULL,
	tail INTEGER NOT NULL, head INTEGER NOT NULL);
CREATE INDEX session_cwd ON session(cwd);
CREATE TABLE entry(
	n INTEGER PRIMARY KEY, session INTEGER NOT NULL, ordinal INTEGER NOT NULL, time INTEGER NOT NULL,
	id TEXT NOT NULL, type TEXT NOT NULL, role TEXT NOT NULL, text TEXT NOT NULL);
CREATE UNIQUE INDEX entry_place ON entry(session, ordinal);
CREATE INDEX entry_time ON entry(time, n);
CREATE TABLE prompt(n INTEGER PRIMARY KEY, session INTEGER NOT NULL, time INTEGER NOT NULL, hash BLOB NOT NULL);
CREATE INDEX prompt_time ON prompt(time, n);
CREATE INDEX prompt_hash ON prompt(hash);
CREATE INDEX prompt_session ON prompt(session);
CREATE TABLE run(session INTEGER NOT NULL, first INTEGER NOT NULL, parent INTEGER NOT NULL,
	PRIMARY KEY(session, first)) WITHOUT ROWID;
CREATE TABLE branch(session INTEGER NOT NULL, name TEXT NOT NULL, head INTEGER NOT NULL,
	PRIMARY KEY(session, name)) WITHOUT ROWID;
CREATE TABLE purge(n INTEGER PRIMARY KEY, begun INTEGER NOT NULL);
CREATE VIRTUAL TABLE words USING fts5(text, content='', contentless_delete=1, tokenize='trigram case_sensitive 1');
`

// holdsWord is the SQL function that reports whether a text has a folded word. It searches words that are too short for
// the full-text index.
const holdsWord = "holds_word"

// register adds the function to the driver.
var register = sync.OnceValue(func() error {
	return sqlite.RegisterDeterministicScalarFunction(holdsWord, 2,
		func(_ *sqlite.FunctionContext, args []driver.Value) (driver.Value, error) {
			text, _ := args[0].(string)
			word, _ := args[1].(string)
			return fold.Index(folded(text), word) >= 0, nil
		})
})

// tables in an order in which they can be dropped.
var tables = []string{"words", "purge", "branch", "run", "prompt", "entry", "session"}

// setUp creates the tables if there are none. It returns errOther if the file is an index of another version, or not an
// index.
func setUp(ctx context.Context, db *sql.DB) error {
	app, ver, err := marks(ctx, db)
	switch {
	case err != nil:
		return err
	case app == applicationID && ver == version:
		return nil
	case app != 0 || ver != 0:
		return errOther
	}
	return inTx(ctx, db, func(tx *sql.Tx) error {
		var app, ver, some int // another process may have created them
		row := tx.QueryRowContext(ctx, `SELECT (SELECT application_id FROM pragma_application_id),
			(SELECT user_version FROM pragma_user_version), (SELECT count(*) FROM sqlite_master)`)
		if err := row.Scan(&app, &ver, &some); err != nil {
			return fmt.Errorf("read the index: %w", err)
		}
		if app == applicationID && ver == version {
			return nil
		}
		if some > 0 {
			return errOther
		}
		_, err := tx.ExecContext(ctx,
			schema+fmt.Sprintf("PRAGMA application_id=%d; PRAGMA user_version=%d;", applicationID, version))
		if err != nil {
			return fmt.Errorf("create the tables: %w", err)
		}
		return nil
	})
}

// clearTables drops and creates the tables, in one transaction.
func clearTables(ctx context.Context, db *sql.DB) error {
	return inTx(ctx, db, func(tx *sql.Tx) error {
		for _, name := range tables {
			if _, err := tx.ExecContext(ctx, "DROP TABLE IF EXISTS "+name); err != nil {
				return fmt.Errorf("drop %s: %w", name, err)
			}
		}
		if _, err := tx.ExecContext(ctx, schema); err != nil {
			return fmt.Errorf("create the tables: %w", err)
		}
		return nil
	})
}

func marks(ctx context.Context, db *sql.DB) (app, ver int, err error) {
	if err := db.QueryRowContext(ctx, "PRAGMA application_id").Scan(&app); err != nil {
		return 0, 0, fmt.Errorf("read the index: %w", err)
	}
	if err := db.QueryRowContext(ctx, "PRAGMA user_version").Scan(&ver); err != nil {
		return 0, 0, fmt.Errorf("read the index: %w", err)
	}
	return app, ver, nil
}

// errOther means that a file is not an index of this version.
var errOther = errors.New("not an index of this version")

// inTx runs f in one write transaction: two of them wait for each other.
func inTx(ctx context.Context, db *sql.DB, f func(tx *sql.Tx) error) error {
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return fmt.Errorf("begin: %w", err)
	}
	if err := f(tx); err != nil {
		return errors.Join(err, ignoreDone(tx.Rollback()))
	}
	if err := tx.Commit(); err != nil {
		return fmt.Errorf("commit: %w", err)
	}
	return nil
}

// ignoreDone ignores the error of a rollback after the end of the transaction.
func ignoreDone(err error) error {
	if errors.Is(err, sql.ErrTxDone) {
		return nil
	}
	return err
}

// damaged reports whether an error requires a new file: damage, not a database, a missing table.
func damaged(err error) bool {
	if errors.Is(err, errOther) {
		return true
	}
	e, ok := errors.AsType[*sqlite.Error](err)
	if !ok {
		return false
	}
	const sqliteError, corrupt, notADB = 1, 11, 26
	switch e.Code() & 0xff {
	case corrupt, notADB:
		return true
	case sqliteError: // all statements are fixed: this error means a missing table or column
		return true
	}
	return false
}
