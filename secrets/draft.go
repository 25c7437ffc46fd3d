package secrets

import (
	"context"

	"github.com/coppice-go/coppice/transcript"
)

// RedactDraft replaces the credentials in an entry by their Stub before it is stored. It is made for
// coppice.Hooks.BeforeAppend.
func RedactDraft(_ context.Context, d *transcript.Draft) error {
	if d.Raw != nil {
		d.Raw, _ = RedactJSON(d.Raw)
		return nil
	}
	d.Body, _ = RedactJSON(d.Body)
	return nil
}
