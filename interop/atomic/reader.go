// Package atomic reads and writes atomic's session files: pi's version 3, with entries of its own.
//
// Every line stays unchanged: the meaning of atomic's compactions is defined by the profile "atomic" of package
// transcript. Bounds and handling of damage are those of package pi.
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

// NewReader returns a reader of a source, which Header opens.
func NewReader(src interop.Source, o interop.Options) *Reader {
	return &Reader{pi.Open(src, o)}
}

// Detect reports whether the beginning of a file has a mark of atomic: a header of an internal session, or an entry
// that pi does not have. A file of atomic without a mark counts as pi's.
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
