// Package body encodes the body of a checkpoint. Pack writes the bytes that codec.Marshal returns for a Body, but
// without reflection, and without compressing again what has not changed since the previous body.
//
// A Packer compresses the body as several zstd frames, end to end. Unchanged lines are cut into runs of about 16 KiB,
// one frame each, which are kept; the bytes between them are compressed into separate frames, at a faster level. The
// small encodings (ordinals as differences, byte strings end to end, lists whose length is known before they are
// decoded) allocate by the bytes present, not by declared lengths (I15).
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

// Body is the map in the frames of a checkpoint. For Pack, lists of lines are passed as Parts, and the fields made from
// them are left empty.
type Body struct {
	Entry    string   `msgpack:"entry,omitempty"` // in full, if the summary truncates it
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
	Erased   uint64   `msgpack:"erased,omitempty"` // seq of the newest erasure
	Title    string   `msgpack:"title,omitempty"`  // in full, if the summary truncates it; so Cwd
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
