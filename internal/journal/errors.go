package journal

import (
	"errors"

	"github.com/coppice-go/coppice/backend"
	"github.com/coppice-go/coppice/internal/journal/state"
	"github.com/coppice-go/coppice/internal/journal/store"
)

// The ways in which a commit fails without being a plain failure of the backend.
var (
	ErrConflict  = errors.New("another writer committed first")
	ErrFenced    = errors.New("another writer claimed the session")
	ErrUnknown   = errors.New("outcome of the commit is unknown")
	ErrInDoubt   = errors.New("an earlier commit of this handle is in doubt")
	ErrKeyReused = errors.New("the idempotency key belongs to another turn")
	ErrReadOnly  = errors.New("read-only session")

	ErrUnfinished = errors.New("the deletion was not finished")
)

// ErrReloaded is what a turn gets that waited while another caller reloaded the handle. It is a backend.ErrBusy:
// nothing was applied, and the call can be made again.
var ErrReloaded error = reloaded{}

type reloaded struct{}

func (reloaded) Error() string { return "the handle was reloaded: not applied" }

func (reloaded) Is(target error) bool { return target == backend.ErrBusy }

// notApplied returns the error of an operation that had no effect.
func (j *Journal) notApplied(op string, err error) error {
	return &backend.Error{Op: op, Key: j.cfg.Session, Outcome: backend.NotApplied, Err: err}
}

// conflict returns the failure of what was made on an earlier state than now.
func conflict(now *state.State) *store.Failure {
	winner := now.Newest()
	return &store.Failure{Err: ErrConflict, Winner: &winner}
}

// withdrawn returns a failure as the caller of a turn gets it of which nothing is kept; other turns may share f.
func withdrawn(f *store.Failure) *store.Failure {
	own := *f
	own.Withdrawn = true
	return &own
}

func fenced(now *state.State) *store.Failure {
	f := conflict(now)
	f.Err = ErrFenced
	return f
}
