package coppice

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/coppice-go/coppice/backend"
	"github.com/coppice-go/coppice/checkpoint"
	"github.com/coppice-go/coppice/internal/casprobe"
	"github.com/coppice-go/coppice/internal/journal"
	"github.com/coppice-go/coppice/internal/journal/state"
	"github.com/coppice-go/coppice/internal/journal/store"
	"github.com/coppice-go/coppice/internal/layout"
	"github.com/coppice-go/coppice/internal/listing"
	"github.com/coppice-go/coppice/internal/rawjson"
	"github.com/coppice-go/coppice/internal/seam"
	"github.com/coppice-go/coppice/internal/trace"
	"github.com/coppice-go/coppice/transcript"
)

// Store is a backend that holds sessions. Safe for concurrent use.
type Store struct {
	b     backend.Backend
	owned bool // Close closes b
	o     Options
	cfg   journal.Config // what all sessions have in common

	watched watchers // handles on which Watch is running
	streams streams  // partial output, shared by the handles of a session
	lists   listing.Catalogue

	mu     sync.Mutex
	open   map[*Session]struct{}
	closed bool
}

// Open opens a store by URL or path: s3://bucket/prefix, file:///dir, mem:. Each Open of mem: is a store of its own;
// all Opens of mem:NAME in a process share one. The program imports the
// driver (backend/s3, backend/local, backend/memory); without it the error names the import that is
// missing. Closing the Store closes the backend.
func Open(ctx context.Context, url string, o *Options) (*Store, error) {
	b, err := backend.Open(ctx, url)
	if err != nil {
		return nil, fail("open", "", err)
	}
	s, err := New(b, o)
	if err != nil {
		return nil, errors.Join(err, b.Close())
	}
	s.owned = true
	return s, nil
}

// New returns a store on b, which the caller closes: one client can serve many tenants (backend.WithPrefix).
func New(b backend.Backend, o *Options) (*Store, error) {
	s := &Store{b: b, open: map[*Session]struct{}{}}
	if o != nil {
		s.o, s.lists.Dir = *o, o.ListCache
	}
	s.watched.by, s.streams.by = map[string]map[*Session]int{}, map[string]*stream{}
	switch {
	case b == nil:
		return nil, fail("new", "", errors.New("no backend"))
	case s.o.Poll < 0:
		return nil, fail("new", "", fmt.Errorf("poll every %v", s.o.Poll))
	}
	if err := checkName("writer", s.o.Writer); err != nil {
		return nil, fail("new", "", err)
	}
	if s.o.Poll == 0 {
		s.o.Poll = 2 * time.Second
	}
	s.cfg = journal.Config{
		Backend: trace.New(b), Writer: s.o.Writer, Now: s.o.Now, Rand: rand.Reader, Sleep: sleep,
	}
	if s.cfg.Writer == "" {
		host, err := os.Hostname()
		if err != nil {
			host = "unknown"
		}
		s.cfg.Writer = fmt.Sprintf("%.200s:%d", strings.ToValidUTF8(host, "\ufffd"), os.Getpid())
	}
	if s.cfg.Now == nil {
		s.cfg.Now = time.Now
	}
	s.lists.Now = s.cfg.Now
	if s.o.Rand != nil {
		s.cfg.Rand = &guarded{r: s.o.Rand}
	}
	s.cfg.Unfinished = s.completeErasure
	if !s.o.SingleWriter {
		s.cfg.Proof = casprobe.New(b, s.cfg.Now, s.cfg.Rand, s.wait).Prove
	}
	return s, nil
}

func init() {
	seam.Config = func(s any) *journal.Config { return &s.(*Store).cfg } //nolint:forcetypeassert // of all callers
	seam.Large = func(s any, sessions, rows int) {
		lists := &s.(*Store).lists //nolint:forcetypeassert // tests alone call it
		lists.Large, lists.Rows = sessions, rows
	}
}

// guarded makes a source of randomness safe for concurrent use.
type guarded struct {
	mu sync.Mutex
	r  io.Reader
}

func (g *guarded) Read(p []byte) (int, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	return io.ReadFull(g.r, p)
}

// wait is how the store sleeps.
func (s *Store) wait(ctx context.Context, d time.Duration) error { return s.cfg.Sleep(ctx, d) }

func sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// session makes a handle without its journal.
func (s *Store) session(id string, o *SessionOptions) (*Session, error) {
	if o == nil {
		o = &SessionOptions{}
	}
	if !o.Profile.Valid() {
		return nil, fmt.Errorf("unknown profile %q", o.Profile)
	}
	if err := layout.ValidID(id); err != nil {
		return nil, err
	}
	h := &Session{store: s, o: *o, cfg: s.cfg, b: trace.New(s.b)}
	h.cfg.Backend, h.cfg.Session, h.cfg.Acknowledged, h.cfg.Sleep = h.b, id, h.acknowledged, s.wait
	h.cfg.Profile, h.cfg.MaxBytes = o.Profile, o.ContextBytes
	h.cfg.ReadOnly, h.cfg.KeepBoth, h.cfg.Again = o.ReadOnly, o.KeepBoth, o.Again
	return h, nil
}

// add completes a handle with its journal, and enters it into the store's list.
func (s *Store) add(h *Session, j *journal.Journal) error {
	h.begin(j)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return backend.ErrClosed
	}
	s.open[h] = struct{}{}
	return nil
}

// brought calls the hook for a history that was imported as a whole.
func (s *Store) brought(h *Session) {
	if hook := s.o.Hooks.AfterCommit; hook != nil {
		hook(h, Receipt{Head: h.Head(), Entries: int(h.Info().Entries), IO: h.IO()})
	}
}

// grown calls the hook for entries that were added to a session: of one commit, or else of all entries.
func (s *Store) grown(h *Session, added int) {
	switch hook := s.o.Hooks.AfterCommit; {
	case added == 0 || hook == nil:
	case h.state().Newest().Entries == added:
		hook(h, Receipt{Head: h.Head(), Entries: added, IO: h.IO()})
	default:
		s.brought(h)
	}
}

// forget takes a handle off the store's list.
func (s *Store) forget(h *Session) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.open, h)
}

// Open opens an existing session: one object read, on disk one file and a bounded log tail. It writes
// nothing. It returns fs.ErrNotExist if there is none, or if it was deleted.
func (s *Store) Open(ctx context.Context, id string, o *SessionOptions) (*Session, error) {
	h, err := s.session(id, o)
	if err != nil {
		return nil, fail("open", id, err)
	}
	j, err := journal.Open(ctx, h.cfg)
	if err != nil {
		return nil, fail("open", id, err)
	}
	if err := s.add(h, j); err != nil {
		return nil, fail("open", id, err)
	}
	return h, nil
}

// OpenOrCreate opens a session, or creates one as Create does if there is none, or, with o.Again, if it was deleted. It
// is new if Head().Seq == 0.
func (s *Store) OpenOrCreate(ctx context.Context, id string, o *SessionOptions) (*Session, error) {
	h, err := s.Open(ctx, id, o)
	deleted := errors.Is(err, store.ErrDeleted)
	if errors.Is(err, fs.ErrNotExist) && (!deleted || o != nil && o.Again) {
		return s.create(id, o, !deleted)
	}
	return h, err
}

// Create returns a handle on a session that does not exist yet. It does no I/O: the first commit creates the session,
// and fails with fs.ErrExist if the id is taken, also by a session of which only the checkpoint is lost: in an object
// store that takes one listing, except for a new id. "" = a new UUIDv7.
func (s *Store) Create(id string, o *SessionOptions) (*Session, error) {
	return s.create(id, o, id == "")
}

// create makes the handle of a new session; fresh = no object of it can be there.
func (s *Store) create(id string, o *SessionOptions, fresh bool) (*Session, error) {
	now := s.cfg.Now()
	if id == "" {
		var err error
		if id, err = transcript.NewID(now, s.cfg.Rand); err != nil {
			return nil, fail("create", "", err)
		}
	}
	h, err := s.session(id, o)
	if err != nil {
		return nil, fail("create", id, err)
	}
	g, err := genesis(id, &h.o, now)
	if err != nil {
		return nil, fail("create", id, err)
	}
	cfg := h.cfg
	cfg.Fresh = fresh
	if err := s.add(h, journal.Create(cfg, g)); err != nil {
		return nil, fail("create", id, err)
	}
	return h, nil
}

// about is what coppice adds to the header line.
type about struct {
	Relation string            `json:"relation,omitempty"`
	Meta     map[string]string `json:"meta,omitempty"`
}

func (o *SessionOptions) about() *about {
	if o.Relation == "" && len(o.Meta) == 0 {
		return nil
	}
	return &about{o.Relation, o.Meta}
}

// relationChars are what a relation consists of. Patterns would cost every program that starts, sessions or not.
const relationChars = "abcdefghijklmnopqrstuvwxyz0123456789.-"

// validAbout refuses what a session's header cannot contain.
func (o *SessionOptions) validAbout() error {
	for _, f := range [...]struct{ what, text string }{
		{"title", o.Title}, {"working directory", o.Cwd}, {"parent", o.Parent},
	} {
		if err := rawjson.CheckText(f.what, f.text); err != nil {
			return err
		}
	}
	for _, f := range [...]struct{ what, text string }{{"title", o.Title}, {"working directory", o.Cwd}} {
		if len(f.text) > checkpoint.MaxText {
			return layout.TooLarge(f.what, checkpoint.MaxText, len(f.text))
		}
	}
	if len(o.Relation) > 32 || strings.Trim(o.Relation, relationChars) != "" {
		return layout.BadInput("relation %.40q: want 1 to 32 of a-z, 0-9, '.' and '-'", o.Relation)
	}
	if _, hold := o.Meta[checkpoint.MetaHold]; hold {
		return errMetaHold()
	}
	return validMeta(o.Meta)
}

// errMetaHold returns the error of metadata that a caller sets.
func errMetaHold() error {
	return layout.BadInput("metadata key %s: Hold and Release alone change it", checkpoint.MetaHold)
}

// validMeta refuses what cannot be metadata.
func validMeta(meta map[string]string) error {
	if len(meta) > checkpoint.MaxMetaKeys {
		return layout.TooLarge("metadata keys", checkpoint.MaxMetaKeys, len(meta))
	}
	for key, value := range meta {
		if !checkpoint.ValidMetaKey(key) {
			return layout.BadInput("metadata key %.70q: want 1 to 64 of A-Z, a-z, 0-9, '.', '_' and '-'", key)
		}
		if err := rawjson.CheckText("metadata "+key, value); err != nil {
			return err
		}
	}
	p, err := json.Marshal(meta)
	if err == nil && len(p) > checkpoint.MaxMeta {
		err = layout.TooLarge("metadata", checkpoint.MaxMeta, len(p))
	}
	return err
}

// genesis makes the header line of a new session, in pi's form.
func genesis(id string, o *SessionOptions, now time.Time) (state.Genesis, error) {
	if err := o.validAbout(); err != nil {
		return state.Genesis{}, err
	}
	header, err := json.Marshal(struct {
		Type      string `json:"type"`
		Version   int    `json:"version"`
		ID        string `json:"id"`
		Timestamp string `json:"timestamp"`
		Cwd       string `json:"cwd"`
		Parent    string `json:"parentSession,omitempty"`
		Title     string `json:"title,omitempty"`
		Coppice   *about `json:"coppice,omitempty"`
	}{"session", 3, id, now.UTC().Format("2006-01-02T15:04:05.000Z"), o.Cwd, o.Parent, o.Title, o.about()})
	return state.Genesis{Header: header, Title: o.Title, Cwd: o.Cwd, Parent: o.Parent}, err
}

// Delete removes a session: first a tombstone, so that the id is used again on request alone (SessionOptions.Again) and
// no open handle commits (they get ErrDeleted), then its objects. If the tombstone cannot be written, nothing is
// deleted. After ErrDeleteUnfinished a repeated call removes what is left. A session that does not exist is no error.
func (s *Store) Delete(ctx context.Context, id string) error {
	h, err := s.session(id, nil)
	if err != nil {
		return fail("delete", id, err)
	}

	defer s.lists.Forget(ctx, layout.Escape(id))
	return fail("delete", id, journal.Delete(ctx, h.cfg))
}

// DeleteAt is Delete of a session whose newest commit is the one that is named. If the session has another one, also
// one that a writer of another process commits meanwhile, it stays as it is: ErrConflict. A session that does not exist
// is fs.ErrNotExist. Of a session that was deleted before it removes what is left, whichever commit is named:
// ErrDeleted if nothing is.
func (s *Store) DeleteAt(ctx context.Context, id, commit string) error {
	h, err := s.session(id, nil)
	if err != nil {
		return fail("delete", id, err)
	}

	defer s.lists.Forget(ctx, layout.Escape(id))
	return fail("delete", id, journal.DeleteAt(ctx, h.cfg, commit))
}

// Close closes the sessions that are still open, then, after Open, the backend. Idempotent.
func (s *Store) Close() error {
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return nil
	}
	s.closed = true
	open := make([]*Session, 0, len(s.open))
	for h := range s.open {
		open = append(open, h)
	}
	s.mu.Unlock()
	var errs []error
	for _, h := range open {
		errs = append(errs, h.Close())
	}
	s.lists.Close()
	if s.owned {
		errs = append(errs, fail("close", "", s.b.Close()))
	}
	return errors.Join(errs...)
}
