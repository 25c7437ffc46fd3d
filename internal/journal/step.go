package journal

import (
	"time"

	"github.com/coppice-go/coppice/checkpoint"
	"github.com/coppice-go/coppice/internal/journal/state"
	"github.com/coppice-go/coppice/transcript"
	"github.com/coppice-go/coppice/transcript/pathwindow"
)

// Entry is an entry on its way into the transcript.
type Entry struct {
	Raw       []byte          // the stored line, without its newline
	Head      transcript.Line // of Raw, where it was read already
	ID        string
	ParentID  string // "" = a root
	ParentOrd int64  // ordinal of the parent; -1 = a root, or a parent that the session does not have
	Parent    *Entry // instead of ParentOrd: a parent that has no ordinal yet. Cleared when this entry has one.
	Ord       uint64 // set when the commit that holds it is acknowledged
	Done      bool   // it has been acknowledged
}

// Head is a place in the tree. The zero Head is not one: Ord -1 with ID "" is the place before every root.
type Head struct {
	ID  string
	Ord int64
	// Entry is the place instead, where it has no ordinal yet.
	Entry *Entry
}

// Step is one commit that is asked for.
type Step struct {
	Reason  string
	Time    time.Time // of the activity that is committed; zero = now
	Key     string    // idempotency key
	Entries []*Entry
	Head    *Head  // where the head stands afterwards; nil = at the last entry, or where it stood
	Branch  string // the branch that the head is on afterwards; "" = as before
	// Edit makes the document from the one before; nil = unchanged. It must not keep or change its argument.
	Edit func(checkpoint.Document) checkpoint.Document
	// Window is that of the place from which Head grows: of Head itself, or of the parent of the first of
	// Entries that leads there. nil = it follows from the window before.
	Window *pathwindow.Window
	// Kept names the line that the head leaves: rollback and the like.
	Kept     string
	Claim    bool              // fences every older writer
	Keyframe bool              // the document goes whole
	Original string            // hex SHA-256 of the imported bytes
	Snapshot string            // name of the snapshot that is taken of this commit
	Blobs    map[string][]byte // small images (at most 64 KiB each) of the entries, by SHA-256: they ride in the checkpoint
	Queued   func()            // called once, when the step stands in line: later ones come behind it
	next     string            // reason roll: name of the segment that goes on
	settle   bool              // replace: what was written in bulk is sealed and folded first
	KeepBoth bool              // on ErrConflict keep the turn as a branch at once
}

// idle tells that the step is none of the session's users: it does not count as activity.
func (s *Step) idle() bool { return s.settle || s.Reason == state.ReasonRoll }

// Settling is a step that changes nothing, by which what was written in bulk is sealed and folded.
func Settling() *Step { return &Step{Reason: state.ReasonImport, settle: true} }

// Settles tells whether the step is one of settling.
func (s *Step) Settles() bool { return s.settle }

// Moved says that base is no longer the head. It is turned into a conflict or folded by the caller.
type Moved struct{ Now *state.State }

func (m *Moved) Error() string { return "the head moved" }
