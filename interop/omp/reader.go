// Package omp reads and writes oh-my-pi's session files: pi's version 3 with a title line in front, entries of its own,
// and images in a separate blob folder.
//
// Lines stay unchanged except for two additions. A reference to an available blob becomes the image again, because an
// omp file alone is not the whole session. A blob that is missing or does not match its checksum is reported, and the
// reference stays. An artifact in the session's artifact folder is added to the first entry that names it; other
// artifacts stay there and are reported. The title line is not an entry: its title goes into the header, its bytes stay
// in the original.
//
// Bounds (I15), in addition to those of package pi: 32 MiB per blob, 48 MiB of blobs per line, 4 GiB per file; larger
// ones are reported and stay references. 1 MiB per artifact, 2 MiB of artifacts per line, 256 MiB per file, 10,000
// files.
package omp

import (
	"slices"
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

// NewReader returns a reader of a source, which Header opens. Blobs are opened by their SHA-256 in "../../blobs/",
// "../blobs/" and "blobs/".
func NewReader(src interop.Source, o interop.Options) *Reader {
	r := &Reader{blobs: blobs{limits: usual, beside: src.Beside}, artifacts: artifacts{room: usualRoom}, src: src}
	r.Reader = pi.OpenDialect(src, o, pi.Dialect{Slots: true, Entry: r.entry})
	return r
}

// entry adds images and artifacts from other files to a line.
func (r *Reader) entry(l transcript.Line, say func(kind, detail string)) []byte {
	if !r.listed {
		r.listed = true
		r.artifacts.list(r.src)
	}
	return r.artifacts.entry(r.blobs.entry(l, say))
}

// Diagnostics returns at most 100 findings, a count of the others, and a diagnostic about artifacts that stay in their
// folder.
func (r *Reader) Diagnostics() []transcript.Diagnostic {
	found := r.Reader.Diagnostics()
	if d, ok := r.artifacts.said(); ok {
		found = append(found[:len(found):len(found)], d)
	}
	return found
}

// Detect reports whether the beginning of a file has a mark of omp: its title line, its fields of a header, an entry
// that pi does not have, or a reference to a blob. A file of omp without a mark counts as pi's.
func Detect(head []byte) bool {
	for n, l := range jsonl.HeadLines(head) {
		if marked(l, n == 0) {
			return true
		}
	}
	return false
}

// marked reports whether a line is omp's. If another program may have the same type of entry, a field decides. A title
// in a header is no mark: sessions written by this module have one too.
func marked(l transcript.Line, first bool) bool {
	has := func(names ...string) bool {
		return slices.ContainsFunc(names, func(name string) bool { return rawjson.Field(l.Raw, name) != nil })
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

// maxMessageLook bounds the bytes of a message that Detect searches for a blob.
const maxMessageLook = 64 << 10

func markedRole(role string) bool { return role == "pythonExecution" || role == "fileMention" }
