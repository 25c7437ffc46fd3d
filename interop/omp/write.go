package omp

import (
	"io"
	"iter"

	"github.com/coppice-go/coppice/internal/rawjson"
	"github.com/coppice-go/coppice/interop"
	"github.com/coppice-go/coppice/interop/internal/piwriter"
	"github.com/coppice-go/coppice/transcript"
)

var program = piwriter.Program{
	Types: []string{
		"service_tier_change", "mode_change", "ttsr_injection", "session_init", "model_usage", "title_change",
		"credential_pin", "reset_boundary",
	},
	Shape: piwriter.Dialect{
		Roles:  []string{"developer", "pythonExecution", "fileMention", "hookMessage"},
		Blocks: []string{"redactedThinking", "anthropicServerTool"},
	},
	Models: true, Titles: true, NoSystem: true,
}

var preparer = piwriter.Preparer{Blobs: true}

// Write writes a session as a file that omp loads and opens at head, "" = before the first entry. It has no title line:
// the title is in the header, as in omp's own older files, and marked as the user's, so that omp does not replace it.
// Images stay in their lines, so the file is the whole session. entries are pi v3 lines in the session's order; they
// are iterated twice, and both passes must yield the same lines. The losses count what omp's format cannot express, by
// kind.
func Write(
	w io.Writer, h interop.Header, entries iter.Seq2[transcript.Draft, error], head string,
) (interop.Losses, error) {
	header, lost := piwriter.RemoveForeignFields(headerOf(h), "title", "titleSource", "additionalDirectories",
		"previousSessionFiles", "providerPromptCacheKey")
	losses, err := piwriter.WriteFile(w, header, "", entries, head, preparer.Target(program.Target()))
	return piwriter.AddHeaderLoss(losses, err, lost)
}

// headerOf returns the header with title and title source. The latter identifies the file as omp's.
func headerOf(h interop.Header) []byte {
	header := piwriter.Header(h)
	if h.Title == "" {
		return header
	}
	if rawjson.Text(rawjson.Field(header, "title")) != h.Title {
		header = rawjson.WithField(header, "title", rawjson.AppendString(nil, h.Title))
	} else if rawjson.Field(header, "titleSource") != nil {
		return header
	}
	return rawjson.WithField(header, "titleSource", []byte(`"user"`))
}

// Extend writes the entries added to a session as lines to append to its original file, which ends with a newline.
// entries are all of the session's in order; the first known of them came from the file. If the last line is not at
// head ("" = before the first entry), a custom entry below head follows.
func Extend(
	w io.Writer, _ interop.Header, known int, entries iter.Seq2[transcript.Draft, error], head string,
) (interop.Losses, error) {
	return preparer.Append(w, known, entries, head, program.Target(), piwriter.Existing{})
}
