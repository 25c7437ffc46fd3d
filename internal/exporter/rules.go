package exporter

import (
	"context"
	"io"
	"iter"

	coppice "github.com/coppice-go/coppice"
	"github.com/coppice-go/coppice/internal/rawjson"
	"github.com/coppice-go/coppice/interop"
	"github.com/coppice-go/coppice/interop/formats"
	"github.com/coppice-go/coppice/transcript"
)

// Kinds of losses.
const (
	lostUnhealthy = "answers that failed, with the results of their calls, and calls without a result: omp leaves " +
		"them out of the context"
	gainedUnhealthy = "answers that failed, with the results of their calls, and calls without a result: omp left " +
		"them out of the context"
	gainedCompactions = "compactions that atomic does not apply: they count there"
)

// Write writes a session as a file of a format, as formats.Write does, and returns with the losses of that where the
// program makes another context of the same entries.
func Write(
	ctx context.Context, s *coppice.Session, w io.Writer, f interop.Format, h interop.Header,
	entries iter.Seq2[transcript.Draft, error],
) (interop.Losses, error) {
	losses, err := formats.Write(w, f, h, entries, s.Head().Entry)
	if err != nil {
		return losses, err
	}
	more, err := ruleLosses(ctx, s, f)
	for kind, n := range losses {
		more[kind] += n
	}
	return more, err
}

// ruleLosses counts where the program of a format makes another context of the same entries than the session's rules
// do, on the path to the head. It reads the path once, and holds the ids of the calls whose results it met.
func ruleLosses(ctx context.Context, s *coppice.Session, f interop.Format) (interop.Losses, error) {
	t, err := formats.Of(f)
	if err != nil {
		return interop.Losses{}, err
	}
	own, unhealthy := s.Profile(), ""
	switch {
	case own != transcript.OMP && t.Profile == transcript.OMP:
		unhealthy = lostUnhealthy
	case own == transcript.OMP && t.Profile != transcript.OMP:
		unhealthy = gainedUnhealthy
	}
	compactions := own == transcript.Atomic && t.Profile != transcript.Atomic // else its writer counts them
	losses := interop.Losses{}
	if unhealthy == "" && !compactions {
		return losses, nil
	}
	answered := map[string]bool{}
	for e, err := range s.Path(ctx, "") {
		switch {
		case err != nil:
			return losses, err
		case e.Type == "compaction" && compactions:
			losses[gainedCompactions]++
		case e.Type == "message" && unhealthy != "":
			if n := leftOut(rawjson.Field(e.Raw, "message"), answered); n > 0 {
				losses[unhealthy] += n
			}
		}
	}
	return losses, nil
}

// leftOut returns how many messages and calls omp leaves out for a message, with the results of its calls. Messages
// come newest first.
func leftOut(message []byte, answered map[string]bool) (n int) {
	is := transcript.Inspect(message)
	for _, id := range is.Results {
		answered[id] = true
	}
	if is.Role != "assistant" {
		return 0
	}
	stop := string(rawjson.Field(message, "stopReason"))
	failed := (stop == `"error"` || stop == `"aborted"`) && (is.Text != "" || len(is.Calls) > 0)
	if failed {
		n++
	}
	for _, c := range is.Calls {
		if answered[c.ID] == failed {
			n++
		}
		delete(answered, c.ID)
	}
	return n
}
