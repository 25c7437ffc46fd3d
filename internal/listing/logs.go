package listing

import (
	"context"
	"time"

	"github.com/coppice-go/coppice/backend"
	"github.com/coppice-go/coppice/checkpoint"
	"github.com/coppice-go/coppice/internal/layout"
)

// logEnd is where a session's log ends, by a listing of its segments.
type logEnd struct {
	name    string    // of the newest segment; "" = there is none
	bytes   int64     // of its plain form; -1 = it is sealed
	written time.Time // when any segment was written last
	changed time.Time // when the newest one was
	epoch   uint64    // the highest of a segment
}

// beyond reports whether the log may have commits that a checkpoint with this summary has not. It is never wrong about
// one that has: segments only grow, and the newest one is the last by name. A segment that no commit led to, and bytes
// that a crash left, count as commits until the next writer or gc removes them.
func (e logEnd) beyond(sum *checkpoint.Summary) bool {
	if sum.Tombstone { // of the session before, if another one began under the id
		return e.epoch >= layout.NextEpoch(sum.Epoch)
	}
	return e.name != sum.LogName || e.bytes != sum.LogBytes
}

// logOf lists the segments of a session, and returns where its log ends.
func logOf(ctx context.Context, b backend.Backend, id string) (e logEnd, err error) {
	prefix := layout.SessionPrefix(id) + layout.Transcript
	for info, err := range b.List(ctx, backend.ListOptions{Prefix: prefix}) {
		if err != nil {
			return e, err
		}
		seg, sealed, ours := layout.ParseSegmentKey(info.Key)
		if !ours {
			continue
		}
		if info.ModTime.After(e.written) {
			e.written = info.ModTime
		}
		e.epoch = max(e.epoch, seg.Epoch)
		switch name := seg.Name(); {
		case !sealed:
			e.name, e.bytes, e.changed = name, info.Size, info.ModTime
		case name != e.name: // the plain form, if it is there still, came just before
			e.name, e.bytes, e.changed = name, -1, info.ModTime
		}
	}
	return e, nil
}
