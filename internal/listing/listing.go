// Package listing guarantees that a listing has the sessions as they were no earlier than when it began, in one of
// three orders, on which its pages agree. A session that lost its checkpoint is there as long as one of its segments
// is.
//
// On a store that appends, checkpoint_latest lags after the log. So there the segments of a session are listed too, and
// one whose log does not end where its checkpoint does is read as a resume reads it: the whole checkpoint, and what
// the log has after it. Those are the ones written since their last checkpoint, which are few.
//
// By activity: two listings, of checkpoints and of session folders, and sessions are read in the order in which
// checkpoint or log were written last. A session is yielded once none that is unread can have been active later:
// neither is written before its last commit. So the newest of a store in use cost no more reads than there are results,
// and an import of old sessions, which were written today, has to be read to be passed over. A writer with a clock
// ahead of the store's has its sessions listed by the time at which the store wrote them. A commit moves its session to
// the front, so this order alone is not complete while others write.
//
// A time that is over a day ahead of the reader's clock is the work of a wrong clock: in both orders by time, such
// sessions are behind all others.
//
// By id: the names of checkpoints and folders from the cursor on, and the sessions of the page alone are read.
//
// By creation: every session is read for its time, then those of the page.
package listing

import (
	"container/heap"
	"context"
	"errors"
	"iter"
	"math"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/coppice-go/coppice/backend"
	"github.com/coppice-go/coppice/checkpoint"
	"github.com/coppice-go/coppice/internal/layout"
	"github.com/coppice-go/coppice/internal/parallel"
)

const (
	summaryBytes = 4 << 10 // where a checkpoint's summary lies
	pageSize     = 16      // summaries that are read at once
)

// Options narrow a listing.
type Options struct {
	Cwd    string            // only sessions of this working directory; "" = all
	Parent string            // only sessions with this parent; "" = all
	Meta   map[string]string // only sessions whose metadata has each of these; nil = all

	Order string // one of the orders; "" = ByActivity
	After string // Summary.Cursor of the last session of the page before; "" = from the start
	Limit int    // at most so many; 0 = all

	Docs []string // names of documents that come with each summary

	Exact bool                    // nothing is answered from a catalogue
	Age   func(age time.Duration) // receives the age of the catalogue that answers, before the first result; may be nil

	// Progress receives how many sessions were looked at and how many there are, by activity alone; may be nil.
	// Deleted ones leave the total when they are found.
	Progress func(looked, total int)
}

// Rebuild returns the summary of a session from its log.
type Rebuild func(ctx context.Context, id string) (checkpoint.Summary, error)

// Sessions yields the summaries of the sessions of b; now is the reader's time, and c may be nil. One whose summary can
// neither be read nor rebuilt has its id and its last activity alone.
func (c *Catalogue) Sessions(
	ctx context.Context, b backend.Backend, o Options, now time.Time, rebuild Rebuild,
) iter.Seq2[checkpoint.Summary, error] {
	return func(yield func(checkpoint.Summary, error) bool) {
		l := &lister{
			b: b, now: now, rebuild: rebuild, o: o, left: o.Limit, yield: yield, newest: now.Add(ahead).UnixMilli(),
		}
		if err := l.list(ctx, c); err != nil {
			yield(checkpoint.Summary{}, err)
		}
	}
}

// list yields the sessions. It is no part of Sessions, which the compiler copies into each loop over it.
func (l *lister) list(ctx context.Context, c *Catalogue) (err error) {
	if l.after, err = parseCursor(l.o.Order, l.o.After); err != nil {
		return err
	}
	l.hints = l.o.hints()
	if l.catalogue = c; c != nil {
		l.shelf = c.shelf(l.b)
	}
	_, l.appends = l.b.(backend.Appender)
	if !l.appends && (l.o.Exact || l.o.Order != "" && l.o.Order != ByActivity) {
		l.catalogue = nil
	}
	switch l.o.Order {
	case ByID:
		return errors.Join(l.recallAll(ctx), l.inTurn(ctx, l.names(ctx, l.after.name)))
	case ByCreated:
		return errors.Join(l.recallAll(ctx), l.inTurn(ctx, l.byCreated(ctx)))
	}
	if err := l.byActivity(ctx); err != nil || c == nil || l.o.Exact {
		return err
	}
	c.endListing(ctx, l.shelf)
	return nil
}

// recallAll reads the catalogue: on a store that appends what is known of a session spares reading it, elsewhere its
// names divide a listing into parts.
func (l *lister) recallAll(ctx context.Context) error {
	c := l.catalogue
	if c == nil || l.shelf == nil || !l.appends && !c.isLarge() {
		return nil
	}
	if err := c.acquire(ctx); err != nil {
		return err
	}
	defer c.release()
	return c.load(ctx, l.shelf)
}

// lister is one listing.
type lister struct {
	b         backend.Backend
	catalogue *Catalogue // nil = nothing is remembered
	shelf     shelf      // where the catalogue is kept; nil = nowhere
	now       time.Time
	appends   bool // the log may be ahead of the checkpoint
	rebuild   Rebuild
	o         Options
	after     position // the page begins after it; zero = at the start
	newest    int64    // times after it are of wrong clocks: since 1970, in milliseconds
	run       int      // tests: in place of runSize
	yield     func(checkpoint.Summary, error) bool

	hints   [][]byte // texts of each row that is wanted
	stored  bool     // a catalogue answers
	probing bool     // the listing ends after the first page, if the store is large
	isLarge atomic.Bool

	looked, total int     // for Progress
	waiting       waiting // by activity: read, and not yielded yet
	left          int     // results that are still wanted; 0 with a limit = none
	done          bool
}

// session is one that was found by the name of its checkpoint or of its folder.
type session struct {
	info backend.Info // of its checkpoint; ModTime is when checkpoint or log were written last
	lost bool         // the checkpoint is not there
	bare bool         // there is no folder, and so no log
	log  *logEnd      // set by follow; nil = the log does not matter, or there is none

	refused error // set by follow: the store refuses to list the log

	at  int64  // ms: the latest activity that it can have
	row *known // of the catalogue that answers: the session has to be looked at. nil = it was listed

	unlisted bool // set by look: what its checkpoint is, is found out by reading it

	stored stamp  // of its checkpoint, as it was listed; zero = lost
	sum    []byte // its summary as JSON, if it is known; set by follow
}

// name is the stored form of the id.
func (s *session) name() string { return s.info.Key[len(layout.Checkpoints):] }

// found is a session and its summary.
type found struct {
	session

	sum    checkpoint.Summary
	newest int64 // of the lister
}

func (l *lister) found(s session, sum checkpoint.Summary) found { return found{s, sum, l.newest} }

// gone reports whether the session was deleted, or never was one.
func (f *found) gone() bool { return f.sum.Tombstone || f.sum.ID == "" }

// waiting are the sessions that were read and not yielded yet: a heap, the newest activity first.
type waiting []found

func (w waiting) Len() int           { return len(w) }
func (w waiting) Swap(i, j int)      { w[i], w[j] = w[j], w[i] }
func (w waiting) Less(i, j int) bool { return w[i].position("").compare(w[j].position("")) < 0 }
func (w *waiting) Push(x any)        { *w = append(*w, x.(found)) }

func (w *waiting) Pop() any {
	last := len(*w) - 1
	f := (*w)[last]
	*w = (*w)[:last]
	return f
}

// byActivity reads sessions in the order in which they were written, and yields them in that of their activity.
func (l *lister) byActivity(ctx context.Context) error {
	from, err := l.source(ctx)
	if err != nil {
		return err
	}
	l.total = from.total
	l.report()
	for !l.done {
		list, err := from.take(ctx, l, l.ahead())
		if err != nil && ctx.Err() == nil && l.stored { // the catalogue is damaged, or another one took its place
			if from, err = l.instead(ctx, from.taken); err == nil {
				continue
			}
		}
		if err != nil {
			return err
		}
		if len(list) == 0 {
			break
		}
		page, err := l.read(ctx, list)
		if err != nil {
			return err
		}
		for i, f := range page {
			l.take(f)
			if i+1 < len(list) {
				l.flush(list[i+1].at)
			} else if ms, more := from.bound(); more {
				l.flush(ms)
			}
			if l.done {
				return nil
			}
		}
	}
	l.flush(math.MinInt64)
	return nil
}

// instead lists the sessions that a catalogue did not yield.
func (l *lister) instead(ctx context.Context, yielded map[string]bool) (*source, error) {
	l.stored, l.probing = false, false
	err := l.recallAll(ctx)
	if err != nil {
		return nil, err
	}
	from, err := l.listed(ctx)
	if err == nil {
		from.next = slices.DeleteFunc(from.next, func(s session) bool { return yielded[s.name()] })
	}
	return from, err
}

// read reads the summaries of sessions.
func (l *lister) read(ctx context.Context, list []session) ([]found, error) {
	page := make([]found, len(list))
	err := parallel.Each(ctx, len(page), func(i int) error {
		sum, err := l.current(ctx, &list[i])
		page[i] = l.found(list[i], sum)
		return err
	})
	return page, err
}

// current returns the summary of a session; of one that a catalogue has, after a look at it.
func (l *lister) current(ctx context.Context, s *session) (checkpoint.Summary, error) {
	if s.row != nil {
		if err := l.look(ctx, s); err != nil {
			return checkpoint.Summary{}, err
		}
	}
	return l.summary(ctx, s)
}

// ahead returns how many sessions are read at once.
func (l *lister) ahead() int {
	n := pageSize
	if l.left > 0 && !l.o.chooses() && l.o.After == "" {
		n = min(n, max(1, l.left-len(l.waiting)))
	}
	return n
}

// latest returns the latest activity that the summary of a checkpoint can show: summaries have times to the
// millisecond, and object stores have the time of writing to the second.
func latest(info backend.Info) time.Time {
	if info.ModTime.Nanosecond() == 0 {
		return info.ModTime.Add(time.Second - time.Millisecond)
	}
	return info.ModTime.Truncate(time.Millisecond)
}

// take keeps a session until it is known what comes before it.
func (l *lister) take(f found) {
	if f.gone() {
		l.total--
	} else if l.looked++; l.follows(f.position("")) && l.o.wants(&f.sum) {
		heap.Push(&l.waiting, f)
	}
	l.report()
}

// follows reports whether a position is after the cursor.
func (l *lister) follows(p position) bool { return l.o.After == "" || l.after.compare(p) < 0 }

// flush yields the sessions that were active after a time: ms.
func (l *lister) flush(until int64) {
	for len(l.waiting) > 0 && !l.done && (until == math.MinInt64 || l.waiting[0].position("").ms > until) {
		f := heap.Pop(&l.waiting).(found)
		l.give(&f)
	}
}

// give yields a session.
func (l *lister) give(f *found) {
	f.sum.Cursor = f.position(l.o.Order).cursor(l.o.Order)
	l.left--
	l.done = !l.yield(f.sum, nil) || l.left == 0
}

// report calls Progress.
func (l *lister) report() {
	if l.o.Progress != nil {
		l.o.Progress(l.looked, l.total)
	}
}

// inTurn reads sessions, and yields them, in the order in which they come.
func (l *lister) inTurn(ctx context.Context, sessions iter.Seq2[session, error]) error {
	var next []session
	for s, err := range sessions {
		if err != nil {
			return err
		}
		size := pageSize
		if l.left > 0 && !l.o.chooses() {
			size = min(size, l.left)
		}
		if next = append(next, s); len(next) < size {
			continue
		}
		if err := l.giveWanted(ctx, next); err != nil || l.done {
			return err
		}
		next = next[:0]
	}
	return l.giveWanted(ctx, next)
}

// giveWanted reads sessions as they are now, and yields those that are wanted.
func (l *lister) giveWanted(ctx context.Context, list []session) error {
	if err := l.followAll(ctx, list); err != nil {
		return err
	}
	page, err := l.read(ctx, list)
	for _, f := range page {
		if err == nil && !l.done && !f.gone() && l.o.wants(&f.sum) {
			l.give(&f)
		}
	}
	return err
}

// chooses reports whether not every session is wanted.
func (o *Options) chooses() bool { return o.Cwd != "" || o.Parent != "" || len(o.Meta) > 0 }

func (o *Options) wants(sum *checkpoint.Summary) bool {
	for key, value := range o.Meta {
		if have, ok := sum.Meta[key]; !ok || have != value {
			return false
		}
	}
	return (o.Cwd == "" || sameCwd(sum.Cwd, o.Cwd)) && (o.Parent == "" || sum.Parent == o.Parent)
}

// sameCwd compares a summary's working directory, which may be cut with a mark, with a whole one.
func sameCwd(have, want string) bool {
	if cut, ok := strings.CutSuffix(have, "…"); ok && len(have) > 1000 {
		return strings.HasPrefix(want, cut)
	}
	return have == want
}
