// Package body encodes the body of a checkpoint. Pack writes the same bytes as codec.Marshal for a Body, but without
// reflection, and it reuses compressed frames of the previous body.
//
// A Packer compresses the body as a sequence of zstd frames. Lines that are in the previous body too are grouped into
// runs of about 16 KiB, one frame each, which later bodies reuse. The bytes between these runs go into separate frames,
// compressed at a faster level. The decoder allocates according to the bytes that are present, not according to
// declared lengths (I15): lists of ordinals are stored as differences, byte strings are concatenated, and the length of
// a list is known before its elements are decoded.
package body

// The types below are the msgpack encodings. A list of structs is a msgpack value inside a byte string, so that its
// length is known before an element is decoded (I15). Times are Unix milliseconds; 0 = none.

// Commit is an element of Body.Lineage: one of the newest commits of the session. docs/format/checkpoint-body.md
// describes the fields.
type Commit struct {
	Seq      uint64 `msgpack:"seq"`
	Epoch    uint64 `msgpack:"epoch"`
	ID       string `msgpack:"id"`
	Parent   string `msgpack:"parent,omitempty"`   // id of the commit before it
	Entry    string `msgpack:"entry,omitempty"`    // id of the head
	HeadOrd  int64  `msgpack:"ord"`                // ordinal of the head; -1 = none
	Branch   string `msgpack:"branch,omitempty"`   // branch of the head
	Reason   string `msgpack:"reason"`             // turn, rollback and so on: internal/journal/state
	Writer   string `msgpack:"writer,omitempty"`   // name of the writer
	Snapshot string `msgpack:"snapshot,omitempty"` // name of the snapshot that it is the first to refer to
	Key      string `msgpack:"key,omitempty"`      // idempotency key
	Kept     string `msgpack:"kept,omitempty"`     // branch on which it kept a turn, or the entries that a move left
	Time     int64  `msgpack:"time"`
	Entries  int    `msgpack:"entries"`            // number of entries that it stored
	Keyframe bool   `msgpack:"keyframe,omitempty"` // its line contains the whole document

	StateLost bool `msgpack:"stateLost,omitempty"` // a repair could not restore its state
}

// Body is the map in the frames of a checkpoint. For Pack, lists of lines are passed as Parts, and the fields made from
// them are left empty.
type Body struct {
	// The session at its newest commit.
	Entry    string   `msgpack:"entry,omitempty"` // id of the head, if the summary truncates it
	HeadOrd  int64    `msgpack:"ord"`             // ordinal of the head; -1 = none
	Document []byte   `msgpack:"doc"`
	Header   []byte   `msgpack:"header,omitempty"`   // the header line of the session
	Lineage  []byte   `msgpack:"lineage"`            // list of Commit: the newest 64 at most
	Branches []byte   `msgpack:"branches"`           // list of BranchRef
	Levels   [][]byte `msgpack:"levels,omitempty"`   // references to segments and index objects, by level of folding
	IDs      []byte   `msgpack:"ids,omitempty"`      // list of references to the runs of the id index
	Plain    []byte   `msgpack:"plain"`              // list of PlainRef: segments that are not sealed yet
	Key      uint64   `msgpack:"key"`                // random number in the checksums of the commit lines
	Prev     uint32   `msgpack:"prev"`               // the checksum "self" of the last commit line
	CAS      bool     `msgpack:"cas,omitempty"`      // the store was proven to honour conditional writes
	Original string   `msgpack:"original,omitempty"` // hex SHA-256 of the imported bytes; "" = they are the lines
	Claimed  uint64   `msgpack:"claimed,omitempty"`  // seq of the newest claim; 0 = none
	SinceKey int      `msgpack:"sinceKey"`           // commits since the last keyframe
	Opening  bool     `msgpack:"opening,omitempty"`  // the next commit is the first of its segment
	LastLine int64    `msgpack:"lastLine"`           // bytes of the last commit line; 0 = none in the active segment
	Keys     []byte   `msgpack:"keys,omitempty"`     // idempotency keys
	Meta     []byte   `msgpack:"meta,omitempty"`     // changes of the metadata since the header, as JSON
	Source   []byte   `msgpack:"source,omitempty"`   // the imported file, as JSON
	Since    uint64   `msgpack:"since,omitempty"`    // first epoch, if a deleted session had the same id; else 0
	Erased   uint64   `msgpack:"erased,omitempty"`   // seq of the newest erasure; 0 = none
	Title    string   `msgpack:"title,omitempty"`    // if the summary truncates it
	Cwd      string   `msgpack:"cwd,omitempty"`      // if the summary truncates it

	// The working context.
	Profile  string    `msgpack:"profile,omitempty"` // the program whose rules apply
	MaxBytes int       `msgpack:"window"`            // bound of the context in bytes
	Base     [3]string `msgpack:"base"`              // model, thinking level and mode before the entries of Ords
	Omitted  int       `msgpack:"omitted,omitempty"` // messages that the bound cut off
	Ords     []int64   `msgpack:"ords,omitempty"`    // ordinals of the entries, as differences
	Known    bool      `msgpack:"known,omitempty"`   // false = the context has to be built from the path to the head

	Amended   []int64  `msgpack:"amended,omitempty"`   // ordinals of amended entries of the context, as differences
	AmendedBy []string `msgpack:"amendedBy,omitempty"` // ids of their newest amendments

	// The lines and images that the checkpoint contains.
	PoolOrds  []int64  `msgpack:"poolOrds,omitempty"`  // ordinals of the context's lines, ascending, as differences
	PoolSizes []uint32 `msgpack:"poolSizes,omitempty"` // their lengths in bytes
	Pool      []byte   `msgpack:"pool"`                // the lines, without separators
	BlobSums  []string `msgpack:"blobSums,omitempty"`  // hashes of images, ascending
	BlobSizes []uint32 `msgpack:"blobSizes,omitempty"`
	Blobs     []byte   `msgpack:"blobs,omitempty"`
	TailFirst uint64   `msgpack:"tailFirst"`           // ordinal of the first line of the tail
	TailSeq   uint64   `msgpack:"tailSeq"`             // seq of the first commit of the tail
	TailSizes []uint32 `msgpack:"tailSizes,omitempty"` // lengths of its lines; 0 = the line is in the pool
	Tail      []byte   `msgpack:"tail,omitempty"`      // lines that are in no segment yet
}
