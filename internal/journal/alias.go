package journal

import (
	"github.com/coppice-go/coppice/internal/journal/compose"
	"github.com/coppice-go/coppice/internal/journal/history"
	"github.com/coppice-go/coppice/internal/journal/objects"
	"github.com/coppice-go/coppice/internal/journal/state"
)

// What the packages below define and users of a handle meet: each is documented where it is defined.
type (
	// State is a session as it stands after one commit.
	State = state.State
	// Line is a durable line of the transcript.
	Line = state.Line
	// Genesis is what a new session starts with.
	Genesis = state.Genesis
	// Moment is a session as one commit left it.
	Moment = history.Moment
	// Batch is a commit and its lines.
	Batch = history.Batch
	// Config is what a handle needs.
	Config = compose.Config
	// Limits are the protocol's thresholds.
	Limits = compose.Limits
	// Step is one commit that is asked for.
	Step = compose.Step
	// Entry is an entry on its way into the transcript.
	Entry = compose.Entry
	// Head is a place in the tree.
	Head = compose.Head
	// Failure carries what a failed operation knows beyond its cause.
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
