package check

import (
	"context"
	"encoding/hex"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/coppice-go/coppice/backend"
	"github.com/coppice-go/coppice/internal/layout"
	"github.com/coppice-go/coppice/snapshot"
)

// Inventory is what a listing shows of a session, by kind of object.
type Inventory struct {
	Plain, Sealed map[layout.Segment]backend.Info
	Folds         map[string]backend.Info // index objects by key
	Runs          map[string]backend.Info // of the id index, by key
	Snapshots     []backend.Info
	Blobs         map[string]backend.Info // by hex SHA-256
	Originals     map[string]backend.Info // by hex SHA-256: whole files, and parts of files
	Lists         map[string]backend.Info // of the parts of originals, by hex SHA-256 of the whole
	Torn          map[string]backend.Info // by key within the session
	Erasures      []backend.Info          // what erasures have begun and not completed
	Count         int
	Dead          int // of Count: objects of a session that had the id before
}

// TakeInventory lists all that is there under a session's id. Keys that are no object's are handed to stranger and else
// ignored.
func TakeInventory(ctx context.Context, b backend.Backend, id string, stranger func(key string)) (*Inventory, error) {
	inv := newInventory()
	prefix := layout.SessionPrefix(id)
	for info, err := range b.List(ctx, backend.ListOptions{Prefix: prefix}) {
		if err != nil {
			return nil, fmt.Errorf("list %s: %w", prefix, err)
		}
		if !inv.file(info, strings.TrimPrefix(info.Key, prefix)) {
			stranger(info.Key)
			continue
		}
		inv.Count++
	}
	return inv, nil
}

// IsObject reports whether something below the prefix of a session is an object that a session has.
func IsObject(id string, info backend.Info) bool {
	return newInventory().file(info, strings.TrimPrefix(info.Key, layout.SessionPrefix(id)))
}

func newInventory() *Inventory {
	return &Inventory{
		Plain: map[layout.Segment]backend.Info{}, Sealed: map[layout.Segment]backend.Info{},
		Folds: map[string]backend.Info{}, Runs: map[string]backend.Info{},
		Blobs: map[string]backend.Info{}, Originals: map[string]backend.Info{}, Lists: map[string]backend.Info{},
		Torn: map[string]backend.Info{},
	}
}

// file puts an object where it belongs; false where it is none of ours.
func (inv *Inventory) file(info backend.Info, name string) bool {
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
			inv.Sealed[seg] = info
		} else {
			inv.Plain[seg] = info
		}
	case layout.Index:
		if _, _, ok := layout.ParseIndexKey(rest); !ok {
			return false
		}
		inv.Folds[info.Key] = info
	case layout.IDs:
		if _, ok := layout.ParseSegment(rest); !ok {
			return false
		}
		inv.Runs[info.Key] = info
	case layout.Snapshots:
		_, own := layout.ParseOwn(rest)
		if _, _, ok := snapshot.ParseName(own); !ok {
			return false
		}
		inv.Snapshots = append(inv.Snapshots, info)
	case layout.Blobs:
		if !isSum(rest) {
			return false
		}
		inv.Blobs[rest] = info
	case layout.Originals:
		sum, list := strings.CutSuffix(rest, ".parts")
		one, zst := strings.CutSuffix(rest, ".zst")
		switch {
		case list && isSum(sum):
			inv.Lists[sum] = info
		case zst && isSum(one):
			inv.Originals[one] = info
		default:
			return false
		}
	case layout.Torn:
		if _, ok := layout.ParseSegment(rest[:min(len(rest), 58)]); !ok {
			return false
		}
		inv.Torn[name] = info
	case layout.Erasures:
		if _, own := layout.ParseOwn(rest); own != path.Base(layout.ErasureKey("s", 0)) {
			return false
		}
		inv.Erasures = append(inv.Erasures, info)
	default:
		return false
	}
	return true
}

// of leaves in the inventory what is of the session with a first epoch, and indexes by its sum what was listed by name.
func (inv *Inventory) of(since uint64) {
	segments := func(_ layout.Segment, info backend.Info) bool { return inv.dead(info, since) }
	maps.DeleteFunc(inv.Plain, segments)
	maps.DeleteFunc(inv.Sealed, segments)
	objects := func(_ string, info backend.Info) bool { return inv.dead(info, since) }
	for _, m := range []map[string]backend.Info{inv.Folds, inv.Runs, inv.Torn} {
		maps.DeleteFunc(m, objects)
	}
	inv.Snapshots = slices.DeleteFunc(inv.Snapshots, func(info backend.Info) bool {
		own, _ := layout.ParseOwn(path.Base(info.Key))
		return inv.dead(info, since) || own != since
	})
	inv.Erasures = slices.DeleteFunc(inv.Erasures, func(info backend.Info) bool { return inv.dead(info, since) })
	for _, m := range []*map[string]backend.Info{&inv.Blobs, &inv.Originals, &inv.Lists} {
		bySum := map[string]backend.Info{}
		for name, info := range *m {
			if own, sum := layout.ParseOwn(name); !inv.dead(info, since) && own == since {
				bySum[sum] = info
			}
		}
		*m = bySum
	}
}

// dead reports whether an object is of a session that was deleted before the one with a first epoch began.
func (inv *Inventory) dead(info backend.Info, since uint64) bool {
	if layout.Epoch(info.Key) >= since {
		return false
	}
	inv.Dead++
	return true
}

func isSum(s string) bool {
	_, s = layout.ParseOwn(s)
	p, err := hex.DecodeString(s)
	return err == nil && len(p) == 32 && s == strings.ToLower(s)
}

// Segments are the names of all segments, plain or sealed, by first ordinal, then epoch.
func (inv *Inventory) Segments() []layout.Segment {
	all := make([]layout.Segment, 0, len(inv.Plain)+len(inv.Sealed))
	for s := range inv.Sealed {
		all = append(all, s)
	}
	for s := range inv.Plain {
		if _, both := inv.Sealed[s]; !both {
			all = append(all, s)
		}
	}
	slices.SortFunc(all, func(a, b layout.Segment) int { return strings.Compare(a.Name(), b.Name()) })
	return all
}
