package langgraph

import (
	"bufio"
	"bytes"
	"context"
	"database/sql"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	_ "modernc.org/sqlite" // the driver, pure Go

	"github.com/coppice-go/coppice/internal/rawjson"
)

const (
	maxValue       = 32 << 20 // bytes of a checkpoint or a value, as stored
	maxLine        = 96 << 20 // bytes of a row as JSON: its value is in hexadecimal digits
	maxCheckpoints = 500_000  // of a thread: their ids are held in memory
	sqliteMagic    = "SQLite format 3\x00"
)

// database is the tables of a saver.
type database struct {
	db    *sql.DB
	blobs bool // values of channels are in a table of their own, as Postgres has them
	paths bool // writes have the paths of their tasks
	temp  string
}

// open opens what a saver has stored.
func open(ctx context.Context, file string) (*database, error) {
	is, err := kindOf(file)
	if err != nil {
		return nil, err
	}
	d := &database{}
	switch is {
	case aDatabase:
		d.db, err = sql.Open("sqlite", readOnly(file))
	case rows:
		err = d.load(ctx, file)
	default:
		return nil, errors.New("it is no SQLite database, and no rows of a Postgres saver")
	}
	if err == nil {
		err = d.columns(ctx)
	}
	if err != nil {
		return nil, errors.Join(err, d.close())
	}
	return d, nil
}

// readOnly returns the address of a database that is only read. With a log of writes in its folder, its program may be
// running: it is read under locks, and with the content of the log. Without one the file does not change, and no other
// file is made.
func readOnly(file string) string {
	full, err := filepath.Abs(file)
	if err != nil {
		full = file
	}
	if full = filepath.ToSlash(full); !strings.HasPrefix(full, "/") {
		full = "/" + full // a drive
	}
	address := "file://" + (&url.URL{Path: full}).EscapedPath() +
		"?mode=ro&_pragma=query_only(1)&_pragma=trusted_schema(0)&_pragma=busy_timeout(5000)"
	if _, err := os.Stat(file + "-wal"); err != nil {
		address += "&immutable=1"
	}
	return address
}

func (d *database) close() (err error) {
	if d.db != nil {
		err = d.db.Close()
	}
	if d.temp != "" {
		err = errors.Join(err, os.RemoveAll(d.temp))
	}
	return err
}

// kind is what a file is.
type kind int

const (
	other kind = iota
	aDatabase
	rows
)

// kindOf recognizes a file by its beginning.
func kindOf(file string) (is kind, err error) {
	f, err := os.Open(file)
	if err != nil {
		return other, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	head := make([]byte, 4<<10)
	n, err := io.ReadFull(f, head)
	if err != nil && !errors.Is(err, io.ErrUnexpectedEOF) {
		if errors.Is(err, io.EOF) {
			err = nil
		}
		return other, err
	}
	head = head[:n]
	switch {
	case bytes.HasPrefix(head, []byte(sqliteMagic)):
		return aDatabase, nil
	case bytes.HasPrefix(head, []byte(`{"thread_id":`)) && bytes.Contains(head, []byte(`"checkpoint_ns":`)):
		return rows, nil
	}
	return other, nil
}

// columns checks the tables.
func (d *database) columns(ctx context.Context) error {
	has := map[string]bool{}
	list, err := d.db.QueryContext(ctx, `SELECT m.name || '.' || c.name
		FROM sqlite_master m, pragma_table_info(m.name) c WHERE m.type = 'table'
		AND m.name IN ('checkpoints', 'writes', 'blobs') LIMIT 1000`)
	if err != nil {
		return err
	}
	defer func() { _ = list.Close() }()
	for list.Next() {
		var name string
		if err := list.Scan(&name); err != nil {
			return err
		}
		has[name] = true
	}
	for _, name := range []string{
		"thread_id", "checkpoint_ns", "checkpoint_id", "parent_checkpoint_id", "type", "metadata", "checkpoint",
	} {
		if !has["checkpoints."+name] {
			return fmt.Errorf("it has no column checkpoints.%s, so it is not of a saver of LangGraph", name)
		}
	}
	d.blobs, d.paths = has["blobs.version"], has["writes.task_path"]
	if !has["writes.task_id"] {
		return errors.New("it has no table of writes, so it is not of a saver of LangGraph")
	}
	return list.Err()
}

// schema is that of the database into which rows are read: rows come in any order, and threads are imported one after
// another.
const schema = `
CREATE TABLE checkpoints (thread_id TEXT, checkpoint_ns TEXT, checkpoint_id TEXT, parent_checkpoint_id TEXT, type TEXT,
	checkpoint BLOB, metadata BLOB, PRIMARY KEY (thread_id, checkpoint_ns, checkpoint_id));
CREATE TABLE writes (thread_id TEXT, checkpoint_ns TEXT, checkpoint_id TEXT, task_id TEXT, task_path TEXT, idx INTEGER,
	channel TEXT, type TEXT, value BLOB, PRIMARY KEY (thread_id, checkpoint_ns, checkpoint_id, task_id, idx));
CREATE TABLE blobs (thread_id TEXT, checkpoint_ns TEXT, channel TEXT, version TEXT, type TEXT, value BLOB,
	PRIMARY KEY (thread_id, checkpoint_ns, channel, version));`

// load reads rows into a temporary database.
func (d *database) load(ctx context.Context, file string) (err error) {
	if d.temp, err = os.MkdirTemp("", "coppice-rows-"); err != nil {
		return err
	}
	name := filepath.ToSlash(filepath.Join(d.temp, "rows.sqlite"))
	d.db, err = sql.Open("sqlite", "file://"+(&url.URL{Path: name}).EscapedPath()+
		"?_pragma=journal_mode(OFF)&_pragma=synchronous(OFF)")
	if err != nil {
		return err
	}
	d.db.SetMaxOpenConns(1)
	if _, err := d.db.ExecContext(ctx, schema); err != nil {
		return err
	}
	f, err := os.Open(file)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	tx, err := d.db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	in := bufio.NewScanner(f)
	in.Buffer(make([]byte, 0, 64<<10), maxLine)
	n := 0
	for in.Scan() {
		if n++; len(bytes.TrimSpace(in.Bytes())) == 0 {
			continue
		}
		if err := insert(ctx, tx, in.Bytes()); err != nil {
			return errors.Join(fmt.Errorf("line %d: %w", n, err), tx.Rollback())
		}
	}
	if err := in.Err(); err != nil {
		return errors.Join(fmt.Errorf("line %d: %w", n+1, err), tx.Rollback())
	}
	return tx.Commit()
}

// insert stores a row. The table follows from its columns.
func insert(ctx context.Context, tx *sql.Tx, row []byte) (err error) {
	if !isJSON(row) {
		return errors.New("it is no row as JSON")
	}
	text := func(name string) any {
		if v := rawjson.Field(row, name); rawjson.IsString(v) {
			return rawjson.Text(v)
		}
		return nil
	}
	raw := func(name string) any {
		if v := rawjson.Field(row, name); v != nil {
			return v
		}
		return nil
	}
	blob, err := binaryOf(rawjson.Field(row, "blob"))
	if err != nil {
		return err
	}
	switch {
	case rawjson.Field(row, "task_id") != nil:
		_, err = tx.ExecContext(ctx, `INSERT OR REPLACE INTO writes VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)`,
			text("thread_id"), text("checkpoint_ns"), text("checkpoint_id"), text("task_id"), text("task_path"),
			string(rawjson.Field(row, "idx")), text("channel"), text("type"), blob)
	case rawjson.Field(row, "version") != nil:
		_, err = tx.ExecContext(ctx, `INSERT OR REPLACE INTO blobs VALUES (?, ?, ?, ?, ?, ?)`, text("thread_id"),
			text("checkpoint_ns"), text("channel"), text("version"), text("type"), blob)
	case rawjson.Field(row, "checkpoint") != nil:
		_, err = tx.ExecContext(ctx, `INSERT OR REPLACE INTO checkpoints VALUES (?, ?, ?, ?, 'json', ?, ?)`,
			text("thread_id"), text("checkpoint_ns"), text("checkpoint_id"), text("parent_checkpoint_id"),
			raw("checkpoint"), raw("metadata"))
	default:
		err = errors.New("it is no row of checkpoints, checkpoint_blobs or checkpoint_writes")
	}
	return err
}

// binaryOf returns the bytes of a value of type bytea.
func binaryOf(v []byte) ([]byte, error) {
	if len(v) == 0 || string(v) == "null" {
		return nil, nil
	}
	text, ok := strings.CutPrefix(rawjson.Text(v), `\x`)
	switch {
	case strings.HasPrefix(rawjson.Text(v), `\\x`):
		return nil, errors.New("it was escaped: write the rows with FORMAT csv")
	case !ok:
		return nil, errors.New(`its value does not begin with \x: rows are those of row_to_json`)
	}
	return hex.DecodeString(text)
}

// threads yields the names of all threads, in their order.
func (d *database) threads(ctx context.Context, visit func(thread string) error) error {
	for last := (sql.NullString{}); ; {
		query, args := `SELECT min(thread_id) FROM checkpoints`, []any(nil)
		if last.Valid {
			query, args = query+` WHERE thread_id > ?`, []any{last.String}
		}
		if err := d.db.QueryRowContext(ctx, query, args...).Scan(&last); err != nil || !last.Valid {
			return err
		}
		if err := visit(last.String); err != nil {
			return err
		}
	}
}

// ref names a checkpoint of a thread.
type ref struct{ ns, id, parent string }

// refs returns the checkpoints of a thread in the order of their ids, which are times.
func (d *database) refs(ctx context.Context, thread string) (list []ref, err error) {
	found, err := d.db.QueryContext(ctx, `SELECT checkpoint_ns, checkpoint_id, coalesce(parent_checkpoint_id, '')
		FROM checkpoints WHERE thread_id = ? ORDER BY checkpoint_id, checkpoint_ns LIMIT ?`, thread, maxCheckpoints+1)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, found.Close()) }()
	for found.Next() {
		var r ref
		if err := found.Scan(&r.ns, &r.id, &r.parent); err != nil {
			return nil, err
		}
		list = append(list, r)
	}
	if len(list) > maxCheckpoints {
		return nil, fmt.Errorf("more than %d checkpoints", maxCheckpoints)
	}
	return list, found.Err()
}

// typed is a value with the type that its serializer gave it.
type typed struct {
	typ   string
	value []byte
}

// sizeError is the error of a value that is not read, whose bytes it is.
type sizeError int64

func (e sizeError) Error() string {
	return fmt.Sprintf("it has %d bytes: at most %d are read", int64(e), maxValue)
}

// checkSize refuses a value of so many bytes.
func checkSize(size int64) error {
	if size > maxValue {
		return sizeError(size)
	}
	return nil
}

// checkpoint reads a checkpoint and its metadata.
func (d *database) checkpoint(ctx context.Context, thread string, r ref) (c, metadata typed, err error) {
	var size int64
	where := ` FROM checkpoints WHERE thread_id = ? AND checkpoint_ns = ? AND checkpoint_id = ?`
	err = d.db.QueryRowContext(ctx, `SELECT coalesce(length(CAST(checkpoint AS BLOB)), 0) +
		coalesce(length(CAST(metadata AS BLOB)), 0)`+where, thread, r.ns, r.id).Scan(&size)
	if err == nil {
		err = checkSize(size)
	}
	if err != nil {
		return c, metadata, err
	}
	err = d.db.QueryRowContext(ctx, `SELECT coalesce(type, 'json'), CAST(checkpoint AS BLOB),
		CAST(metadata AS BLOB)`+where, thread, r.ns, r.id).Scan(&c.typ, &c.value, &metadata.value)
	metadata.typ = c.typ
	return c, metadata, err
}

// blob reads the value of a channel, if it is in the table of values.
func (d *database) blob(ctx context.Context, thread, ns, channel, version string) (v typed, ok bool, err error) {
	var size int64
	err = d.db.QueryRowContext(ctx, `SELECT type, coalesce(length(value), 0),
		CASE WHEN length(value) <= ? THEN value END
		FROM blobs WHERE thread_id = ? AND checkpoint_ns = ? AND channel = ? AND version = ?`,
		maxValue, thread, ns, channel, version).Scan(&v.typ, &size, &v.value)
	if errors.Is(err, sql.ErrNoRows) {
		return v, false, nil
	}
	if err == nil {
		err = checkSize(size)
	}
	return v, err == nil && v.typ != "empty", err
}

// write is a value that a task has written. One of more than maxValue bytes is not read.
type write struct {
	task, path, channel string
	idx, size           int64
	typed
}

// writes reads what the tasks of a checkpoint have written, each task's together.
func (d *database) writes(ctx context.Context, thread string, r ref) (list []write, err error) {
	path := `''`
	if d.paths {
		path = `coalesce(task_path, '')`
	}
	found, err := d.db.QueryContext(ctx, `SELECT task_id, `+path+`, idx, channel, coalesce(type, 'json'),
		coalesce(length(CAST(value AS BLOB)), 0),
		CASE WHEN length(CAST(value AS BLOB)) <= ? THEN CAST(value AS BLOB) END FROM writes
		WHERE thread_id = ? AND checkpoint_ns = ? AND checkpoint_id = ? ORDER BY task_id, idx`,
		maxValue, thread, r.ns, r.id)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, found.Close()) }()
	for size := 0; found.Next(); {
		var w write
		if err := found.Scan(&w.task, &w.path, &w.idx, &w.channel, &w.typ, &w.size, &w.value); err != nil {
			return nil, err
		}
		if size += len(w.value); size > 2*maxValue {
			return nil, fmt.Errorf("its writes have more than %d bytes", 2*maxValue)
		}
		list = append(list, w)
	}
	return list, found.Err()
}
