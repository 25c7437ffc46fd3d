package manager

import (
	"context"
	"errors"
	"hash/maphash"
	"io/fs"
	"iter"
	"path"
	"slices"
	"strings"
	"sync"

	coppice "github.com/coppice-go/coppice"
	"github.com/coppice-go/coppice/checkpoint"
	"github.com/coppice-go/coppice/codec"
	"github.com/coppice-go/coppice/internal/layout"
	"github.com/coppice-go/coppice/transcript"
)

// Bounds of a UsageCache, and of the sessions that one session is compared with.
const (
	maxCachedUsages = 4096    // sessions, each about 1 KiB
	maxCachedKeys   = 1 << 20 // responses, 8 bytes each
	maxOrigins      = 256
)

// UsageReader sums up the usage of sessions of a store so that a response of a provider counts in one session: the one
// that received it. Forks, resumed copies, imports of one file and agents that begin with the history of their parent
// hold copies; there they are Inherited. Copies are looked for in the session's parents, up to the first one, in the
// session whose file it was imported from, and, if its parent is not in the store, in older sessions of that parent.
//
// A reader remembers which sessions it looked at: make a new one for each request. Safe for concurrent use.
type UsageReader struct {
	st    *coppice.Store
	cache *UsageCache

	mu       sync.Mutex
	looked   map[string]*origin // by id; nil = not in the store, or it cannot be read
	siblings map[string][]checkpoint.Summary

	unlinked bool
	begin    map[string][]checkpoint.Summary // by the first words of the user; nil = not listed yet
}

// NewUsageReader returns a reader of a store. cache keeps what was read until a session changes; nil = nothing is kept.
func NewUsageReader(st *coppice.Store, cache *UsageCache) *UsageReader {
	return &UsageReader{
		st: st, cache: cache, looked: map[string]*origin{}, siblings: map[string][]checkpoint.Summary{},
	}
}

// Unlinked makes r look for copies that no link leads to, too: among older sessions that begin with the same words of
// the user. It is for sums over the sessions of a store, and lists them once. It returns r.
func (r *UsageReader) Unlinked() *UsageReader {
	r.unlinked = true
	return r
}

// origin is a session that may have received what another one holds.
type origin struct {
	checkpoint.Summary
	keys map[uint64]struct{} // of its responses; nil = not read yet
}

// Session returns the usage of all branches of a session: what was spent, without regard to amendments. It reads every
// entry of it, and of the sessions that it may hold copies of, unless the cache has them. The maps must not be changed.
func (r *UsageReader) Session(ctx context.Context, s *coppice.Session) (UsageTotals, error) {
	from, err := r.origins(ctx, s.Info())
	if err != nil {
		return UsageTotals{}, err
	}
	key, commit, stamp := cacheKey{r.st, s.ID()}, s.Head().Commit, stampOf(from)
	is, ok := r.cache.get(key, commit)
	if ok && is.summed && is.stamp == stamp {
		return is.totals, nil
	}
	if ok && is.summed { // of sessions that are still written to most commits are no answers that this one copied
		inherited, err := r.inherited(ctx, from)
		if err != nil {
			return UsageTotals{}, err
		}
		if countKeys(is.keys, inherited) == is.copied {
			is.stamp = stamp
			r.cache.put(key, is)
			return is.totals, nil
		}
	}
	l, err := readLedger(s.Originals(coppice.ImageRefs(ctx)))
	if err != nil {
		return UsageTotals{}, err
	}
	is = cachedUsage{commit: commit, stamp: stamp, summed: true, keys: l.keys()}
	if is.totals, err = r.totals(ctx, l, from, &is.copied); err != nil {
		return UsageTotals{}, err
	}
	r.cache.put(key, is)
	return is.totals, nil
}

// Path returns the usage of some entries of a session, as those of a path. Of each response of other sessions that
// they hold the usage is Inherited.
func (r *UsageReader) Path(
	ctx context.Context, s *coppice.Session, entries iter.Seq2[transcript.Entry, error],
) (UsageTotals, error) {
	from, err := r.origins(ctx, s.Info())
	if err != nil {
		return UsageTotals{}, err
	}
	l, err := readLedger(entries)
	if err != nil {
		return UsageTotals{}, err
	}
	return r.totals(ctx, l, from, nil)
}

// Growth returns a function that returns the cost which an entry adds to those that it was called with before: it adds
// up to the Cost of Session.
func (r *UsageReader) Growth(ctx context.Context, s *coppice.Session) (func(transcript.Entry) float64, error) {
	from, err := r.origins(ctx, s.Info())
	if err != nil {
		return nil, err
	}
	inherited, err := r.inherited(ctx, from)
	if err != nil {
		return nil, err
	}
	l := &ledger{}
	return func(e transcript.Entry) float64 {
		is, ok := responseOf(e)
		if !ok || is.inherited || inherited(is.key) {
			return 0
		}
		return l.add(is).Cost
	}, nil
}

// totals sums up a ledger; copied receives how many of its responses the sessions before have.
func (r *UsageReader) totals(ctx context.Context, l *ledger, from []*origin, copied *int) (UsageTotals, error) {
	if len(l.list) == 0 || len(from) == 0 {
		return l.totals(nil), nil
	}
	inherited, err := r.inherited(ctx, from)
	if err != nil {
		return UsageTotals{}, err
	}
	if copied != nil {
		*copied = countKeys(l.keys(), inherited)
	}
	return l.totals(inherited), nil
}

// inherited returns a function that reports the responses of sessions.
func (r *UsageReader) inherited(ctx context.Context, from []*origin) (func(uint64) bool, error) {
	sets := make([]map[uint64]struct{}, len(from))
	for i, o := range from {
		var err error
		if sets[i], err = r.keysOf(ctx, o); err != nil {
			return nil, err
		}
	}
	return func(key uint64) bool {
		return slices.ContainsFunc(sets, func(set map[uint64]struct{}) bool {
			_, ok := set[key]
			return ok
		})
	}, nil
}

// keysOf returns the responses of a session: none of one that cannot be read, whose usage is not known.
func (r *UsageReader) keysOf(ctx context.Context, o *origin) (map[uint64]struct{}, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if o.keys != nil {
		return o.keys, nil
	}
	key := cacheKey{r.st, o.ID}
	is, ok := r.cache.get(key, o.Commit)
	if !ok {
		l, err := r.ledgerOf(ctx, o.ID)
		if err != nil && !absent(err) {
			return nil, err
		}
		is = cachedUsage{commit: o.Commit, keys: l.keys()}
		if err == nil {
			r.cache.put(key, is)
		}
	}
	o.keys = make(map[uint64]struct{}, len(is.keys))
	for _, k := range is.keys {
		o.keys[k] = struct{}{}
	}
	return o.keys, nil
}

func (r *UsageReader) ledgerOf(ctx context.Context, id string) (*ledger, error) {
	s, err := r.st.Open(ctx, id, &coppice.SessionOptions{ReadOnly: true})
	if err != nil {
		return &ledger{}, err
	}
	defer func() { _ = s.Close() }() // nothing was written
	return readLedger(s.Originals(coppice.ImageRefs(ctx)))
}

// absent reports the error of a session that is not there or cannot be read.
func absent(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, coppice.ErrCorrupt) || errors.Is(err, codec.ErrText)
}

// origins returns the sessions that a session may hold copies of.
func (r *UsageReader) origins(ctx context.Context, of checkpoint.Summary) (list []*origin, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	seen, circle := map[string]bool{}, false
	next := []checkpoint.Summary{of}
	for len(next) > 0 && len(list) < maxOrigins {
		at := next[0]
		next = next[1:]
		parent := sessionOf(at.Parent)
		own := ""
		if at.Source != nil {
			own = at.Source.Session
		}
		for _, id := range []string{own, parent} {
			circle = circle || id == of.ID && at.ID != of.ID
			if id == of.ID || seen[id] || layout.ValidID(id) != nil {
				continue
			}
			seen[id] = true
			o, err := r.look(ctx, id)
			switch {
			case err != nil:
				return nil, err
			case o != nil:
				list, next = append(list, o), append(next, o.Summary)
			case id == parent:
				if list, err = r.orphaned(ctx, list, at, seen); err != nil {
					return nil, err
				}
			}
		}
	}
	if circle {
		list = slices.DeleteFunc(list, func(o *origin) bool { return !isOlder(o.Summary, of) })
	}
	if !r.unlinked || of.First == "" {
		return list, nil
	}
	if r.begin == nil {
		r.begin = map[string][]checkpoint.Summary{}
		for sum, err := range r.st.List(ctx, coppice.ListOptions{}) {
			if err != nil {
				return nil, err
			}
			r.begin[sum.First] = append(r.begin[sum.First], sum)
		}
	}
	return r.older(ctx, list, of, r.begin[of.First], seen)
}

// orphaned appends the sessions older than one of the same parent, which is not in the store.
func (r *UsageReader) orphaned(
	ctx context.Context, list []*origin, of checkpoint.Summary, seen map[string]bool,
) ([]*origin, error) {
	all, ok := r.siblings[of.Parent]
	if !ok {
		for sum, err := range r.st.List(ctx, coppice.ListOptions{Parent: of.Parent}) {
			if err != nil {
				return nil, err
			}
			all = append(all, sum)
		}
		r.siblings[of.Parent] = all
	}
	return r.older(ctx, list, of, all, seen)
}

// older appends those of some sessions that are older than one.
func (r *UsageReader) older(
	ctx context.Context, list []*origin, of checkpoint.Summary, all []checkpoint.Summary, seen map[string]bool,
) ([]*origin, error) {
	for _, sum := range all {
		if seen[sum.ID] || !isOlder(sum, of) || len(list) == maxOrigins {
			continue
		}
		seen[sum.ID] = true
		o, err := r.look(ctx, sum.ID)
		if err != nil {
			return nil, err
		}
		if o != nil {
			list = append(list, o)
		}
	}
	return list, nil
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

// isOlder orders sessions of which neither is the other's parent.
func isOlder(a, b checkpoint.Summary) bool {
	if !a.Created.Equal(b.Created) {
		return a.Created.Before(b.Created)
	}
	return a.ID < b.ID
}

// sessionOf returns the id of a parent, which programs of pi's family name by the path of its file: that ends with
// "_" and the id.
func sessionOf(parent string) string {
	if !strings.ContainsAny(parent, `/\`) {
		return parent
	}
	name := path.Base(strings.ReplaceAll(parent, `\`, "/"))
	name = strings.TrimSuffix(name, ".jsonl")
	return name[strings.LastIndexByte(name, '_')+1:]
}

// stampOf returns a hash of sessions and their newest commits.
func stampOf(from []*origin) uint64 {
	var h maphash.Hash
	h.SetSeed(responseSeed)
	for _, o := range from {
		_, _ = h.WriteString(o.ID + "\x00" + o.Commit + "\x00") // never fails
	}
	return h.Sum64()
}

// keys returns the responses that the session itself may have received: not those that it marks as copies.
func (l *ledger) keys() []uint64 {
	list := make([]uint64, 0, len(l.list))
	for _, r := range l.list {
		if !r.inherited {
			list = append(list, r.key)
		}
	}
	return list
}

func countKeys(keys []uint64, in func(uint64) bool) (n int) {
	for _, k := range keys {
		if in(k) {
			n++
		}
	}
	return n
}

// UsageCache keeps what was read of sessions, for UsageReaders: sums and 8 bytes a response, of at most 4,096 sessions
// and 1,048,576 responses. The zero value is ready. Safe for concurrent use.
type UsageCache struct {
	mu   sync.Mutex
	of   map[cacheKey]cachedUsage
	keys int
}

type cacheKey struct {
	st *coppice.Store
	id string
}

// cachedUsage is what is kept of a session at a commit.
type cachedUsage struct {
	commit string
	keys   []uint64
	summed bool
	stamp  uint64 // of the sessions that it was compared with
	copied int    // of keys: responses of these sessions
	totals UsageTotals
}

func (c *UsageCache) get(key cacheKey, commit string) (cachedUsage, bool) {
	if c == nil {
		return cachedUsage{}, false
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	is, ok := c.of[key]
	return is, ok && is.commit == commit
}

func (c *UsageCache) put(key cacheKey, is cachedUsage) {
	if c == nil || len(is.keys) > maxCachedKeys {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.of == nil {
		c.of = map[cacheKey]cachedUsage{}
	}
	c.drop(key)
	for old := range c.of { // any: what is dropped is read again when it is asked for
		if len(c.of) < maxCachedUsages && c.keys+len(is.keys) <= maxCachedKeys {
			break
		}
		c.drop(old)
	}
	c.of[key] = is
	c.keys += len(is.keys)
}

func (c *UsageCache) drop(key cacheKey) {
	c.keys -= len(c.of[key].keys)
	delete(c.of, key)
}
