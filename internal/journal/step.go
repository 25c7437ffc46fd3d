package journal

import (
	"time"

	"github.com/coppice-go/coppice/checkpoint"
	"github.com/coppice-go/coppice/internal/journal/state"
	"github.com/coppice-go/coppice/transcript"
)

// Step is one commit that is asked for.
type Step struct {
	Reason string    // "" = turn, or compaction where one is among the entries
	Time   time.Time // of the activity that is committed; zero = now
	Writer string    // who makes it; "" = Config.Writer
	Key    string    // idempotency key
	Digest string    // of what the turn holds: the same key with another digest is ErrKeyReused; "" = not compared

	// Based: the call names its base, or none is needed: the doubt of another call can be ended for it.
	Based bool

	// What the step is; none of them: a turn. A turn without Base takes the entries that were appended before it, and
	// is made on the view.
	Move    bool // a navigation
	Stay    bool // with Base: the caller has more than the buffer that is not stored, so that the view stays
	Nothing bool // a move to where the head is: it is judged, and nothing is stored
	Note    bool // an annotation: it is made on the newest state, and conflicts with nothing but a claim
	Claim   bool // fences every older writer

	Entries []*Entry // of the step's own
	IDs     []string // of all that the caller brought, in order, if that is more than Entries; nil = it is not
	Base    *Anchor  // what the step was made on; nil = the view
	Head    *Place   // where the head is afterwards; nil = at the last entry that moves it, or where it was
	Branch  string   // the branch that the head is on afterwards; "" = as before

	// Edit makes the document from the one before; nil = unchanged. It must not keep or change its argument.
	Edit func(checkpoint.Document) checkpoint.Document
	// Settings: the document's settings follow the entries, by the rules of Profile.
	Settings bool
	Profile  transcript.Profile
	// Window is that of the place from which the head grows; it is used where the state has none, or another.
	Window  *transcript.WorkingContext
	Seen    uint64              // State.Next when Window was made: an amendment from there on is not in it
	Amended bool                // but those of the step's own entries are
	Outline *checkpoint.Outline // of the place that the head moves to; nil = the entries describe it

	Kept     string              // names the line that the head leaves: rollback and the like
	Names    []checkpoint.Rename // of branches; not of a line that is kept
	Keyframe bool                // the document goes whole
	Original string              // hex SHA-256 of the imported bytes
	Source   *checkpoint.Source  // the file of the import; nil = as before
	Snapshot string              // name of the snapshot that this commit is the first to name
	Blobs    map[string][]byte   // small images (at most 64 KiB each) that ride in the checkpoint, by SHA-256

	KeepBoth   bool // in a conflict the turn is kept as a branch
	KeepFenced bool // also where another writer has claimed the session
	MayIdle    bool // nothing is committed if there is nothing to store

	next   string // reason roll: name of the segment that follows
	settle bool   // replace: what was written in bulk is sealed and folded first
	anew   bool   // replace: the id index is made again first
	erase  bool   // entries were erased
}

// settling returns a step that changes nothing, by which what was written in bulk is sealed and folded.
func settling() *Step { return &Step{Reason: state.ReasonImport, Note: true, settle: true} }

// Outcome is what a step led to: its receipt, if it is stored.
type Outcome struct {
	Commit   checkpoint.Commit
	State    *state.State // the state right after the request
	Kept     string       // branch on which a losing turn, or the line that a move left, is now
	Bytes    int          // size of the checkpoint object or of the append that carried it
	Warnings []string     // soft limits passed, torn bytes moved aside
	Repeated bool         // the idempotency key was known: nothing was done
	Behind   bool         // branch, head or document had changed since what the step was made on
	Snapshot string       // that this commit is the first to name
	IDs      []string     // of the step's own entries, in order; of a step that was repeated, those of the first time
	Known    []string     // of IDs, those of entries that the session had, which are not stored again
	Line     uint64       // with Repeated: ordinal of the commit's line; 0 = not known

	// Of a request that was in doubt, once it is decided.
	doubt string             // id of its commit; "" = it was never in doubt
	own   string             // Step.Digest, without the drafts that it took
	rec   *checkpoint.Record // of what is stored; nil = it is lost
}
