package transfer

import (
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

// Rescue writes the bytes of the imported file of a session that cannot be opened: it needs nothing of the session but
// those, and something that names them. It is fs.ErrNotExist if no file is found; then nothing was written.
func Rescue(ctx context.Context, cfg journal.Config, w io.Writer) error {
	sum, err := named(ctx, cfg)
	if err != nil {
		return err
	}
	return journal.WriteOriginal(ctx, cfg, sum, w)
}

// named finds the hex SHA-256 of the session's imported file: as checkpoint, log or snapshots name it, the newest
// first; else the only one that is there.
func named(ctx context.Context, cfg journal.Config) (sum string, err error) {
	key := layout.CheckpointKey(cfg.Session)
	if p, _, err := cfg.Backend.Get(ctx, key, backend.Range{}); err == nil {
		if o, err := checkpoint.DecodeObject(p); err == nil && o.Summary.Tombstone {
			return "", fs.ErrNotExist
		} else if err == nil && o.Original != "" {
			return o.Original, nil
		}
	} else if !errors.Is(err, fs.ErrNotExist) {
		return "", err
	}
	prefix := layout.SessionPrefix(cfg.Session)
	for _, folder := range []string{layout.Transcript, layout.Snapshots} {
		keys, err := names(ctx, cfg.Backend, prefix+folder)
		if err != nil {
			return "", err
		}
		for _, key := range slices.Backward(keys) {
			p, _, err := cfg.Backend.Get(ctx, key, backend.Range{})
			if err != nil && !errors.Is(err, fs.ErrNotExist) {
				return "", err
			}
			if sum := namedIn(key, p); sum != "" {
				return sum, nil
			}
		}
	}
	return only(ctx, cfg.Backend, prefix+layout.Originals)
}

func names(ctx context.Context, b backend.Backend, prefix string) (keys []string, err error) {
	for info, err := range b.List(ctx, backend.ListOptions{Prefix: prefix}) {
		if err != nil {
			return nil, fmt.Errorf("list %s: %w", prefix, err)
		}
		keys = append(keys, info.Key)
	}
	slices.Sort(keys)
	return keys, nil
}

// namedIn is the imported file that a segment or a snapshot names; "" = none, or it cannot be read.
func namedIn(key string, p []byte) (sum string) {
	seg, sealed, ok := layout.ParseSegmentKey(key)
	if !ok {
		if o, err := checkpoint.DecodeObject(p); err == nil {
			sum = o.Original
		}
		return sum
	}
	if sealed {
		var err error
		if p, _, err = codec.DecodeSegment(p, maxRaw); err != nil {
			return ""
		}
	}
	o, err := segment.ParseOpening(p, seg.First == 0)
	if err != nil {
		return ""
	}
	segment.Scan(p[o.Size:], o.Prelude.Key, o.Self(), func(c segment.Commit) bool {
		if b := c.Record.Base; b != nil && b.Original != "" {
			sum = b.Original
		}
		if c.Record.Original != "" {
			sum = c.Record.Original
		}
		return true
	})
	return sum
}

// only is the imported file of a session that has one: the list of its parts, or its only object.
func only(ctx context.Context, b backend.Backend, prefix string) (string, error) {
	keys, err := names(ctx, b, prefix)
	if err != nil {
		return "", err
	}
	for _, ending := range []string{".parts", ".zst"} {
		var sums []string
		for _, key := range keys {
			if sum, ok := strings.CutSuffix(strings.TrimPrefix(key, prefix), ending); ok {
				sums = append(sums, sum)
			}
		}
		if len(sums) == 1 {
			return sums[0], nil
		}
	}
	return "", fmt.Errorf("the imported file: %w", fs.ErrNotExist)
}
