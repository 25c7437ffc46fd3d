package objects

import (
	"context"
	"crypto/sha256"
	"encoding/hex"

	"github.com/coppice-go/coppice/backend"
	"github.com/coppice-go/coppice/codec"
	"github.com/coppice-go/coppice/internal/journal/state"
	"github.com/coppice-go/coppice/internal/layout"
)

// PutBlob stores an image by its content; storing it twice is no error. It must be durable before the
// commit that names it.
func (s *Store) PutBlob(ctx context.Context, data []byte) (sum string, err error) {
	h := sha256.Sum256(data)
	sum = hex.EncodeToString(h[:])
	return sum, s.Create(ctx, layout.BlobKey(s.Session, sum), data)
}

// GetBlob reads an image: from memory where it rode along with the checkpoint, else one object, whose
// hash is checked.
func (s *Store) GetBlob(ctx context.Context, st *state.State, sum string) ([]byte, error) {
	if data, ok := st.Blobs[sum]; ok {
		return data, nil
	}
	key := layout.BlobKey(s.Session, sum)
	data, _, err := s.Backend.Get(ctx, key, backend.Range{})
	if err != nil {
		return nil, err
	}
	if h := sha256.Sum256(data); hex.EncodeToString(h[:]) != sum {
		return nil, Corrupt(key, 0, codec.ErrChecksum)
	}
	return data, nil
}

// PutOriginal stores the bytes of an imported file, compressed, by their SHA-256. At most 64 MiB
// compressed.
func (s *Store) PutOriginal(ctx context.Context, raw []byte) (sum string, err error) {
	h := sha256.Sum256(raw)
	sum = hex.EncodeToString(h[:])
	return sum, s.Create(ctx, layout.OriginalKey(s.Session, sum), codec.Compress(nil, raw, codec.Better))
}

// OriginalMax bounds an imported file's bytes when they are read back: 4 GiB.
const OriginalMax = 4 << 30

// GetOriginal gives the bytes of an imported file back; their hash is checked.
func (s *Store) GetOriginal(ctx context.Context, sum string) ([]byte, error) {
	key := layout.OriginalKey(s.Session, sum)
	p, _, err := s.Backend.Get(ctx, key, backend.Range{})
	if err != nil {
		return nil, err
	}
	if err := CheckOriginal(p, sum); err != nil { // before memory is taken for what it declares (I15)
		return nil, Corrupt(key, 0, err)
	}
	raw, err := codec.Decompress(nil, p, OriginalMax)
	if err != nil {
		return nil, Corrupt(key, 0, err)
	}
	return raw, nil
}

// CheckOriginal tells whether p holds the bytes that have this hex SHA-256. It takes the memory of a window.
func CheckOriginal(p []byte, sum string) error {
	h := sha256.New()
	if err := codec.Unpack(h, p, OriginalMax); err != nil {
		return err
	}
	if hex.EncodeToString(h.Sum(nil)) != sum {
		return codec.ErrChecksum
	}
	return nil
}
