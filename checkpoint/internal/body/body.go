// Package body holds the body of a checkpoint as it is stored, and writes it. What Pack writes is what
// codec.Marshal returns for a Body, byte for byte; it does so without looking at types, and without compressing
// again what has not changed since the body before.
//
// A Packer compresses that body as several zstd frames, end to end. What does not change is cut into runs of about
// 16 KiB, a frame each, which are kept; what is between them goes into frames of its own, at a faster level. The
// small encodings (ordinals as differences, byte strings end to end, lists whose length is known before they are
// decoded) allocate by what is there, not by what is declared (I15).
package body

// The msgpack shapes. Lists of structs are msgpack values of their own inside a byte string, so that their
// length is known before one element is decoded (I15); times are Unix milliseconds, 0 = none.

// Commit is a commit of the lineage.
type Commit struct {
	Seq      uint64 `msgpack:"seq"`
	Epoch    uint64 `msgpack:"epoch"`
	ID       string `msgpack:"id"`
	Parent   string `msgpack:"parent,omitempty"`
	Entry    string `msgpack:"entry,omitempty"`
	HeadOrd  int64  `msgpack:"ord"`
	Branch   string `msgpack:"branch,omitempty"`
	Reason   string `msgpack:"reason"`
	Writer   string `msgpack:"writer,omitempty"`
	Snapshot string `msgpack:"snapshot,omitempty"`
	Key      string `msgpack:"key,omitempty"`
	Kept     string `msgpack:"kept,omitempty"`
	Time     int64  `msgpack:"time"`
	Entries  int    `msgpack:"entries"`
	Keyframe bool   `msgpack:"keyframe,omitempty"`

	StateLost bool `msgpack:"stateLost,omitempty"`
}

// Body is the map that the frames of a checkpoint hold. To Pack, lists of lines are given as Parts, and the
// fields that they make are left empty.
type Body struct {
	Entry    string   `msgpack:"entry,omitempty"` // in full, where the summary has it cut
	HeadOrd  int64    `msgpack:"ord"`
	Document []byte   `msgpack:"doc"`
	Header   []byte   `msgpack:"header,omitempty"`
	Lineage  []byte   `msgpack:"lineage"`  // list of Commit
	Branches []byte   `msgpack:"branches"` // list of BranchRef
	Levels   [][]byte `msgpack:"levels,omitempty"`
	IDs      []byte   `msgpack:"ids,omitempty"` // list of references
	Plain    []byte   `msgpack:"plain"`         // list of PlainRef
	Key      uint64   `msgpack:"key"`
	Prev     uint32   `msgpack:"prev"`
	CAS      bool     `msgpack:"cas,omitempty"`
	Original string   `msgpack:"original,omitempty"`
	Claimed  uint64   `msgpack:"claimed,omitempty"`
	SinceKey int      `msgpack:"sinceKey"`
	Opening  bool     `msgpack:"opening,omitempty"`
	LastLine int64    `msgpack:"lastLine"`
	Keys     []byte   `msgpack:"keys,omitempty"`   // idempotency keys
	Meta     []byte   `msgpack:"meta,omitempty"`   // change of the metadata
	Source   []byte   `msgpack:"source,omitempty"` // of an import, as JSON
	Since    uint64   `msgpack:"since,omitempty"`  // first epoch of a later incarnation
	Title    string   `msgpack:"title,omitempty"`  // in full, where the summary has it cut, and so Cwd
	Cwd      string   `msgpack:"cwd,omitempty"`

	Profile  string    `msgpack:"profile,omitempty"`
	MaxBytes int       `msgpack:"window"`
	Base     [3]string `msgpack:"base"` // model, thinking level, mode
	Omitted  int       `msgpack:"omitted,omitempty"`
	Ords     []int64   `msgpack:"ords,omitempty"` // differences
	Known    bool      `msgpack:"known,omitempty"`

	Amended   []int64  `msgpack:"amended,omitempty"` // ordinals of amended entries of the window, as differences
	AmendedBy []string `msgpack:"amendedBy,omitempty"`

	PoolOrds  []int64  `msgpack:"poolOrds,omitempty"` // differences, ascending
	PoolSizes []uint32 `msgpack:"poolSizes,omitempty"`
	Pool      []byte   `msgpack:"pool"`
	BlobSums  []string `msgpack:"blobSums,omitempty"` // ascending
	BlobSizes []uint32 `msgpack:"blobSizes,omitempty"`
	Blobs     []byte   `msgpack:"blobs,omitempty"`
	TailFirst uint64   `msgpack:"tailFirst"`
	TailSeq   uint64   `msgpack:"tailSeq"`
	TailSizes []uint32 `msgpack:"tailSizes,omitempty"` // 0 = the line is in the pool
	Tail      []byte   `msgpack:"tail,omitempty"`
}
