package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"

	coppice "github.com/coppice-go/coppice"
	"github.com/coppice-go/coppice/backend"
	"github.com/coppice-go/coppice/checkpoint"
	"github.com/coppice-go/coppice/internal/api"
	"github.com/coppice-go/coppice/internal/cli/term"
	"github.com/coppice-go/coppice/internal/importer"
	"github.com/coppice-go/coppice/internal/layout"
	"github.com/coppice-go/coppice/internal/shortid"
	"github.com/coppice-go/coppice/internal/trace"
	"github.com/coppice-go/coppice/interop/formats"
	"github.com/coppice-go/coppice/manager"
)

// storeURL returns the address of the store: --store, else $COPPICE_STORE, else $XDG_DATA_HOME/coppice, else
// ~/.local/share/coppice, which is also taken if it exists and the one in XDG_DATA_HOME does not.
func (c *cli) storeURL() (string, error) {
	if c.storeFlag != "" {
		return c.storeFlag, nil
	}
	if url := c.getenv("COPPICE_STORE"); url != "" {
		return url, nil
	}
	home, old := c.home(), ""
	if home != "" {
		old = filepath.Join(home, ".local", "share", "coppice")
	}
	dir := c.getenv("XDG_DATA_HOME")
	switch data := filepath.Join(dir, "coppice"); {
	case !filepath.IsAbs(dir) && old == "": // the specification ignores a relative path
		return "", usageError("no store: use --store or set COPPICE_STORE ($%s is not set)", homeVariable())
	case !filepath.IsAbs(dir), old != "" && exists(old) && !exists(data):
		return old, nil
	default:
		return data, nil
	}
}

// home returns the user's home folder; "" = unknown.
func (c *cli) home() string { return c.getenv(homeVariable()) }

func homeVariable() string {
	if runtime.GOOS == "windows" {
		return "USERPROFILE"
	}
	return "HOME"
}

// stateFile returns the path of a file or folder in which the program keeps state of its own on
// this machine.
func (c *cli) stateFile(name string) (string, error) {
	if dir := c.getenv("COPPICE_STATE"); dir != "" {
		return filepath.Join(dir, name), nil
	}
	if dir := c.getenv("XDG_STATE_HOME"); dir != "" {
		return filepath.Join(dir, "coppice", name), nil
	}
	home := c.home()
	if home == "" {
		return "", usageError("no home folder: set COPPICE_STATE")
	}
	return filepath.Join(home, ".local", "state", "coppice", name), nil
}

// cacheDir returns the user's folder for caches; "" = unknown.
func (c *cli) cacheDir() string {
	switch home := c.home(); {
	case runtime.GOOS == "windows":
		return c.getenv("LocalAppData")
	case home == "": // a program without an environment leaves nothing on the disk
		return ""
	case runtime.GOOS == "darwin":
		return filepath.Join(home, "Library", "Caches")
	}
	dir := c.getenv("XDG_CACHE_HOME")
	switch {
	case dir == "":
		return filepath.Join(c.home(), ".cache")
	case filepath.IsAbs(dir):
		return dir
	}
	return "" // the specification ignores a relative path
}

// localPath returns the absolute path of a store that is a folder, and the address of any other, so
// that a store has one name however it is addressed.
func localPath(url string) string {
	where := strings.TrimPrefix(url, "file://")
	if strings.Contains(where, "://") {
		return where
	}
	if full, err := filepath.Abs(where); err == nil {
		return full
	}
	return where
}

// readOnly are the options of commands that write nothing.
func readOnly() *coppice.SessionOptions { return &coppice.SessionOptions{ReadOnly: true} }

// pastDamage opens a session for commands that show what is intact of a damaged one.
func pastDamage() *coppice.SessionOptions {
	return &coppice.SessionOptions{ReadOnly: true, Intact: true}
}

// withStore runs f on the store. The first error is returned: it has more than what follows from it.
func (c *cli) withStore(ctx context.Context, f func(st *countedStore) error) error {
	st, err := c.openStore(ctx)
	if err != nil {
		return err
	}
	return closeAfter(st, f(st))
}

// closeAfter closes what was in use and returns the first error.
func closeAfter(used io.Closer, err error) error {
	cerr := used.Close()
	if err != nil {
		return err
	}
	return cerr
}

// endSession closes a session after a command. What the command has committed is stored, whatever the closing fails on:
// to repeat the command would do it twice. An outcome that is unknown is an error.
func (c *cli) endSession(used io.Closer, err error) error {
	if err = closeAfter(used, err); !importer.OnlyClosing(err) {
		return err
	}
	c.untidy(err)
	return nil
}

// untidy reports the error of closing a session whose commits are stored.
func (c *cli) untidy(err error) {
	c.notef("done, but the session could not be tidied up, which the next command tries again: %s",
		term.Line(err.Error()))
}

// withSession runs f on a session, by its id or a prefix of it.
func (c *cli) withSession(
	ctx context.Context, id string, o *coppice.SessionOptions, f func(st *countedStore, s *coppice.Session) error,
) error {
	return c.withStore(ctx, func(st *countedStore) error {
		s, err := st.session(ctx, id, o)
		if err != nil {
			return err
		}
		err = f(st, s)
		if gone := lost(s); gone != nil && err == nil {
			c.notef("warning: %s", gone)
		}
		return c.endSession(s, err)
	})
}

// lost returns the error of a session whose newest commits were acknowledged and are not in its log; nil = it has all.
func lost(s *coppice.Session) error {
	if s.Info().Missing == 0 {
		return nil
	}
	text := lostCommits(s.ID(), s.Head().Seq, s.Info().Missing)
	if cause := s.Info().Cause; cause != "" { // it is shown as a repair would leave it
		text = fmt.Sprintf("session %s is damaged: %s", s.ID(), cause)
	}
	return &api.Failure{
		Code: "corrupt", Hint: "`coppice repair --dry-run " + s.ID() + "` shows what can be repaired",
		Err: damaged(text),
	}
}

// damageOf returns the damage that reading a session met (pastDamage); nil = all of it was read. Commits that its log
// lost are not in it: lost reports them.
func damageOf(s *coppice.Session) error {
	if i := s.Info(); i.Cause != "" && i.Missing == 0 {
		return damaged(i.Cause)
	}
	return nil
}

// damaged is a coppice.ErrCorrupt with its text.
type damaged string

func (d damaged) Error() string        { return string(d) }
func (d damaged) Is(target error) bool { return target == coppice.ErrCorrupt }

// lostCommits reports which commits a session lost: those after the head, up to the newest that was made.
func lostCommits(id string, head, newest uint64) string {
	return fmt.Sprintf("session %s is damaged: commits %d to %d were stored and are lost", id, head+1, newest)
}

// withManager runs f on a manager that has opened a session, by its id or a prefix of it.
func (c *cli) withManager(ctx context.Context, id string, f func(m *manager.Manager) error) error {
	return c.withStore(ctx, func(st *countedStore) error {
		full, err := st.resolve(ctx, id)
		if err != nil {
			return err
		}
		m := manager.New(st.Store, &manager.Options{Session: *moving()})
		if _, err := m.Open(ctx, full); err != nil {
			return err
		}
		err = f(m)
		return c.endSession(m.Session(), err)
	})
}

// countedStore is an open store that counts its requests.
type countedStore struct {
	*coppice.Store
	url string
	b   trace.Backend
}

// openStore opens the store that the flags and the environment name.
func (c *cli) openStore(ctx context.Context) (*countedStore, error) {
	url, err := c.storeURL()
	if err != nil {
		return nil, err
	}
	b, err := backend.Open(ctx, url)
	if err != nil {
		return nil, err
	}
	st := &countedStore{url: url, b: trace.New(b)}
	o := &coppice.Options{
		SingleWriter: c.singleWriter, Now: c.now, Reread: formats.Reread, ListCache: c.listFile(url), Hooks: c.hooks,
	}
	if st.Store, err = coppice.New(st.b, o); err != nil {
		return nil, errors.Join(err, b.Close())
	}
	return st, nil
}

// withScratch runs f on an empty store for as long as that takes.
func (c *cli) withScratch(ctx context.Context, f func(st *countedStore) error) (err error) {
	dir, err := os.MkdirTemp("", "coppice-check-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	b, err := backend.Open(ctx, dir)
	if err != nil {
		return err
	}
	st := &countedStore{url: dir, b: trace.New(b)}
	if st.Store, err = coppice.New(st.b, &coppice.Options{Now: c.now, Reread: formats.Reread}); err != nil {
		return errors.Join(err, b.Close())
	}
	return closeAfter(st, f(st))
}

// io returns the requests to the backend so far.
func (s *countedStore) io() backend.IO { return s.b.IO() }

// Close closes the open sessions and the backend.
func (s *countedStore) Close() error { return errors.Join(s.Store.Close(), s.b.Close()) }

// session opens a session by its id, which costs one read, or by a unique prefix of it.
func (s *countedStore) session(
	ctx context.Context, id string, o *coppice.SessionOptions,
) (*coppice.Session, error) {
	open := s.Open
	if o != nil && o.Intact {
		open = func(ctx context.Context, id string, _ *coppice.SessionOptions) (*coppice.Session, error) {
			return s.Salvage(ctx, id)
		}
	}
	if layout.ValidID(id) == nil {
		h, err := open(ctx, id, o)
		if err == nil || !errors.Is(err, fs.ErrNotExist) {
			return h, err
		}
	}
	full, err := s.byPrefix(ctx, id)
	if err != nil {
		return nil, err
	}
	return open(ctx, full, o)
}

// resolve returns the id of an existing session, by its id or a unique prefix of it.
func (s *countedStore) resolve(ctx context.Context, id string) (string, error) {
	if layout.ValidID(id) != nil {
		return s.byPrefix(ctx, id)
	}
	deleted := false
	for info, err := range s.b.List(ctx, backend.ListOptions{Prefix: layout.CheckpointKey(id), Limit: 1}) {
		if err != nil {
			return "", fmt.Errorf("find session %s: %w", id, err)
		}
		if info.Key == layout.CheckpointKey(id) {
			if s.alive(ctx, info) {
				return id, nil
			}
			deleted = true
		}
	}
	if deleted {
		return s.byPrefix(ctx, id)
	}
	if there, err := s.hasSegments(ctx, id); there || err != nil {
		return id, err
	}
	return s.byPrefix(ctx, id)
}

// hasSegments reports whether there is a segment of a session's transcript.
func (s *countedStore) hasSegments(ctx context.Context, id string) (bool, error) {
	o := backend.ListOptions{Prefix: layout.SessionPrefix(id) + layout.Transcript, Limit: 1}
	for _, err := range s.b.List(ctx, o) {
		if err != nil {
			return false, fmt.Errorf("find session %s: %w", id, err)
		}
		return true, nil
	}
	return false, nil
}

// withoutCheckpoint returns the ids with a prefix of sessions that lost their checkpoint: segments of their
// transcript are there. have are those of which there is one, deleted sessions included.
func (s *countedStore) withoutCheckpoint(ctx context.Context, prefix string, have map[string]bool) ([]string, error) {
	var lost []string
	o := backend.ListOptions{Prefix: strings.TrimSuffix(layout.SessionPrefix(prefix), "/"), Delimiter: "/"}
	for info, err := range s.b.List(ctx, o) {
		if err != nil {
			return nil, fmt.Errorf("find session %s: %w", prefix, err)
		}
		id, ok := layout.Unescape(strings.TrimSuffix(strings.TrimPrefix(info.Key, layout.Sessions), "/"))
		if !ok || !info.Prefix || have[id] || !strings.HasPrefix(id, prefix) {
			continue
		}
		there, err := s.hasSegments(ctx, id)
		if err != nil {
			return nil, err
		}
		if there {
			lost = append(lost, id)
		}
	}
	return lost, nil
}

// byPrefix returns the one session whose id has a prefix.
func (s *countedStore) byPrefix(ctx context.Context, prefix string) (string, error) {
	if err := layout.ValidID(prefix + "x"); err != nil || prefix == "" {
		return "", layout.ValidID(prefix)
	}
	found, err := s.idsWithPrefix(ctx, prefix, shortid.Named+1)
	if err != nil {
		return "", err
	}
	switch len(found) {
	case 0:
		if _, err := s.b.Stat(ctx, layout.CheckpointKey(prefix)); err == nil { // its tombstone
			return "", &api.Failure{
				Code: "deleted", Hint: "`coppice trash` lists what was moved there; `coppice list` lists the sessions",
				Err: fmt.Errorf("session %s: %w", prefix, coppice.ErrDeleted),
			}
		}
		return "", &api.Failure{
			Code: "not-found", Hint: "`coppice list` lists the sessions",
			Err: fmt.Errorf("no session %q in %s%s: %w", prefix, backend.Redacted(s.url), s.perhaps(ctx, prefix),
				fs.ErrNotExist),
		}
	case 1:
		return found[0], nil
	}
	return "", &api.Failure{
		Code: "ambiguous", Hint: "give more of the id",
		Err: fmt.Errorf("session %q may be %s", prefix, shortid.Candidates(found)),
	}
}

// perhaps returns the words that suggest ids near to one that does not exist, among the first 1,000.
func (s *countedStore) perhaps(ctx context.Context, id string) string {
	var known []string
	for info, err := range s.b.List(ctx, backend.ListOptions{Prefix: layout.Checkpoints, Limit: 1000}) {
		if err != nil {
			return "" // the error of the command remains that the session does not exist
		}
		if id, ours := layout.Unescape(strings.TrimPrefix(info.Key, layout.Checkpoints)); ours {
			known = append(known, id)
		}
	}
	return perhaps(id, known)
}

// short returns the prefix of an id that is shown without others and that a script may use: no other session has it.
func (s *countedStore) short(ctx context.Context, id string) string {
	short := shortid.One(id)
	if short == id {
		return id
	}
	others, err := s.idsWithPrefix(ctx, short, 0)
	if err != nil {
		return id
	}
	return shortid.Of(append(others, id), len(short)).Short(id)
}

// idsWithPrefix returns the ids of at most limit existing sessions, in order, those without a checkpoint last; 0 = all.
func (s *countedStore) idsWithPrefix(ctx context.Context, prefix string, limit int) ([]string, error) {
	var found []string
	have := map[string]bool{}
	for info, err := range s.b.List(ctx, backend.ListOptions{Prefix: layout.CheckpointKey(prefix)}) {
		if err != nil {
			return nil, fmt.Errorf("find session %s: %w", prefix, err)
		}
		id, ok := layout.Unescape(strings.TrimPrefix(info.Key, layout.Checkpoints))
		have[id] = ok
		if !ok || !strings.HasPrefix(id, prefix) || !s.alive(ctx, info) {
			continue
		}
		if found = append(found, id); len(found) == limit {
			return found, nil
		}
	}
	lost, err := s.withoutCheckpoint(ctx, prefix, have)
	if found = append(found, lost...); limit > 0 {
		found = found[:min(len(found), limit)]
	}
	return found, err
}

// ids returns the ids of all sessions, deleted ones included, from the names of their checkpoints:
// none is read.
func (s *countedStore) ids(ctx context.Context) ([]string, error) {
	var ids []string
	for info, err := range s.b.List(ctx, backend.ListOptions{Prefix: layout.Checkpoints}) {
		if err != nil {
			return nil, fmt.Errorf("find sessions: %w", err)
		}
		if id, ours := layout.Unescape(strings.TrimPrefix(info.Key, layout.Checkpoints)); ours {
			ids = append(ids, id)
		}
	}
	return ids, nil
}

// summaryBytes is the size of the part of a checkpoint that holds its summary.
const summaryBytes = 4 << 10

// alive reports whether a checkpoint is not that of a deleted session. An unreadable one counts as
// alive: opening it reports what is wrong.
func (s *countedStore) alive(ctx context.Context, info backend.Info) bool {
	head, _, err := s.b.Get(ctx, info.Key, backend.Bytes(0, min(info.Size, summaryBytes)))
	if err != nil {
		return !errors.Is(err, fs.ErrNotExist)
	}
	sum, err := checkpoint.DecodeSummary(head)
	return err != nil || !sum.Tombstone
}
