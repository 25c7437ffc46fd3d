// Package omp reads and writes oh-my-pi's session files: pi's version 3 with a title line in front,
// entries of its own, and images that lie beside the file in a blob folder.
//
// Lines come through byte for byte, but for images: a reference to a blob that can be had becomes the
// image again, for an omp file by itself is not the whole session. A blob that is missing, or that is
// not what its name says, is reported and its reference stays. Of the folder that omp keeps beside a
// session, its artifacts, what an entry names is put beside what that entry says; the rest stays, and
// is reported. The title line has no place among the entries: its title goes into the header, its bytes
// stay in the original.
//
// Bounds (I15), beside those of package pi: 32 MiB a blob, 48 MiB of blobs a line, 4 GiB of them a
// file; what is over is reported and stays a reference. 1 MiB an artifact, 2 MiB of them a line, 256
// MiB a file, of 10,000 files.
package omp

import (
	"strings"

	"github.com/coppice-go/coppice/internal/rawjson"
	"github.com/coppice-go/coppice/interop"
	"github.com/coppice-go/coppice/interop/internal/jsonl"
	"github.com/coppice-go/coppice/interop/pi"
	"github.com/coppice-go/coppice/transcript"
)

// Reader reads one file. It is not safe for concurrent use.
type Reader struct {
	*pi.Reader
	blobs     blobs
	artifacts artifacts
	src       interop.Source
	listed    bool
}

// NewReader reads from a source, which is opened when the header is asked for. Blobs are asked of
// Source.Beside under "../../blobs/", "../blobs/" and "blobs/" and their SHA-256.
func NewReader(src interop.Source, o interop.Options) *Reader {
	r := &Reader{blobs: blobs{limits: usual, beside: src.Beside}, artifacts: artifacts{room: usualRoom}, src: src}
	r.Reader = pi.OpenDialect(src, o, pi.Dialect{Slots: true, Entry: r.entry})
	return r
}

// entry puts what lies beside the file back into a line.
func (r *Reader) entry(l transcript.Line, say func(kind, detail string)) []byte {
	if !r.listed {
		r.listed = true
		r.artifacts.list(r.src)
	}
	return r.artifacts.entry(r.blobs.entry(l, say))
}

// Diagnostics returns what was found so far, at most 100 and then a count, and what stays in the folder
// beside the file.
func (r *Reader) Diagnostics() []transcript.Diagnostic {
	found := r.Reader.Diagnostics()
	if d, ok := r.artifacts.said(); ok {
		found = append(found[:len(found):len(found)], d)
	}
	return found
}

// Detect reports whether the beginning of a file holds what only omp writes: its title line, its fields of a
// header, an entry that pi does not have, or a reference to a blob. Without such a mark its files are pi's.
func Detect(head []byte) bool {
	for n, l := range jsonl.HeadLines(head) {
		if marked(l, n == 0) {
			return true
		}
	}
	return false
}

// marked reports whether a line is omp's. A field says more than a type where another program may have
// the same type. A title in a header says nothing: sessions that were made here have one too.
func marked(l transcript.Line, first bool) bool {
	has := func(names ...string) bool {
		for _, name := range names {
			if rawjson.Field(l.Raw, name) != nil {
				return true
			}
		}
		return false
	}
	switch l.Type {
	case "title":
		return first && l.ID == "" && has("title") && has("v", "pad")
	case "session":
		return has("titleSource", "additionalDirectories", "previousSessionFiles", "providerPromptCacheKey")
	case "model_change":
		return rawjson.IsString(rawjson.Field(l.Raw, "model")) && !has("modelId", "model_id")
	case "service_tier_change", "mode_change", "ttsr_injection", "session_init", "model_usage", "title_change",
		"credential_pin", "reset_boundary":
		return l.ID != ""
	case "thinking_level_change":
		return has("configured")
	case "compaction":
		return has("shortSummary", "preserveData", "fromExtension", "tokensAfter", "providerReplayThroughEntryId")
	case "branch_summary":
		return has("fromExtension")
	case "custom_message":
		return has("attribution")
	case "message":
		return strings.Contains(string(l.Raw[:min(len(l.Raw), maxMessageLook)]), `"`+refMark) ||
			markedRole(rawjson.Text(rawjson.Field(rawjson.Field(l.Raw, "message"), "role")))
	}
	return false
}

// maxMessageLook bounds how far into a message Detect looks for a blob.
const maxMessageLook = 64 << 10

func markedRole(role string) bool { return role == "pythonExecution" || role == "fileMention" }
