package retain

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"time"

	coppice "github.com/coppice-go/coppice"
	"github.com/coppice-go/coppice/backend"
	"github.com/coppice-go/coppice/internal/layout"
)

// Limits of a claim.
const (
	claimFor   = 2 * time.Minute  // that a runner has a store since it last wrote its claim
	releaseFor = 10 * time.Second // that the end of a claim may take after its run was cancelled
	maxLeft    = 64               // deletions of a claim that have begun and not ended
	maxClaim   = 64 << 10         // bytes of the object
)

// ErrRunning is of a run while another one is under way: nothing was removed.
var ErrRunning = fmt.Errorf("another run of the retention policy is under way: %w", coppice.ErrConflict)

// note is the stored form of what runs know of each other: docs/format/retention.md. It saves work and protects
// nothing: each removal is conditional for itself.
type note struct {
	Version int      `json:"version"`
	By      string   `json:"by,omitempty"`    // random, of the run that is under way; "" = none is
	Until   int64    `json:"until,omitempty"` // Unix ms: a run that is under way has written since, or it is dead
	Ended   int64    `json:"ended,omitempty"` // Unix ms: of the last run
	After   *place   `json:"after,omitempty"` // at which the last run met its bound
	Left    []string `json:"left,omitempty"`  // sessions whose deletion was begun, and perhaps not completed
}

// place is the place of a family, or of a session without its family, in the order of a run.
type place struct {
	Thinned bool   `json:"thinned,omitempty"` // the run was beyond the snapshots
	Active  int64  `json:"active,omitempty"`  // Unix ms: the newest activity of the family
	Session string `json:"session"`           // its root
}

// claim is the note of a store, as one run reads and writes it.
type claim struct {
	note
	b    backend.Backend
	now  func() time.Time
	cond backend.Cond
}

// read reads the note of a store. One that is damaged counts as none: a run writes it again.
func (c *claim) read(ctx context.Context) error {
	raw, info, err := c.b.Get(ctx, layout.RetentionRunKey, backend.Range{})
	switch {
	case errors.Is(err, fs.ErrNotExist):
		c.cond = backend.IfAbsent()
		return nil
	case err != nil:
		return fmt.Errorf("read the state of retention: %w", err)
	}
	c.cond = backend.IfMatch(info.Version)
	if len(raw) > maxClaim || json.Unmarshal(raw, &c.note) != nil {
		c.note = note{}
	}
	if c.Version > version {
		return fmt.Errorf("read the state of retention: %s: %w", layout.RetentionRunKey, errNewer)
	}
	return nil
}

// under reports how long another run has the store. A time that is too far ahead is of a wrong clock, and counts as
// past.
func (c *claim) under() time.Duration {
	left := time.UnixMilli(c.Until).Sub(c.now())
	if c.By == "" || left <= 0 || left > claimFor {
		return 0
	}
	return left
}

// due returns how long it is until the next of runs that are a time apart. A run that ended in the future, by a wrong
// clock, counts for nothing.
func (c *claim) due(every time.Duration) time.Duration {
	since := c.now().Sub(time.UnixMilli(c.Ended))
	if c.Ended == 0 || since < 0 || since >= every {
		return 0
	}
	return every - since
}

// take claims the store.
func (c *claim) take(ctx context.Context, rand io.Reader) error {
	by := make([]byte, 8)
	if _, err := io.ReadFull(rand, by); err != nil {
		return err
	}
	c.By = hex.EncodeToString(by)
	return c.write(ctx)
}

// write makes the note durable, in place of the one that was read or written last: ErrRunning if that is not the one
// that is there.
func (c *claim) write(ctx context.Context) error {
	c.Version = version
	if c.Until = 0; c.By != "" {
		c.Until = c.now().Add(claimFor).UnixMilli()
	}
	raw, err := json.Marshal(c.note)
	if err != nil {
		return err
	}
	info, err := c.b.Put(backend.Freeing(ctx), layout.RetentionRunKey, append(raw, '\n'), c.cond)
	if errors.Is(err, backend.ErrPrecondition) {
		return ErrRunning
	}
	if err != nil {
		return fmt.Errorf("write the state of retention (%s): %w", backend.OutcomeOf(err), err)
	}
	c.cond = backend.IfMatch(info.Version)
	return nil
}

// begin records that the deletion of a session begins, and that the run is under way.
func (c *claim) begin(ctx context.Context, id string) error {
	if !slices.Contains(c.Left, id) {
		if len(c.Left) >= maxLeft {
			return fmt.Errorf("%d deletions were begun and could not be completed", len(c.Left))
		}
		c.Left = append(slices.Clone(c.Left), id)
	}
	return c.write(ctx)
}

// ended forgets a deletion that is complete, or did not begin; the next write records it.
func (c *claim) ended(id string) {
	c.Left = slices.DeleteFunc(slices.Clone(c.Left), func(s string) bool { return s == id })
}

// release ends the run, also after it was cancelled.
func (c *claim) release(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), releaseFor)
	defer cancel()
	c.By, c.Ended = "", c.now().UnixMilli()
	return c.write(ctx)
}
