// Package listing guarantees that sessions come newest activity first, by the time that their summaries show, in an
// order that pages agree on, and as they were no earlier than when the listing began. It costs two listings, of
// checkpoints and of session folders, and one short read for each session that is looked at. A session that lost its
// checkpoint is there as long as one of its segments is: it costs one listing more.
//
// On a store that appends, checkpoint_latest lags after the log. So there the segments of every session are listed too,
// and a session whose log ends elsewhere than its checkpoint says is read as a resume reads it: the whole
// checkpoint, and what the log has after it. Those are the ones written since their last checkpoint, which are few.
//
// Sessions are read in the order in which checkpoint or log were written last. A session is yielded once none that is
// unread can have been active later: neither is written before its last commit. So the newest of a store in use cost
// no more reads than there are results, and an import of old sessions, which were written today, has to be read to be
// passed over. A writer with a clock ahead of the store's has its sessions listed no earlier than the store's clock
// allows.
package listing

import (
	"cmp"
	"container/heap"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"slices"
	"strings"
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

	After string // the last id of the page before; "" = from the newest. One that is not there: fs.ErrNotExist
	Limit int    // at most so many; 0 = all

	Docs []string // names of documents that come with each summary

	// Progress receives how many sessions were looked at and how many there are, those of pages before
	// included; nil = no one asks. Deleted ones leave the total when they are come upon.
	Progress func(looked, total int)
}

// progress counts for Options.Progress.
type progress struct {
	tell          func(looked, total int)
	looked, total int
	quiet         bool // pages before this one are read
}

// step counts n more that were looked at, or, where they are gone, no longer counts them.
func (p *progress) step(n int, gone bool) {
	if gone {
		p.total -= n
	} else {
		p.looked += n
	}
	if p.tell != nil && !p.quiet {
		p.tell(p.looked, p.total)
	}
}

// found is a checkpoint and what its summary says.
type found struct {
	info backend.Info
	sum  checkpoint.Summary
}

// Rebuild returns the summary of a session that has no checkpoint, from its log.
type Rebuild func(ctx context.Context, id string) (checkpoint.Summary, error)

// waiting are the sessions that were read and not yielded yet: a heap, the newest activity first.
type waiting []found

func (w waiting) Len() int           { return len(w) }
func (w waiting) Swap(i, j int)      { w[i], w[j] = w[j], w[i] }
func (w waiting) Less(i, j int) bool { return compare(w[i], w[j]) < 0 }
func (w *waiting) Push(x any)        { *w = append(*w, x.(found)) }

func (w *waiting) Pop() any {
	last := len(*w) - 1
	f := (*w)[last]
	*w = (*w)[:last]
	return f
}

// compare orders sessions: newest activity first, then as they were written, then by id.
func compare(a, b found) int {
	return cmp.Or(b.sum.Updated.Compare(a.sum.Updated), byWriting(a.info, b.info))
}

// byWriting orders checkpoints, newest first.
func byWriting(a, b backend.Info) int {
	return cmp.Or(b.ModTime.Compare(a.ModTime), strings.Compare(b.Key, a.Key))
}

// Sessions yields the summaries of the sessions of b. One whose summary can neither be read nor rebuilt has its id and
// its last activity alone. A page reads again what the pages before it had.
func Sessions(
	ctx context.Context, b backend.Backend, o Options, rebuild Rebuild,
) iter.Seq2[checkpoint.Summary, error] {
	return func(yield func(checkpoint.Summary, error) bool) {
		l := &lister{
			b: b, rebuild: rebuild, o: o, after: o.After, left: o.Limit,
			p: progress{tell: o.Progress, quiet: o.After != ""}, yield: yield,
		}
		if err := l.run(ctx); err != nil {
			yield(checkpoint.Summary{}, err)
		}
	}
}

// lister is one listing.
type lister struct {
	b       backend.Backend
	rebuild Rebuild
	lost    map[string]bool   // the keys of checkpoints that are not there
	logs    map[string]logEnd // by the key of the checkpoint, on a store that appends

	o     Options
	p     progress
	yield func(checkpoint.Summary, error) bool

	waiting waiting
	after   string // the session after which the page begins; "" = it has begun
	left    int    // results that are still wanted; 0 with a limit = none
	done    bool
}

func (l *lister) run(ctx context.Context) error {
	all, err := l.sessions(ctx)
	if err != nil {
		return err
	}
	if l.after != "" && !slices.ContainsFunc(all, func(i backend.Info) bool {
		return i.Key == layout.CheckpointKey(l.after)
	}) {
		return fmt.Errorf("session %q: %w", l.after, fs.ErrNotExist)
	}
	l.p.total = len(all)
	l.p.step(0, false)
	for len(all) > 0 && !l.done {
		page := make([]found, l.ahead(len(all)))
		err := parallel.Each(ctx, len(page), func(i int) (err error) {
			page[i].info = all[i]
			page[i].sum, err = l.summary(ctx, all[i])
			return err
		})
		if err != nil {
			return err
		}
		for i, f := range page {
			l.take(f)
			if i+1 < len(all) {
				l.flush(latest(all[i+1]))
			}
			if l.done {
				return nil
			}
		}
		all = all[len(page):]
	}
	l.flush(time.Time{})
	if l.after != "" && !l.done { // deleted: its place is not known
		return fmt.Errorf("session %q: %w", l.after, fs.ErrNotExist)
	}
	return nil
}

// ahead returns how many of so many checkpoints are read at once.
func (l *lister) ahead(unread int) int {
	n := min(unread, pageSize)
	if l.left > 0 && !l.o.chooses() && l.after == "" {
		n = min(n, max(1, l.left-len(l.waiting)))
	}
	return n
}

// latest returns the latest activity that the summary of a checkpoint can show: summaries tell times to the
// millisecond, and object stores tell the time of writing to the second.
func latest(info backend.Info) time.Time {
	if info.ModTime.Nanosecond() == 0 {
		return info.ModTime.Add(time.Second - time.Millisecond)
	}
	return info.ModTime.Truncate(time.Millisecond)
}

// take keeps a session until it is known what comes before it.
func (l *lister) take(f found) {
	gone := f.sum.Tombstone || f.sum.ID == ""
	l.p.step(1, gone)
	if !gone && (f.sum.ID == l.after || l.o.wants(&f.sum)) {
		heap.Push(&l.waiting, f)
	}
}

// flush yields the sessions that were active no earlier than a time.
func (l *lister) flush(until time.Time) {
	for len(l.waiting) > 0 && !l.done && (until.IsZero() || !l.waiting[0].sum.Updated.Before(until)) {
		f := heap.Pop(&l.waiting).(found)
		if l.after != "" {
			if f.sum.ID == l.after {
				l.after, l.p.quiet = "", false
				l.p.step(0, false)
			}
			continue
		}
		if !l.yield(f.sum, nil) {
			l.done = true
			return
		}
		if l.left--; l.left == 0 {
			l.done = true
		}
	}
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

// sessions lists checkpoint_latest, newest first by when checkpoint or log were written last, and in the same order the
// sessions that have none. On a store that appends the log may be ahead of the checkpoint, so the segments of each
// session are listed; elsewhere those of sessions without a checkpoint alone.
func (l *lister) sessions(ctx context.Context) ([]backend.Info, error) {
	var all []backend.Info
	var folders []string
	err := parallel.Each(ctx, 2, func(i int) (err error) {
		if i == 0 {
			all, err = checkpoints(ctx, l.b)
		} else {
			folders, err = names(ctx, l.b)
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	have := make(map[string]int, len(all)) // places in all
	for i, info := range all {
		have[info.Key] = i
	}
	_, appends := l.b.(backend.Appender)
	if !appends {
		folders = slices.DeleteFunc(folders, func(id string) bool {
			_, there := have[layout.CheckpointKey(id)]
			return there
		})
	}
	ends, err := logsOf(ctx, l.b, folders)
	if err != nil {
		return nil, err
	}
	l.lost, l.logs = map[string]bool{}, make(map[string]logEnd, len(ends))
	for n, end := range ends {
		key := layout.CheckpointKey(folders[n])
		switch i, there := have[key]; {
		case there:
			l.logs[key] = end
			if end.written.After(all[i].ModTime) {
				all[i].ModTime = end.written
			}
		case end.name != "":
			l.lost[key] = true
			all = append(all, backend.Info{Key: key, ModTime: end.written})
		}
	}
	slices.SortFunc(all, byWriting)
	return all, nil
}

// checkpoints lists checkpoint_latest.
func checkpoints(ctx context.Context, b backend.Backend) ([]backend.Info, error) {
	var all []backend.Info
	for info, err := range b.List(ctx, backend.ListOptions{Prefix: layout.Checkpoints}) {
		if err != nil {
			return nil, err
		}
		if _, ours := layout.Unescape(info.Key[len(layout.Checkpoints):]); ours {
			all = append(all, info)
		}
	}
	return all, nil
}

// names lists the ids of all sessions that have a folder.
func names(ctx context.Context, b backend.Backend) (ids []string, err error) {
	for info, err := range b.List(ctx, backend.ListOptions{Prefix: layout.Sessions, Delimiter: "/"}) {
		if err != nil {
			return nil, err
		}
		id, ours := layout.Unescape(strings.TrimSuffix(info.Key[len(layout.Sessions):], "/"))
		if ours && info.Prefix {
			ids = append(ids, id)
		}
	}
	return ids, nil
}

// IDs returns the ids of all sessions, ascending, deleted ones among them: two listings, and no object is read.
func IDs(ctx context.Context, b backend.Backend) ([]string, error) {
	all, err := checkpoints(ctx, b)
	if err != nil {
		return nil, err
	}
	ids, err := names(ctx, b)
	if err != nil {
		return nil, err
	}
	for _, info := range all {
		id, _ := layout.Unescape(info.Key[len(layout.Checkpoints):])
		ids = append(ids, id)
	}
	slices.Sort(ids)
	return slices.Compact(ids), nil
}

// stored reads the summary of a checkpoint. That of one which is gone is empty, and of one that cannot be decoded it is
// only.
func (l *lister) stored(
	ctx context.Context, info backend.Info, only checkpoint.Summary,
) (checkpoint.Summary, error) {
	if len(l.o.Docs) > 0 && !l.o.chooses() {
		return l.whole(ctx, info, only, only)
	}
	prefix, _, err := l.b.Get(ctx, info.Key, backend.Bytes(0, min(info.Size, summaryBytes)))
	if errors.Is(err, backend.ErrRange) { // replaced by a smaller one
		prefix, _, err = l.b.Get(ctx, info.Key, backend.Range{})
	}
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return checkpoint.Summary{}, nil
	case err != nil:
		return checkpoint.Summary{}, err
	}
	sum, err := checkpoint.DecodeSummary(prefix)
	if err != nil || sum.ID != only.ID || sum.Snapshot != "" {
		return only, nil
	}
	switch {
	case len(l.o.Docs) > 0 && (sum.MetaElsewhere || l.o.wants(&sum)):
		return l.whole(ctx, info, only, only)
	case sum.MetaElsewhere:
		return l.whole(ctx, info, only, sum)
	}
	return sum, nil
}

// whole reads a checkpoint for what its summary does not hold: documents, and metadata that is too long for it. Where
// it cannot be decoded the summary is the one given: opening the session says what is wrong.
func (l *lister) whole(
	ctx context.Context, info backend.Info, only, otherwise checkpoint.Summary,
) (checkpoint.Summary, error) {
	p, _, err := l.b.Get(ctx, info.Key, backend.Range{})
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return checkpoint.Summary{}, nil
	case err != nil:
		return otherwise, err
	}
	o, err := checkpoint.DecodeObject(p)
	if err != nil {
		return otherwise, nil //nolint:nilerr // see above
	}
	sum := o.Summary
	if sum.ID != only.ID || sum.Snapshot != "" {
		return only, nil
	}
	if len(l.o.Docs) > 0 {
		doc, err := checkpoint.DecodeDocument(o.Document)
		if err != nil {
			return only, nil //nolint:nilerr // see above
		}
		sum.Docs = Chosen(doc.Docs, l.o.Docs)
	}
	return sum, nil
}

// Chosen returns documents by their names; nil where none of them is there.
func Chosen(docs map[string]json.RawMessage, names []string) (chosen map[string]json.RawMessage) {
	for _, name := range names {
		if p, ok := docs[name]; ok {
			if chosen == nil {
				chosen = map[string]json.RawMessage{}
			}
			chosen[name] = p
		}
	}
	return chosen
}
