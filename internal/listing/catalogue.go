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
	// largeStore is the number of sessions from which on listings by activity are answered from the catalogue. One
	// request of S3 lists as many keys.
	largeStore = 1000
	// MaxAge is the maximum age of a catalogue that answers. If listing the store took more than half of MaxAge, the
	// maximum age is twice the time that it took.
	MaxAge = 30 * time.Second

	tookMax = 30 * 60 * 1000 // maximum duration of a listing that is recorded, in ms

	rowsMax    = 1 << 21 // maximum number of sessions in a catalogue; further ones have no row
	learnedMax = 1 << 16 // maximum number of rows in memory while the stored catalogue is not loaded
	keptMax    = 1 << 17 // maximum number of rows that stay in memory between two listings, about 400 bytes each
	touchedMax = 1 << 13 // maximum number of sessions in Catalogue.touched; one more forces a refresh
	// clockGrain is the age from which on the time of a change is unique: two changes within it can have the same time
	// on a file system with a coarse clock.
	clockGrain = 2 * time.Second
)

// Catalogue caches what listings find out about the sessions of a store: one row for each session. It is stored for the
// next program, as a head and blocks of rows by activity (docs/format/catalogue.md). It has two uses:
//
//   - A listing takes the summary of a session from its row instead of reading it. A row is valid while the checkpoint
//     and the newest segment have the sizes and times of the row, because each commit changes one of them. On a store
//     that appends, a session with a valid row costs two stats and no read.
//   - In a large store (largeStore), a listing by activity that need not be exact takes the order of the sessions from
//     the rows, and checks each session before it yields it. It can miss commits of other processes since the catalogue
//     was made, at most MaxAge ago. It includes the sessions that this process wrote at once.
//
// A listing that finds the catalogue too old makes it again. A commit never waits for the catalogue, which may be lost
// or damaged. Catalogue is safe for concurrent use; the zero value is an empty one.
type Catalogue struct {
	Dir string // for a store that appends: the folder of the stored catalogue; "" = it is not stored

	Now func() time.Time // measures refreshes; nil = they count as 0 ms

	Large, Rows int // for tests: replace largeStore and blockRows; 0 = the constants

	once sync.Once
	gate chan struct{} // a lock for reading the whole stored catalogue and for writing it: see acquire

	mu      sync.Mutex
	of      map[string]known // rows, by the escaped id of the session
	loaded  bool             // of contains every row of kept
	kept    head             // the stored catalogue, when it was last read or written
	changes int              // number of rows that changed since then
	large   bool             // a listing found largeStore sessions or more
	// overflows counts how often touched was full; seen is its value when the last refresh began.
	overflows, seen int
	// touched has the last activity, in ms, of sessions that this process wrote since the last refresh began; before
	// has those that it wrote before that.
	touched, before map[string]int64
}

// known is a row of the catalogue without its name.
type known struct {
	checkpoint stamp  // zero = there is no checkpoint, or it changed less than clockGrain ago
	log        logEnd // the newest segment
	sum        []byte // the summary as JSON; nil = not read
	at         int64  // last activity in ms; if sum is nil, an upper bound of it; 0 = the session is deleted

	block int32 // number of the stored block that contains the row, from 1; 0 = none
	seen  bool  // during renew: the listing contains the session
}

// row is a row of the catalogue. name is the escaped id of the session.
type row struct {
	name string
	known
}

// newer orders rows by activity, newest first, then by name.
func newer(a, b row) int { return cmp.Or(cmp.Compare(b.at, a.at), strings.Compare(b.name, a.name)) }

// stamp identifies a version of an object: it differs after each change.
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

// Touch records that this process wrote a session, and the time of its last activity.
func (c *Catalogue) Touch(name string, at time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.touched == nil {
		c.touched = map[string]int64{}
	}
	if len(c.touched) >= touchedMax {
		c.overflows++ // makes the next listing refresh the catalogue, which then has all of these sessions
		clear(c.touched)
	}
	c.touched[name] = at.UnixMilli()
}

// own returns a row with nothing but the activity for each session that this process wrote, newest first.
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

// acquire takes the gate: one caller at a time reads or writes the whole stored catalogue. The caller must call
// release. The error is that of ctx.
func (c *Catalogue) acquire(ctx context.Context) error {
	c.once.Do(func() { c.gate = make(chan struct{}, 1) })
	select {
	case c.gate <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (c *Catalogue) release() { <-c.gate }

// most returns the number of sessions that make a store large, and the maximum number of rows of a block.
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

// fresh reports whether the stored catalogue h is young enough to answer: at most MaxAge, or twice the time that
// listing the store took. Without the second bound, a listing of more than MaxAge would make a catalogue that never
// answers.
func (c *Catalogue) fresh(h *head, now time.Time) bool {
	age := now.Sub(time.UnixMilli(h.taken))
	most := max(MaxAge, 2*time.Duration(h.took)*time.Millisecond)
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.overflows == c.seen && age <= most && age >= -MaxAge
}

// load reads the whole stored catalogue into memory, unless it is there. Blocks that cannot be read are skipped,
// because the catalogue is a cache; the only error is that of ctx. The caller holds the gate.
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
	if err != nil { // the version is kept as the condition for replacing the head
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
		if len(rows) != h.blocks[i].rows { // rows are missing: it must not answer before a refresh
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
	for name, k := range c.of { // these rows are newer than the stored ones
		k.block = 0
		of[name] = k
	}
	h.recent = nil
	c.of, c.kept, c.loaded = of, *h, true
	return nil
}

// renew makes the rows those of the sessions all, the result of a listing of the whole store. It keeps the rows of
// sessions that have not changed.
func (c *Catalogue) renew(l *lister, all []session) {
	for i := range all {
		s := &all[i]
		k, ok := c.get(s.name())
		if !ok || k.checkpoint != s.stored || !k.log.same(s.log) {
			l.remember(s, nil)
			if k, ok = c.get(s.name()); !ok || !k.log.same(s.log) || k.checkpoint != s.stored { // it is too young
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

// refreshed stores the catalogue after renew. taken is the time when the listing began, w what written returned then.
// If storing fails, a later listing refreshes the catalogue.
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
		if was, there := w.touched[name]; there && was == at { // not written since the listing began
			delete(c.touched, name)
		}
	}
	c.before, c.seen = w.touched, w.overflows
}

// written is a copy of Catalogue.touched and overflows, from the time when a refresh begins.
type written struct {
	touched   map[string]int64
	overflows int
}

func (c *Catalogue) written() written {
	c.mu.Lock()
	defer c.mu.Unlock()
	return written{maps.Clone(c.touched), c.overflows}
}

// Close stores the catalogue of a store that appends, if enough rows have changed. Errors are ignored: it is a cache.
func (c *Catalogue) Close() {
	c.mu.Lock()
	little := c.Dir == "" || c.changes == 0 || c.changes*128 <= len(c.of) || !c.loaded && c.changes < c.worth()
	c.mu.Unlock()
	if little {
		return
	}
	ctx := context.Background() // a folder on this disk
	if c.acquire(ctx) == nil {
		defer c.release()
		at := folder{c.Dir}
		if c.load(ctx, at) == nil {
			_ = c.save(ctx, at, c.kept.taken, false)
		}
	}
}

// endListing writes the catalogue if the listing found out enough to be worth it, and frees memory above keptMax rows.
func (c *Catalogue) endListing(ctx context.Context, at shelf) {
	c.mu.Lock()
	much := c.changes >= c.worth() && (!c.loaded || c.changes*128 > len(c.of))
	large := c.loaded && len(c.of) > keptMax
	c.mu.Unlock()
	if at == nil || !much && !large || c.acquire(ctx) != nil {
		return
	}
	defer c.release()
	if much && c.load(ctx, at) == nil {
		_ = c.save(ctx, at, c.kept.taken, false)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.of) > keptMax {
		c.unload()
	}
}

// worth returns the number of changed rows from which on the catalogue is stored again.
func (c *Catalogue) worth() int {
	_, rows := c.most()
	if c.Dir != "" {
		return rows / 16 // writing to a local disk costs less than a request to an object store
	}
	return rows
}

// unload drops all rows from memory. The caller holds the gate and mu.
func (c *Catalogue) unload() { c.of, c.loaded, c.kept, c.changes = nil, false, head{}, 0 }

// Forget removes the row of a session that was deleted, or whose entries were erased, from memory and from the folder
// Dir, because the row contains texts of the session.
func (c *Catalogue) Forget(ctx context.Context, name string) {
	if c.Dir == "" {
		c.mu.Lock()
		delete(c.of, name)
		c.mu.Unlock()
		return
	}
	ctx = context.WithoutCancel(ctx) // a folder on this disk
	if c.acquire(ctx) != nil {
		return
	}
	defer c.release()
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

// save writes the changed rows, in blocks or in the head, and then the head, on condition of its version. taken is the
// time of the listing in ms. all rewrites each block that contains an outdated row, so that no outdated row stays
// stored. The caller holds the gate and has loaded the catalogue.
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
	if all || len(blocks) > 0 { // all: no row is left, but blocks that had some
		at.keep(ctx, was, next)
	}
	return nil
}
