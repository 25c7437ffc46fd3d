// Package codec implements the byte formats of coppice: checksums, compression, msgpack, the container of checkpoints,
// snapshots and index objects, skeletons, sealed segment files, and runs of the id index.
//
// Guarantees:
//
//   - Damage is detected. Every flipped bit and every truncation of a container, a skeleton or a
//     segment file is an error of its decoder; the index of a segment detects damage to itself,
//     and a frame that is read alone is checked against the index (promise 7 of the design).
//   - Decoding is bounded before it allocates (invariant I15). Declared sizes are checked against the
//     bytes that are present and against the caller's limit before memory is taken. Each decoder
//     documents its bound. No input makes one panic.
//   - Encoding is deterministic: equal values produce equal bytes, on every machine. (The bytes do
//     depend on the version of the compressor; the output of an older one always stays readable.)
//   - Old formats stay readable; a newer one is refused with ErrVersion.
//
// The formats are described byte by byte in docs/format: msgpack.md, container.md, skeleton.md, segment.md, index.md
// and ids.md. Integers are little-endian, lengths are bytes, and uvarint is that of encoding/binary in its shortest
// form.
//
// The package is pure: it opens no file and starts no goroutine. All functions are safe for concurrent use. Decoders
// never change their input; several return views of it, as their comments state.
package codec

import "fmt"

// The causes of the errors of every decoder, for errors.Is: each error wraps exactly one of them.
const (
	// ErrFormat: the bytes are malformed: truncated, contradictory, or of another kind.
	ErrFormat formatError = "malformed data"
	// ErrChecksum: the shape is right, the checksum is not; the bytes are damaged.
	ErrChecksum formatError = "checksum does not match"
	// ErrLimit: the value exceeds the limit named in the text. Nothing was allocated for it.
	ErrLimit formatError = "over the limit"
	// ErrVersion: intact, but of a format version that this program does not read.
	ErrVersion formatError = "unsupported format version"
)

// LimitError reports a value that exceeds a named limit: the state of a document, a branch name, an entry, a
// checkpoint. Nothing was written.
type LimitError struct {
	What         string // "state", "branches", ...: what to make smaller
	Limit, Value int64  // bytes, or how many
}

func (e *LimitError) Error() string {
	return fmt.Sprintf("%s: %d is over the limit of %d", e.What, e.Value, e.Limit)
}

// Kind is the kind of object that a container holds: four bytes in its header, so that no object
// is ever taken for another kind.
type Kind string

// Level is the effort of Compress.
type Level uint8

// The constants of the formats. Their values are part of them and never change.
const (
	KindCheckpoint Kind = "ckpt"
	KindSnapshot   Kind = "snap"
	KindIndex      Kind = "indx"
	KindOriginal   Kind = "orig"
	KindIDs        Kind = "eids"

	Default Level = 0 // for data that is written once and kept
	Fast    Level = 1 // for data that the next turn writes again

	NoParent int64 = -1 // as a row's parent: a root

	FlagText      uint8 = 1 << 0 // has text that a person would read
	FlagCalls     uint8 = 1 << 1 // calls tools
	FlagFailed    uint8 = 1 << 2 // an error, or a failed tool result
	FlagCommit    uint8 = 1 << 3 // a commit line of ours
	FlagOrphan    uint8 = 1 << 4 // its parent is missing
	FlagDiagnosed uint8 = 1 << 5 // a diagnostic refers to it
	FlagVisible   uint8 = 1 << 6 // a node for people, not structure; of an amendment: it does not hide its entry
	FlagAmend     uint8 = 1 << 7 // an amendment; the rest of the row describes the amended target
)

// CRC returns the CRC-32C of parts, end to end.
func CRC(parts ...[]byte) uint32 {
	crc := uint32(0)
	for _, p := range parts {
		crc = updateChecksum(crc, p)
	}
	return crc
}
