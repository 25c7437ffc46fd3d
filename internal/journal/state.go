package journal

import (
	"encoding/json"

	"github.com/coppice-go/coppice/backend"
	"github.com/coppice-go/coppice/checkpoint"
	"github.com/coppice-go/coppice/internal/segment"
	"github.com/coppice-go/coppice/transcript/pathwindow"
)

// State is a session as it stands after one commit: all that is in memory of it. It is immutable;
// slices and maps in it are shared between states and only ever appended to.
type State struct {
	Summary  checkpoint.Summary // Summary.Head is the commit
	Header   []byte             // the session header line, without newline
	Doc      checkpoint.Document
	DocJSON  json.RawMessage // Doc as the checkpoint stores it
	HeadOrd  int64           // ordinal of the head, -1 = before every root
	Branches []checkpoint.BranchRef
	Lineage  []checkpoint.Commit    // the last 64 commits, oldest first
	Window   *pathwindow.Window // of the head; nil = not known, to be read from the transcript
	Segments checkpoint.SegmentMap  // sealed
	Plain    []checkpoint.PlainRef  // append: segments that are not sealed, the last one active
	Tail     []Line                 // replace: durable lines that are in no segment
	Blobs    map[string][]byte      // small images of the window that rode along, by SHA-256
	Next     uint64                 // ordinal of the next line
	Original string                 // hex SHA-256 of the imported bytes; "" = the lines are the original
	Claimed  uint64                 // seq of the newest claim
	CAS      bool                   // the store was seen to honour conditions

	key      uint64                 // of commit lines' self
	self     uint32                 // of the newest commit line
	sinceKey int                    // commits since the last that carried its document whole
	keyed    []checkpoint.Commit    // the last 256 commits that had an idempotency key
	opening  bool                   // the next commit is the first of its segment
	version  backend.Version        // of checkpoint_latest, as last read or written
	durable  int64                  // append: bytes of the active segment known to be on disk
	batches  uint64          // append: writes to the log by this handle
	unsure   []span                 // append: ends of closed segments that are not known to be on disk
	lastLine int64                  // append: length of the newest commit line with its newline
	tailSize int64                  // bytes of Tail, newlines included
	pending  string                 // torn object that the next commit names
	parked   *pathwindow.Window // of the winner's head, while a losing turn's commit stands before its own
}

// span is a part of a plain segment.
type span struct {
	key       string
	from, end int64
}

// Line is a durable line of the transcript.
type Line = segment.Line

const (
	lineageMax = 64
	keyedMax   = 256
)

// state makes the empty state of a session that does not exist yet.
func (g Genesis) state(cfg Config) *State {
	st := &State{
		Header: g.Header, HeadOrd: -1, Original: g.Original, opening: true,
		Window: pathwindow.New(cfg.Profile, cfg.MaxBytes),
		Doc:    checkpoint.Document{Branch: "main"},
		self:   segment.GenesisSelf(g.Header),
	}
	st.Summary.ID, st.Summary.Title, st.Summary.Cwd, st.Summary.Parent = cfg.Session, g.Title, g.Cwd, g.Parent
	st.Summary.Branch = "main"
	return st
}

// active is the segment that the next append goes to; nil on a store that only replaces.
func (st *State) active() *checkpoint.PlainRef {
	if len(st.Plain) == 0 {
		return nil
	}
	return &st.Plain[len(st.Plain)-1]
}

// known finds the commit that carried an idempotency key.
func (st *State) known(key string) (checkpoint.Commit, bool) {
	if key == "" {
		return checkpoint.Commit{}, false
	}
	for _, list := range [][]checkpoint.Commit{st.Lineage, st.keyed} {
		for i := len(list) - 1; i >= 0; i-- {
			if list[i].Key == key {
				return list[i], true
			}
		}
	}
	return checkpoint.Commit{}, false
}

// has tells whether a commit id is in the lineage.
func (st *State) has(id string) bool {
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
