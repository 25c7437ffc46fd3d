package journal

import (
	"errors"

	"github.com/coppice-go/coppice/backend"
)

// The ways in which a commit fails without being a plain failure of the backend.
var (
	ErrConflict  = errors.New("another writer changed the branch, head or document first")
	ErrFenced    = errors.New("another writer claimed the session")
	ErrUnknown   = errors.New("outcome of the commit is unknown")
	ErrInDoubt   = errors.New("an earlier commit of this handle is in doubt")
	ErrKeyReused = errors.New("the idempotency key belongs to another turn")
	ErrReadOnly  = errors.New("read-only session")

	ErrUncommitted = errors.New("entries of this handle are not committed")

	ErrHeld = errors.New("the session is held")

	ErrUnfinished = errors.New("the deletion was not finished")
)

// notApplied returns the error of an operation that had no effect.
func (j *Journal) notApplied(op string, err error) error {
	return &backend.Error{Op: op, Key: j.cfg.Session, Outcome: backend.NotApplied, Err: err}
}
