// Package session holds one session of a coding agent as a pi v3 file: the input of `coppice demo`,
// and something for tests and examples to read that is not three lines long.
//
// It is fiction, written for this repository. A developer inherits tideline, a command that predicts
// tides; the agent mends two bugs, tries a cache that does not work out, makes a year's table fast,
// and adds a calendar export. So it holds what real sessions hold: messages that were edited and sent
// again, an attempt that was given up, a compaction in the middle, labels, changes of model.
package session

import _ "embed"

// JSONL is the session file: a header line, then one entry a line, each with its newline.
//
//go:embed session.jsonl
var JSONL []byte
