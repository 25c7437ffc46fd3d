package journal

import (
	"context"
	"io"
	"time"

	"github.com/coppice-go/coppice/backend"
	"github.com/coppice-go/coppice/internal/journal/state"
	"github.com/coppice-go/coppice/transcript"
)

// Limits are the protocol's thresholds. Zero fields take the defaults of DefaultLimits.
type Limits struct {
	SealBytes      int64 // replace: durable tail, in bytes of lines, from which it is sealed
	SealEntries    int   // replace: the same in lines
	RollBytes      int64 // append: size of the active segment from which the next one begins
	RollEntries    int   // append: the same in lines
	PublishCommits int   // append: commits between two writes of checkpoint_latest
	PublishBytes   int64 // append: log bytes between two writes of checkpoint_latest
	Keyframe       int   // commits between two that carry their document whole
	WholeDoc       int   // bytes up to which a changed document always goes whole
	PartBytes      int64 // of an imported file that is kept: bytes in one object
	Attempts       int   // tries of one conditional PUT, and rounds of any other loop of the protocol
}

// DefaultLimits are the figures that the design sets.
var DefaultLimits = Limits{
	SealBytes: 256 << 10, SealEntries: 256, RollBytes: 1 << 20, RollEntries: 16384,
	PublishCommits: 256, PublishBytes: 512 << 10, Keyframe: 64, WholeDoc: 4 << 10, PartBytes: 8 << 20,
	Attempts: 12,
}

// Config is what a handle needs. Time, randomness and I/O come in here and nowhere else.
type Config struct {
	Backend  backend.Backend
	Session  string // a valid session id
	Writer   string // name of the writer in commits
	Now      func() time.Time
	Rand     io.Reader // safe for concurrent use
	Sleep    func(ctx context.Context, d time.Duration) error
	Go       func(job func()) // runs background work; nil = in a goroutine that Close joins
	Profile  transcript.Profile
	MaxBytes int // bound of the working context; 0 = 4 MiB
	ReadOnly bool
	KeepBoth bool // turns that meet a conflict are kept as branches: a handle that is behind takes entries
	Fresh    bool // the id was made for this session, or no object of it was there just now
	Again    bool // the id of a deleted session may be used for the one that is created
	Limits   Limits

	// Since is the first epoch of the session, for what works on it without a handle; 0 = its id was never used before.
	Since uint64
	grave *grave // set by Again

	// Acknowledged is called with the state after each commit of the handle, but for the one that deletes the session.
	// No lock is held. nil = no one asks.
	Acknowledged func(st *state.State)

	// Unfinished completes an erasure that was broken off, if there is one. A writer that finds one in force calls it
	// once. nil = it is left alone.
	Unfinished func(ctx context.Context, cfg Config) error

	// Proof finds out whether the store honours conditions. It is asked on stores that only replace, before
	// a commit on a state that does not carry the proof. nil = the caller writes alone.
	Proof func(ctx context.Context) error
}

// OrDefaults is l with its zero fields set.
func (l Limits) OrDefaults() Limits {
	d := DefaultLimits
	pick := func(v *int, def int) {
		if *v == 0 {
			*v = def
		}
	}
	pick64 := func(v *int64, def int64) {
		if *v == 0 {
			*v = def
		}
	}
	pick64(&l.SealBytes, d.SealBytes)
	pick(&l.SealEntries, d.SealEntries)
	pick64(&l.RollBytes, d.RollBytes)
	pick(&l.RollEntries, d.RollEntries)
	pick(&l.PublishCommits, d.PublishCommits)
	pick64(&l.PublishBytes, d.PublishBytes)
	pick(&l.Keyframe, d.Keyframe)
	pick(&l.WholeDoc, d.WholeDoc)
	pick64(&l.PartBytes, d.PartBytes)
	pick(&l.Attempts, d.Attempts)
	return l
}
