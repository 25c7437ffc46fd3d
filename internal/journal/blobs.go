package journal

import (
	"context"
	"fmt"
	"slices"

	"github.com/coppice-go/coppice/internal/blob"
	"github.com/coppice-go/coppice/internal/journal/state"
	"github.com/coppice-go/coppice/internal/parallel"
)

// HoldBlobs keeps images until StoreBlobs, or the commit of an entry that refers to them, has stored them.
func (j *Journal) HoldBlobs(list []blob.Blob) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.holdBlobs(list)
}

func (j *Journal) holdBlobs(list []blob.Blob) {
	for _, b := range list {
		if j.blobs == nil {
			j.blobs = map[string][]byte{}
		}
		j.blobs[b.Sum] = b.Data
	}
}

// StoreBlobs stores those of the images with these sums that are not stored yet: one object each, in parallel.
func (j *Journal) StoreBlobs(ctx context.Context, sums []string) error {
	if len(sums) == 0 {
		return nil
	}
	sums = slices.Clone(sums)
	slices.Sort(sums)
	var todo []blob.Blob
	j.mu.Lock()
	for _, sum := range slices.Compact(sums) {
		if data, ok := j.blobs[sum]; ok {
			todo = append(todo, blob.Blob{Sum: sum, Data: data})
		}
	}
	j.mu.Unlock()
	return parallel.Each(ctx, len(todo), func(i int) error {
		if _, err := j.PutBlob(ctx, todo[i].Data); err != nil {
			return fmt.Errorf("store an image: %w", err)
		}
		j.mu.Lock()
		defer j.mu.Unlock()
		delete(j.blobs, todo[i].Sum)
		return nil
	})
}

// PutBlob stores an image by its content; storing it twice is no error. It must be durable before the
// commit that names it.
func (j *Journal) PutBlob(ctx context.Context, data []byte) (sum string, err error) {
	if err := j.begin(ctx); err != nil {
		return "", err
	}
	return j.store.PutBlob(ctx, data)
}

// GetBlob returns an image: from memory where it is not stored yet or rode along with the checkpoint, else one object,
// whose hash is checked.
func (j *Journal) GetBlob(ctx context.Context, st *state.State, sum string) ([]byte, error) {
	if data, ok := j.HeldBlob(sum); ok {
		return data, nil
	}
	return j.store.GetBlob(ctx, st, sum)
}

// HeldBlob returns an image that is not stored yet.
func (j *Journal) HeldBlob(sum string) ([]byte, bool) {
	j.mu.Lock()
	defer j.mu.Unlock()
	data, ok := j.blobs[sum]
	return data, ok
}
