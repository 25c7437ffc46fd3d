package coppice

import (
	"context"
	"io"
	"iter"
	"time"

	"github.com/coppice-go/coppice/backend"
	"github.com/coppice-go/coppice/checkpoint"
	"github.com/coppice-go/coppice/internal/listing"
	"github.com/coppice-go/coppice/snapshot"
	"github.com/coppice-go/coppice/transcript"
)

// Options of a store. The zero value, or nil, is the default.
type Options struct {
	Hooks  Hooks
	Writer string        // who commits, in the log; default host and pid
	Poll   time.Duration // how often Watch looks for others' commits; default 2 s
	// tests: with Rand, equal calls produce equal bytes, ids included, but for background work; called from many
	// goroutines
	Now  func() time.Time
	Rand io.Reader // default crypto/rand; it need not be safe for concurrent use

	// Reread reads an imported file again, for Repair: first its header line, then every entry, as the lines that
	// Import got. open may be called more than once. formats.Reread (package interop/formats) knows all formats. A
	// draft without Raw is a line that no second reading makes again. nil = Repair does without the imported file.
	Reread func(open func() (io.ReadCloser, error)) iter.Seq2[transcript.Draft, error]

	// ListCache is a folder in which List keeps what it found out about the sessions of a store on a disk, titles among
	// it, for the next program. It is outside of the store, nothing else is in it, and it may be lost. "" = in memory
	// alone, and no list is answered from a catalogue.
	ListCache string

	// SingleWriter lets sessions be kept on a store that does not honour conditional writes, where others
	// get backend.ErrNoCAS. The caller answers for it that no two writers ever have one session: nothing
	// notices a second one, and what it overwrites is lost. Their checkpoints carry no proof, so the caller that
	// opens them without this option is refused at its first commit.
	SingleWriter bool
}

// SessionOptions determine how a session is created or opened.
type SessionOptions struct {
	Title, Cwd, Parent string // of a new session; Parent = the session that started this one

	// Relation is what a new session is to its Parent, [a-z0-9.-]{1,32}: such as "agent" for one that an agent began.
	// "" = unknown; Fork sets "fork".
	Relation string
	// Meta is metadata of a new session, by which List can choose: at most 64 keys of [A-Za-z0-9._-]{1,64}, and 4 KiB
	// as JSON. It is part of the session's header line; Session.SetInfo changes it. If the lines of an import
	// have a header, Relation is that header's, and so is Meta if it is empty here.
	Meta map[string]string

	ReadOnly bool // commits are ErrReadOnly; Watch moves the handle along
	// Intact reads past damage, with ReadOnly: Tree, Entries, Originals, Path, Page and Log return all that a repair
	// would leave, as Store.Salvage does; iterators end with ErrCorrupt then, and Info has the Cause.
	Intact   bool
	KeepBoth bool // on a conflict keep the loser's turn as a branch, at once
	NameLeft bool // moves, and turns from an earlier entry, name the line that they leave if none does: Receipt.Kept
	// commits before the first assistant message stay in memory: their receipt has Seq 0
	DeferUntilAssistant bool
	// rules of context building; "" = the session's own, transcript.Coppice for a new one
	Profile transcript.Profile
	// bound of the working context, with images as references; 0 = the session's own, 4 MiB for a new one; < 0 = none
	ContextBytes int
	Snapshots    snapshot.Policy // zero = every 50 commits; on a store that appends, none by count

	// Again lets a new session have the id of one that was deleted: it shares nothing with that one, whose open handles
	// get ErrDeleted. Without it such an id is taken (fs.ErrExist).
	Again bool

	ID string // of Import and Grow alone: the session's id; for Import "" = a new UUIDv7, taken = fs.ErrExist

	// Source is asked by Import and Grow after the last line: the file that the lines are from, by which a later import
	// knows it (Session.Info). With a source, an Import that fails in the middle leaves a session with a part of the
	// lines, which Grow completes. A nil source, or a nil function, means that it is unknown.
	Source func() (*checkpoint.Source, error)
	// Original is asked by Import and Grow after the last line: the bytes of the imported file, where its lines
	// are not those bytes. A nil reader, or a nil function, means that they are.
	Original func() (io.Reader, error)
}

// Hooks run in the caller's goroutine with no lock held, so they may call the session. An error stops
// the call before anything is queued.
type Hooks struct {
	// BeforeAppend may change a draft: what it removes reaches no memory and no disk of ours. An import
	// passes through it too, with its header line, of the type "session", and keeps no original then.
	BeforeAppend func(ctx context.Context, d *transcript.Draft) error
	// AfterCommit sees every acknowledged commit of a handle; of an import and of a fork the last one, with the
	// entries of all.
	AfterCommit func(s *Session, r Receipt)
}

// The orders of List.
const (
	ByActivity = listing.ByActivity // newest first, by the last commit
	ByCreated  = listing.ByCreated  // newest first, by the first commit
	// by the stored names of the ids, byte by byte: "_" is stored as "__", and "A" as "_a", so "B" comes before "a".
	ByID = listing.ByID
)

// ListOptions narrow and order a listing.
type ListOptions struct {
	Cwd    string            // only sessions of this working directory; "" = all
	Parent string            // only sessions that this one started, its forks included; "" = all
	Meta   map[string]string // only sessions with each of these; nil = all

	Order string // "" = ByActivity
	After string // Cursor of the last session of the page before, in the same order; "" = from the start
	Limit int    // at most so many; 0 = all

	// Docs are names of documents (Turn.Docs) that come with each session, in Summary.Docs; at most 64. The first 4 KiB
	// do not hold them: the whole checkpoint of a session that is listed is read, at most 8 MiB.
	Docs []string

	// Exact lists every session, whatever the catalogue has of it. Without it a list by activity of a store with 1,000
	// sessions or more may be answered from the catalogue: see Store.List.
	Exact bool
	// Age receives, before the first result of a list that the catalogue answers, how old that is: at most 30 seconds,
	// or twice the time that listing the store took, if that is more. It is not called for one that lists every
	// session; may be nil.
	Age func(age time.Duration)

	// Progress receives how many sessions were looked at so far and how many there are in all, those that are not
	// wanted included: once when the total is known, then after each session that was read. Deleted ones leave the
	// total when they are found. Only ByActivity calls it; may be nil.
	Progress func(looked, total int)
}

// Report is what Verify, Repair and GC did and found.
type Report struct {
	Sessions, Objects, Removed int
	Bytes                      int64      // read by Verify, written by Repair, freed by GC
	Problems                   []*Error   // each with Object and Offset
	IO                         backend.IO // requests to the backend
}
