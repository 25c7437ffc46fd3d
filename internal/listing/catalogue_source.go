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

// scanAhead bounds the blocks of a catalogue that are in memory at once.
const scanAhead = 8

// source yields sessions in the order of the latest activity that they can have.
type source struct {
	next  []session
	total int // for Progress

	// of a catalogue
	at     shelf
	blocks []block         // not read yet
	above  []row           // rows that come before or among those of the blocks
	masked map[string]bool // names whose rows in blocks do not count
	taken  map[string]bool // names that were yielded
	ahead  int             // blocks that are read at once
	unread int             // rows without a summary
}

// bound returns the latest activity of a session that was not yielded: ms; ok = there is one.
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

// take returns the next n sessions, or fewer; none at the end.
func (s *source) take(ctx context.Context, l *lister, n int) (part []session, err error) {
	if s.taken == nil {
		part, s.next = s.next[:min(n, len(s.next))], s.next[min(n, len(s.next)):]
		return part, nil
	}
	for len(part) < n {
		for len(s.next) == 0 && (len(s.above) > 0 || len(s.blocks) > 0) {
			if err := s.more(ctx, l); len(part) > 0 && err != nil {
				return part, nil //nolint:nilerr // the next call meets it again
			} else if err != nil {
				return nil, err
			}
		}
		if len(s.next) == 0 {
			break
		}
		next := s.next[0]
		if s.next = s.next[1:]; !s.taken[next.name()] { // a catalogue that was damaged may have it twice
			s.taken[next.name()] = true
			part = append(part, next)
		}
	}
	return part, nil
}

// more reads some blocks, and the rows above that come before all that is not read then.
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

// later orders sessions by the latest activity that they can have.
func later(a, b session) int {
	return newer(row{a.name(), known{at: a.at}}, row{b.name(), known{at: b.at}})
}

// add appends the session of a row that may be wanted.
func (l *lister) add(list []session, r row) []session {
	s := session{info: backend.Info{Key: layout.Checkpoints + r.name}, at: r.at, row: &r.known}
	if r.sum != nil && l.before(r.at) || !s.ours() || !l.maybe(&r) {
		return list
	}
	return append(list, s)
}

// before reports whether a known activity is of a page before.
func (l *lister) before(ms int64) bool {
	return l.o.After != "" && ms > l.after.ms && ms <= l.newest && l.after.ms > 0
}

// source finds out which sessions there are.
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
			if s != nil && l.o.chooses() && s.unread > learnedMax/2 { // so that all that is learned is kept
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

// listed lists them.
func (l *lister) listed(ctx context.Context) (*source, error) {
	all, err := l.written(ctx)
	return &source{next: all, total: len(all)}, err
}

// refresh lists them, and refreshes the catalogue of a large store.
func (l *lister) refresh(ctx context.Context) (*source, error) {
	c := l.catalogue
	l.probing = !l.appends && !c.isLarge()
	if err := l.recallAll(ctx); err != nil {
		return nil, err
	}
	held := c.isLarge()
	if held { // one of those that wait refreshes it for all
		if err := c.enter(ctx); err != nil {
			return nil, err
		}
		defer c.leave()
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
		if err := c.enter(ctx); err != nil {
			return nil, err
		}
		defer c.leave()
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

// unwanted reports whether a session that was listed is not wanted, by its row.
func (l *lister) unwanted(s session) bool {
	k, ok := l.catalogue.get(s.name())
	return ok && k.checkpoint == s.stored && k.checkpoint != (stamp{}) && !l.maybe(&row{s.name(), k})
}

// fromCatalogue returns what a catalogue answers with; nil = none may.
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
