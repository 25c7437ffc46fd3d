package listing

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/coppice-go/coppice/backend"
	"github.com/coppice-go/coppice/internal/parallel"
)

const (
	// largeStore is how many sessions a store has whose listings by activity are answered from its catalogue: a page of
	// a listing of S3.
	largeStore = 1000
	// MaxAge is how old a catalogue may be that answers, if to list the store took no longer than half of that.
	MaxAge = 30 * time.Second

	tookMax = 30 * 60 * 1000 // ms that a refresh takes, as far as it counts

	rowsMax    = 1 << 21 // sessions in a catalogue; more are not remembered
	learnedMax = 1 << 16 // rows in memory that are no part of the stored catalogue yet
	keptMax    = 1 << 17 // rows that stay in memory between two listings, of about 400 bytes each
	touchedMax = 1 << 13 // sessions that this process wrote since the catalogue was refreshed: more refresh it
	// settled is how old a change has to be so that the next one has another time: clocks of file systems are coarse.
	settled = 2 * time.Second
)

// Catalogue is what listings found out about the sessions of a store: a row for each, kept where the next program finds
// it (head, and blocks of rows by activity; docs/format/catalogue.md).
//
// It serves in two ways. What a row has of a session counts only while checkpoint and newest segment have the sizes and
// times that they had, since each commit changes one of them, and a segment is followed by another only through a line
// in it: so on a store that appends a session that is known costs two looks, and no read. And of a large store it
// answers a listing by activity that need not be exact: its rows order the sessions, and each one is looked
// at before it is shown. So it can miss what others did since it was taken, at most MaxAge ago, and it invents nothing.
// Sessions that this process wrote are in the answer at once.
//
// A listing that finds it too old refreshes it. It is never on the path of a commit, and may be lost or damaged. Safe
// for concurrent use; the zero Catalogue is empty.
type Catalogue struct {
	Dir string // of a store that appends: the folder in which it is kept; "" = in memory alone

	Now func() time.Time // nil = a refresh takes no time

	Large, Rows int // tests: in place of the constants, for a store and for a block

	once sync.Once
	gate chan struct{} // holds one while the stored catalogue is read as a whole, or written

	mu              sync.Mutex
	of              map[string]known // by the stored name of the id
	loaded          bool             // of has every row of kept
	kept            head             // as it was read or written last
	changes         int              // rows since then
	large           bool             // the store was seen to be large
	overflows, seen int              // how often touched was full: now, and when the last refresh began
	// last activity (ms) of the sessions that were written since the last refresh, and before
	touched, before map[string]int64
}

// known is what was found out about a session.
type known struct {
	checkpoint stamp // zero = there is none, or it changed too short ago to be told from the next change
	log        logEnd
	sum        []byte // its summary as JSON; nil = not read
	at         int64  // ms: its activity; where sum is nil the latest that it can be; 0 = it is deleted

	block int32 // of the stored catalogue, from 1; 0 = none
	seen  bool  // by the listing that refreshes
}

// row is what was found out about the session of a name.
type row struct {
	name string
	known
}

// newer orders rows as a catalogue has them.
func newer(a, b row) int { return cmp.Or(cmp.Compare(b.at, a.at), strings.Compare(b.name, a.name)) }

// stamp distinguishes the states of an object.
type stamp struct {
	size    int64
	time    int64 // of the last change: nanoseconds since 1970
	version string
}

func stampOf(info backend.Info) stamp {
	return stamp{info.Size, info.ModTime.UnixNano(), string(info.Version)}
}

func (c *Catalogue) get(name string) (k known, ok bool) {
	if c == nil {
		return known{}, false
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	k, ok = c.of[name]
	return k, ok
}

func (c *Catalogue) put(name string, k known) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.of == nil {
		c.of = map[string]known{}
	}
	most := rowsMax
	if !c.loaded {
		most = learnedMax
	}
	if was, there := c.of[name]; (there || len(c.of) < most) && !(there && was.same(&k)) {
		k.seen = was.seen
		c.of[name] = k
		c.changes++
	}
}

// Touch notes that this process wrote a session, and its last activity.
func (c *Catalogue) Touch(name string, at time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.touched == nil {
		c.touched = map[string]int64{}
	}
	if len(c.touched) >= touchedMax {
		c.overflows++ // so that the next listing refreshes, and lists all of these
		clear(c.touched)
	}
	c.touched[name] = at.UnixMilli()
}

// own returns the sessions that this process wrote, as rows that nothing is known of.
func (c *Catalogue) own() []row {
	c.mu.Lock()
	defer c.mu.Unlock()
	all := maps.Clone(c.before)
	if all == nil {
		all = map[string]int64{}
	}
	maps.Copy(all, c.touched)
	rows := make([]row, 0, len(all))
	for name, at := range all {
		rows = append(rows, row{name, known{at: at}})
	}
	slices.SortFunc(rows, newer)
	return rows
}

// enter waits for the gate; leave opens it.
func (c *Catalogue) enter(ctx context.Context) error {
	c.once.Do(func() { c.gate = make(chan struct{}, 1) })
	select {
	case c.gate <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (c *Catalogue) leave() { <-c.gate }

// most returns how many sessions make a store large, and how many rows a block has.
func (c *Catalogue) most() (sessions, rows int) {
	return cmp.Or(c.Large, largeStore), cmp.Or(c.Rows, blockRows)
}

func (c *Catalogue) isLarge() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.large
}

func (c *Catalogue) setLarge() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.large = true
}

// fresh reports whether a catalogue may answer. To list a store that takes longer than MaxAge would else make none that
// answers even once.
func (c *Catalogue) fresh(h *head, now time.Time) bool {
	age := now.Sub(time.UnixMilli(h.taken))
	most := max(MaxAge, 2*time.Duration(h.took)*time.Millisecond)
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.overflows == c.seen && age <= most && age >= -MaxAge
}

// load reads the stored catalogue as a whole, once. What fails is passed over: a catalogue may be lost, also in part.
// The caller holds the gate.
func (c *Catalogue) load(ctx context.Context, at shelf) error {
	c.mu.Lock()
	done := c.loaded
	c.mu.Unlock()
	if done || at == nil {
		return nil
	}
	h, err := readHead(ctx, at)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if err != nil { // its version, if there is one, lets it be replaced
		h = &head{version: h.version}
	}
	of := make(map[string]known, len(h.recent))
	for _, r := range h.recent {
		of[r.name] = r.known
	}
	blocks := make([][]row, len(h.blocks))
	err = parallel.Each(ctx, len(blocks), func(i int) error {
		blocks[i], _ = readBlock(ctx, at, h.blocks[i], nil)
		return ctx.Err()
	})
	if err != nil {
		return err
	}
	for i, rows := range blocks {
		if len(rows) != h.blocks[i].rows { // until it is refreshed, it answers nothing
			h.taken = 0
		}
		for _, r := range rows {
			if _, newer := of[r.name]; !newer && len(of) < rowsMax {
				r.block = int32(i + 1)
				of[r.name] = r.known
			}
		}
		blocks[i] = nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for name, k := range c.of { // learned since
		k.block = 0
		of[name] = k
	}
	h.recent = nil
	c.of, c.kept, c.loaded = of, *h, true
	return nil
}

// renew takes in the result of a listing: every session, and nothing but them. What is known of those that are as they
// were stays.
func (c *Catalogue) renew(l *lister, all []session) {
	for i := range all {
		s := &all[i]
		k, ok := c.get(s.name())
		if !ok || k.checkpoint != s.stored || !k.log.same(s.log) {
			l.remember(s, nil)
			if k, ok = c.get(s.name()); !ok || !k.log.same(s.log) || k.checkpoint != s.stored { // it changed just now
				k = known{at: latest(s.info).UnixMilli()}
				c.put(s.name(), k)
			}
		}
		c.mu.Lock()
		if k, ok := c.of[s.name()]; ok {
			k.seen = true
			c.of[s.name()] = k
		}
		c.mu.Unlock()
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for name, k := range c.of {
		if !k.seen {
			delete(c.of, name)
			continue
		}
		k.seen = false
		c.of[name] = k
	}
}

// refreshed keeps a catalogue that was taken at a time. Failing that, the next listing that finds none takes one.
func (c *Catalogue) refreshed(ctx context.Context, at shelf, taken time.Time, w written) {
	took := int64(0)
	if c.Now != nil {
		took = min(max(0, c.Now().Sub(taken).Milliseconds()), tookMax)
	}
	c.mu.Lock()
	c.kept.took = took
	c.mu.Unlock()
	if c.save(ctx, at, taken.UnixMilli(), false) != nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for name, at := range c.touched {
		if was, there := w.touched[name]; there && was == at { // not since the listing began
			delete(c.touched, name)
		}
	}
	c.before, c.seen = w.touched, w.overflows
}

// written is what this process had written when a refresh began.
type written struct {
	touched   map[string]int64
	overflows int
}

func (c *Catalogue) written() written {
	c.mu.Lock()
	defer c.mu.Unlock()
	return written{maps.Clone(c.touched), c.overflows}
}

// Close keeps the catalogue, if much has changed, of a store that appends. What fails is passed over.
func (c *Catalogue) Close() {
	c.mu.Lock()
	little := c.Dir == "" || c.changes == 0 || c.changes*128 <= len(c.of) || !c.loaded && c.changes < c.worth()
	c.mu.Unlock()
	if little {
		return
	}
	ctx := context.Background() // a folder on this disk
	if c.enter(ctx) == nil {
		defer c.leave()
		at := folder{c.Dir}
		if c.load(ctx, at) == nil {
			_ = c.save(ctx, at, c.kept.taken, false)
		}
	}
}

// settle ends a listing that may keep what it learned: it does so if that is much, and frees memory.
func (c *Catalogue) settle(ctx context.Context, at shelf) {
	c.mu.Lock()
	much := c.changes >= c.worth() && (!c.loaded || c.changes*128 > len(c.of))
	large := c.loaded && len(c.of) > keptMax
	c.mu.Unlock()
	if at == nil || !much && !large || c.enter(ctx) != nil {
		return
	}
	defer c.leave()
	if much && c.load(ctx, at) == nil {
		_ = c.save(ctx, at, c.kept.taken, false)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.of) > keptMax {
		c.unload()
	}
}

// worth returns how many rows that were not known are worth a new catalogue.
func (c *Catalogue) worth() int {
	_, rows := c.most()
	if c.Dir != "" {
		return rows / 16 // to write it costs less than a round trip
	}
	return rows
}

// unload forgets what is in memory. The caller holds the gate and the lock.
func (c *Catalogue) unload() { c.of, c.loaded, c.kept, c.changes = nil, false, head{}, 0 }

// Forget forgets a session that was deleted, or whose entries were erased: what a catalogue on the disk of a program
// holds of it must not stay.
func (c *Catalogue) Forget(ctx context.Context, name string) {
	if c.Dir == "" {
		c.mu.Lock()
		delete(c.of, name)
		c.mu.Unlock()
		return
	}
	ctx = context.WithoutCancel(ctx) // a folder on this disk
	if c.enter(ctx) != nil {
		return
	}
	defer c.leave()
	at := folder{c.Dir}
	err := c.load(ctx, at)
	c.mu.Lock()
	_, there := c.of[name]
	delete(c.of, name)
	many := len(c.of) > keptMax
	c.mu.Unlock()
	if err == nil && there && !many {
		err = c.save(ctx, at, c.kept.taken, true)
	}
	if err != nil || many {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.unload()
		at.clear(ctx)
	}
}

// save writes the rows that changed, and then the head that names them, unless another writer was first; with all no
// block keeps a row that counts no more. The caller holds the gate, and has loaded the catalogue.
func (c *Catalogue) save(ctx context.Context, at shelf, taken int64, all bool) error {
	if at == nil {
		return errors.ErrUnsupported
	}
	c.mu.Lock()
	was := c.kept
	next, blocks := compose(was, c.of, cmp.Or(c.Rows, blockRows), all)
	c.mu.Unlock()
	next.taken, next.took = taken, was.took
	err := error(nil)
	for _, b := range blocks {
		if err == nil && b.p != nil {
			_, err = at.put(ctx, blockPrefix+b.name, b.p, "", false)
		}
	}
	if err == nil {
		next.version, err = at.put(ctx, headName, next.encode(), was.version, true)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if err != nil {
		if errors.Is(err, backend.ErrPrecondition) {
			c.unload()
		}
		return err
	}
	for i, b := range blocks {
		for _, r := range b.rows {
			if k, ok := c.of[r.name]; ok && k.same(&r.known) {
				k.block = int32(i + 1)
				c.of[r.name] = k
			}
		}
	}
	next.recent = nil
	c.kept, c.changes = next, 0
	if len(blocks) > 0 {
		at.keep(ctx, was, next)
	}
	return nil
}
