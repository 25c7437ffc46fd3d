package journal

import (
	"errors"
)

// The ways in which a commit fails without being a plain failure of the backend.
var (
	ErrConflict = errors.New("another writer committed first")
	ErrFenced   = errors.New("another writer claimed the session")
	ErrUnknown  = errors.New("outcome of the commit is unknown")
	ErrReadOnly = errors.New("read-only session")
)
