package searchindex

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"errors"
	"fmt"

	"github.com/coppice-go/coppice/checkpoint"
	"github.com/coppice-go/coppice/transcript"
)

// Bounds of a transaction, and so of the time that other processes wait.
const (
	batchEntries = 1000
	batchBytes   = 4 << 20
)

// writer adds the entries of one session to the index. The rows depend only on the session, so that two writers of one
// session write the same.
type writer struct {
	x     *Index
	tree  *transcript.Tree
	info  checkpoint.Summary
	seen  string
	place place // after the batch

	added int
	from  int64 // place.next at the start of the batch
	rows  []row
	runs  []run
	bytes int
}

// row is an entry that waits for its transaction.
type row struct {
	ordinal, time       int64
	id, typ, role, text string
	prompt              bool
}

// row makes the row of an entry, or returns false if it has no text. A message of an agent in a session that an agent
// began is not a prompt: no person typed it. Neither is what is left of an erased one.
func (w *writer) row(e transcript.Entry) (row, bool) {
	text, role, results := said(e)
	if text = cut(text, MaxText); text == "" {
		return row{}, false
	}
	r := row{ordinal: int64(e.Ordinal), time: milli(e.Time), id: e.ID, typ: e.Type, role: role, text: text}
	_, erased := e.Erased()
	r.prompt = role == "user" && !w.info.Internal && !erased && (!results || asked(e))
	return r, true
}

// asked reports whether a user message with tool results has text of its own.
func asked(e transcript.Entry) bool {
	l, err := transcript.ParseLine(e.Raw)
	return err == nil && transcript.RowOf(l, -1).Role == "user"
}

// add adds an entry, and writes the batch when it is full.
func (w *writer) add(ctx context.Context, e transcript.Entry) error {
	if int64(e.Ordinal) < w.place.next {
		return nil
	}
	if r, ok := nextRun(w.tree, e.Ordinal, e.Type, &w.place.tail); ok {
		w.runs = append(w.runs, r)
	}
	w.place.next, w.place.last = int64(e.Ordinal)+1, e.ID
	w.added++
	if r, ok := w.row(e); ok {
		w.rows = append(w.rows, r)
		w.bytes += len(r.text)
	}
	if len(w.rows) < batchEntries && w.bytes < batchBytes {
		return nil
	}
	return w.flush(ctx, false)
}

// errRaced means that another process removed rows of this writer from the index.
var errRaced = errors.New("the index changed meanwhile")

// flush writes the batch. whole = the session is then up to date.
func (w *writer) flush(ctx context.Context, whole bool) error {
	if n := int64(w.tree.Len()); whole && n > 0 {
		w.place.next, w.place.last = n, w.tree.ID(uint64(n-1))
	}
	err := w.x.write(ctx, func(tx *sql.Tx) error { return w.write(ctx, tx, whole) })
	w.rows, w.runs, w.bytes, w.from = w.rows[:0], w.runs[:0], 0, w.place.next
	return err
}

func (w *writer) write(ctx context.Context, tx *sql.Tx, whole bool) error {
	have, err := placeOf(ctx, tx, w.info.ID)
	if err != nil {
		return err
	}
	if have.next < w.from {
		return errRaced
	}
	if err := addSession(ctx, tx, w.info, &have); err != nil {
		return err
	}
	if err := w.writeRows(ctx, tx, have.n); err != nil {
		return fmt.Errorf("index session %s: %w", w.info.ID, err)
	}
	if w.place.next >= have.next {
		_, err := tx.ExecContext(ctx, "UPDATE session SET next=?, last=?, tail=? WHERE n=?", w.place.next, w.place.last,
			w.place.tail, have.n)
		if err != nil {
			return fmt.Errorf("index session %s: %w", w.info.ID, err)
		}
	}
	if whole && int64(w.info.Seq) >= have.seq {
		return w.finish(ctx, tx, have.n)
	}
	return nil
}

// addSession adds the row of a session, unless it exists.
func addSession(ctx context.Context, tx *sql.Tx, info checkpoint.Summary, at *place) error {
	if at.n != 0 {
		return nil
	}
	err := tx.QueryRowContext(ctx, `INSERT INTO
		session(id, title, cwd, bytes, seen, "commit", seq, next, last, tail, head)
		VALUES(?, ?, ?, 0, '', '', 0, 0, '', -1, -1) RETURNING n`, info.ID, info.Name(), info.Cwd).Scan(&at.n)
	if err != nil {
		return fmt.Errorf("add session %s: %w", info.ID, err)
	}
	return nil
}

func (w *writer) writeRows(ctx context.Context, tx *sql.Tx, session int64) (err error) {
	var list [4]*sql.Stmt
	for i, q := range []string{
		"INSERT OR IGNORE INTO entry(session, ordinal, time, id, type, role, text) VALUES(?,?,?,?,?,?,?) RETURNING n",
		"INSERT INTO words(rowid, text) VALUES(?,?)",
		"INSERT INTO prompt(n, session, time, hash) VALUES(?,?,?,?)",
		"INSERT OR REPLACE INTO run(session, first, parent) VALUES(?,?,?)",
	} {
		if list[i], err = tx.PrepareContext(ctx, q); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, list[i].Close()) }()
	}
	entry, words, prompt, runs := list[0], list[1], list[2], list[3]
	for i := range w.rows {
		r := &w.rows[i]
		var n int64
		err := entry.QueryRowContext(ctx, session, r.ordinal, r.time, r.id, r.typ, r.role, r.text).Scan(&n)
		if errors.Is(err, sql.ErrNoRows) {
			continue // another process was faster
		}
		if err != nil {
			return err
		}
		if _, err := words.ExecContext(ctx, n, folded(r.text)); err != nil {
			return err
		}
		if !r.prompt {
			continue
		}
		hash := sha256.Sum256([]byte(r.text))
		if _, err := prompt.ExecContext(ctx, n, session, r.time, hash[:16]); err != nil {
			return err
		}
	}
	for _, r := range w.runs {
		if _, err := runs.ExecContext(ctx, session, r.First, r.Parent); err != nil {
			return err
		}
	}
	return nil
}

// finish writes the data of the session as a whole.
func (w *writer) finish(ctx context.Context, tx *sql.Tx, session int64) error {
	if _, err := tx.ExecContext(ctx, "DELETE FROM branch WHERE session=?", session); err != nil {
		return fmt.Errorf("index session %s: %w", w.info.ID, err)
	}
	for _, b := range w.tree.Branches() {
		_, err := tx.ExecContext(ctx, "INSERT OR REPLACE INTO branch(session, name, head) VALUES(?,?,?)", session,
			b.Name, ordinalOf(w.tree, b.Head))
		if err != nil {
			return fmt.Errorf("index session %s: %w", w.info.ID, err)
		}
	}
	_, err := tx.ExecContext(ctx,
		`UPDATE session SET title=?, cwd=?, bytes=?, seen=?, "commit"=?, seq=?, head=? WHERE n=?`,
		w.info.Name(), w.info.Cwd, w.info.Bytes, w.seen, w.info.Commit, int64(w.info.Seq),
		ordinalOf(w.tree, w.tree.Head()), session)
	if err != nil {
		return fmt.Errorf("index session %s: %w", w.info.ID, err)
	}
	return nil
}
