package manager

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"maps"
	"path"
	"slices"
	"strings"
	"sync"
	"time"

	coppice "github.com/coppice-go/coppice"
	"github.com/coppice-go/coppice/checkpoint"
	"github.com/coppice-go/coppice/codec"
	"github.com/coppice-go/coppice/internal/layout"
	"github.com/coppice-go/coppice/transcript"
)

// Bounds of a UsageCache, and of the sessions that one session is compared with.
const (
	maxCachedUsages    = 4096    // sessions
	maxCachedResponses = 1 << 17 // in total, about 200 bytes each
	maxOneUsage        = 1 << 20 // of the one session that may have more
	maxOrigins         = 256
)

// clockError is the maximum difference between the times of two copies of an answer.
const clockError = 24 * time.Hour

// UsageReader sums up the usage of sessions of a store so that a response of a provider counts in one session: the one
// that received it. Forks, resumed copies, imports of one file, subagents that begin with their parent's history, and
// sessions that were handed off and imported again contain copies; there they are Inherited. Originals are searched in
// three places: in the session's ancestors; in the session that was imported from the same file; and in older sessions
// with the same first prompt that were active at the time of an answer. If a copy is more complete than the original,
// because the original was written before the answer ended, the difference counts in the copy's session.
//
// A reader caches the sessions that it examined, and lists those of the store once, when a session has answers: make a
// new one for each request. Safe for concurrent use.
type UsageReader struct {
	st    *coppice.Store
	cache *UsageCache

	mu     sync.Mutex
	looked map[string]*origin              // by id; nil = not in the store, or unreadable
	alike  map[string][]checkpoint.Summary // by group; nil = not listed yet
}

// NewUsageReader returns a reader of a store. cache keeps the responses of a session until it changes; nil = no cache.
func NewUsageReader(st *coppice.Store, cache *UsageCache) *UsageReader {
	return &UsageReader{st: st, cache: cache, looked: map[string]*origin{}}
}

// origin is a session that may have received responses of another one.
type origin struct {
	checkpoint.Summary
	ledger *ledger // nil = not read yet
}

// Session returns the usage of all branches of a session as it was spent, without amendments. It reads every entry of
// the session, and of the sessions from which it may hold copies, unless they are in the cache.
func (r *UsageReader) Session(ctx context.Context, s *coppice.Session) (UsageTotals, error) {
	l, err := r.read(ctx, s)
	if err != nil {
		return UsageTotals{}, err
	}
	return r.totals(ctx, s, l)
}

// read returns the responses of a session, and caches them. If the session has grown it reads only the new entries.
func (r *UsageReader) read(ctx context.Context, s *coppice.Session) (*ledger, error) {
	key, head := cacheKey{r.st, s.ID()}, s.Head()
	was := r.cache.last(key)
	if was.ledger != nil && was.commit == head.Commit {
		return was.ledger, nil
	}
	l, err := was.grown(ctx, s, head)
	if l == nil && err == nil {
		l, err = readLedger(s.Originals(coppice.ImageRefs(ctx)))
	}
	if err != nil {
		return nil, err
	}
	r.cache.put(key, cachedUsage{head.Commit, head.Seq, l})
	return l, nil
}

// grown returns the cached responses, with those of later commits; nil = not cached, or cached from another history of
// the session.
func (c cachedUsage) grown(ctx context.Context, s *coppice.Session, head checkpoint.Head) (*ledger, error) {
	if c.ledger == nil || c.seq == 0 || head.Seq <= c.seq {
		return nil, nil
	}
	l := c.clone()
	for change, err := range s.Watch(coppice.ImageRefs(ctx), c.seq-1) {
		switch {
		case err != nil:
			return nil, fmt.Errorf("sum the usage: %w", err)
		case change.Commit.Seq == c.seq && change.Commit.Commit != c.commit:
			return nil, nil
		case change.Commit.Seq > c.seq:
			for _, e := range change.Entries {
				l.read(e)
			}
		}
		if change.Commit.Seq >= head.Seq {
			return l, nil
		}
	}
	return nil, context.Cause(ctx)
}

// Path returns the usage of some entries of a session, such as those of a path. Responses received by other sessions
// are Inherited.
func (r *UsageReader) Path(
	ctx context.Context, s *coppice.Session, entries iter.Seq2[transcript.Entry, error],
) (UsageTotals, error) {
	l, err := readLedger(entries)
	if err != nil {
		return UsageTotals{}, err
	}
	return r.totals(ctx, s, l)
}

func (r *UsageReader) totals(ctx context.Context, s *coppice.Session, l *ledger) (UsageTotals, error) {
	inherited, err := r.inherited(ctx, s.Info(), l)
	return l.totals(inherited), err
}

// Growth returns a function that returns the cost which an entry adds to the entries of its earlier calls: the results
// add up to the Cost of Session.
func (r *UsageReader) Growth(ctx context.Context, s *coppice.Session) (func(transcript.Entry) float64, error) {
	all, err := r.ledgerOf(ctx, &origin{Summary: s.Info()})
	if err != nil {
		return nil, err
	}
	inherited, err := r.inherited(ctx, s.Info(), all)
	if err != nil {
		return nil, err
	}
	l := &ledger{}
	return func(e transcript.Entry) float64 {
		is, ok := responseOf(e)
		if !ok {
			return 0
		}
		before := l.own(is.key, inherited)
		l.add(is)
		return l.own(is.key, inherited).Cost - before.Cost
	}, nil
}

// inherited returns a function that returns the usage of a response that other sessions report; false = none has it.
func (r *UsageReader) inherited(
	ctx context.Context, of checkpoint.Summary, l *ledger,
) (inheritance, error) {
	if len(l.list) == 0 {
		return noneInherited, nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	from, err := r.origins(ctx, of, l)
	if err != nil {
		return noneInherited, err
	}
	for _, o := range from {
		if o.ledger, err = r.ledgerOf(ctx, o); err != nil {
			return noneInherited, err
		}
	}
	named := func(key uint64) (most Usage, ok bool) {
		for _, o := range from {
			i, is := o.ledger.at[key]
			if !is || o.ledger.list[i].inherited {
				continue
			}
			if u := o.ledger.list[i].Usage; !ok || u.exceeds(most) {
				most, ok = u, true
			}
		}
		return most, ok
	}
	others := slices.DeleteFunc(slices.Clone(from), func(o *origin) bool {
		return writtenBy(o.Summary) == writtenBy(of)
	})
	like := likenesses(others, l, named)
	return func(r response) (Usage, bool) {
		if u, ok := named(r.key); ok {
			return u, true
		}
		u, ok := like[r.like]
		return u, ok
	}, nil
}

// writtenBy returns the program that wrote the file of an imported session; "" = none.
func writtenBy(s checkpoint.Summary) string {
	if s.Source == nil {
		return ""
	}
	return s.Source.Program
}

// likenesses returns the usage that sessions of other programs report for those responses of a session that no session
// has under their key.
func likenesses(from []*origin, l *ledger, named func(key uint64) (Usage, bool)) map[uint64]Usage {
	like := map[uint64]Usage{}
	if len(from) == 0 {
		return like
	}
	for _, r := range l.list {
		if _, ok := named(r.key); !ok && r.like != 0 {
			like[r.like] = Usage{}
		}
	}
	for _, o := range from {
		for _, r := range o.ledger.list {
			if most, wanted := like[r.like]; wanted && !r.inherited && (most == Usage{} || r.exceeds(most)) {
				like[r.like] = r.Usage
			}
		}
	}
	maps.DeleteFunc(like, func(_ uint64, u Usage) bool { return u == Usage{} })
	return like
}

// ledgerOf returns the responses of a session; none if it cannot be read.
func (r *UsageReader) ledgerOf(ctx context.Context, o *origin) (*ledger, error) {
	if o.ledger != nil {
		return o.ledger, nil
	}
	if was := r.cache.last(cacheKey{r.st, o.ID}); was.ledger != nil && was.commit == o.Commit {
		return was.ledger, nil
	}
	s, err := r.st.Open(ctx, o.ID, &coppice.SessionOptions{ReadOnly: true})
	var l *ledger
	if err == nil {
		defer func() { _ = s.Close() }() // nothing was written
		if l, err = r.read(ctx, s); err == nil {
			return l, nil
		}
	}
	if absent(err) {
		return &ledger{}, nil
	}
	return nil, err
}

// absent reports whether an error means that a session does not exist or cannot be read.
func absent(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, coppice.ErrCorrupt) || errors.Is(err, codec.ErrText)
}

// origins returns the sessions from which a session may hold copies.
func (r *UsageReader) origins(ctx context.Context, of checkpoint.Summary, l *ledger) (list []*origin, err error) {
	seen, circle := map[string]bool{of.ID: true}, false
	next := []checkpoint.Summary{of}
	for len(next) > 0 && len(list) < maxOrigins {
		at := next[0]
		next = next[1:]
		for _, id := range linked(at) {
			circle = circle || id == of.ID && at.ID != of.ID
			if seen[id] {
				continue
			}
			seen[id] = true
			o, err := r.look(ctx, id)
			if err != nil {
				return nil, err
			}
			if o != nil {
				list, next = append(list, o), append(next, o.Summary)
			}
		}
	}
	if circle {
		list = slices.DeleteFunc(list, func(o *origin) bool { return byCreated(o.Summary, of) >= 0 })
	}
	if group(of) == "" {
		return list, nil
	}
	return r.unlinked(ctx, list, of, l, seen)
}

// group returns what a session shares with unlinked copies: its first prompt, or, if it has none, its parent.
func group(s checkpoint.Summary) string { return cmp.Or(s.First, s.Parent) }

// linked returns the ids of the sessions that a session names: the one of its imported file, and its parent.
func linked(s checkpoint.Summary) (ids []string) {
	ids = []string{sessionOf(s.Parent)}
	if s.Source != nil {
		ids = []string{s.Source.Session, ids[0]}
	}
	return slices.DeleteFunc(ids, func(id string) bool { return layout.ValidID(id) != nil })
}

// unlinked appends the sessions from which a session may hold copies although it does not name them.
func (r *UsageReader) unlinked(
	ctx context.Context, list []*origin, of checkpoint.Summary, l *ledger, seen map[string]bool,
) ([]*origin, error) {
	if r.alike == nil {
		r.alike = map[string][]checkpoint.Summary{}
		for sum, err := range r.st.List(ctx, coppice.ListOptions{Exact: true}) {
			if err != nil {
				return nil, err
			}
			r.alike[group(sum)] = append(r.alike[group(sum)], sum)
		}
	}
	own, err := r.lineage(ctx, of)
	if err != nil {
		return nil, err
	}
	for _, sum := range r.alike[group(of)] {
		if seen[sum.ID] || !l.during(sum.Created.Add(-clockError), sum.Updated.Add(clockError)) {
			continue
		}
		o, err := r.look(ctx, sum.ID)
		if err != nil {
			return nil, err
		}
		if o == nil {
			continue
		}
		line, err := r.lineage(ctx, o.Summary)
		if err != nil {
			return nil, err
		}
		if slices.CompareFunc(line, own, byCreated) < 0 && len(list) < maxOrigins {
			list = append(list, o)
		}
	}
	return list, nil
}

// lineage returns the ancestors of a session, the oldest first, and the session itself. Lineages order all sessions so
// that none precedes one that it names: of several copies, that of the first session is the original.
func (r *UsageReader) lineage(ctx context.Context, s checkpoint.Summary) ([]checkpoint.Summary, error) {
	line := []checkpoint.Summary{s}
	for next := linked(s); len(next) > 0 && len(line) < maxOrigins; {
		o, err := r.look(ctx, next[0])
		if err != nil {
			return nil, err
		}
		if o == nil || slices.ContainsFunc(line, func(s checkpoint.Summary) bool { return s.ID == o.ID }) {
			next = next[1:]
			continue
		}
		line, next = append(line, o.Summary), linked(o.Summary)
	}
	slices.Reverse(line)
	return line, nil
}

// look returns a session; nil: it is not in the store, or cannot be read.
func (r *UsageReader) look(ctx context.Context, id string) (*origin, error) {
	if o, ok := r.looked[id]; ok {
		return o, nil
	}
	s, err := r.st.Open(ctx, id, &coppice.SessionOptions{ReadOnly: true})
	if err != nil && !absent(err) {
		return nil, err
	}
	var o *origin
	if err == nil {
		o = &origin{Summary: s.Info()}
		_ = s.Close() // nothing was written
	}
	r.looked[id] = o
	return o, nil
}

// byCreated orders two sessions of which neither names the other.
func byCreated(a, b checkpoint.Summary) int {
	return cmp.Or(a.Created.Compare(b.Created), cmp.Compare(a.ID, b.ID))
}

// sessionOf returns the id of a parent. pi and related programs name the parent by the path of its file, which ends
// with "_" and the id.
func sessionOf(parent string) string {
	if !strings.ContainsAny(parent, `/\`) {
		return parent
	}
	name := path.Base(strings.ReplaceAll(parent, `\`, "/"))
	name = strings.TrimSuffix(name, ".jsonl")
	return name[strings.LastIndexByte(name, '_')+1:]
}

// UsageCache keeps the responses of sessions for UsageReaders: of at most 4,096 sessions with 131,072 responses in
// total, and of one more session with up to 1,048,576. The zero value is ready. Safe for concurrent use.
type UsageCache struct {
	mu        sync.Mutex
	of        map[cacheKey]cachedUsage
	responses int      // in total, without the large one
	large     cacheKey // there is one at a time
}

type cacheKey struct {
	st *coppice.Store
	id string
}

// cachedUsage is the cached data of a session at a commit.
type cachedUsage struct {
	commit string
	seq    uint64
	*ledger
}

// last returns the cached responses of a session at the commit where they were read; the caller must not change them.
// The zero value = not cached.
func (c *UsageCache) last(key cacheKey) cachedUsage {
	if c == nil {
		return cachedUsage{}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.of[key]
}

func (c *UsageCache) put(key cacheKey, is cachedUsage) {
	if c == nil || len(is.list) > maxOneUsage {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.of == nil {
		c.of = map[cacheKey]cachedUsage{}
	}
	c.drop(key)
	if is.large() {
		c.drop(c.large)
		c.large, c.of[key] = key, is
		return
	}
	for old, kept := range c.of { // any of them: a dropped one is read again when needed
		if len(c.of) < maxCachedUsages && c.responses+len(is.list) <= maxCachedResponses {
			break
		}
		if !kept.large() {
			c.drop(old)
		}
	}
	c.of[key] = is
	c.responses += len(is.list)
}

// large reports whether a session has more responses than all others together may have.
func (c cachedUsage) large() bool { return len(c.list) > maxCachedResponses }

// Forget drops the data of a store that is to be closed.
func (c *UsageCache) Forget(st *coppice.Store) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for key := range c.of {
		if key.st == st {
			c.drop(key)
		}
	}
}

func (c *UsageCache) drop(key cacheKey) {
	old, ok := c.of[key]
	if ok && !old.large() {
		c.responses -= len(old.list)
	}
	delete(c.of, key)
}
