package retain

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"time"

	coppice "github.com/coppice-go/coppice"
	"github.com/coppice-go/coppice/backend"
	"github.com/coppice-go/coppice/checkpoint"
	"github.com/coppice-go/coppice/internal/layout"
	"github.com/coppice-go/coppice/internal/seam"
)

// Limits of a stored policy.
const (
	version   = 1
	maxPolicy = 4 << 10 // bytes of the object
	maxLast   = 1 << 30 // Policy.KeepLast
	second    = time.Second
	maxWithin = math.MaxInt64 / int64(second)
)

// wire is the stored form of a policy: docs/format/retention.md.
type wire struct {
	Version    int    `json:"version"`
	KeepWithin int64  `json:"keepWithin,omitempty"` // seconds
	KeepLast   int    `json:"keepLast,omitempty"`
	GroupBy    string `json:"groupBy,omitempty"`
	MaxBytes   int64  `json:"maxBytes,omitempty"`
}

var errNewer = errors.New("a later release of coppice wrote it")

// Encode returns the stored form of a policy.
func (p Policy) Encode() ([]byte, error) {
	w := wire{
		Version: version, KeepWithin: int64(p.KeepWithin / second), KeepLast: p.KeepLast, GroupBy: p.GroupBy,
		MaxBytes: p.MaxBytes,
	}
	if p.KeepWithin%second != 0 {
		return nil, layout.BadInput("retention policy: %v is not in whole seconds", p.KeepWithin)
	}
	if err := w.valid(); err != nil {
		return nil, layout.BadInput("retention policy: %v", err)
	}
	raw, err := json.Marshal(w)
	return append(raw, '\n'), err
}

func (w wire) valid() error {
	switch {
	case w.Version > version:
		return errNewer
	case w.Version != version:
		return fmt.Errorf("version %d", w.Version)
	case w.KeepWithin < 0 || w.KeepWithin > maxWithin:
		return fmt.Errorf("keepWithin %d: want 0 to %d seconds", w.KeepWithin, maxWithin)
	case w.KeepLast < 0 || w.KeepLast > maxLast:
		return fmt.Errorf("keepLast %d: want 0 to %d", w.KeepLast, maxLast)
	case w.MaxBytes < 0:
		return fmt.Errorf("maxBytes %d is negative", w.MaxBytes)
	case w.GroupBy != "" && w.KeepLast == 0:
		return errors.New("groupBy without keepLast")
	case w.GroupBy != "" && !checkpoint.ValidMetaKey(w.GroupBy):
		return fmt.Errorf("groupBy %.70q is not a key of metadata", w.GroupBy)
	}
	return nil
}

// Decode reads the stored form. A field that it does not know is an error: a rule that is not understood may keep
// sessions.
func Decode(raw []byte) (Policy, error) {
	if len(raw) > maxPolicy {
		return Policy{}, fmt.Errorf("%d bytes, the limit is %d", len(raw), maxPolicy)
	}
	var v struct{ Version int }
	if err := json.Unmarshal(raw, &v); err != nil {
		return Policy{}, err
	}
	if v.Version > version {
		return Policy{}, errNewer
	}
	var w wire
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&w); err != nil {
		return Policy{}, err
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return Policy{}, errors.New("there is more than one value")
	}
	if err := w.valid(); err != nil {
		return Policy{}, err
	}
	return Policy{
		KeepWithin: time.Duration(w.KeepWithin) * second, KeepLast: w.KeepLast, GroupBy: w.GroupBy,
		MaxBytes: w.MaxBytes,
	}, nil
}

// Load returns the policy of a store; without one it has no rule. One that cannot be understood is an error.
func Load(ctx context.Context, st *coppice.Store) (Policy, error) {
	p, _, err := load(ctx, seam.Config(st).Backend)
	return p, err
}

func load(ctx context.Context, b backend.Backend) (Policy, backend.Cond, error) {
	raw, info, err := b.Get(ctx, layout.RetentionKey, backend.Range{})
	if errors.Is(err, fs.ErrNotExist) {
		return Policy{}, backend.IfAbsent(), nil
	}
	if err != nil {
		return Policy{}, backend.Cond{}, fmt.Errorf("read the retention policy: %w", err)
	}
	p, err := Decode(raw)
	if err != nil {
		err = fmt.Errorf("read the retention policy: %s: %w: %w", layout.RetentionKey, err, coppice.ErrCorrupt)
	}
	return p, backend.IfMatch(info.Version), err
}

// Save stores the policy of a store in place of the one that is there, also of a damaged one, but not of one that a
// later release wrote. If another one is stored meanwhile, that one stays: coppice.ErrConflict.
func Save(ctx context.Context, st *coppice.Store, p Policy) error {
	b := seam.Config(st).Backend
	raw, err := p.Encode()
	if err != nil {
		return err
	}
	_, cond, err := load(ctx, b)
	if err != nil && (errors.Is(err, errNewer) || !errors.Is(err, coppice.ErrCorrupt)) {
		return fmt.Errorf("nothing was stored: %w", err)
	}
	_, err = b.Put(ctx, layout.RetentionKey, raw, cond)
	if errors.Is(err, backend.ErrPrecondition) {
		return fmt.Errorf("store the retention policy: another one was stored meanwhile: %w", coppice.ErrConflict)
	}
	if err != nil {
		return fmt.Errorf("store the retention policy (%s): %w", backend.OutcomeOf(err), err)
	}
	return nil
}
