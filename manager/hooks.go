package manager

import (
	"context"

	coppice "github.com/coppice-go/coppice"
	"github.com/coppice-go/coppice/transcript"
)

// Hooks are called by a Manager, and can cancel a step: an error of a hook whose name begins with Before ends the step
// before anything is changed. Changes that hooks make to their argument are applied. Each may be nil.
type Hooks struct {
	// "new", "resume", "terminal", "continue", "branch", "fork"
	Start        func(ctx context.Context, s *coppice.Session, reason string)
	BeforeSwitch func(ctx context.Context, from *coppice.Session, to, reason string) error
	Shutdown     func(ctx context.Context, s *coppice.Session) // before its handle is closed

	BeforeTree func(ctx context.Context, p *Plan) error // Summary, Label and Instructions may be set
	Tree       func(ctx context.Context, m Moved)

	// before BeforeFork, called by Branch only
	BeforeBranch func(ctx context.Context, from *coppice.Session, entry string) error
	Branch       func(ctx context.Context, s *coppice.Session, from string)
	BeforeFork   func(ctx context.Context, from *coppice.Session, entry string) error // called by Branch and Fork

	BeforeCompact func(ctx context.Context, c *Cut) error // Summary and FirstKept may be set
	Compact       func(ctx context.Context, c Compacted)
}

// Navigation configures Navigate.
type Navigation struct {
	Summarize    bool   // store a summary of the path that is left
	Summary      string // the summary itself; "" = a hook's, else that of Options.Summarize
	Instructions string // for the caller's summary
	Label        string // label of the summary, or of the target if there is none
}

// Plan describes a move in the tree before it is made.
type Plan struct {
	Session  *coppice.Session
	Target   string             // the selected entry
	From, To string             // the present head and the new one; "" = before every root
	Ancestor string             // the last entry common to both paths; "" = none
	Left     []transcript.Entry // entries only on the path that is left, oldest first
	Wanted   bool               // the user wants a summary; otherwise none is made

	Summary      *Summary // set by a hook: it replaces that of Options.Summarize
	Instructions string
	Label        string
}

// Moved describes a move that was made.
type Moved struct {
	coppice.Receipt
	From     string // the previous head
	Text     string // of the selected user message, to be edited and sent again
	Summary  string // the id of the summary's entry; "" = none
	FromHook bool   // a hook made the summary
	Already  bool   // the head was there already: nothing was done
}

// Cut describes a compaction before it is made.
type Cut struct {
	Session      *coppice.Session
	Path         []transcript.Entry // to the head, root first
	Entries      []transcript.Entry // those that the summary replaces
	FirstKept    string             // the first entry that stays; "" = none stays
	TokensBefore int                // of the context, estimated where no usage is recorded
	Previous     string             // the summary of the previous compaction
	Instructions string

	Summary *Summary // set by a hook: it replaces that of Options.Summarize
}

// Compacted describes a compaction that was made.
type Compacted struct {
	coppice.Receipt
	ID        string // of its entry
	Summary   string
	FirstKept string
	FromHook  bool

	TokensBefore int // of the context, estimated where no usage is recorded
	Replaced     int // entries that the summary replaces
}
