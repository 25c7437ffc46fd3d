// Package session holds one session of a coding agent as a pi v3 file: the input of `coppice demo`,
// and something for tests and examples to read that is not three lines long.
//
// It is fiction, written for this repository. A developer inherits tideline, a command that predicts
// tides; the agent mends two bugs, tries a cache that does not work out, makes a year's table fast,
// and adds a calendar export. So it holds what real sessions hold: messages that were edited and sent
// again, an attempt that was given up, a compaction in the middle, labels, changes of model.
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
		panic(err) // it is in the program
	}
	return p
})
