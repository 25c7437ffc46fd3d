package exporter

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"

	coppice "github.com/coppice-go/coppice"
	"github.com/coppice-go/coppice/export"
	"github.com/coppice-go/coppice/interop"
	"github.com/coppice-go/coppice/secrets"
)

// Secrets is the treatment of a session that has credentials. The zero value is Refuse.
type Secrets string

// The values of Secrets.
const (
	Refuse Secrets = "refuse" // nothing is written, and the error is a *secrets.FoundError
	Redact Secrets = "redact" // each is replaced by its stub, and counted as a loss
	Allow  Secrets = "allow"  // they are not looked for
)

// replaced is the kind of loss for credentials that were replaced.
const replaced = "credentials, replaced by [secret: RULE]"

// Screen writes what write writes without credentials, and returns their number as a loss. If they are refused, nothing
// is to be kept of what was written.
func (x Exporter) Screen(id string, w io.Writer, write func(io.Writer) error) (interop.Losses, error) {
	if x.Secrets == Allow {
		return nil, write(w)
	}
	out := secrets.NewWriter(w)
	err := write(out)
	if failed := out.Close(); failed != nil {
		err = errors.Join(err, failed)
	}
	if _, damaged := errors.AsType[*DamageError](err); err != nil && !damaged {
		return nil, err
	}
	losses, refused := x.asLosses(id, out.By)
	if refused != nil {
		return nil, refused
	}
	return losses, err
}

// asLosses returns the credentials that were found, by rule, as losses if x replaces them, else a *secrets.FoundError.
func (x Exporter) asLosses(id string, by map[string]int) (interop.Losses, error) {
	if len(by) == 0 {
		return nil, nil
	}
	if x.Secrets != Redact {
		return nil, &secrets.FoundError{What: "session " + id, By: by}
	}
	losses := interop.Losses{}
	for _, n := range by {
		losses[replaced] += n
	}
	return losses, nil
}

// screened writes a session in a format whose lines are looked at one by one. Nothing leaves before all was looked at.
func (x Exporter) screened(ctx context.Context, id, format string, w io.Writer) (losses interop.Losses, err error) {
	var damage *DamageError
	failed := afterAll(w, func(file io.Writer) error {
		more, err := x.Screen(id, &packed{w: file}, func(w io.Writer) (err error) {
			losses, err = x.whole(ctx, id, format, w)
			return err
		})
		losses = Together(losses, more)
		if d, ok := errors.AsType[*DamageError](err); ok {
			damage, err = d, nil
		}
		return err
	})
	if failed == nil && damage != nil {
		return losses, damage
	}
	return losses, failed
}

// Together returns the sum of losses; it may change a.
func Together(a, b interop.Losses) interop.Losses {
	if a == nil {
		return b
	}
	for kind, n := range b {
		a[kind] += n
	}
	return a
}

// packed refuses a file that is compressed: its credentials cannot be replaced.
type packed struct {
	w     io.Writer
	begun bool
}

func (p *packed) Write(b []byte) (int, error) {
	if !p.begun && bytes.HasPrefix(b, []byte("\x28\xb5\x2f\xfd")) { // zstd
		return 0, errors.New("the imported file is compressed, so credentials in it stay: use another format")
	}
	p.begun = true
	return p.w.Write(b)
}

// lookThrough counts the credentials in the entries of a session, and in what a document quotes of it besides.
func lookThrough(ctx context.Context, s *coppice.Session, o *export.Options) (map[string]int, error) {
	found := secrets.NewWriter(io.Discard)
	for e, err := range s.Entries(ctx) {
		if err != nil {
			return nil, fmt.Errorf("export session %s: %w", s.ID(), err)
		}
		found.Count(secrets.FindJSON(e.Raw))
	}
	if len(found.By) > 0 {
		return found.By, nil
	}
	// Titles, labels and names of branches are in the document alone.
	return found.By, errors.Join(export.Markdown(ctx, s, found, o), found.Close())
}
