package searchindex

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"
)

// ErrDamaged is wrapped by the errors of an index that must be rebuilt with Index.Rebuild.
var ErrDamaged = errors.New("searchindex: the index is damaged")

// Index is an open index. It is safe for concurrent use, also by several processes.
type Index struct {
	path string
	now  func() time.Time

	mu sync.RWMutex // held for reading while db is used, for writing while it is replaced
	db *sql.DB
}

// Open opens the index in a file, or creates an empty one and its folder. It replaces a file that is damaged, of
// another version, or not an index. "" = in memory, until it is closed. Open reads nothing from the store; Update does.
func Open(ctx context.Context, path string) (*Index, error) {
	x := &Index{path: path, now: time.Now} //nolint:forbidigo // for the order of a list alone
	db, err := x.connect(ctx)
	if err != nil && damaged(err) && path != "" {
		if err = x.discard(); err == nil {
			db, err = x.connect(ctx)
		}
	}
	if err != nil {
		return nil, x.fail("open", err)
	}
	x.db = db
	return x, nil
}

// waitMost bounds the wait for another process that writes.
const waitMost = 10 * time.Second

// Close closes the index.
func (x *Index) Close() error {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.fail("close", x.db.Close())
}

// connect opens the file and creates missing tables.
func (x *Index) connect(ctx context.Context) (*sql.DB, error) {
	source := ":memory:"
	if x.path != "" {
		if err := os.MkdirAll(filepath.Dir(x.path), 0o700); err != nil {
			return nil, fmt.Errorf("create its folder: %w", err)
		}
		f, err := os.OpenFile(x.path, os.O_RDWR|os.O_CREATE, 0o600) // SQLite would let other users read it
		if err != nil {
			return nil, fmt.Errorf("create: %w", err)
		}
		if err := f.Close(); err != nil {
			return nil, fmt.Errorf("create: %w", err)
		}
		full, err := filepath.Abs(x.path)
		if err != nil {
			return nil, fmt.Errorf("find its path: %w", err)
		}
		if full = filepath.ToSlash(full); !strings.HasPrefix(full, "/") {
			full = "/" + full // a drive
		}
		source = "file://" + (&url.URL{Path: full}).EscapedPath()
	}
	// Wait if another process is writing. A crash may cost the last transactions, never the file.
	source += fmt.Sprintf("?_pragma=busy_timeout(%d)&_pragma=journal_mode(WAL)&_pragma=synchronous(NORMAL)"+
		"&_pragma=secure_delete(1)&_txlock=immediate", waitMost.Milliseconds())
	if err := register(); err != nil {
		return nil, fmt.Errorf("connect: %w", err)
	}
	db, err := sql.Open("sqlite", source)
	if err != nil {
		return nil, fmt.Errorf("connect: %w", err)
	}
	if x.path == "" {
		db.SetMaxOpenConns(1) // each connection would have a memory of its own
	}
	if err := setUp(ctx, db); err != nil {
		return nil, errors.Join(err, db.Close())
	}
	return db, nil
}

// discard removes the files. Processes that have them open keep using them.
func (x *Index) discard() error {
	for _, suffix := range []string{"", "-wal", "-shm", "-journal"} {
		if err := os.Remove(x.path + suffix); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("remove a damaged index: %w", err)
		}
	}
	return nil
}

// renew empties the index, with a new file if it is damaged.
func (x *Index) renew(ctx context.Context) error {
	x.mu.Lock()
	defer x.mu.Unlock()
	err := clearTables(ctx, x.db)
	if err == nil || !damaged(err) || x.path == "" {
		return err
	}
	if err := x.db.Close(); err != nil && !damaged(err) {
		return fmt.Errorf("close: %w", err)
	}
	if err := x.discard(); err != nil {
		return err
	}
	db, err := x.connect(ctx)
	if err != nil {
		return err
	}
	x.db = db
	return nil
}

// ahead bounds how far a writer's clock may be ahead of this one's.
const ahead = 24 * time.Hour

// newest returns the time above which a time counts as wrong, in the index's unit. Entries with such a time come last.
func (x *Index) newest() int64 { return milli(x.now().Add(ahead)) }

// with runs f on the database.
func (x *Index) with(f func(db *sql.DB) error) error {
	x.mu.RLock()
	defer x.mu.RUnlock()
	return f(x.db)
}

// fail makes the error of an operation.
func (x *Index) fail(op string, err error) error {
	switch {
	case err == nil:
		return nil
	case damaged(err):
		return fmt.Errorf("searchindex: %s %s: %w: %w", op, x.path, ErrDamaged, err)
	}
	return fmt.Errorf("searchindex: %s %s: %w", op, x.path, err)
}
