package store

import (
	"errors"
	"fmt"
	"io/fs"

	"github.com/coppice-go/coppice/checkpoint"
	"github.com/coppice-go/coppice/codec"
)

// The errors of readers, in addition to those of the backend.
var (
	ErrCorrupt  = errors.New("corrupt")
	ErrDeleted  = errors.New("session was deleted")
	ErrNoCommit = fmt.Errorf("no such commit: %w", fs.ErrNotExist)
)

// Failure is an error of the protocol, with what callers need to handle it.
type Failure struct {
	Err    error                 // one of the errors above, wrapping the cause
	Winner *checkpoint.Commit    // of ErrConflict and ErrFenced: the commit at the head now
	Commit string                // the id of the commit that was tried; "" = none
	Gone   *checkpoint.Tombstone // of ErrDeleted
	Grave  *checkpoint.Object    // of ErrDeleted: the tombstone
	Object string                // of ErrCorrupt
	Offset int64                 // of ErrCorrupt: byte offset in the object
}

func (f *Failure) Error() string { return f.Err.Error() }

// Unwrap returns the cause.
func (f *Failure) Unwrap() error { return f.Err }

// Deleted returns the error of a session that was deleted, by its tombstone.
func Deleted(tombstone *checkpoint.Object) error {
	return &Failure{
		Err:   fmt.Errorf("session %s: %w: %w", tombstone.Summary.ID, ErrDeleted, fs.ErrNotExist),
		Gone:  &checkpoint.Tombstone{Deleted: tombstone.Summary.Updated, Source: tombstone.Source},
		Grave: tombstone,
	}
}

// Corrupt returns the error for a damaged object. If cause is codec.ErrVersion, the object is not damaged but of a
// newer format, and the error is not ErrCorrupt.
func Corrupt(object string, offset int64, cause error) error {
	if errors.Is(cause, codec.ErrVersion) {
		return fmt.Errorf("read %s: %w", object, cause)
	}
	return &Failure{
		Err: fmt.Errorf("%w: %s at byte %d: %w", ErrCorrupt, object, offset, cause), Object: object,
		Offset: offset,
	}
}
