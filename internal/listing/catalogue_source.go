package listing

import (
	"context"
	"errors"
	"math"
	"slices"
	"time"

	"github.com/coppice-go/coppice/backend"
	"github.com/coppice-go/coppice/internal/layout"
	"github.com/coppice-go/coppice/internal/parallel"
)

// scanAhead is the maximum number of blocks of a catalogue that are read at a time.
const scanAhead = 8

// source yields the sessions of a store, newest first, by an upper bound of their activity.
type source struct {
	next  []session // the next sessions in order
	total int       // number of sessions, for Progress

	// Only if the sessions come from a catalogue:
	at     shelf
	blocks []block         // blocks that are not read yet, newest first
	above  []row           // rows outside of the blocks: of this process and of head.recent, newest first
	masked map[string]bool // names of the rows in above, which replace rows in blocks; nil = no catalogue
	taken  map[string]bool // names that were yielded; nil = no catalogue
	ahead  int             // number of blocks to read next
	unread int             // number of rows without a summary
}

// bound returns an upper bound of the activity of all sessions that were not yielded yet, in ms. ok is false if there
// are none.
func (s *source) bound() (ms int64, ok bool) {
	ms = math.MinInt64
	if len(s.next) > 0 {
		ms, ok = s.next[0].at, true
	}
	if len(s.above) > 0 {
		ms, ok = max(ms, s.above[0].at), true
	}
	if len(s.blocks) > 0 {
		ms, ok = max(ms, s.blocks[0].newest), true
	}
	return ms, ok
}

// take returns the next sessions, at most n; none at the end.
func (s *source) take(ctx context.Context, l *lister, n int) (part []session, err error) {
	if s.taken == nil {
		part, s.next = s.next[:min(n, len(s.next))], s.next[min(n, len(s.next)):]
		return part, nil
	}
	for len(part) < n {
		for len(s.next) == 0 && (len(s.above) > 0 || len(s.blocks) > 0) {
			if err := s.more(ctx, l); len(part) > 0 && err != nil {
				return part, nil //nolint:nilerr // the next call returns the error
			} else if err != nil {
				return nil, err
			}
		}
		if len(s.next) == 0 {
			break
		}
		next := s.next[0]
		if s.next = s.next[1:]; !s.taken[next.name()] { // a damaged catalogue can contain a session twice
			s.taken[next.name()] = true
			part = append(part, next)
		}
	}
	return part, nil
}

// more reads the next blocks and adds their sessions to next, together with the rows of above that are newer than the
// rest of the blocks.
func (s *source) more(ctx context.Context, l *lister) error {
	n := min(len(s.blocks), s.ahead)
	if l.o.chooses() {
		s.ahead = min(2*s.ahead, scanAhead)
	}
	found := make([][]session, n)
	err := parallel.Each(ctx, n, func(i int) error {
		b := s.blocks[i]
		if b.unread == 0 && l.before(b.oldest) {
			return nil
		}
		rows, err := readBlock(ctx, s.at, b, l.hinted)
		for _, r := range rows {
			if !s.masked[r.name] {
				found[i] = l.add(found[i], r)
			}
		}
		return err
	})
	if err != nil {
		return err
	}
	s.blocks = s.blocks[n:]
	until := 0
	for until < len(s.above) && (len(s.blocks) == 0 || s.above[until].at > s.blocks[0].newest) {
		until++
	}
	for _, r := range s.above[:until] {
		s.next = l.add(s.next, r)
	}
	s.above = s.above[until:]
	s.next = append(s.next, slices.Concat(found...)...)
	slices.SortStableFunc(s.next, later)
	return nil
}

// later orders sessions by an upper bound of their activity, newest first.
func later(a, b session) int {
	return newer(row{a.name(), known{at: a.at}}, row{b.name(), known{at: b.at}})
}

// add appends the session of a row to list, unless the listing certainly does not select it.
func (l *lister) add(list []session, r row) []session {
	s := session{info: backend.Info{Key: layout.Checkpoints + r.name}, at: r.at, row: &r.known}
	if r.sum != nil && l.before(r.at) || !s.ours() || !l.maybe(&r) {
		return list
	}
	return append(list, s)
}

// before reports whether a session with this activity, in ms, was on an earlier page of the listing.
func (l *lister) before(ms int64) bool {
	return l.o.After != "" && ms > l.after.ms && ms <= l.newest && l.after.ms > 0
}

// source returns the sessions of the store: from a catalogue that is fresh, or by listing the store. A listing that is
// to be exact always lists the store.
func (l *lister) source(ctx context.Context) (*source, error) {
	c := l.catalogue
	if c == nil || l.o.Exact {
		if err := l.recallAll(ctx); err != nil {
			return nil, err
		}
		return l.listed(ctx)
	}
	for {
		if s := l.fromCatalogue(ctx); s != nil || ctx.Err() != nil {
			if s != nil && l.o.chooses() && s.unread > learnedMax/2 { // else not all rows that are read may be kept
				return s, l.recallAll(ctx)
			}
			return s, ctx.Err()
		}
		s, err := l.refresh(ctx)
		if !errors.Is(err, errLarge) {
			return s, err
		}
		c.setLarge()
	}
}

// listed returns the sessions by listing the store.
func (l *lister) listed(ctx context.Context) (*source, error) {
	all, err := l.written(ctx)
	return &source{next: all, total: len(all)}, err
}

// refresh is listed, and then makes the catalogue again if the store is large.
func (l *lister) refresh(ctx context.Context) (*source, error) {
	c := l.catalogue
	l.probing = !l.appends && !c.isLarge()
	if err := l.recallAll(ctx); err != nil {
		return nil, err
	}
	held := c.isLarge()
	if held { // of several callers, one refreshes the catalogue for all
		if err := c.acquire(ctx); err != nil {
			return nil, err
		}
		defer c.release()
		if s := l.fromCatalogue(ctx); s != nil || ctx.Err() != nil {
			return s, ctx.Err()
		}
	}
	wrote := c.written()
	large, _ := c.most()
	s, err := l.listed(ctx)
	if err != nil || len(s.next) < large || l.shelf == nil {
		return s, err
	}
	if !held {
		if err := c.acquire(ctx); err != nil {
			return nil, err
		}
		defer c.release()
		c.setLarge()
	}
	if err := c.load(ctx, l.shelf); err != nil {
		return nil, err
	}
	c.renew(l, s.next)
	c.refreshed(ctx, l.shelf, l.now, wrote)
	if !l.appends {
		s.next = slices.DeleteFunc(s.next, l.unwanted)
	}
	return s, nil
}

// unwanted reports whether a valid row shows that the listing does not select a session.
func (l *lister) unwanted(s session) bool {
	k, ok := l.catalogue.get(s.name())
	return ok && k.checkpoint == s.stored && k.checkpoint != (stamp{}) && !l.maybe(&row{s.name(), k})
}

// fromCatalogue returns the sessions from the stored catalogue; nil = there is none, or it must not answer.
func (l *lister) fromCatalogue(ctx context.Context) *source {
	c := l.catalogue
	if l.shelf == nil || !l.appends && !c.isLarge() {
		return nil
	}
	h, err := readHead(ctx, l.shelf)
	large, _ := c.most()
	if err != nil || h.taken == 0 || h.count() < large {
		return nil
	}
	if c.setLarge(); !c.fresh(h, l.now) {
		return nil
	}
	own := c.own()
	s := &source{
		at: l.shelf, blocks: h.blocks, total: h.count(), unread: h.unread(), ahead: 1,
		masked: make(map[string]bool, len(own)+len(h.recent)), taken: map[string]bool{},
	}
	for _, r := range own {
		s.masked[r.name] = true
	}
	s.above = own
	for _, r := range h.recent {
		if !s.masked[r.name] {
			s.masked[r.name] = true
			s.above = append(s.above, r)
		}
	}
	slices.SortFunc(s.above, newer)
	l.stored = true
	if l.o.Age != nil {
		l.o.Age(max(0, l.now.Sub(time.UnixMilli(h.taken))))
	}
	return s
}
