// Package store writes the objects of a session, which are then durable and never change (I4, I13), and reads them. An
// object whose content is wrong is reported as damage, with its name and an offset.
//
// Store writes and reads single objects by their names: checkpoint_latest, segments, snapshots, blobs and originals.
// History finds every durable line and every commit of a state: in the tail in memory, in a plain segment, in a
// sealed one, or in one that was sealed or collected during the search; it also writes what it reads, sealed segments
// and index objects. Failure is the protocol's error.
package store

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"sync/atomic"
	"time"

	"github.com/coppice-go/coppice/backend"
	"github.com/coppice-go/coppice/checkpoint"
	"github.com/coppice-go/coppice/codec"
	"github.com/coppice-go/coppice/internal/layout"
	"github.com/coppice-go/coppice/transcript"
)

// Store is the backend as one session sees it. It is safe for concurrent use.
type Store struct {
	Backend  backend.Backend
	Session  string // its id
	Attempts int    // tries of one write
	Part     int64  // bytes of an imported file that go into one object
	Sleep    func(ctx context.Context, d time.Duration) error
	Rand     io.Reader // safe for concurrent use
	Now      func() time.Time

	since atomic.Pointer[uint64] // set by Bind
}

// Bind sets which of the sessions that had this id, one after the other, the store belongs to, by its first epoch; 0 =
// the first one. Checkpoint then hides later sessions, and the tombstone of the one before.
func (s *Store) Bind(since uint64) { s.since.Store(&since) }

// Bound reports whether Bind was called.
func (s *Store) Bound() bool { return s.since.Load() != nil }

// Since returns the first epoch of the session; 0 = it is the first session with its id, or Bind was not called.
func (s *Store) Since() uint64 {
	if since := s.since.Load(); since != nil {
		return *since
	}
	return 0
}

const (
	backoffMin = 20 * time.Millisecond
	backoffMax = 2 * time.Second
)

// Pause waits before the n-th further try: 20 ms, doubled each time up to 2 s, and half of it at random.
func (s *Store) Pause(ctx context.Context, n int) error {
	d := min(backoffMax, backoffMin<<min(n, 10))
	var b [1]byte
	if _, err := io.ReadFull(s.Rand, b[:]); err != nil {
		return err
	}
	return s.Sleep(ctx, d/2+d/2*time.Duration(b[0])/256)
}

// Checkpoint reads checkpoint_latest. After Bind it returns that of the bound session only: in place of the checkpoint
// of a later session with the id it returns a tombstone, and for the tombstone of an earlier one fs.ErrNotExist, with
// the object's Info.
func (s *Store) Checkpoint(ctx context.Context) (*checkpoint.Object, backend.Info, error) {
	key := layout.CheckpointKey(s.Session)
	p, info, err := s.Backend.Get(ctx, key, backend.Range{})
	if err != nil {
		return nil, info, err
	}
	o, err := checkpoint.DecodeObject(p)
	if err == nil && o.Summary.ID != s.Session {
		err = fmt.Errorf("it belongs to session %q: %w", o.Summary.ID, codec.ErrFormat)
	}
	if err != nil {
		return nil, info, Corrupt(key, 0, err)
	}
	switch since := s.since.Load(); {
	case since == nil:
	case o.Since > *since:
		return EndedBefore(s.Session, o.Since), info, nil
	case o.Summary.Tombstone && layout.NextEpoch(o.Summary.Epoch) <= *since:
		err = &backend.Error{Op: "get", Key: key, Outcome: backend.NotApplied, Err: fs.ErrNotExist}
		return nil, info, err
	}
	return o, info, nil
}

// Create writes an immutable object under a name that no other content ever has (I4). If an object with the name
// exists, it was written by an earlier try whose answer was lost: it has these bytes, or begins with them if it is a
// log that has grown since. After a try that may have had its effect, the outcome of a later refusal is Unknown (I2).
func (s *Store) Create(ctx context.Context, key string, p []byte) error {
	var err, doubt error
	for try := range s.Attempts {
		if try > 0 && s.Pause(ctx, try) != nil {
			break
		}
		_, err = s.Backend.Put(ctx, key, p, backend.IfAbsent())
		if errors.Is(err, backend.ErrPrecondition) {
			have, info, gerr := s.Backend.Get(ctx, key, backend.Range{})
			switch {
			case errors.Is(gerr, fs.ErrNotExist): // refused, though no object has the name: the session is there
				gerr = fmt.Errorf("put %s: refused because the name is taken, but no such object exists", key)
				fallthrough
			case gerr != nil:
				err, doubt = gerr, errors.Join(doubt, gerr) // it was not read: it may be another writer's
				continue
			case !bytes.HasPrefix(have, p):
				return Corrupt(key, 0, fmt.Errorf("the name is taken by other bytes: %w", fs.ErrExist))
			}
			if err = s.Harden(ctx, key, have, info.Version); err == nil {
				return nil
			}
			doubt = errors.Join(doubt, err)
			continue
		}
		switch {
		case err == nil:
			return nil
		case errors.Is(err, backend.ErrBusy):
		case backend.OutcomeOf(err) != backend.NotApplied:
			doubt = errors.Join(doubt, err)
		case doubt == nil:
			return err
		}
	}
	if doubt != nil {
		return &backend.Error{Op: "put", Key: key, Outcome: backend.Unknown, Err: doubt}
	}
	return err
}

// Harden makes an object durable that another process or an earlier try has written. On a disk an object can be visible
// although its sync failed, so the same bytes are put once more (I13). In an object store all that can be read is
// durable, and Harden does nothing.
func (s *Store) Harden(ctx context.Context, key string, p []byte, v backend.Version) error {
	if _, disk := s.Backend.(backend.Appender); !disk {
		return nil
	}
	_, err := s.Backend.Put(ctx, key, p, backend.IfMatch(v))
	return err
}

// LineID returns an id and a time for a line that the protocol writes by itself.
func (s *Store) LineID() (string, time.Time, error) {
	now := s.Now().UTC().Truncate(time.Millisecond)
	id, err := transcript.NewID(now, s.Rand)
	return id, now, err
}

// Random returns 16 random hex digits for the name of an object.
func (s *Store) Random() (string, error) {
	var b [8]byte
	if _, err := io.ReadFull(s.Rand, b[:]); err != nil {
		return "", fmt.Errorf("read randomness: %w", err)
	}
	return hex.EncodeToString(b[:]), nil
}

// NewKey returns a new random key for commit lines; never 0.
func (s *Store) NewKey() (uint64, error) {
	var b [8]byte
	if _, err := io.ReadFull(s.Rand, b[:]); err != nil {
		return 0, fmt.Errorf("read randomness: %w", err)
	}
	return binary.LittleEndian.Uint64(b[:]) | 1, nil
}
