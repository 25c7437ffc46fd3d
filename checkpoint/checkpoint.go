// Package checkpoint defines a commit and its bytes: the state document, the commit line that stores it in the
// transcript, the patches between documents, and the object from which a session resumes. It is pure: bytes in, bytes
// out, no clock, no randomness, no I/O.
//
// Guarantees, each with a test here:
//
//  1. Exact. A document is restored byte for byte through any sequence of keyframes and patches;
//     MakePatch returns a patch only after ApplyPatch has produced that very result.
//  2. Detected. A flipped bit, a cut or a foreign key in a commit line, a prelude or an object never
//     reads as something else: it is "not ours", or an error that wraps one of codec's (I10).
//  3. Bounded. Sizes, counts and depths are checked before memory is taken for them (I15). An exceeded
//     limit is a *codec.LimitError with the limit and the value.
//
// A session's log is a sequence of lines. Most are entries; a [Record] is the line that makes those before it durable
// as one step, and a [Prelude] opens a segment and has the key of its commit lines. An [Object] is checkpoint_latest or
// a snapshot: document, head, lineage, working window, tail and segment map in one body. The byte tables are in
// docs/format/commit-line.md and docs/format/checkpoint.md.
package checkpoint

import (
	"cmp"
	"encoding/json"
	"time"

	"github.com/coppice-go/coppice/checkpoint/internal/body"
	"github.com/coppice-go/coppice/checkpoint/internal/canon"
	"github.com/coppice-go/coppice/checkpoint/internal/patch"
	"github.com/coppice-go/coppice/transcript"
)

// Limits. Sizes are in bytes.
const (
	MaxState    = canon.MaxState // 4 MiB: state of one document, and its manager's state
	MaxPartial  = 256 << 10      // partial output of one document, without white space
	MaxDepth    = canon.MaxDepth // 512: nesting of a line of the log, and of everything that is read
	MaxName     = 256            // a branch name, writer or idempotency key
	MaxText     = 4 << 10        // a title or a working directory
	MaxBranches = 1024           // names of one session; unnamed leaves are free
	MaxLineage  = 64             // commits in the lineage of an Object
	MaxBlob     = 64 << 10       // an image inside an Object
	MaxBlobs    = 256 << 10      // all such images together
	SoftObject  = 2 << 20        // an encoded Object above this causes a warning
	MaxObject   = 8 << 20        // an encoded Object
	MaxBody     = 64 << 20       // its body before compression
	FoldWidth   = 64             // references that fold into one index object
	MaxRuns     = 1024           // runs of the id index

	// The nesting that the levels around it in a commit line leave to a caller's JSON. Encode refuses deeper JSON.
	MaxStateDepth = canon.BodyDepth - 1 // 509: state, manager and partial output, in the document
	MaxDocDepth   = canon.BodyDepth - 2 // 508: a document of Docs
	MaxItemDepth  = canon.BodyDepth - 3 // 507: a message of an explicit context, in a list of objects

	PreludeFormat = 1 // version of the prelude and commit lines that this package writes and reads
)

// MakePatch returns an RFC 6902 patch that turns one encoded document into another. ok is true only if ApplyPatch
// produced to byte for byte from (patch, sorted), and the patch is at most half as long as to and no deeper than a line
// may be; otherwise the document has to be stored whole. Equal documents produce the patch [].
func MakePatch(from, to []byte) (text []byte, sorted, ok bool) { return patch.Make(from, to) }

// ApplyPatch applies an RFC 6902 patch to an encoded document. With sorted, an object of the result gets its members in
// ascending order of their names if the object at its place in from has that order: a patch can only add members at the
// end. The input is checked before a library reads it, and no input makes it panic. Errors wrap codec.ErrFormat or are
// a *codec.LimitError. The caller has to check the result, by Record.DocCRC.
func ApplyPatch(from, text []byte, sorted bool) ([]byte, error) {
	return patch.Apply(from, text, sorted)
}

// Head is the position of a session: its last commit, and the parent of the next entry.
type Head struct {
	Seq, Epoch uint64
	Commit     string // id of the last commit; "" = nothing is committed
	Entry      string // "" = the next entry is a new root
	Branch     string
}

// Commit is one durable step, as logs and listings show it. Head.Entry and Head.Branch are those of the session after
// it.
type Commit struct {
	Head
	Parent, Reason, Writer string // Parent: id of the previous commit; "" for the first
	Snapshot               string // id of the snapshot of the state before it; "" = none
	Time                   time.Time
	Entries                int  // entries that it made durable, without itself
	Keyframe               bool // it contains its whole document
	StateLost              bool // a repair rebuilt it without its state

	Key     string // the turn's idempotency key; "" = none
	Kept    string // the branch of a losing turn or an abandoned path; "" = none
	HeadOrd int64  // ordinal of Head.Entry; -1 = none
}

// Summary is the part of a session, or of a snapshot, that a listing needs. It is in the first 4 KiB of an Object. Long
// texts are truncated there, with the mark "…": Title to 256 bytes, Cwd to 1 KiB, Preview to 200. An Object has title
// and working directory whole, at most MaxText bytes each.
type Summary struct {
	Head
	ID, Title, Cwd, Parent, Preview string // Parent: the session from which it was created; Preview: of the head
	Created, Updated                time.Time
	Entries                         uint64 // entries of the transcript, without commits
	Bytes                           int64  // of the transcript, raw

	First string // one line of the first prompt, if it was among the first entries that were committed
	// Status is the state of the conversation, by the newest message on the path to its head: "asked" (an answer is
	// due), "calling" (results of tools are due), "working" (tools have answered), "answered", "failed" (the agent's
	// last message is an error), "aborted" (it was interrupted); "" = there is no message.
	Status string
	// Relation is the relation to Parent: "fork", "agent" (an agent created the session), or the caller's own word; ""
	// = unknown.
	Relation string
	// Source is the file that the session was imported from. If an earlier build imported it under another id than the
	// file's, it has only that id. nil = none, or the summary is of a listing. It must not be changed.
	Source *Source
	// Meta is the session's metadata, as set by SessionOptions.Meta and SetInfo; it must not be changed. If it is over
	// 1 KiB a Summary that was read alone (DecodeSummary) has none, and MetaElsewhere is set.
	Meta          map[string]string
	MetaElsewhere bool // Meta is only in the rest of the object
	// Docs are the documents of the session that a listing was asked for (ListOptions.Docs), by name; else nil.
	Docs      map[string]json.RawMessage
	Missing   uint64 // the newest commit, if the log has lost it; 0 = the log is complete. Never stored
	Cause     string // in a listing, or for a damaged session: why it cannot be read; never stored
	Internal  bool   // an agent created it for its own purposes: lists of sessions to continue leave it out
	Tombstone bool   // the session is deleted: nothing else of it is stored
	Snapshot  string // id of this snapshot; "" = this is checkpoint_latest
	Tag       string // of a snapshot
	Reason    string // reason of the commit

	// LogName names the active segment on a store that appends, and LogBytes is the end of its last commit: bytes after
	// it were committed later. Set only in a stored checkpoint; "" = unknown.
	LogName  string
	LogBytes int64

	// Cursor is ListOptions.After for the page that follows this session. Only a listing sets it. It is opaque, needs
	// no escaping in a URL, and names a position: it stays valid when the session changes or is deleted.
	Cursor string
}

// CutText truncates a title or a working directory to MaxText bytes, with the mark "…".
func CutText(s string) string { return body.Cut(s, MaxText) }

// Name returns the name of the session for people: its title, else its first prompt, else the end of its conversation.
func (s Summary) Name() string { return cmp.Or(s.Title, s.First, s.Preview) }

// Diff is the difference between two points: the entries that only one of the paths has, and the change of the state.
type Diff struct {
	Base         string // the last common entry of both paths; "" = none
	OnlyA, OnlyB []transcript.Entry
	MoreA, MoreB int             // further entries, left out because of a limit
	State        json.RawMessage // RFC 6902, from A to B
}
