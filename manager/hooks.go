package manager

import (
	"context"

	coppice "github.com/coppice-go/coppice"
	"github.com/coppice-go/coppice/transcript"
)

// Hooks are called for what a Manager does, and may stop it: an error of a hook whose name begins with Before ends
// the step before anything is changed. Changes that they make to their argument are applied. They may be nil.
type Hooks struct {
	// "new", "resume", "terminal", "continue", "branch", "fork"
	Start        func(ctx context.Context, s *coppice.Session, reason string)
	BeforeSwitch func(ctx context.Context, from *coppice.Session, to, reason string) error
	Shutdown     func(ctx context.Context, s *coppice.Session) // before its handle is closed

	BeforeTree func(ctx context.Context, p *Plan) error // Summary, Label and Instructions may be set
	Tree       func(ctx context.Context, m Moved)

	// before BeforeFork, of Branch alone
	BeforeBranch func(ctx context.Context, from *coppice.Session, entry string) error
	Branch       func(ctx context.Context, s *coppice.Session, from string)
	BeforeFork   func(ctx context.Context, from *coppice.Session, entry string) error // of Branch and Fork

	BeforeCompact func(ctx context.Context, c *Cut) error // Summary and FirstKept may be set
	Compact       func(ctx context.Context, c Compacted)
}

// Navigation configures Navigate.
type Navigation struct {
	Summarize    bool   // leave a summary of the line that is left
	Summary      string // the summary itself; "" = a hook's, else that of Options.Summarize
	Instructions string // for the caller that makes it
	Label        string // names the summary, or without one the target
}

// Plan is a move in the tree before it is made.
type Plan struct {
	Session  *coppice.Session
	Target   string             // what was selected
	From, To string             // the head now, and where it goes; "" = before every root
	Ancestor string             // the last entry that both lines share; "" = none
	Left     []transcript.Entry // what is on the line that is left alone, oldest first
	Wanted   bool               // the user wants a summary; without it none is made

	Summary      *Summary // set by a hook: it is taken instead of what Options.Summarize makes
	Instructions string
	Label        string
}

// Moved is a move that was made.
type Moved struct {
	coppice.Receipt
	From     string // the head before
	Text     string // of the user's message that was selected, to be edited and sent again
	Summary  string // the id of the summary's entry; "" = none
	FromHook bool   // a hook made the summary
	Already  bool   // the head was there: nothing was done
}

// Cut is a compaction before it is made.
type Cut struct {
	Session      *coppice.Session
	Path         []transcript.Entry // to the head, root first
	Entries      []transcript.Entry // of these, what the summary replaces
	FirstKept    string             // the entry from which on all is kept; "" = nothing is
	TokensBefore int                // of the context, estimated where no usage says it
	Previous     string             // the summary of the compaction before
	Instructions string

	Summary *Summary // set by a hook: it is taken instead of what Options.Summarize makes
}

// Compacted is a compaction that was made.
type Compacted struct {
	coppice.Receipt
	ID        string // of its entry
	Summary   string
	FirstKept string
	FromHook  bool

	TokensBefore int // of the context, estimated where no usage says it
	Replaced     int // entries for which the summary stands
}
