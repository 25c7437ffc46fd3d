package check

import (
	"context"
	"encoding/hex"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"github.com/coppice-go/coppice/backend"
	"github.com/coppice-go/coppice/internal/layout"
	"github.com/coppice-go/coppice/snapshot"
)

// inventory is what a listing shows of a session, by kind of object.
type inventory struct {
	plain, sealed map[layout.Segment]backend.Info
	folds         map[string]backend.Info // index objects by key
	snapshots     []backend.Info
	blobs         map[string]backend.Info // by hex SHA-256
	originals     map[string]backend.Info // by hex SHA-256
	torn          map[string]backend.Info // by key within the session
	count         int
	bytes         int64
}

// take lists a session. Keys that are no object's are noted and else ignored.
func take(ctx context.Context, b backend.Backend, id string, r *Report) (*inventory, error) {
	inv := &inventory{
		plain: map[layout.Segment]backend.Info{}, sealed: map[layout.Segment]backend.Info{}, folds: map[string]backend.Info{},
		blobs: map[string]backend.Info{}, originals: map[string]backend.Info{}, torn: map[string]backend.Info{},
	}
	prefix := layout.SessionPrefix(id)
	for info, err := range b.List(ctx, backend.ListOptions{Prefix: prefix}) {
		if err != nil {
			return nil, fmt.Errorf("list %s: %w", prefix, err)
		}
		if !inv.file(info, strings.TrimPrefix(info.Key, prefix)) {
			r.stranger(id, info.Key)
			continue
		}
		inv.count++
		inv.bytes += info.Size
	}
	r.strangers(id, prefix)
	return inv, nil
}

// file puts an object where it belongs; false where it is none of ours.
func (inv *inventory) file(info backend.Info, name string) bool {
	folder, rest, ok := strings.Cut(name, "/")
	if !ok || strings.Contains(rest, "/") {
		return false
	}
	switch folder + "/" {
	case layout.Transcript:
		seg, sealed, ok := layout.ParseSegmentKey(rest)
		if !ok {
			return false
		}
		if sealed {
			inv.sealed[seg] = info
		} else {
			inv.plain[seg] = info
		}
	case layout.Index:
		if _, _, ok := layout.ParseIndexKey(rest); !ok {
			return false
		}
		inv.folds[info.Key] = info
	case layout.Snapshots:
		if _, _, ok := snapshot.ParseName(rest); !ok {
			return false
		}
		inv.snapshots = append(inv.snapshots, info)
	case layout.Blobs:
		if !isSum(rest) {
			return false
		}
		inv.blobs[rest] = info
	case layout.Originals:
		sum, zst := strings.CutSuffix(rest, ".zst")
		if !zst || !isSum(sum) {
			return false
		}
		inv.originals[sum] = info
	case layout.Torn:
		if _, ok := layout.ParseSegment(rest[:min(len(rest), 58)]); !ok {
			return false
		}
		inv.torn[name] = info
	default:
		return false
	}
	return true
}

func isSum(s string) bool {
	p, err := hex.DecodeString(s)
	return err == nil && len(p) == 32 && s == strings.ToLower(s)
}

// segments are the names of all segments, plain or sealed, by first ordinal, then epoch.
func (inv *inventory) segments() []layout.Segment {
	all := make([]layout.Segment, 0, len(inv.plain)+len(inv.sealed))
	for s := range inv.sealed {
		all = append(all, s)
	}
	for s := range inv.plain {
		if _, both := inv.sealed[s]; !both {
			all = append(all, s)
		}
	}
	slices.SortFunc(all, func(a, b layout.Segment) int { return strings.Compare(a.Name(), b.Name()) })
	return all
}

// errGone is the cause where something that is named is not there.
var errGone = fmt.Errorf("it is not there: %w", fs.ErrNotExist)
