package repair

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"
	"sync"

	"github.com/coppice-go/coppice/backend"
	"github.com/coppice-go/coppice/checkpoint"
	"github.com/coppice-go/coppice/internal/blob"
	"github.com/coppice-go/coppice/internal/check"
	"github.com/coppice-go/coppice/internal/journal"
	"github.com/coppice-go/coppice/internal/journal/store"
	"github.com/coppice-go/coppice/internal/layout"
)

// Copy makes cfg's session of another one, perhaps in another store: the same lines under the same ordinals, the same
// commits with their numbers, ids, times, keys and documents, and its images, imported files and snapshots. It is
// fs.ErrExist if a session has the id or had it. Of a copy that fails nothing is left, but for an unknown outcome of
// its last write: then the session may be there.
func Copy(ctx context.Context, from *journal.Journal, source, cfg journal.Config) (err error) {
	own := backend.ListOptions{Prefix: layout.SessionPrefix(cfg.Session), Limit: 1}
	for info, err := range cfg.Backend.List(ctx, own) {
		return errors.Join(err, taken(info.Key))
	}
	key := layout.CheckpointKey(cfg.Session)
	if _, err := cfg.Backend.Stat(ctx, key); !errors.Is(err, fs.ErrNotExist) {
		return errors.Join(err, taken(key))
	}
	noted := &noted{Backend: cfg.Backend}
	cfg.Backend = noted
	if a, ok := noted.Backend.(backend.Appender); ok {
		cfg.Backend = notedAppender{a, noted}
	}
	defer func() {
		if errors.Is(err, backend.ErrPrecondition) { // another caller was first
			err = errors.Join(taken(key), err)
		}
		if err != nil && !noted.doubt {
			err = errors.Join(err, noted.undo(context.WithoutCancel(ctx)))
		}
	}()
	rules := from.State().Rules()
	cfg.Profile, cfg.MaxBytes = rules.Profile, rules.MaxBytes
	c := &copier{
		repair: &repair{cfg: cfg, s: &check.Survey{}}, from: from, source: source,
		made: map[string]bool{}, wanted: map[string]bool{}, recorded: map[string]bool{},
	}
	c.store, c.past = journal.Tools(cfg)
	c.header = from.State().Header
	if err := c.objects(ctx); err != nil {
		return err
	}
	return c.log(ctx)
}

// lacks returns why the copy is not a whole session: an object that its lines refer to is not in it, and no repair of
// the source recorded it as lost.
func (c *copier) lacks(ctx context.Context) error {
	sum, own := c.from.State().Original, layout.SessionPrefix(c.source.Session)
	one := strings.TrimPrefix(layout.OriginalKey(c.source.Session, 0, sum), own)
	list := strings.TrimPrefix(layout.OriginalListKey(c.source.Session, 0, sum), own)
	if sum != "" && !c.recorded[one] && !c.recorded[list] {
		cfg := c.source
		cfg.Since = c.from.State().Since
		objects, _ := journal.Tools(cfg)
		err := objects.WriteOriginal(ctx, sum, io.Discard)
		if errors.Is(err, fs.ErrNotExist) {
			err = store.Corrupt(own+one, 0, err)
		}
		if err != nil {
			return err
		}
	}
	for sum := range c.from.State().Blobs {
		c.made[layout.Blobs+sum] = true
	}
	for _, name := range slices.Sorted(maps.Keys(c.wanted)) {
		if !c.made[name] && !c.recorded[name] {
			return store.Corrupt(own+name, 0, fmt.Errorf("the session refers to it: %w", fs.ErrNotExist))
		}
	}
	return nil
}

// notes takes in to which objects of the session an entry refers: images, and what a repair recorded as lost.
func (c *copier) notes(line []byte) {
	for _, ref := range blob.Refs(line) {
		c.wanted[layout.Blobs+ref.Sum] = true
	}
	if !isLost(line) {
		return
	}
	var lost struct {
		Object string `json:"targetId"`
	}
	if json.Unmarshal(line, &lost) == nil {
		folder, name := path.Split(lost.Object)
		_, name = layout.ParseOwn(name)
		c.recorded[folder+name] = true
	}
}

func taken(key string) error {
	return &backend.Error{Op: "put", Key: key, Outcome: backend.NotApplied, Err: fs.ErrExist}
}

// noted is a backend that remembers what it created.
type noted struct {
	backend.Backend

	mu    sync.Mutex
	keys  []string
	doubt bool // whether one is there is unknown
}

type notedAppender struct {
	backend.Appender

	noted *noted
}

func (n *noted) Put(ctx context.Context, key string, p []byte, c backend.Cond) (backend.Info, error) {
	info, err := n.Backend.Put(ctx, key, p, c)
	if err == nil || backend.OutcomeOf(err) != backend.NotApplied {
		n.mu.Lock()
		defer n.mu.Unlock()
		n.keys = append(n.keys, key)
		n.doubt = n.doubt || err != nil
	}
	return info, err
}

// undo removes what was created.
func (n *noted) undo(ctx context.Context) (err error) {
	for _, key := range n.keys {
		err = errors.Join(err, n.Backend.Delete(ctx, key))
	}
	return err
}

func (n notedAppender) Put(ctx context.Context, key string, p []byte, c backend.Cond) (backend.Info, error) {
	return n.noted.Put(ctx, key, p, c)
}

// copier is one copy.
type copier struct {
	*repair

	from   *journal.Journal
	source journal.Config

	made, wanted, recorded map[string]bool // objects by their keys within the session, without an epoch
}

// objects copies what is not in the log. Names have no epoch: the new session is the first one of its id.
func (c *copier) objects(ctx context.Context) error {
	since := c.from.State().Since
	for _, folder := range []string{layout.Blobs, layout.Originals, layout.Snapshots} {
		prefix := layout.SessionPrefix(c.source.Session) + folder
		for info, err := range c.source.Backend.List(ctx, backend.ListOptions{Prefix: prefix}) {
			if err != nil {
				return err
			}
			own, name := layout.ParseOwn(path.Base(info.Key))
			if own != since || !check.IsObject(c.source.Session, info) {
				continue
			}
			p, err := c.object(ctx, info.Key, folder, name)
			if err != nil {
				return fmt.Errorf("copy %s: %w", info.Key, err)
			}
			if p == nil {
				continue
			}
			key := layout.SessionPrefix(c.cfg.Session) + folder + name
			if err := c.store.Create(ctx, key, p); err != nil {
				return err
			}
			c.made[folder+name] = true
		}
	}
	return nil
}

// object reads an object of the source as one of the copy; nil = it is left out.
func (c *copier) object(ctx context.Context, key, folder, name string) ([]byte, error) {
	if folder == layout.Blobs {
		return c.from.GetBlob(ctx, c.from.State(), name)
	}
	p, _, err := c.source.Backend.Get(ctx, key, backend.Range{})
	if err == nil && folder == layout.Snapshots {
		return c.snapshot(ctx, name, p)
	}
	return p, err
}

// snapshot returns a snapshot of the source as one of the copy; nil = it is newer than what is copied, for the source
// has grown since it was opened. Where it has not, its log is short.
func (c *copier) snapshot(ctx context.Context, name string, p []byte) ([]byte, error) {
	o, err := checkpoint.DecodeObject(p)
	if err != nil {
		return nil, err
	}
	if o.Summary.Seq > c.from.State().Summary.Seq {
		now, err := journal.Open(ctx, c.source)
		if err == nil && now.State().Summary.Seq < o.Summary.Seq {
			err = fmt.Errorf("%w: it is of commit %d, and the session ends with %d", store.ErrCorrupt, o.Summary.Seq,
				now.State().Summary.Seq)
		}
		return nil, err
	}
	o.Summary.ID, o.Summary.Snapshot, o.Since, o.CAS = c.cfg.Session, name, 0, false
	return o.Encode()
}

// log writes the lines again, in segments of the usual length.
func (c *copier) log(ctx context.Context) error {
	lim, st := c.cfg.Limits.OrDefaults(), c.from.State()
	var m *remake
	var entries [][]byte
	var parents []int64
	for l, err := range c.from.Lines(ctx, st, nil) {
		if err != nil {
			return err
		}
		if !l.Commit {
			c.notes(l.Raw)
			entries, parents = append(entries, l.Raw), append(parents, l.Parent)
			continue
		}
		rec, err := checkpoint.VerifiedRecord(l.Raw)
		if err != nil {
			return err
		}
		if m != nil && !m.st.AfterKept && (len(m.st.Tail) >= lim.SealEntries || m.st.TailBytes >= lim.SealBytes) {
			if err := c.sealed(ctx, m); err != nil {
				return err
			}
			m = nil
		}
		if m == nil {
			c.epoch = rec.Epoch
			if m, err = c.begin(c.cfg, l.Ord-uint64(len(entries)), rec.Seq); err != nil {
				return err
			}
			m.follows(c.last, c.lastN)
		}
		rec.Torn, rec.Next = "", ""
		_, rec.Snapshot = layout.ParseOwn(rec.Snapshot)
		fits, err := m.commit(rec, entries, parents, false)
		if err != nil {
			return err
		}
		if !fits {
			return fmt.Errorf("copy commit %s: its document is another one: %w", rec.ID, errCopy)
		}
		entries, parents = nil, nil
	}
	if m == nil {
		return fmt.Errorf("copy session %s: %w", c.source.Session, fs.ErrNotExist)
	}
	if err := c.lacks(ctx); err != nil {
		return err
	}
	o := st.Object(false)
	o.CAS = false
	m.adopt(o)
	refs, err := c.remap(ctx)
	if err != nil {
		return err
	}
	return m.install(ctx, refs, "", false)
}

var errCopy = errors.New("the copy differs from its source")

// sealed ends a segment.
func (c *copier) sealed(ctx context.Context, m *remake) error {
	ref, err := m.seal(ctx)
	if err != nil {
		return err
	}
	c.refs, c.before = append(c.refs, ref), m.st
	c.last, c.lastN = m.name.Name(), ref.RawBytes
	return nil
}
