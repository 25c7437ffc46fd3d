// Package state makes what a commit acknowledges and what is read back from the log the same value: both come from the
// state before it by Advance, and nothing else makes a newer state of a session.
//
// It is pure. A State has the contents of a checkpoint (Object, Restore), and what the protocol knows besides: how much
// of the log is durable, and which bytes were moved aside.
package state

import (
	"bytes"
	"encoding/json"
	"slices"
	"time"

	"github.com/coppice-go/coppice/backend"
	"github.com/coppice-go/coppice/checkpoint"
	"github.com/coppice-go/coppice/codec"
	"github.com/coppice-go/coppice/internal/rawjson"
	"github.com/coppice-go/coppice/internal/segment"
	"github.com/coppice-go/coppice/transcript"
)

// State is a session as it is after one commit: all that is in memory of it. It is immutable;
// slices and maps in it are shared between states and only ever appended to.
type State struct {
	Summary  checkpoint.Summary // Summary.Head is the commit
	Header   []byte             // the session header line, without newline
	Doc      checkpoint.Document
	DocJSON  json.RawMessage // Doc as the checkpoint stores it
	HeadOrd  int64           // ordinal of the head, -1 = before every root
	Branches []checkpoint.BranchRef
	Lineage  []checkpoint.Commit        // the last 64 commits, oldest first
	Window   *transcript.WorkingContext // of the head; nil = not known, to be read from the transcript
	rules    Rules                      // of the window, where it is not known
	Segments checkpoint.SegmentMap      // sealed
	IDs      []codec.Ref                // runs of the id index, oldest first: of what is sealed, or less
	Plain    []checkpoint.PlainRef      // append: segments that are not sealed, the last one active
	Tail     []Line                     // replace: durable lines that are in no segment
	Blobs    map[string][]byte          // small images of the window that rode along, by SHA-256
	Next     uint64                     // ordinal of the next line
	Original string                     // hex SHA-256 of the imported bytes; "" = the lines are the original
	Claimed  uint64                     // seq of the newest claim
	CAS      bool                       // the store was seen to honour conditions
	Meta     checkpoint.MetaChange      // of the metadata since the header line; nil = none
	Source   *checkpoint.Source         // of the newest import; nil = none; not to be changed
	Since    uint64                     // first epoch of the session; 0 = it is the first incarnation of its id
	Amended  uint64                     // no line from this ordinal on is an amendment
	Erased   uint64                     // seq of the newest commit that erased entries; 0 = none did

	// The rest is the protocol's: users of a handle leave it alone.

	Key       uint64              // of commit lines' self
	Self      uint32              // of the newest commit line
	SinceKey  int                 // commits since the last that carried its document whole
	Keys      []checkpoint.KeyRef // the newest idempotency keys, oldest first
	AfterKept bool                // the newest line keeps a losing turn: the next one's document goes whole
	lineHead  int64               // the head that the newest line names, where that is a kept one
	lineDoc   json.RawMessage     // its document; nil = not known
	Opening   bool                // the next commit is the first of its segment
	Version   backend.Version     // of checkpoint_latest, as last read or written
	Saved     Saved               // append: what checkpoint_latest held when it was read for this state
	Durable   int64               // append: bytes of the active segment known to be on disk
	Batches   uint64              // append: writes to the log by this handle
	Unsure    []Span              // append: ends of closed segments that are not known to be on disk
	LastLine  int64               // append: length of the newest commit line with its newline
	TailBytes int64               // bytes of Tail, newlines included
	Pending   string              // torn object that the next commit names
	Replaced  map[string]string   // names of segments that commits replaced which were read from the log, by old names
	Missing   uint64              // append: newest commit that is known to have been stored, if the log ends before it
}

// Saved is what a checkpoint_latest that was read holds, which on a store that appends lags after the log.
type Saved struct {
	Exists bool
	Seq    uint64      // of its commit
	Bytes  int64       // of the transcript then
	IDs    []codec.Ref // runs of the id index that it names
}

// Span is a part of a plain segment.
type Span struct {
	Key       string
	From, End int64
}

// Line is a durable line of the transcript.
type Line = segment.Line

const lineageMax = 64

// Active is the segment that the next append goes to; nil on a store that only replaces.
func (st *State) Active() *checkpoint.PlainRef {
	if len(st.Plain) == 0 {
		return nil
	}
	return &st.Plain[len(st.Plain)-1]
}

// KeyRefs returns the places of commits that may have had an idempotency key, the newest first: the commit line shows
// whether it had.
func (st *State) KeyRefs(key string) (found []checkpoint.KeyRef) {
	if key == "" || len(st.Keys) == 0 {
		return nil
	}
	hash := checkpoint.KeyHash(key)
	for i := len(st.Keys) - 1; i >= 0; i-- {
		if st.Keys[i].Hash == hash {
			found = append(found, st.Keys[i])
		}
	}
	return found
}

// Has reports whether a commit id is in the lineage.
func (st *State) Has(id string) bool {
	for i := range st.Lineage {
		if st.Lineage[i].Commit == id {
			return true
		}
	}
	return false
}

// Head is the newest commit.
func (st *State) Head() checkpoint.Head { return st.Summary.Head }

// Newest is the newest commit's record; the zero Commit where there is none.
func (st *State) Newest() checkpoint.Commit {
	if len(st.Lineage) == 0 {
		return checkpoint.Commit{}
	}
	return st.Lineage[len(st.Lineage)-1]
}

// Branch finds a branch by name.
func (st *State) Branch(name string) (checkpoint.BranchRef, bool) {
	for _, b := range st.Branches {
		if b.Name == name {
			return b, true
		}
	}
	return checkpoint.BranchRef{}, false
}

// The reasons of commits that the protocol itself makes.
const (
	ReasonCreate   = "create"
	ReasonRoll     = "roll"
	ReasonInfo     = "info"
	ReasonNames    = "names"
	ReasonClaim    = "claim"
	ReasonConflict = "conflict"
	ReasonImport   = "import"
	ReasonDelete   = "delete"
	ReasonErase    = "erase"
	ReasonHold     = "hold"
)

// Unsealed finds the plain segment that holds an ordinal.
func (st *State) Unsealed(ord uint64) (*checkpoint.PlainRef, bool) {
	for i := len(st.Plain) - 1; i >= 0; i-- {
		if p := &st.Plain[i]; ord >= p.First {
			return p, ord < p.First+p.Count
		}
	}
	return nil, false
}

// Sure reports whether all of st is known to be on disk.
func (st *State) Sure() bool {
	a := st.Active()
	return a == nil || st.Durable >= a.Bytes && len(st.Unsure) == 0
}

// Rolled is st with a new active segment, in which nothing is committed yet.
func (st *State) Rolled(ref checkpoint.PlainRef) *State {
	next := *st
	next.Plain = append(slices.Clone(st.Plain), ref)
	next.Key, next.Durable, next.LastLine, next.Opening = ref.Key, ref.Bytes, 0, true
	next.Tail, next.TailBytes = nil, 0
	return &next
}

// Rules are those by which the working context is built.
type Rules struct {
	Profile  transcript.Profile
	MaxBytes int // bound in bytes; 0 = 1 MiB, < 0 = none
}

// Rules returns those of the session's working context, also where the window is not known.
func (st *State) Rules() Rules {
	if w := st.Window; w != nil {
		return Rules{w.Profile(), w.MaxBytes()}
	}
	return st.rules
}

// Empty returns the working context of an empty path by these rules.
func (r Rules) Empty() *transcript.WorkingContext {
	return transcript.NewWorkingContext(r.Profile, r.MaxBytes)
}

// RulesOf returns the rules of the working context in a keyframe, or, if it has none: those of sessions with coppice's
// own rules, and all keyframes that were written before 2026-11-24.
func RulesOf(b *checkpoint.Base, or Rules) Rules {
	if b == nil {
		return or
	}
	if b.Profile != "" {
		or.Profile = transcript.Profile(b.Profile)
	}
	if b.MaxBytes != 0 {
		or.MaxBytes = int(b.MaxBytes)
	}
	return or
}

// Base returns the fields of the whole session that the first commit of a segment has.
func (st *State) Base() *checkpoint.Base {
	r := st.Rules()
	bound := int64(r.Empty().MaxBytes())
	if bound == int64(Rules{}.Empty().MaxBytes()) {
		bound = 0
	}
	return &checkpoint.Base{
		Branches: st.Branches, Title: st.Summary.Title, Cwd: st.Summary.Cwd, Parent: st.Summary.Parent,
		Created: st.Summary.Created, Entries: st.Summary.Entries, Bytes: st.Summary.Bytes,
		Original: st.Original, Claimed: st.Claimed, HeadOrd: st.HeadOrd, Self: st.Self, First: st.Summary.First,
		Outline: checkpoint.Outline{Preview: st.Summary.Preview, Status: st.Summary.Status},
		Profile: string(r.Profile), MaxBytes: bound, Meta: st.Meta, Source: st.Source,
		Since: st.Since,
	}
}

// Remember keeps small images at hand for the checkpoint; it forgets those that the window let go.
func (st *State) Remember(blobs map[string][]byte) {
	if len(blobs) == 0 {
		return
	}
	all := map[string][]byte{}
	if st.Window != nil {
		all = st.blobsShown()
	}
	if all == nil {
		all = map[string][]byte{}
	}
	for sum, data := range blobs {
		if len(data) <= checkpoint.MaxBlob {
			all[sum] = data
		}
	}
	st.Blobs = all
}

// Genesis is what a new session starts with.
type Genesis struct {
	Header             []byte // the session header line, without newline
	Title, Cwd, Parent string
	Created            time.Time // zero = with the first commit
	Original           string
	Meta               checkpoint.MetaChange // from the header line; nil = none
}

// internal reports whether a header is that of a session that an agent started for its own purposes: a stage of a
// workflow, the work of a subagent.
func internal(header []byte) bool {
	if !bytes.Contains(header, []byte(`"internal"`)) {
		return false // the usual case
	}
	return rawjson.IsTrue(rawjson.Field(header, "internal")) &&
		(bytes.HasPrefix(rawjson.Field(header, "workflow"), []byte("{")) ||
			rawjson.IsString(rawjson.Field(header, "agent")))
}

// Begins sets the header line of its session, and the fields of the summary that come from it.
func (st *State) Begins(header []byte) {
	st.Header, st.Summary.Internal = header, internal(header)
	relation, meta := checkpoint.HeaderRelation(header)
	st.Summary.Relation, st.Meta = relation, st.Meta.On(meta)
	st.Summary.Meta, st.Summary.MetaElsewhere = st.Meta.Apply(meta), false
}

// changeMeta applies a change of the metadata. A change that is not valid, or whose result is not, is ignored:
// an import may bring any.
func (st *State) changeMeta(change checkpoint.MetaChange) {
	all := st.Meta.Then(change)
	if len(st.Header) > 0 { // else Begins does it
		_, meta := checkpoint.HeaderRelation(st.Header)
		all = all.On(meta)
	}
	if change.Valid() && all.Valid() && len(change) > 0 {
		st.Meta, st.Summary.Meta = all, change.Apply(st.Summary.Meta)
	}
}

// State makes the empty state of a session that does not exist yet.
func (g Genesis) State(session string, profile transcript.Profile, maxBytes int) *State {
	st := &State{
		HeadOrd: -1, Original: g.Original, Opening: true,
		Window: transcript.NewWorkingContext(profile, maxBytes),
		Doc:    checkpoint.Document{Branch: "main"},
		Self:   segment.GenesisSelf(g.Header),
	}
	st.Summary.ID, st.Summary.Parent = session, g.Parent
	st.Summary.Title, st.Summary.Cwd = checkpoint.CutText(g.Title), checkpoint.CutText(g.Cwd)
	st.Summary.Branch, st.Summary.Created, st.Meta = "main", g.Created, g.Meta
	st.Begins(g.Header)
	return st
}
