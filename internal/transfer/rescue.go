package transfer

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"strings"

	"github.com/coppice-go/coppice/backend"
	"github.com/coppice-go/coppice/checkpoint"
	"github.com/coppice-go/coppice/codec"
	"github.com/coppice-go/coppice/internal/journal"
	"github.com/coppice-go/coppice/internal/layout"
	"github.com/coppice-go/coppice/internal/segment"
)

// maxRaw bounds the lines of one segment when it is decoded, in bytes.
const maxRaw = 1 << 30

// Rescue writes the original bytes of a session that cannot be opened: it needs only those, and an object that names
// them. It returns fs.ErrNotExist if no original is found; then nothing was written.
func Rescue(ctx context.Context, cfg journal.Config, w io.Writer) error {
	sum, since, err := named(ctx, cfg)
	if err != nil {
		return err
	}
	cfg.Since = since
	objects, _ := journal.Tools(cfg)
	return objects.WriteOriginal(ctx, sum, w)
}

// named returns the hex SHA-256 of the session's original: as named by checkpoint, log or snapshots, the newest first;
// else the only one that exists. since is the first epoch of the session.
func named(ctx context.Context, cfg journal.Config) (sum string, since uint64, err error) {
	key := layout.CheckpointKey(cfg.Session)
	if p, _, err := cfg.Backend.Get(ctx, key, backend.Range{}); err == nil {
		switch o, err := checkpoint.DecodeObject(p); {
		case err != nil, o.Summary.ID != cfg.Session: // damaged, or another session's
		case o.Summary.Tombstone:
			since = layout.NextEpoch(o.Summary.Epoch) // another session began
		case o.Original != "":
			return o.Original, o.Since, nil
		default:
			since = o.Since
		}
	} else if !errors.Is(err, fs.ErrNotExist) {
		return "", 0, err
	}
	prefix := layout.SessionPrefix(cfg.Session)
	for _, folder := range []string{layout.Transcript, layout.Snapshots} {
		keys, err := names(ctx, cfg.Backend, prefix+folder, since)
		if err != nil {
			return "", 0, err
		}
		for _, key := range slices.Backward(keys) {
			p, _, err := cfg.Backend.Get(ctx, key, backend.Range{})
			if err != nil && !errors.Is(err, fs.ErrNotExist) {
				return "", 0, err
			}
			if sum, of := namedIn(cfg.Session, key, p); sum != "" {
				return sum, of, nil
			}
		}
	}
	return only(ctx, cfg.Backend, prefix+layout.Originals, since)
}

// names lists keys, except those of an epoch before since: they belong to a deleted session.
func names(ctx context.Context, b backend.Backend, prefix string, since uint64) (keys []string, err error) {
	for info, err := range b.List(ctx, backend.ListOptions{Prefix: prefix}) {
		if err != nil {
			return nil, fmt.Errorf("list %s: %w", prefix, err)
		}
		if layout.Epoch(info.Key) >= since {
			keys = append(keys, info.Key)
		}
	}
	slices.Sort(keys)
	return keys, nil
}

// namedIn returns the original that a segment or a snapshot of a session names; "" = none, or the object cannot be
// read, or belongs to another session. since is the first epoch of the session.
func namedIn(id, key string, p []byte) (sum string, since uint64) {
	seg, sealed, ok := layout.ParseSegmentKey(key)
	if !ok {
		if o, err := checkpoint.DecodeObject(p); err == nil && o.Summary.ID == id {
			sum, since = o.Original, o.Since
		}
		return sum, since
	}
	if sealed {
		var err error
		if p, _, err = codec.DecodeSegment(p, maxRaw); err != nil {
			return "", 0
		}
	}
	o, err := segment.ParseOpening(p, seg.First == 0)
	if err != nil || !o.Of(id, seg) {
		return "", 0
	}
	segment.Scan(p[o.Size:], o.Prelude.Key, o.Self(), func(c segment.Commit) bool {
		if b := c.Record.Base; b != nil {
			sum, since = cmp.Or(b.Original, sum), b.Since
		}
		if c.Record.Original != "" {
			sum = c.Record.Original
		}
		return true
	})
	return sum, since
}

// only returns the original of a session that has exactly one: the list of its parts, or its only object.
func only(ctx context.Context, b backend.Backend, prefix string, since uint64) (sum string, of uint64, err error) {
	keys, err := names(ctx, b, prefix, since)
	if err != nil {
		return "", 0, err
	}
	for _, ending := range []string{".parts", ".zst"} {
		var found []string
		for _, key := range keys {
			if name, ok := strings.CutSuffix(strings.TrimPrefix(key, prefix), ending); ok {
				found = append(found, name)
			}
		}
		if len(found) == 1 {
			of, sum = layout.ParseOwn(found[0])
			return sum, of, nil
		}
	}
	return "", 0, fmt.Errorf("the imported file: %w", fs.ErrNotExist)
}
