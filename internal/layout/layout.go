// Package layout guarantees that every object of a store has one name, and that no two contents ever
// share one (I4): session ids are escaped so that file systems which fold case keep them apart, and
// whatever is written more than once carries an epoch and a random part.
//
//	catalogue/head, catalogue/rows-<name>
//	retention/policy.json
//	retention/run.json
//	checkpoint_latest/<sid>
//	sessions/<sid>/transcript/<firstOrd>-<epoch>-<rnd>.jsonl[.zst]
//	sessions/<sid>/index/<level>-<firstOrd>-<epoch>-<rnd>
//	sessions/<sid>/ids/<firstOrd>-<epoch>-<rnd>
//	sessions/<sid>/snapshots/<seq>-<id8>
//	sessions/<sid>/blobs/<sha256>
//	sessions/<sid>/originals/<sha256>.zst
//	sessions/<sid>/originals/<sha256>.parts
//	sessions/<sid>/torn/<segment>-<from>-<rnd>
//	sessions/<sid>/erasures/pending.json
//
// An id whose session was deleted can be used again. Of such a later incarnation the names of snapshots, blobs and
// originals begin with its first epoch: <epoch>-<name>. So its objects share no name with those of an earlier one.
//
// Numbers have 20 digits, so that bytewise list order is their order. docs/format describes each object.
package layout

import (
	"fmt"
	"strconv"
	"strings"
)

// Folders of a store and of a session, as key prefixes.
const (
	Checkpoints = "checkpoint_latest/"
	Sessions    = "sessions/"
	CAS         = "cas/"       // of a store that only replaces: the proof that it honours conditions
	Catalogue   = "catalogue/" // of a store that only replaces: rows of its sessions, for lists
	Retention   = "retention/" // of a store: its retention policy, and what runs of it know of each other
	Transcript  = "transcript/"
	Index       = "index/"
	IDs         = "ids/"
	Snapshots   = "snapshots/"
	Blobs       = "blobs/"
	Originals   = "originals/"
	Torn        = "torn/"
	Erasures    = "erasures/"
)

// TopFolder reports whether a store has a folder of a name.
func TopFolder(name string) bool {
	switch name + "/" {
	case Checkpoints, Sessions, CAS, Catalogue, Retention:
		return true
	}
	return false
}

// Keys of a store's retention policy, and of its runs.
const (
	RetentionKey    = Retention + "policy.json"
	RetentionRunKey = Retention + "run.json"
)

// FirstRandom is the random part in the name of a session's first segment: creating that object is
// creating the session, so its name must be the same for every racing creator.
const FirstRandom = "0000000000000000"

// CheckpointKey is the key of a session's only mutable object.
func CheckpointKey(id string) string { return Checkpoints + Escape(id) }

// SessionPrefix is the key prefix of all other objects of a session.
func SessionPrefix(id string) string { return Sessions + Escape(id) + "/" }

// Segment names a segment within its session.
type Segment struct {
	First uint64 // ordinal of its first entry
	Epoch uint64 // of the writer that made it
	Rnd   string // 16 lower hex digits
}

// Name is the stem that the plain and the sealed object share.
func (s Segment) Name() string { return fmt.Sprintf("%020d-%020d-%s", s.First, s.Epoch, s.Rnd) }

// PlainKey is the key of the active form.
func (s Segment) PlainKey(id string) string {
	return SessionPrefix(id) + Transcript + s.Name() + ".jsonl"
}

// SealedKey is the key of the sealed, immutable form.
func (s Segment) SealedKey(id string) string {
	return SessionPrefix(id) + Transcript + s.Name() + ".jsonl.zst"
}

// StandsFor reports whether a segment has the lines of another one, and perhaps of some after that, written again by a
// repair or an erasure: under a later epoch, with other checksums.
func (s Segment) StandsFor(other Segment) bool {
	return s.First <= other.First && s.Epoch > other.Epoch
}

// ParseSegment reads the stem of a segment's name.
func ParseSegment(name string) (Segment, bool) {
	parts := strings.Split(name, "-")
	if len(parts) != 3 || !isRandom(parts[2]) {
		return Segment{}, false
	}
	first, ok1 := parseNumber(parts[0])
	epoch, ok2 := parseNumber(parts[1])
	return Segment{First: first, Epoch: epoch, Rnd: parts[2]}, ok1 && ok2
}

// ParseSegmentKey reads the last component of a segment's key, plain or sealed.
func ParseSegmentKey(key string) (s Segment, sealed, ok bool) {
	name := key[strings.LastIndexByte(key, '/')+1:]
	stem, isSealed := strings.CutSuffix(name, ".jsonl.zst")
	if !isSealed {
		if stem, ok = strings.CutSuffix(name, ".jsonl"); !ok {
			return Segment{}, false, false
		}
	}
	s, ok = ParseSegment(stem)
	return s, isSealed, ok
}

// IndexKey is the key of an index object: level 1 addresses segments, each level above the one below.
func IndexKey(id string, level int, s Segment) string {
	return fmt.Sprintf("%s%s%02d-%s", SessionPrefix(id), Index, level, s.Name())
}

// ParseIndexKey reads the last component of an index object's key.
func ParseIndexKey(key string) (level int, s Segment, ok bool) {
	name := key[strings.LastIndexByte(key, '/')+1:]
	head, stem, found := strings.Cut(name, "-")
	if !found || len(head) != 2 || head[0] == '+' {
		return 0, Segment{}, false
	}
	level, err := strconv.Atoi(head)
	s, ok = ParseSegment(stem)
	return level, s, ok && err == nil && level > 0
}

// IDsKey is the key of a run of the id index.
func IDsKey(id string, s Segment) string { return SessionPrefix(id) + IDs + s.Name() }

// SnapshotKey is the key of a snapshot by its name: Own of what package snapshot makes.
func SnapshotKey(id, name string) string { return SessionPrefix(id) + Snapshots + name }

// BlobKey is the key of a large image by the hex SHA-256 of its bytes, in the incarnation with a first epoch.
func BlobKey(id string, since uint64, sum string) string {
	return SessionPrefix(id) + Blobs + Own(since, sum)
}

// OriginalKey is the key of an imported file's bytes, zstd compressed, by the hex SHA-256 of the bytes.
func OriginalKey(id string, since uint64, sum string) string {
	return SessionPrefix(id) + Originals + Own(since, sum) + ".zst"
}

// OriginalListKey is the key of the list of a file's parts, by the hex SHA-256 of the whole; each part lies under
// its own OriginalKey.
func OriginalListKey(id string, since uint64, sum string) string {
	return SessionPrefix(id) + Originals + Own(since, sum) + ".parts"
}

// ErasureKey is the key of what an erasure has begun and not completed.
func ErasureKey(id string, since uint64) string {
	return SessionPrefix(id) + Erasures + Own(since, "pending.json")
}

// Own returns the name of a snapshot, blob or original in the incarnation with a first epoch; 0 = the first one of its
// id.
func Own(since uint64, name string) string {
	if since == 0 {
		return name
	}
	return fmt.Sprintf("%020d-%s", since, name)
}

// ParseOwn is the reverse of Own.
func ParseOwn(own string) (since uint64, name string) {
	const prefix, shortest = 21, 8 // a name of the first incarnation may itself begin with a number, and 8 bytes follow
	if len(own) > prefix+shortest && own[prefix-1] == '-' {
		if n, ok := parseNumber(own[:prefix-1]); ok && n > 0 {
			return n, own[prefix:]
		}
	}
	return 0, own
}

// Epoch returns the epoch in the key of an object of a session; 0 = it has none, and is of the first incarnation.
func Epoch(key string) uint64 {
	parts := strings.Split(key, "/") // sessions, the id, the folder and the name
	if len(parts) != 4 {
		return 0
	}
	name := parts[3]
	var s Segment
	switch parts[2] + "/" {
	case Snapshots, Blobs, Originals, Erasures:
		s.Epoch, _ = ParseOwn(name)
	case Transcript:
		s, _, _ = ParseSegmentKey(name)
	case Index:
		_, s, _ = ParseIndexKey(name)
	case IDs:
		s, _ = ParseSegment(name)
	case Torn:
		s, _ = ParseSegment(name[:min(len(name), nameBytes)])
	}
	return s.Epoch
}

// Since returns the first epoch of the session that a segment began, by its name; 0 = the session is the first one of
// its id, or the segment is not its first.
func (s Segment) Since() uint64 {
	if s.First == 0 && s.Rnd == FirstRandom && s.Epoch > 1 {
		return s.Epoch
	}
	return 0
}

// UnreadEpochs is added to the epoch of a session that cannot be read when it is deleted: no writer of it goes so far.
const UnreadEpochs = 1 << 32

// NextEpoch returns the first epoch of a session that has the id of a deleted one, by the epoch of the tombstone: what
// has a lower one is dead.
func NextEpoch(tombstone uint64) uint64 {
	if tombstone == 0 { // the session could not be read, and an earlier release deleted it
		tombstone = UnreadEpochs
	}
	return tombstone + 1
}

// nameBytes is the length of Segment.Name.
const nameBytes = 20 + 1 + 20 + 1 + 16

// TornKey is the key to which the torn bytes of segment s from offset from on are moved. The random
// part keeps two tears at one offset apart (I4).
func TornKey(id string, s Segment, from int64, rnd string) string {
	return fmt.Sprintf("%s%s%s-%020d-%s", SessionPrefix(id), Torn, s.Name(), from, rnd)
}

func parseNumber(s string) (uint64, bool) {
	if len(s) != 20 {
		return 0, false
	}
	n, err := strconv.ParseUint(s, 10, 64)
	return n, err == nil && s[0] != '+'
}

func isRandom(s string) bool {
	return len(s) == 16 && strings.Trim(s, "0123456789abcdef") == ""
}
