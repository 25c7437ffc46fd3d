package journal

import (
	"github.com/coppice-go/coppice/internal/journal/compose"
	"github.com/coppice-go/coppice/internal/journal/history"
	"github.com/coppice-go/coppice/internal/journal/objects"
	"github.com/coppice-go/coppice/internal/journal/state"
)

// What the packages below define and users of a handle meet.
type (
	State   = state.State
	Line    = state.Line
	Genesis = state.Genesis
	Moment  = history.Moment
	Batch   = history.Batch
	Config  = compose.Config
	Limits  = compose.Limits
	Step    = compose.Step
	Entry   = compose.Entry
	Head    = compose.Head
	Failure = objects.Failure
)

// The ways in which a commit fails without being a plain failure of the backend.
var (
	ErrConflict = objects.ErrConflict
	ErrFenced   = objects.ErrFenced
	ErrUnknown  = objects.ErrUnknown
	ErrCorrupt  = objects.ErrCorrupt
	ErrReadOnly = objects.ErrReadOnly
	ErrDeleted  = objects.ErrDeleted
)

// OriginalMax bounds an imported file's bytes when they are read back: 4 GiB.
const OriginalMax = objects.OriginalMax
