package journal

import (
	"context"
	"io"
	"iter"

	"github.com/coppice-go/coppice/checkpoint"
	"github.com/coppice-go/coppice/codec"
	"github.com/coppice-go/coppice/internal/journal/state"
	"github.com/coppice-go/coppice/internal/journal/store"
	"github.com/coppice-go/coppice/snapshot"
)

// Lines yields durable lines by ordinal, in the order of ords, which must ascend; nil = all of them.
// Neighbours share a range read. Images are not put back.
func (j *Journal) Lines(ctx context.Context, st *state.State, ords []uint64) iter.Seq2[state.Line, error] {
	return j.past.Lines(ctx, st, ords)
}

// Skeletons yields the skeletons of all durable lines of st, in order and dense, from ordinal from on; the
// first may begin below it. Sealed lines cost one read per index object, and one per segment that is not
// folded yet.
func (j *Journal) Skeletons(ctx context.Context, st *state.State, from uint64) iter.Seq2[*codec.Skeleton, error] {
	return j.past.Skeletons(ctx, st, from)
}

// At returns the session as commit seq left it: one segment read, nothing for the newest commit.
func (j *Journal) At(ctx context.Context, st *state.State, seq uint64) (store.Moment, error) {
	return j.past.At(ctx, st, seq)
}

// CommitLine returns the moment of the commit whose line has ordinal ord.
func (j *Journal) CommitLine(ctx context.Context, st *state.State, ord uint64) (store.Moment, error) {
	return j.past.CommitLine(ctx, st, ord)
}

// Log yields commits newest first, from seq on downwards: the last 64 from memory, then one segment read
// for each segment.
func (j *Journal) Log(ctx context.Context, st *state.State, seq uint64) iter.Seq2[checkpoint.Commit, error] {
	return j.past.Log(ctx, st, seq)
}

// States yields the session as each commit left it, newest first, from seq on downwards: a segment is read once for all
// of its commits.
func (j *Journal) States(ctx context.Context, st *state.State, seq uint64) iter.Seq2[store.Moment, error] {
	return j.past.States(ctx, st, seq)
}

// Since yields, oldest first, the commits after seq with the lines that each made durable. seq -1 means
// all of them.
func (j *Journal) Since(ctx context.Context, st *state.State, seq int64) iter.Seq2[store.Batch, error] {
	return j.past.Since(ctx, st, seq, nil)
}

// Following is Since, where the session's document at seq is known.
func (j *Journal) Following(
	ctx context.Context, st *state.State, seq int64, was *store.Past,
) iter.Seq2[store.Batch, error] {
	return j.past.Since(ctx, st, seq, was)
}

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

// WriteOriginal writes the bytes of an imported file of cfg's session, whether the session can be opened or not.
func WriteOriginal(ctx context.Context, cfg Config, sum string, w io.Writer) error {
	s, _ := Tools(cfg)
	return s.WriteOriginal(ctx, sum, w)
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

// ReadSnapshot reads one snapshot by name: one object.
func (j *Journal) ReadSnapshot(ctx context.Context, name string) (*state.State, error) {
	return j.store.ReadSnapshot(ctx, name)
}

// DropSnapshot removes a snapshot; a missing one is no error.
func (j *Journal) DropSnapshot(ctx context.Context, name string) error {
	return j.store.DropSnapshot(ctx, name)
}
