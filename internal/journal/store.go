package journal

import (
	"bytes"
	"context"
	"crypto/sha256"
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
)

// store is the backend as one session sees it.
type store struct {
	b        backend.Backend
	id       string
	attempts int
	sleep    func(ctx context.Context, d time.Duration) error
	rand     io.Reader
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

// corrupt is the failure for bytes that are not what they must be; what is too new to read is no damage.
func corrupt(object string, offset int64, cause error) error {
	if errors.Is(cause, codec.ErrVersion) {
		return fmt.Errorf("read %s: %w", object, cause)
	}
	return &Failure{Err: fmt.Errorf("%w: %s at byte %d: %w", ErrCorrupt, object, offset, cause), Object: object, Offset: offset}
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

// PutBlob stores an image by its content; storing it twice is no error. It must be durable before the
// commit that names it.
func (j *Journal) PutBlob(ctx context.Context, data []byte) (sum string, err error) {
	h := sha256.Sum256(data)
	sum = hex.EncodeToString(h[:])
	return sum, j.store.create(ctx, layout.BlobKey(j.cfg.Session, sum), data)
}

// GetBlob reads an image: from memory where it rode along with the checkpoint, else one object, whose
// hash is checked.
func (j *Journal) GetBlob(ctx context.Context, st *State, sum string) ([]byte, error) {
	if data, ok := st.Blobs[sum]; ok {
		return data, nil
	}
	key := layout.BlobKey(j.cfg.Session, sum)
	data, _, err := j.store.b.Get(ctx, key, backend.Range{})
	if err != nil {
		return nil, err
	}
	if h := sha256.Sum256(data); hex.EncodeToString(h[:]) != sum {
		return nil, corrupt(key, 0, codec.ErrChecksum)
	}
	return data, nil
}

// PutOriginal stores the bytes of an imported file, compressed, by their SHA-256. At most 64 MiB
// compressed.
func (j *Journal) PutOriginal(ctx context.Context, raw []byte) (sum string, err error) {
	h := sha256.Sum256(raw)
	sum = hex.EncodeToString(h[:])
	return sum, j.store.create(ctx, layout.OriginalKey(j.cfg.Session, sum), codec.Compress(nil, raw, codec.Better))
}

// OriginalMax bounds an imported file's bytes when they are read back: 4 GiB.
const OriginalMax = 4 << 30

// GetOriginal gives the bytes of an imported file back; their hash is checked.
func (j *Journal) GetOriginal(ctx context.Context, sum string) ([]byte, error) {
	key := layout.OriginalKey(j.cfg.Session, sum)
	p, _, err := j.store.b.Get(ctx, key, backend.Range{})
	if err != nil {
		return nil, err
	}
	raw, err := codec.Decompress(nil, p, OriginalMax)
	if err != nil {
		return nil, corrupt(key, 0, err)
	}
	if h := sha256.Sum256(raw); hex.EncodeToString(h[:]) != sum {
		return nil, corrupt(key, 0, codec.ErrChecksum)
	}
	return raw, nil
}
