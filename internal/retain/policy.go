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
	"slices"
	"time"

	coppice "github.com/coppice-go/coppice"
	"github.com/coppice-go/coppice/backend"
	"github.com/coppice-go/coppice/checkpoint"
	"github.com/coppice-go/coppice/internal/layout"
	"github.com/coppice-go/coppice/internal/seam"
	"github.com/coppice-go/coppice/snapshot"
)

// Limits of a stored policy.
const (
	version   = 1
	maxPolicy = 4 << 10 // bytes of the object
	maxLast   = 1 << 30 // of each number
	maxTags   = 64
	second    = time.Second
	maxWithin = math.MaxInt64 / int64(second)
)

// Rules are a policy as documents have it. A rule that is absent is not in force.
type Rules struct {
	KeepWithin int64      `json:"keepWithin,omitempty" doc:"seconds: sessions that were active within them stay"`
	KeepLast   int        `json:"keepLast,omitempty" doc:"so many of each group stay, those of the newest activity"`
	GroupBy    string     `json:"groupBy,omitempty" doc:"with keepLast: the metadata key of the groups, not the folder"`
	MaxBytes   int64      `json:"maxBytes,omitempty" doc:"others go only while the store has more bytes"`
	Snapshots  *Snapshots `json:"snapshots,omitempty" doc:"which snapshots of each session stay; absent = all"`
}

// Snapshots are the rules of a policy on the snapshots of each session: one stays if any rule keeps it. A number of -1
// is all.
type Snapshots struct {
	KeepLast   int      `json:"keepLast,omitempty" doc:"the newest"`
	KeepDaily  int      `json:"keepDaily,omitempty" doc:"the newest of each of so many days that have one"`
	KeepWeekly int      `json:"keepWeekly,omitempty" doc:"the newest of each of so many weeks that have one"`
	KeepTags   []string `json:"keepTags,omitempty" maxItems:"64" doc:"with one of these tags; * = with any"`
}

// wire is the stored form of a policy: docs/format/retention.md.
type wire struct {
	Version int `json:"version"`
	Rules
}

var errNewer = errors.New("a later release of coppice wrote it")

// Rules returns the policy as documents have it.
func (p Policy) Rules() Rules {
	r := Rules{
		KeepWithin: int64(p.KeepWithin / second), KeepLast: p.KeepLast, GroupBy: p.GroupBy, MaxBytes: p.MaxBytes,
	}
	if p.thins() {
		keep := p.Snapshots
		r.Snapshots = &Snapshots{keep.Last, keep.Daily, keep.Weekly, keep.Tags}
	}
	return r
}

// Policy returns the policy of the rules; an error if they cannot be.
func (r Rules) Policy() (Policy, error) {
	if err := r.valid(); err != nil {
		return Policy{}, layout.BadInput("retention policy: %v", err)
	}
	p := Policy{
		KeepWithin: time.Duration(r.KeepWithin) * second, KeepLast: r.KeepLast, GroupBy: r.GroupBy,
		MaxBytes: r.MaxBytes,
	}
	if s := r.Snapshots; s != nil {
		p.Snapshots = snapshot.Retention{Last: s.KeepLast, Daily: s.KeepDaily, Weekly: s.KeepWeekly, Tags: s.KeepTags}
	}
	return p, nil
}

// Encode returns the stored form of a policy.
func (p Policy) Encode() ([]byte, error) {
	if p.KeepWithin%second != 0 {
		return nil, layout.BadInput("retention policy: %v is not in whole seconds", p.KeepWithin)
	}
	w := wire{version, p.Rules()}
	if _, err := w.Policy(); err != nil {
		return nil, err
	}
	raw, err := json.Marshal(w)
	if err == nil && len(raw) >= maxPolicy {
		err = layout.TooLarge("retention policy", maxPolicy, len(raw))
	}
	return append(raw, '\n'), err
}

func (r Rules) valid() error {
	switch {
	case r.KeepWithin < 0 || r.KeepWithin > maxWithin:
		return fmt.Errorf("keepWithin %d: want 0 to %d seconds", r.KeepWithin, maxWithin)
	case r.KeepLast < 0 || r.KeepLast > maxLast:
		return fmt.Errorf("keepLast %d: want 0 to %d", r.KeepLast, maxLast)
	case r.MaxBytes < 0:
		return fmt.Errorf("maxBytes %d is negative", r.MaxBytes)
	case r.GroupBy != "" && r.KeepLast == 0:
		return errors.New("groupBy without keepLast")
	case r.GroupBy != "" && !checkpoint.ValidMetaKey(r.GroupBy):
		return fmt.Errorf("groupBy %.70q is not a key of metadata", r.GroupBy)
	case r.Snapshots != nil:
		return r.Snapshots.valid()
	}
	return nil
}

func (s *Snapshots) valid() error {
	for _, n := range []int{s.KeepLast, s.KeepDaily, s.KeepWeekly} {
		if n < -1 || n > maxLast {
			return fmt.Errorf("snapshots: %d: want -1 to %d", n, maxLast)
		}
	}
	switch {
	case s.KeepLast == 0 && s.KeepDaily == 0 && s.KeepWeekly == 0 && len(s.KeepTags) == 0:
		return errors.New("snapshots: no rule, which would keep all")
	case len(s.KeepTags) > maxTags || slices.Contains(s.KeepTags, ""):
		return fmt.Errorf("snapshots: keepTags: want at most %d, none of them empty", maxTags)
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
	switch err := json.Unmarshal(raw, &v); {
	case err != nil:
		return Policy{}, err
	case v.Version > version:
		return Policy{}, errNewer
	case v.Version != version:
		return Policy{}, fmt.Errorf("version %d", v.Version)
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
	return w.Policy()
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
