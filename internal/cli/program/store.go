package program

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"

	coppice "github.com/coppice-go/coppice"
	"github.com/coppice-go/coppice/backend"
	"github.com/coppice-go/coppice/backend/trace"
	"github.com/coppice-go/coppice/checkpoint"
	"github.com/coppice-go/coppice/history"
	"github.com/coppice-go/coppice/internal/layout"
	"github.com/coppice-go/coppice/transcript"
)

// Store is an open store whose requests are counted.
type Store struct {
	*coppice.Store
	URL string
	b   trace.Backend
}

// Open opens the store that the flags and the environment name.
func (a *App) Open(ctx context.Context) (*Store, error) {
	url, err := a.StoreURL()
	if err != nil {
		return nil, err
	}
	b, err := backend.Open(ctx, url)
	if err != nil {
		return nil, fmt.Errorf("open store %s: %w", url, err)
	}
	st := &Store{URL: url, b: trace.New(b)}
	o := &coppice.Options{SingleWriter: a.Alone}
	if file := a.HistoryFile(url); file != "" {
		r := history.NewRecorderAt(file)
		o.Hooks = coppice.Hooks{AfterCommit: r.AfterCommit, Closing: func(s *coppice.Store) { remember(ctx, s, r) }}
	}
	if st.Store, err = coppice.New(st.b, o); err != nil {
		return nil, errors.Join(err, b.Close())
	}
	return st, nil
}

// IO is what was asked of the backend so far.
func (s *Store) IO() backend.IO { return s.b.IO() }

// Close closes the sessions that are open, and the backend.
func (s *Store) Close() error { return errors.Join(s.Store.Close(), s.b.Close()) }

// Session opens a session by its id, which costs no more than the one read, or by a unique prefix of it.
func (s *Store) Session(ctx context.Context, id string, o *coppice.SessionOptions) (*coppice.Session, error) {
	if layout.ValidID(id) == nil {
		h, err := s.Open(ctx, id, o)
		if err == nil || !errors.Is(err, fs.ErrNotExist) {
			return h, err
		}
	}
	full, err := s.byPrefix(ctx, id)
	if err != nil {
		return nil, err
	}
	return s.Open(ctx, full, o)
}

// Resolve gives the whole id of a session that is there, by its id or a unique prefix of it.
func (s *Store) Resolve(ctx context.Context, id string) (string, error) {
	if layout.ValidID(id) == nil {
		for info, err := range s.b.List(ctx, backend.ListOptions{Prefix: layout.CheckpointKey(id), Limit: 1}) {
			if err != nil {
				return "", fmt.Errorf("look for session %s: %w", id, err)
			}
			if info.Key == layout.CheckpointKey(id) && s.alive(ctx, info) {
				return id, nil
			}
		}
	}
	return s.byPrefix(ctx, id)
}

// few bounds how many sessions are named where a prefix is not unique.
const few = 5

// byPrefix finds the one session whose id begins so.
func (s *Store) byPrefix(ctx context.Context, prefix string) (string, error) {
	if err := layout.ValidID(prefix + "x"); err != nil || prefix == "" {
		return "", layout.ValidID(prefix)
	}
	found, err := s.Sessions(ctx, prefix, few+1)
	if err != nil {
		return "", err
	}
	switch len(found) {
	case 0:
		return "", &Failure{
			Code: "not-found", Hint: "`coppice list` shows what there is",
			Err: fmt.Errorf("no session %q in %s: %w", prefix, s.URL, fs.ErrNotExist),
		}
	case 1:
		return found[0], nil
	}
	more := ""
	if len(found) > few {
		found, more = found[:few], ", ..."
	}
	return "", fmt.Errorf("session %q is not unique: %s%s: %w", prefix, strings.Join(found, ", "), more, transcript.ErrAmbiguous)
}

// Sessions gives the ids of at most limit sessions whose ids begin so, in their order; 0 = all.
func (s *Store) Sessions(ctx context.Context, prefix string, limit int) ([]string, error) {
	var found []string
	for info, err := range s.b.List(ctx, backend.ListOptions{Prefix: layout.CheckpointKey(prefix)}) {
		if err != nil {
			return nil, fmt.Errorf("look for session %s: %w", prefix, err)
		}
		id, ok := layout.Unescape(strings.TrimPrefix(info.Key, layout.Checkpoints))
		if !ok || !strings.HasPrefix(id, prefix) || !s.alive(ctx, info) {
			continue
		}
		if found = append(found, id); len(found) == limit {
			break
		}
	}
	return found, nil
}

// IDs gives the id of every session whose checkpoint is there, deleted ones too: as the names of the objects hold them,
// so that none is read.
func (s *Store) IDs(ctx context.Context) ([]string, error) {
	var ids []string
	for info, err := range s.b.List(ctx, backend.ListOptions{Prefix: layout.Checkpoints}) {
		if err != nil {
			return nil, fmt.Errorf("look for sessions: %w", err)
		}
		if id, ours := layout.Unescape(strings.TrimPrefix(info.Key, layout.Checkpoints)); ours {
			ids = append(ids, id)
		}
	}
	return ids, nil
}

// summaryBytes is where the summary of a checkpoint lies.
const summaryBytes = 4 << 10

// alive tells that a checkpoint is not that of a deleted session. One that cannot be read counts as
// alive: opening it says what is wrong.
func (s *Store) alive(ctx context.Context, info backend.Info) bool {
	head, _, err := s.b.Get(ctx, info.Key, backend.Bytes(0, min(info.Size, summaryBytes)))
	if err != nil {
		return !errors.Is(err, fs.ErrNotExist)
	}
	sum, err := checkpoint.DecodeSummary(head)
	return err != nil || !sum.Tombstone
}
