package importer

import (
	"context"
	"errors"

	coppice "github.com/coppice-go/coppice"
	"github.com/coppice-go/coppice/checkpoint"
	"github.com/coppice-go/coppice/interop"
	"github.com/coppice-go/coppice/secrets"
)

// redactedMeta is the metadata of a session that was imported without its credentials.
const redactedMeta = "coppice.redacted"

// errRedacted refuses to append to a session what it was imported without.
var errRedacted = errors.New("its session was imported with --redact, and the file has grown: nothing was stored; " +
	"import it with --redact again, or with --again as a new session")

// title returns the title of a session.
func (o Options) title(h interop.Header) string {
	if !o.Redact {
		return h.Title
	}
	text, _ := secrets.Redact(h.Title)
	return text
}

// ProgramMeta is the metadata of a session that names the program or framework which made it.
const ProgramMeta = "program"

// meta returns the metadata of a new session: that of its header, or else the program. A header with metadata is of a
// session that a coppice store exported, whatever the format of the file is.
func (o Options) meta(h interop.Header) map[string]string {
	raw := h.Raw
	if o.Redact && raw != nil {
		raw, _ = secrets.RedactJSON(raw)
	}
	_, meta := checkpoint.HeaderRelation(raw)
	if meta == nil {
		meta = map[string]string{ProgramMeta: string(o.Format)}
	}
	if o.Redact {
		meta[redactedMeta] = "true"
	}
	return meta
}

// mayGrow returns an error if a session was imported without its credentials, and what it grows by may have some.
func (o Options) mayGrow(ctx context.Context, st *coppice.Store, id string) error {
	if o.Redact {
		return nil
	}
	s, err := look(ctx, st, id)
	if err == nil && s != nil && s.Meta[redactedMeta] != "" {
		err = errRedacted
	}
	return err
}
