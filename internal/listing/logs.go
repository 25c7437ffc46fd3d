package listing

import (
	"context"
	"errors"
	"io/fs"
	"time"

	"github.com/coppice-go/coppice/backend"
	"github.com/coppice-go/coppice/checkpoint"
	"github.com/coppice-go/coppice/internal/layout"
	"github.com/coppice-go/coppice/internal/parallel"
)

// logEnd is where a session's log ends, by a listing of its segments.
type logEnd struct {
	name    string    // of the newest segment; "" = there is none
	bytes   int64     // of its plain form; -1 = it is sealed
	written time.Time // when any segment was written last
}

// beyond reports whether the log may have commits that a checkpoint with this summary has not. It is never wrong about
// one that has: segments only grow, and the newest one is the last by name. A segment that no commit led to, and bytes
// that a crash left, count as commits until the next writer or gc removes them.
func (e logEnd) beyond(sum *checkpoint.Summary) bool {
	return e.name != sum.LogName || e.bytes != sum.LogBytes
}

// logsOf lists the segments of sessions, and returns where each log ends.
func logsOf(ctx context.Context, b backend.Backend, ids []string) ([]logEnd, error) {
	ends := make([]logEnd, len(ids))
	err := parallel.Each(ctx, len(ids), func(i int) (err error) {
		ends[i], err = logOf(ctx, b, ids[i])
		return err
	})
	return ends, err
}

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
		switch name := seg.Name(); {
		case !sealed:
			e.name, e.bytes = name, info.Size
		case name != e.name: // the plain form, if it is there still, came just before
			e.name, e.bytes = name, -1
		}
	}
	return e, nil
}

// summary returns the summary of a session as it is now: that of its checkpoint, or where the log has more, or there is
// no checkpoint, that of the log. That of a session which was deleted meanwhile is empty.
func (l *lister) summary(ctx context.Context, info backend.Info) (sum checkpoint.Summary, err error) {
	id, _ := layout.Unescape(info.Key[len(layout.Checkpoints):])
	only := checkpoint.Summary{ID: id, Updated: info.ModTime} // opening it says what is wrong
	if !l.lost[info.Key] {
		sum, err = l.stored(ctx, info, only)
		end, known := l.logs[info.Key]
		if err != nil || sum.ID == "" || sum.Tombstone || !known || !end.beyond(&sum) {
			sum.LogName, sum.LogBytes = "", 0
			return sum, err
		}
	}
	if l.rebuild == nil {
		return only, nil
	}
	sum, err = l.rebuild(ctx, id)
	switch {
	case ctx.Err() != nil:
		return sum, ctx.Err()
	case errors.Is(err, fs.ErrNotExist):
		return checkpoint.Summary{}, nil
	case err != nil:
		return only, nil //nolint:nilerr // see above
	}
	return sum, nil
}
