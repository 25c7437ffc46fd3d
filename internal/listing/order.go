package listing

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/coppice-go/coppice/backend"
	"github.com/coppice-go/coppice/checkpoint"
	"github.com/coppice-go/coppice/internal/layout"
	"github.com/coppice-go/coppice/internal/parallel"
)

// The orders of a listing.
const (
	ByActivity = "activity" // newest first, by the time of the last commit
	ByCreated  = "created"  // newest first, by the time of the first commit
	ByID       = "id"       // by the stored names of the ids, byte by byte
)

// position is the place of a session in an order.
type position struct {
	ms int64 // the time by which the order sorts, in Unix ms; 0 if it sorts by id
	// by activity: how much later the summary's time is, where the clock of the writer was ahead of the store's
	lag  int64
	name string // the stored form of the id
}

// compare orders positions by time, newest first. Of equal times the last name is first.
func (p position) compare(o position) int {
	return cmp.Or(cmp.Compare(o.ms, p.ms), cmp.Compare(o.lag, p.lag), strings.Compare(o.name, p.name))
}

// position returns the place of a session in an order.
func (f *found) position(order string) position {
	p := position{name: f.name()}
	switch order {
	case ByID:
		return p
	case ByCreated:
		p.ms = f.sum.Created.UnixMilli()
	default:
		updated := f.sum.Updated.UnixMilli()
		p.ms = min(updated, latest(f.info).UnixMilli())
		p.lag = updated - p.ms
	}
	if p.ms > f.newest { // a wrong clock made it
		p.ms, p.lag = 0, p.ms+p.lag
	}
	return p
}

// ahead is how far the clocks of writers may be ahead of the reader's: what is dated later is listed behind all that is
// not, whatever its time.
const ahead = 24 * time.Hour

// letter begins the cursors of an order.
func letter(order string) byte { return cmp.Or(order, ByActivity)[0] }

// cursor returns Options.After for the page that follows a position.
func (p position) cursor(order string) string {
	id, _ := layout.Unescape(p.name)
	return fmt.Sprintf("%c%d.%d.%s", letter(order), p.ms, p.lag, id)
}

// parseCursor checks an order, and returns the position that a cursor of it names.
func parseCursor(order, cursor string) (p position, err error) {
	if order != "" && order != ByActivity && order != ByCreated && order != ByID {
		return p, layout.BadInput("order %.40q: want %s, %s or %s", order, ByActivity, ByCreated, ByID)
	}
	if cursor == "" {
		return p, nil
	}
	parts := strings.SplitN(cursor[1:], ".", 3)
	if len(parts) == 3 && layout.ValidID(parts[2]) == nil {
		p.name = layout.Escape(parts[2])
		p.ms, err = strconv.ParseInt(parts[0], 10, 64)
		if err == nil {
			p.lag, err = strconv.ParseInt(parts[1], 10, 64)
		}
	}
	if err != nil || p.cursor(order) != cursor {
		return p, layout.BadInput("%.80q is no cursor of a listing by %s", cursor, cmp.Or(order, ByActivity))
	}
	return p, nil
}

// byCreated yields the sessions by the time of their creation, which no commit changes. It reads every session that is
// not in the catalogue, and keeps a name and a time of each. One whose time cannot be read is the last.
func (l *lister) byCreated(ctx context.Context) iter.Seq2[session, error] {
	type born struct {
		session
		position
	}
	return func(yield func(session, error) bool) {
		all, err := l.all(ctx)
		if err != nil {
			yield(session{}, err)
			return
		}
		places := make([]born, len(all))
		err = parallel.Each(ctx, len(all), func(i int) error {
			sum, err := l.first(ctx, &all[i])
			if err == nil && sum.ID != "" && !sum.Tombstone {
				f := l.found(all[i], sum)
				places[i] = born{all[i], f.position(ByCreated)}
			}
			return err
		})
		if err != nil {
			yield(session{}, err)
			return
		}
		places = slices.DeleteFunc(places, func(b born) bool { return b.position.name == "" || !l.follows(b.position) })
		slices.SortFunc(places, func(a, b born) int { return a.position.compare(b.position) })
		for _, b := range places {
			if !yield(b.session, nil) {
				return
			}
		}
	}
}

// first returns a summary with the time of the creation, which never changes: from the checkpoint, or from the log if
// there is no checkpoint.
func (l *lister) first(ctx context.Context, s *session) (checkpoint.Summary, error) {
	id, _ := layout.Unescape(s.name())
	if k, ok := l.catalogue.get(s.name()); ok && !s.lost && k.checkpoint == s.stored {
		if sum, ok := k.summary(); ok && !sum.Tombstone {
			return sum, nil
		}
	}
	sum, err := checkpoint.Summary{}, error(nil)
	if !s.lost {
		if sum, err = l.head(ctx, s, checkpoint.Summary{ID: id}); backend.Refused(err) {
			return checkpoint.Summary{ID: id}, nil
		}
	}
	if s.lost || err == nil && sum.Tombstone && l.appends && !s.bare { // perhaps another session began under the id
		if err := l.follow(ctx, s); err != nil {
			return checkpoint.Summary{}, err
		}
		return l.summary(ctx, s)
	}
	return sum, err
}
