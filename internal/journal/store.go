package journal

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"time"

	"github.com/coppice-go/coppice/backend"
	"github.com/coppice-go/coppice/checkpoint"
	"github.com/coppice-go/coppice/codec"
	"github.com/coppice-go/coppice/internal/layout"
	"github.com/coppice-go/coppice/transcript"
)

// store is the backend as one session sees it.
type store struct {
	b        backend.Backend
	id       string
	attempts int
	sleep    func(ctx context.Context, d time.Duration) error
	rand     io.Reader
	now      func() time.Time
}

const (
	backoffMin = 20 * time.Millisecond
	backoffMax = 2 * time.Second
)

// pause waits before the n-th further try: doubling from 20 ms to 2 s, of which a random half.
func (s *store) pause(ctx context.Context, n int) error {
	d := min(backoffMax, backoffMin<<min(n, 10))
	var b [1]byte
	if _, err := io.ReadFull(s.rand, b[:]); err != nil {
		return err
	}
	return s.sleep(ctx, d/2+d/2*time.Duration(b[0])/256)
}

// latest reads checkpoint_latest.
func (s *store) latest(ctx context.Context) (*checkpoint.Object, backend.Info, error) {
	key := layout.CheckpointKey(s.id)
	p, info, err := s.b.Get(ctx, key, backend.Range{})
	if err != nil {
		return nil, info, err
	}
	o, err := checkpoint.DecodeObject(p)
	if err == nil && o.Summary.ID != s.id {
		err = fmt.Errorf("it is of session %q: %w", o.Summary.ID, codec.ErrFormat)
	}
	if err != nil {
		return nil, info, corrupt(key, 0, err)
	}
	return o, info, nil
}

// create writes an immutable object whose name no other content ever has (I4): a name that is taken is
// taken by these very bytes, from a try whose answer was lost.
func (s *store) create(ctx context.Context, key string, p []byte) error {
	var err error
	for try := range s.attempts {
		if try > 0 {
			if werr := s.pause(ctx, try); werr != nil {
				return err
			}
		}
		_, err = s.b.Put(ctx, key, p, backend.IfAbsent())
		switch {
		case err == nil:
			return nil
		case errors.Is(err, backend.ErrPrecondition):
			have, info, gerr := s.b.Get(ctx, key, backend.Range{})
			if gerr == nil && bytes.Equal(have, p) {
				return s.harden(ctx, key, p, info.Version)
			}
			if gerr == nil {
				return corrupt(key, 0, fmt.Errorf("other bytes have this name: %w", fs.ErrExist))
			}
			err = gerr
		case errors.Is(err, backend.ErrBusy):
		case backend.OutcomeOf(err) == backend.NotApplied:
			return err
		}
	}
	return err
}

// harden makes an object durable that somebody else, or an earlier try, has written: on a disk it may be
// visible by a write whose sync failed, so the same bytes are put once more (I13). Where objects can only
// be replaced, what can be read is durable.
func (s *store) harden(ctx context.Context, key string, p []byte, v backend.Version) error {
	if _, disk := s.b.(backend.Appender); !disk {
		return nil
	}
	_, err := s.b.Put(ctx, key, p, backend.IfMatch(v))
	return err
}

// lineID makes an id and a time for a line of the protocol's own.
func (s *store) lineID() (string, time.Time, error) {
	now := s.now().UTC().Truncate(time.Millisecond)
	id, err := transcript.NewID(now, s.rand)
	return id, now, err
}

// random is 16 hex digits that no two names share.
func (s *store) random() (string, error) {
	var b [8]byte
	if _, err := io.ReadFull(s.rand, b[:]); err != nil {
		return "", fmt.Errorf("read randomness: %w", err)
	}
	return hex.EncodeToString(b[:]), nil
}

// key is a new key for commit lines; never 0.
func (s *store) key() (uint64, error) {
	var b [8]byte
	if _, err := io.ReadFull(s.rand, b[:]); err != nil {
		return 0, fmt.Errorf("read randomness: %w", err)
	}
	return binary.LittleEndian.Uint64(b[:]) | 1, nil
}
