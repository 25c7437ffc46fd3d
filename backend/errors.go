package backend

import (
	"errors"
	"fmt"
	"io/fs"
	"syscall"
)

// The causes of a driver's errors, for errors.Is. ErrNotExist and ErrClosed are those of io/fs.
var (
	ErrNotExist     = fs.ErrNotExist
	ErrPrecondition = errors.New("precondition failed")
	ErrRange        = errors.New("range outside object")
	ErrTooLarge     = errors.New("too large")
	ErrKey          = errors.New("invalid key")
	ErrNoCAS        = errors.New("store does not honour conditional writes")
	// throttled, or a concurrent request has not won yet; always NotApplied.
	ErrBusy   = errors.New("store is busy, try again")
	ErrClosed = fs.ErrClosed
)

// Outcome is the effect of a failed call on the data.
type Outcome uint8

// The outcomes. Unknown is the zero value, so a driver that forgets to classify an error is safe.
const (
	Unknown    Outcome = iota // read before trying again
	NotApplied                // certainly without effect, now and later
	Applied                   // certainly in effect
)

func (o Outcome) String() string {
	switch o {
	case NotApplied:
		return "not applied"
	case Applied:
		return "applied"
	case Unknown:
	}
	return "outcome unknown"
}

// Error is returned by every failed call of a driver.
type Error struct {
	Op, Key string
	Outcome Outcome
	Err     error
}

// Error returns operation, key, cause and, if it matters, the outcome.
func (e *Error) Error() string {
	text := e.Op
	if e.Key != "" {
		text += " " + printable(e.Key)
	}
	if e.Outcome == Unknown && e.writes() {
		return fmt.Sprintf("%s: %v (outcome unknown)", text, e.Err)
	}
	return fmt.Sprintf("%s: %v", text, e.Err)
}

// printable protects a terminal from a hostile key: a key that ValidKey refuses is quoted and truncated.
func printable(key string) string {
	if keyFault(key) == "" {
		return key
	}
	return fmt.Sprintf("%.200q", key)
}

func (e *Error) writes() bool {
	switch e.Op {
	case "put", "append", "cut", "resync", "delete":
		return true
	}
	return false
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// Refused reports whether a store does not permit the read of an object or a folder: a disk or S3 without permission, a
// disk with a bad sector. Others may be readable.
func Refused(err error) bool { return errors.Is(err, fs.ErrPermission) || errors.Is(err, syscall.EIO) }

// OutcomeOf returns the outcome of a call by its error: Applied for nil, the outcome of the first Error in the chain,
// and Unknown for anything else.
func OutcomeOf(err error) Outcome {
	if err == nil {
		return Applied
	}
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Outcome
	}
	return Unknown
}
