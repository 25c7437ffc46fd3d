// Package store writes objects of a session that are then durable and never change (I4, I13), and reads them: an object
// is what it must be, or is reported as damage with its name and offset.
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

// Bind sets which incarnation of its id the session is, by its first epoch; 0 = the first one. Later ones, and the end
// of the one before, are then none of its business: see Checkpoint.
func (s *Store) Bind(since uint64) { s.since.Store(&since) }

// Bound reports whether it is known which incarnation of its id the session is.
func (s *Store) Bound() bool { return s.since.Load() != nil }

// Since returns the first epoch of the session; 0 = that of the first incarnation, or it is not known.
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

// Pause waits before the n-th further try: doubling from 20 ms to 2 s, of which a random half.
func (s *Store) Pause(ctx context.Context, n int) error {
	d := min(backoffMax, backoffMin<<min(n, 10))
	var b [1]byte
	if _, err := io.ReadFull(s.Rand, b[:]); err != nil {
		return err
	}
	return s.Sleep(ctx, d/2+d/2*time.Duration(b[0])/256)
}

// Checkpoint reads checkpoint_latest. A store that is bound to an incarnation sees its own alone: in place of the
// checkpoint of a later one it returns a tombstone, and the tombstone of the one before is fs.ErrNotExist, with its
// Info.
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

// Create writes an immutable object whose name no other content ever has (I4): a name that is taken has these very
// bytes, from a try whose answer was lost, or a log that has grown after them since. Once a try may have had its
// effect, the outcome of a later refusal is Unknown (I2).
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
			case errors.Is(gerr, fs.ErrNotExist): // refused for a name that no one holds; not this session's absence
				gerr = fmt.Errorf("put %s: refused because the name is taken, but no such object exists", key)
				fallthrough
			case gerr != nil:
				err, doubt = gerr, errors.Join(doubt, gerr) // whose it is no one has seen
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

// Harden makes an object durable that another process, or an earlier try, has written: on a disk it may be
// visible by a write whose sync failed, so the same bytes are put once more (I13). Where objects can only
// be replaced, what can be read is durable.
func (s *Store) Harden(ctx context.Context, key string, p []byte, v backend.Version) error {
	if _, disk := s.Backend.(backend.Appender); !disk {
		return nil
	}
	_, err := s.Backend.Put(ctx, key, p, backend.IfMatch(v))
	return err
}

// LineID makes an id and a time for a line of the protocol's own.
func (s *Store) LineID() (string, time.Time, error) {
	now := s.Now().UTC().Truncate(time.Millisecond)
	id, err := transcript.NewID(now, s.Rand)
	return id, now, err
}

// Random is 16 hex digits that no two names share.
func (s *Store) Random() (string, error) {
	var b [8]byte
	if _, err := io.ReadFull(s.Rand, b[:]); err != nil {
		return "", fmt.Errorf("read randomness: %w", err)
	}
	return hex.EncodeToString(b[:]), nil
}

// NewKey is a new key for commit lines; never 0.
func (s *Store) NewKey() (uint64, error) {
	var b [8]byte
	if _, err := io.ReadFull(s.Rand, b[:]); err != nil {
		return 0, fmt.Errorf("read randomness: %w", err)
	}
	return binary.LittleEndian.Uint64(b[:]) | 1, nil
}
