// Package codec holds the byte formats of coppice: checksums, compression, msgpack, the container
// of checkpoints, snapshots and index objects, skeletons, and sealed segment files.
//
// What it guarantees:
//
//   - Damage is detected. Every flipped bit and every truncation of a container, a skeleton or a
//     segment file is an error of its decoder; the index of a segment detects damage to itself,
//     and a frame that is read alone is checked against the index (promise 7 of the design).
//   - Decoding is bounded before it allocates (invariant I15). What a header declares is checked
//     against the bytes that are there and against the caller's limit; only then is memory taken.
//     Each decoder documents its bound. No input makes one panic.
//   - Encoding is deterministic: equal values give equal bytes, on every machine. (The bytes do
//     depend on the version of the compressor; what an older one wrote always stays readable.)
//   - Old formats stay readable; a newer one is refused with ErrVersion and never guessed at.
//
// The formats are described byte by byte in docs/format: msgpack.md, container.md, skeleton.md,
// segment.md and index.md. Integers are little-endian, lengths are bytes, and uvarint is that of
// encoding/binary in its shortest form.
//
// The package is pure: it opens no file and starts no goroutine. All functions are safe for
// concurrent use. Decoders never change their input; several return views of it and say so.
package codec

import (
	"io"

	"github.com/coppice-go/coppice/codec/internal/msgp"
	"github.com/coppice-go/coppice/codec/internal/wire"
	"github.com/coppice-go/coppice/codec/internal/zframe"
)

// What the errors of every decoder are, found by errors.Is: each wraps exactly one of them.
const (
	// ErrFormat: the bytes are not what they should be; truncated, contradictory, or of another kind.
	ErrFormat = wire.ErrFormat
	// ErrChecksum: the shape is right, the checksum is not; the bytes are damaged.
	ErrChecksum = wire.ErrChecksum
	// ErrLimit: more than the limit that the text names. Nothing was allocated for it.
	ErrLimit = wire.ErrLimit
	// ErrVersion: intact, but of a format version that this program does not read.
	ErrVersion = wire.ErrVersion
)

// Kind is the kind of object that a container holds: four bytes in its header, so that no object
// is ever taken for another kind.
type Kind string

// Level says how hard Compress tries.
type Level uint8

// The constants of the formats. Their values are part of them and never change.
const (
	KindCheckpoint Kind = "ckpt"
	KindSnapshot   Kind = "snap"
	KindIndex      Kind = "indx"
	KindOriginal   Kind = "orig"

	Default Level = 0 // for what is written at every turn
	Better  Level = 1 // for what is written once and kept
	Fast    Level = 2 // for what the next turn writes anew

	NoParent int64 = -1 // as a row's parent: a root

	FlagText      uint8 = 1 << 0 // has text that a person would read
	FlagCalls     uint8 = 1 << 1 // calls tools
	FlagFailed    uint8 = 1 << 2 // an error, or a failed tool result
	FlagCommit    uint8 = 1 << 3 // a commit line of ours
	FlagOrphan    uint8 = 1 << 4 // names a parent that is not there
	FlagDiagnosed uint8 = 1 << 5 // a diagnostic speaks of it
	FlagVisible   uint8 = 1 << 6 // a node for people, not structure
)

// CRC returns the CRC-32C of parts, end to end.
func CRC(parts ...[]byte) uint32 {
	crc := uint32(0)
	for _, p := range parts {
		crc = wire.UpdateCRC(crc, p)
	}
	return crc
}

// Compress appends one zstd frame that holds src to dst: its size declared, its content checksum
// on. Equal arguments give equal bytes. src may be empty and is not kept.
func Compress(dst, src []byte, l Level) []byte { return zframe.Append(dst, src, zframe.Level(l)) }

// Decompress appends the content of src, which has to be exactly one zstd frame, to dst. The frame
// must declare its size; one over limit bytes or over 1 GiB, or a window over 8 MiB, is ErrLimit;
// bytes after the frame, a dictionary, and a declared size that its blocks cannot hold are
// ErrFormat: all found before anything is allocated. At most the declared size, and no more than a
// constant beside it, is allocated. On an error dst is returned as it was.
func Decompress(dst, src []byte, limit int) ([]byte, error) { return zframe.Decode(dst, src, limit) }

// Unpack is Decompress into a writer, piece by piece: it takes the memory of a window, at most 8 MiB, however
// much the frame declares.
func Unpack(w io.Writer, src []byte, limit int) error { return zframe.Stream(w, src, limit) }

// Marshal returns v as msgpack: integers in their shortest form, struct fields in the order of
// their declaration, map keys sorted. Equal values give equal bytes; a map whose order would be
// that of the runtime (any but map[string]string, map[string]bool and map[string]any) is refused
// with ErrFormat: use a sorted slice. So is a value that Unmarshal would not take, a time.Time say
// (an ext type; store its Unix milliseconds), with the error that Unmarshal would give.
func Marshal(v any) ([]byte, error) { return msgp.Marshal(v) }

// Unmarshal decodes the one msgpack value that p has to be into v, a pointer. Fields that v does
// not have are skipped. Before anything is allocated the structure is scanned: nesting of at most
// 64, lengths of at most the bytes that remain, element counts of at most 1,048,576 in the whole
// value, no ext types, no bytes after the value. So it takes at most twice the size of one element
// of v's slices for each of those elements, beside the bytes of p. It never panics; after an error
// v may be partly filled.
func Unmarshal(p []byte, v any) error { return msgp.Unmarshal(p, v) }
