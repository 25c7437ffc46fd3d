// Package atomic reads and writes atomic's session files: pi's version 3, with entries of its own.
//
// Every line comes through byte for byte: what atomic means by its compactions is a matter of the profile
// "atomic" of package transcript, not of the lines. Bounds and damage: as package pi has it.
package atomic

import (
	"bytes"

	"github.com/coppice-go/coppice/internal/rawjson"
	"github.com/coppice-go/coppice/interop"
	"github.com/coppice-go/coppice/interop/internal/jsonl"
	"github.com/coppice-go/coppice/interop/pi"
	"github.com/coppice-go/coppice/transcript"
)

// Reader reads one file. It is not safe for concurrent use.
type Reader struct{ *pi.Reader }

// NewReader reads from a source, which is opened when the header is asked for.
func NewReader(src interop.Source, o interop.Options) *Reader {
	return &Reader{pi.Open(src, o)}
}

// Detect reports whether the beginning of a file holds what only atomic writes: a header of an internal
// session, or an entry that pi does not have. Without such a mark its files are pi's.
func Detect(head []byte) bool {
	for _, l := range jsonl.HeadLines(head) {
		if marked(l) {
			return true
		}
	}
	return false
}

func marked(l transcript.Line) bool {
	switch l.Type {
	case "session":
		return rawjson.IsTrue(rawjson.Field(l.Raw, "internal")) &&
			bytes.HasPrefix(rawjson.Field(l.Raw, "workflow"), []byte("{"))
	case "context_compaction", "session_summary":
		return l.ID != ""
	case "compaction":
		return string(rawjson.Field(rawjson.Field(l.Raw, "details"), "strategy")) == `"verbatim-lines"`
	case "custom_message":
		for _, name := range []string{"excludeFromContext", "stageAdmissionKey", "protectedReconciliation"} {
			if rawjson.Field(l.Raw, name) != nil {
				return true
			}
		}
	}
	return false
}
