package omp

import (
	"io"
	"iter"

	"github.com/coppice-go/coppice/internal/rawjson"
	"github.com/coppice-go/coppice/interop"
	"github.com/coppice-go/coppice/interop/pi/emit"
	"github.com/coppice-go/coppice/interop/pi/family"
	"github.com/coppice-go/coppice/interop/pi/shape"
	"github.com/coppice-go/coppice/transcript"
)

var self = family.Member{
	Types: []string{
		"service_tier_change", "mode_change", "ttsr_injection", "session_init", "model_usage", "title_change", "credential_pin", "reset_boundary",
	},
	Shape: shape.Dialect{
		Roles:  []string{"developer", "pythonExecution", "fileMention", "hookMessage"},
		Blocks: []string{"redactedThinking", "anthropicServerTool"},
	},
	Models: true, Titles: true, NoSystem: true,
}

// Write writes a session as a file that omp loads and opens at head, "" = before the first entry. It has no title
// line: the title is in the header, as in omp's own older files. Images stay in their lines, so the file is
// the whole session. entries, pi v3 lines in the session's order, is walked twice and must give the same each
// time. The losses say what omp could not be told, by kind.
func Write(w io.Writer, h interop.Header, entries iter.Seq2[transcript.Draft, error], head string) (interop.Losses, error) {
	header := family.Header(h)
	if h.Title != "" {
		header = rawjson.WithField(header, "title", rawjson.AppendString(nil, h.Title))
	}
	return emit.File(w, header, "", entries, head, self.Target())
}

// Append writes entries as lines that go behind a file's last one, which ends with a newline. Each hangs on an
// entry of the file, or on one before it.
func Append(w io.Writer, entries iter.Seq2[transcript.Draft, error]) (interop.Losses, error) {
	return emit.Append(w, entries, self.Target())
}
