// Package session holds one session of a coding agent as a pi v3 file: the input of `coppice demo`, and a realistic
// input for tests and examples.
//
// It is fiction, written for this repository. A developer inherits tideline, a command that predicts tides; the agent
// fixes two bugs, tries a cache that does not work out, makes a year's table fast, and adds a calendar export. So it
// contains what real sessions contain: messages that were edited and sent again, an abandoned attempt, a compaction in
// the middle, labels, changes of model.
package session

import (
	_ "embed"
	"sync"

	"github.com/coppice-go/coppice/codec"
)

//go:embed session.jsonl.zst
var packed []byte // zstd unpacks and packs it

// JSONL returns the session file: a header line, then one entry a line, each with its newline. It must not be changed.
var JSONL = sync.OnceValue(func() []byte {
	const limit = 1 << 20 // bytes
	p, err := codec.Decompress(nil, packed, limit)
	if err != nil {
		panic(err) // it is part of the program
	}
	return p
})
