package journal

import (
	"context"
	"fmt"
	"io"
	"io/fs"
	"iter"

	"github.com/coppice-go/coppice/internal/journal/state"
	"github.com/coppice-go/coppice/internal/journal/store"
	"github.com/coppice-go/coppice/snapshot"
)

// PutOriginal stores the bytes of an imported file, compressed, by their SHA-256; of more than 8 MiB in parts.
func (j *Journal) PutOriginal(ctx context.Context, r io.Reader) (sum string, err error) {
	if err := j.begin(ctx); err != nil {
		return "", err
	}
	return j.store.PutOriginal(ctx, r)
}

// GrowOriginal stores the bytes by which an imported file grew: see store.Store.GrowOriginal.
func (j *Journal) GrowOriginal(ctx context.Context, was, now store.Original, more io.Reader) error {
	return j.store.GrowOriginal(ctx, was, now, more)
}

// WriteOriginal writes the bytes of an imported file; their hash is checked.
func (j *Journal) WriteOriginal(ctx context.Context, sum string, w io.Writer) error {
	return j.store.WriteOriginal(ctx, sum, w)
}

// Snapshot writes an immutable copy of st, which names no segment: state, head and working context with
// one read (I9). Each has a name of its own, so one commit may have several, with different tags.
func (j *Journal) Snapshot(ctx context.Context, st *state.State, tag string) (snapshot.Info, error) {
	id, _, err := j.store.LineID()
	if err != nil {
		return snapshot.Info{}, err
	}
	return j.store.Snapshot(ctx, st, id, tag)
}

// Snapshots yields the session's snapshots, newest first: one LIST, and one range read for each.
func (j *Journal) Snapshots(ctx context.Context) iter.Seq2[snapshot.Info, error] {
	return j.store.Snapshots(ctx)
}

// ReadSnapshot reads one snapshot by name: one object. One that was made before the last erasure, and was not written
// again by it, arrived after it. It does not exist for readers: it may have what was erased.
func (j *Journal) ReadSnapshot(ctx context.Context, name string) (*state.State, error) {
	st, err := j.store.ReadSnapshot(ctx, name)
	if err == nil && st.Erased < j.Tip().Erased {
		return nil, fmt.Errorf("snapshot %s: it was made before entries were erased: %w", name, fs.ErrNotExist)
	}
	return st, err
}

// DropSnapshot removes a snapshot; a missing one is no error.
func (j *Journal) DropSnapshot(ctx context.Context, name string) error {
	return j.store.DropSnapshot(ctx, name)
}
