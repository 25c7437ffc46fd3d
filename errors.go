package coppice

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"github.com/coppice-go/coppice/backend"
	"github.com/coppice-go/coppice/checkpoint"
	"github.com/coppice-go/coppice/codec"
	"github.com/coppice-go/coppice/internal/journal"
	"github.com/coppice-go/coppice/internal/journal/store"
)

// What went wrong, found by errors.Is, as are fs.ErrNotExist, fs.ErrExist, fs.ErrClosed, codec.ErrText,
// backend.ErrTooLarge and backend.ErrNoCAS. With any of them but ErrCommitUnknown and ErrDeleteUnfinished nothing was
// applied: the handle is as it was before the call, which may be made again.
var (
	ErrConflict      = journal.ErrConflict    // another writer changed the branch, head or document
	ErrFenced        = journal.ErrFenced      // another writer claimed the session
	ErrCommitUnknown = journal.ErrUnknown     // outcome of the commit is unknown
	ErrCorrupt       = store.ErrCorrupt       // bytes are not what they must be
	ErrReadOnly      = journal.ErrReadOnly    // read-only session
	ErrKeyReused     = journal.ErrKeyReused   // the idempotency key belongs to another turn
	ErrInDoubt       = journal.ErrInDoubt     // an earlier commit of this handle is in doubt
	ErrUncommitted   = journal.ErrUncommitted // entries of this handle are not committed
	ErrDeleted       = store.ErrDeleted       // session was deleted: fs.ErrNotExist too

	// ErrStateLost is of the state of a commit that a repair made again, and is ErrCorrupt too: the commit is there,
	// and nothing brought its state back. Log marks such commits.
	ErrStateLost = fmt.Errorf("%w: the state was lost, and no repair brought it back", store.ErrCorrupt)

	// ErrDeleteUnfinished is of Delete and DeleteAt: the session is deleted, but not all of its objects are removed,
	// or, if it is ErrCommitUnknown too, it is unknown whether the session is deleted.
	ErrDeleteUnfinished = journal.ErrUnfinished
)

// Error is what every failed operation returns (errors.As); errors.Is finds the sentinel and the
// backend's cause below it.
type Error struct {
	Op      string                // the method, in lower case
	Session string                // "" = the store
	Commit  string                // the id that was tried
	Winner  *checkpoint.Commit    // of ErrConflict and ErrFenced: the commit at the head
	Gone    *checkpoint.Tombstone // of ErrDeleted, where it is known: when it was, and what was imported
	Object  string                // of ErrCorrupt; of limits: what is too large; of codec.ErrText: which text
	Offset  int64                 // of ErrCorrupt and codec.ErrText: byte offset in Object
	Hint    string                // one sentence: what to do
	Err     error
}

// Error returns operation, session and cause.
func (e *Error) Error() string {
	text := e.Op
	if e.Session != "" {
		text += " " + e.Session
	}
	return text + ": " + strings.TrimPrefix(e.Err.Error(), text+": ")
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// hints are what to do, by cause. The first that matches counts.
var hints = []struct {
	is   error
	hint string
}{
	{ErrDeleteUnfinished, "repeat the deletion: it finishes what was begun"},
	{ErrHeld, "nothing was removed: release the session first"},
	{ErrErased, "take the entries out of the file, or leave it: an import as a new session would bring them back"},
	{ErrNotErasable, "nothing was erased: name messages, summaries, titles, labels or custom entries"},
	{ErrDeleted, "create a session with another id, or ask for this one again (SessionOptions.Again)"},
	{ErrConflict, "nothing was applied: commit it again with KeepBoth, or call Reload and repeat it"},
	{ErrFenced, "nothing was applied: stop side effects; KeepBoth keeps the turn as a branch, Claim takes over"},
	{ErrCommitUnknown, "call Settle, or send the same turn again if it has a key"},
	{ErrInDoubt, "nothing of this turn was applied: call Settle for the earlier one, then commit again"},
	{ErrUncommitted, "call Commit to store what was appended, or Discard to drop it"},
	{ErrKeyReused, "nothing of this turn was applied: commit it with a new key"},
	{ErrStateLost, "use the state of another commit, or commit a new one"},
	{ErrCorrupt, "run repair; intact data can still be read"},
	{ErrReadOnly, "open the session without ReadOnly"},
	{fs.ErrClosed, "open the session again"},
	{fs.ErrExist, "choose another id, or leave it empty"},
	{fs.ErrNotExist, "List yields the sessions; Create and OpenOrCreate make a new one"},
	{
		backend.ErrTooLarge,
		"nothing was applied: move large or deeply nested data out of the state or the entry, or compact the context",
	},
	{
		backend.ErrNoCAS,
		"use another store: on this one two writers can overwrite each other; Options.SingleWriter allows it",
	},
	{codec.ErrText, "nothing was applied: convert the text to UTF-8, and bytes that are no text to base64"},
	{codec.ErrVersion, "use a release of coppice that can read this format"},
	{context.Canceled, "nothing was changed; call again"},
	{context.DeadlineExceeded, "nothing was changed; call again with more time"},
}

// fail makes the error of an operation. It keeps one that is made already.
func fail(op, id string, err error) error {
	if err == nil {
		return nil
	}
	if _, made := errors.AsType[*Error](err); made {
		return err
	}
	e := &Error{Op: op, Session: id, Err: err}
	if f, ok := errors.AsType[*store.Failure](err); ok {
		e.Winner, e.Gone, e.Commit, e.Object, e.Offset = f.Winner, f.Gone, f.Commit, f.Object, f.Offset
	}
	if limit, ok := errors.AsType[*codec.LimitError](err); ok {
		e.Object = limit.What
		if !errors.Is(err, backend.ErrTooLarge) {
			e.Err = fmt.Errorf("%w: %w", backend.ErrTooLarge, err)
		}
	}
	if text, ok := errors.AsType[*codec.TextError](err); ok {
		e.Object, e.Offset = text.What, text.Offset
	}
	for _, h := range hints {
		if errors.Is(e.Err, h.is) {
			e.Hint = h.hint
			break
		}
	}
	return e
}
