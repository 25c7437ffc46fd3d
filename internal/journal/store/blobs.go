package store

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
	return sum, s.Create(ctx, layout.BlobKey(s.Session, s.Since(), sum), data)
}

// GetBlob returns the bytes of an image: from memory if the checkpoint contained it, else it reads one object and
// checks its hash.
func (s *Store) GetBlob(ctx context.Context, st *state.State, sum string) ([]byte, error) {
	if data, ok := st.Blobs[sum]; ok {
		return data, nil
	}
	key := layout.BlobKey(s.Session, s.Since(), sum)
	data, _, err := s.Backend.Get(ctx, key, backend.Range{})
	if err != nil {
		return nil, err
	}
	if h := sha256.Sum256(data); hex.EncodeToString(h[:]) != sum {
		return nil, Corrupt(key, 0, codec.ErrChecksum)
	}
	return data, nil
}
