// Package checkpoint defines what a commit is and how it is written: the state document, the commit line
// that puts it into the transcript, the patches between documents, and the one object from which a
// session resumes. It is pure: bytes in, bytes out, no clock, no randomness, no I/O.
//
// Guarantees, each with a test here:
//
//  1. Exact. A document comes back byte for byte through any sequence of keyframes and patches;
//     MakePatch offers a patch only after ApplyPatch has given that very result.
//  2. Detected. A flipped bit, a cut or a foreign key in a commit line, a prelude or an object never
//     reads as something else: it reads as "not ours", or as an error that wraps one of codec's (I10).
//  3. Bounded. Sizes, counts and depths are checked before memory is taken for them (I15). A limit that
//     is passed is a *codec.LimitError with the limit and the value.
//
// A session's log is a sequence of lines. Most are entries; a [Record] is the line that makes those
// before it durable as one step, and a [Prelude] opens a segment and carries the key of its commit
// lines. An [Object] is checkpoint_latest or a snapshot: document, head, lineage, working window, tail
// and segment map in one body. The byte tables are in docs/format/commit-line.md and
// docs/format/checkpoint.md.
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

// Limits. Where a size is meant, it is in bytes.
const (
	MaxState    = canon.MaxState // 4 MiB: state, and likewise manager, of one document
	MaxPartial  = 256 << 10      // partial output of one document, without white space
	MaxDepth    = canon.MaxDepth // 512: nesting of a line of the log, and so of all that is read
	MaxName     = 256            // a branch name, writer or idempotency key
	MaxText     = 4 << 10        // a title or a working directory
	MaxBranches = 1024           // names of one session; unnamed leaves are free
	MaxLineage  = 64             // commits that an Object remembers
	MaxBlob     = 64 << 10       // an image that rides in an Object
	MaxBlobs    = 256 << 10      // all such images together
	SoftObject  = 2 << 20        // an encoded Object above this deserves a warning
	MaxObject   = 8 << 20        // an encoded Object
	MaxBody     = 64 << 20       // its body before compression
	FoldWidth   = 64             // references that fold into one index object
	MaxRuns     = 1024           // runs of the id index

	// What the levels around it in a commit line leave to a caller's JSON. Encode refuses what is deeper.
	MaxStateDepth = canon.BodyDepth - 1 // 509: state, manager and partial output, in the document
	MaxDocDepth   = canon.BodyDepth - 2 // 508: a document of Docs
	MaxItemDepth  = canon.BodyDepth - 3 // 507: a message of an explicit context, in a list of objects

	PreludeFormat = 1 // version of the prelude and commit lines that this package writes and reads
)

// MakePatch looks for an RFC 6902 patch that turns one encoded document into another. ok is true only
// if ApplyPatch was seen to return to byte for byte from (patch, sorted), and the patch is at most half
// as long as to and no deeper than a line may hold; otherwise the document has to go whole. Equal
// documents produce the patch [].
func MakePatch(from, to []byte) (text []byte, sorted, ok bool) { return patch.Make(from, to) }

// ApplyPatch applies an RFC 6902 patch to an encoded document. With sorted, every object of the result
// that is where from has an object with its members in ascending order of their names gets that
// order too: a patch can only add members at the end. The input is checked before any library sees it,
// and no input makes it panic. Errors wrap codec.ErrFormat or are a *codec.LimitError. Whether the result is
// the right one is for the caller to check, by Record.DocCRC.
func ApplyPatch(from, text []byte, sorted bool) ([]byte, error) {
	return patch.Apply(from, text, sorted)
}

// Head is where a session is: its last commit, and the entry from which it grows.
type Head struct {
	Seq, Epoch uint64
	Commit     string // id of the last commit; "" = nothing committed yet
	Entry      string // "" = a new root comes next
	Branch     string
}

// Commit is one durable step, as logs and listings show it. Head.Entry and Head.Branch are where the
// session was after it.
type Commit struct {
	Head
	Parent, Reason, Writer string // Parent: id of the commit before it; "" for the first
	Snapshot               string // id of the snapshot that was taken of the state before it; "" = none
	Time                   time.Time
	Entries                int  // entries that it made durable, itself not counted
	Keyframe               bool // it carries its document whole
	StateLost              bool // a repair made it again, and nothing brought its state back

	Key     string // the turn's idempotency key; "" = none
	Kept    string // the branch on which a losing turn or an abandoned line lives; "" = none
	HeadOrd int64  // ordinal of Head.Entry; -1 = none
}

// Summary is what a listing needs of a session, or of a snapshot. It lies in the first 4 KiB of an
// Object. Long texts are cut there, with the mark "…": Title to 256 bytes, Cwd to 1 KiB, Preview to 200. An Object has
// title and working directory whole, at most MaxText bytes each.
type Summary struct {
	Head
	ID, Title, Cwd, Parent, Preview string // Parent: the session that started this one; Preview: of the head
	Created, Updated                time.Time
	Entries                         uint64 // entries of the transcript, commits not counted
	Bytes                           int64  // of the transcript, raw

	First string // one line of what the user asked first, if it was among the first entries that were committed
	// Status is how far the conversation is, by the newest message on the way to its head: "asked" (an answer is
	// due), "calling" (results of tools are due), "working" (tools have answered), "answered", "failed" (the agent's
	// last message is an error), "aborted" (it was broken off); "" = there is no message.
	Status string
	// Relation is what the session is to Parent: "fork", "agent" (a session that an agent began), or the caller's own
	// word; "" = not known.
	Relation string
	// Source is the file that the session was imported from; of one that an earlier build imported under another id
	// than the file's, that id alone. nil = none, or the summary is of a listing. It must not be changed.
	Source *Source
	// Meta is the session's metadata, as SessionOptions.Meta and SetInfo set it; not to be changed. Where it is over
	// 1 KiB a Summary that was read alone (DecodeSummary) has none, and MetaElsewhere.
	Meta          map[string]string
	MetaElsewhere bool // Meta is in the rest of the object alone
	// Docs are documents of the session by name, those that a listing was asked for (ListOptions.Docs); else nil.
	Docs      map[string]json.RawMessage
	Missing   uint64 // the newest commit that was made, if the log has lost it; 0 = it has all. Never stored
	Cause     string // why the session cannot be read, in a listing or past damage; never stored
	Internal  bool   // an agent began it for its own purposes: lists of what a person may continue leave it out
	Tombstone bool   // the session is deleted: nothing else is kept of it
	Snapshot  string // id of this snapshot; "" = this is checkpoint_latest
	Tag       string // of a snapshot
	Reason    string // of the commit: why it was made

	// LogName names the segment that was active, on a store that appends, and LogBytes is where its last commit ended:
	// what is beyond was committed since. Only a checkpoint as it is stored has them; "" = not known.
	LogName  string
	LogBytes int64

	// Cursor is ListOptions.After for the page that follows this session in a listing, which alone sets it. It is
	// opaque, good in a URL as it is, and names a position: it stays valid when the session changes or is deleted.
	Cursor string
}

// CutText returns a title or a working directory as a session knows it: cut to MaxText bytes, with the mark "…".
func CutText(s string) string { return body.Cut(s, MaxText) }

// Name returns what a person knows the session by: its title, else what was asked first, else the end of its
// conversation.
func (s Summary) Name() string { return cmp.Or(s.Title, s.First, s.Preview) }

// Diff is what lies between two points: the entries that only one of the paths has, and the change of
// the state.
type Diff struct {
	Base         string // the last entry that both paths share; "" = none
	OnlyA, OnlyB []transcript.Entry
	MoreA, MoreB int             // entries after these, which were left out because of a limit
	State        json.RawMessage // RFC 6902, from A to B
}
