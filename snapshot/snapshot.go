// Package snapshot decides when to take a snapshot, which ones to keep, and their names. It does no I/O: the session
// takes, lists and removes them.
//
// Every commit line contains its document, whole or as a patch against that of the previous commit; it is whole at
// least at every 64th commit and at the first of each segment. So the log alone returns the exact state at any commit:
// from the nearest keyframe at or before it, and at most 63 patches. A snapshot holds state, head and working context
// in one object (I9): a shortcut, and a second copy if the log is damaged. Hence the guarantee of [Retention.Select]:
// dropping a snapshot never makes a state unreachable. The one exception, a snapshot that is the only copy of its state
// because of damage, has Info.Only set and is never dropped.
//
// The object itself is a [checkpoint.Object]; docs/format/snapshot.md describes it.
package snapshot

import (
	"fmt"
	"strconv"
	"time"

	"github.com/coppice-go/coppice/checkpoint"
)

// defaultEvery is the distance in commits of a zero Policy.
const defaultEvery = 50

// Policy defines when the session takes a snapshot by itself. The zero Policy takes one every 50 commits.
type Policy struct {
	Every            int  // commits between two snapshots; 0 = 50, < 0 = never by count
	BeforeCompaction bool // take one of the state before each commit with the reason "compaction"
}

// When reports whether a snapshot is due: commits is the number of commits since the last one (or since the session
// began), reason is that of the next commit.
func (p Policy) When(commits int, reason string) bool {
	if commits <= 0 {
		return false // the last one still holds the newest state
	}
	if p.BeforeCompaction && reason == "compaction" {
		return true
	}
	every := p.Every
	if every == 0 {
		every = defaultEvery
	}
	return every > 0 && commits >= every
}

// Info describes a snapshot in a listing.
type Info struct {
	ID, Commit, Tag, Reason string // Reason is that of its commit; Tag "" = none
	Seq                     uint64
	Time                    time.Time // of its commit
	Bytes                   int64     // of the object
	// damage left this as the only copy of its state: never dropped. Set by Session.Prune, not by listings
	Only bool
}

// FromSummary returns the Info of a snapshot object from its summary and its size in bytes.
func FromSummary(s checkpoint.Summary, bytes int64) Info {
	return Info{
		ID: s.Snapshot, Commit: s.Commit, Tag: s.Tag, Reason: s.Reason, Seq: s.Seq, Time: s.Updated, Bytes: bytes,
	}
}

const (
	seqDigits = 20
	idDigits  = 8
)

// Name returns the name of a snapshot: the seq of its commit in 20 digits, so that the order of names is that of
// commits, and the last 8 characters of an id, which are random in a UUIDv7. The id is the commit's, or one of the
// snapshot's own if a commit may have several (I4).
func Name(seq uint64, id string) string {
	if len(id) > idDigits {
		id = id[len(id)-idDigits:]
	}
	return fmt.Sprintf("%0*d-%s", seqDigits, seq, id)
}

// ParseName splits a name into the commit's seq and the end of the id. ok is false for anything that Name does not
// return for an id of at least 8 letters, digits, "-", "_" or ".".
func ParseName(name string) (seq uint64, id string, ok bool) {
	if len(name) != seqDigits+1+idDigits || name[seqDigits] != '-' {
		return 0, "", false
	}
	seq, err := strconv.ParseUint(name[:seqDigits], 10, 64)
	if err != nil {
		return 0, "", false
	}
	id = name[seqDigits+1:]
	for i := range len(id) {
		c := id[i]
		if (c < '0' || c > '9') && (c|0x20 < 'a' || c|0x20 > 'z') && c != '-' && c != '_' && c != '.' {
			return 0, "", false
		}
	}
	return seq, id, true
}
