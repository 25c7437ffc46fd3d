package journal

import (
	"time"

	"github.com/coppice-go/coppice/checkpoint"
	"github.com/coppice-go/coppice/internal/journal/state"
	"github.com/coppice-go/coppice/transcript"
)

// Step is a request for one commit.
type Step struct {
	Reason string    // "" = turn, or compaction where one is among the entries
	Time   time.Time // of the activity that is committed; zero = now
	Writer string    // name of the writer; "" = Config.Writer
	Key    string    // idempotency key; "" = none
	Digest string    // hash of the turn: the same key with another digest is ErrKeyReused; "" = not compared

	// Based: the step names its base, or needs none. Then a doubt of an earlier call may be ended before it; a step on
	// the view is ErrInDoubt instead.
	Based bool

	// The kind of the step; none of these = a turn. A turn without Base stores the entries of the buffer too, and is
	// made on the view.
	Move    bool // it moves the head
	Stay    bool // with Base: the view stays, because the caller has entries that are not in the buffer
	Nothing bool // a move to the place where the head is: it is judged, and nothing is stored
	Note    bool // an annotation: it is made on the newest state, and conflicts only with a claim
	Claim   bool // it fences every older writer

	Entries []*Entry // to store, besides those of the buffer
	IDs     []string // ids of all entries of the caller, in order, if these are more than Entries; nil = of Entries
	Base    *Anchor  // the commit that the step was made on; nil = the view
	Head    *Place   // the head after the step; nil = the last entry that moves it, else unchanged
	Branch  string   // the branch of the head after the step; "" = unchanged

	// Edit returns the document after the step; nil = unchanged. It must not keep or change its argument.
	Edit func(checkpoint.Document) checkpoint.Document
	// Settings: the settings in the document follow the entries, by the rules of Profile.
	Settings bool
	Profile  transcript.Profile
	// Window is the working context of the place that the entries grow from. It is used if the state has none, or that
	// of another place.
	Window  *transcript.WorkingContext
	Seen    uint64              // State.Next when Window was made: Window has no later amendments
	Amended bool                // Window has the amendments among Entries
	Outline *checkpoint.Outline // describes the place that the head moves to; nil = Entries describe it

	Kept     string              // name for the branch that the head leaves, for example in a rollback; "" = none
	Names    []checkpoint.Rename // renames of branches; not for the branch Kept
	Keyframe bool                // store the whole document in place of a patch
	Original string              // hex SHA-256 of the imported bytes; "" = none
	Source   *checkpoint.Source  // the file of the import; nil = unchanged
	Snapshot string              // name of the snapshot that this commit is the first to refer to; "" = none
	Blobs    map[string][]byte   // images of at most 64 KiB each that the checkpoint contains, by SHA-256

	KeepBoth   bool // in a conflict, keep the turn as a branch
	KeepFenced bool // after a claim of another writer, keep the turn as a branch
	MayIdle    bool // commit nothing if there is nothing to store

	next       string // with ReasonRoll: name of the next segment
	sealAll    bool   // replace: seal and fold everything first
	rebuildIDs bool   // replace: build the id index again first
	erase      bool   // the step erases entries
}

// sealAllStep returns a step that changes nothing but seals and folds everything, after an import.
func sealAllStep() *Step { return &Step{Reason: state.ReasonImport, Note: true, sealAll: true} }

// Outcome is the receipt of a step.
type Outcome struct {
	Commit   checkpoint.Commit
	State    *state.State // the state right after the request
	Kept     string       // branch with the turn that lost a conflict, or with the entries that a move left; "" = none
	Bytes    int          // size of the checkpoint object or of the append
	Warnings []string     // soft limits that were exceeded, torn bytes that were moved
	Repeated bool         // the idempotency key was known: nothing was done
	Behind   bool         // branch, head or document had changed since the base of the step
	Snapshot string       // name of the snapshot that this commit is the first to refer to; "" = none
	IDs      []string     // of the step's own entries, in order; with Repeated, those of the first time
	Known    []string     // those of IDs that the session had already, which are not stored again
	Line     uint64       // with Repeated: ordinal of the commit's line; 0 = not known

	// For a request that was in doubt, after it is decided.
	doubt string             // id of its commit; "" = it was never in doubt
	own   string             // request.ownDigest
	rec   *checkpoint.Record // the stored commit line; nil = the request was not stored
}
