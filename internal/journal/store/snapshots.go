package store

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"slices"
	"strings"

	"github.com/coppice-go/coppice/backend"
	"github.com/coppice-go/coppice/checkpoint"
	"github.com/coppice-go/coppice/codec"
	"github.com/coppice-go/coppice/internal/journal/state"
	"github.com/coppice-go/coppice/internal/layout"
	"github.com/coppice-go/coppice/snapshot"
)

// summaryBytes is how much of the beginning of a snapshot a listing reads: its summary.
const summaryBytes = 4 << 10

// Snapshot writes an immutable copy of st that refers to no segment, so that one read returns state, head and working
// context (I9). Its name contains id, so that one commit may have several snapshots, with different tags.
func (s *Store) Snapshot(ctx context.Context, st *state.State, id, tag string) (snapshot.Info, error) {
	if st.Summary.Commit == "" {
		return snapshot.Info{}, fmt.Errorf("snapshot of session %s: %w", s.Session, ErrNoCommit)
	}
	o := st.Object(false)
	o.Segments, o.IDs, o.Plain, o.Tail = checkpoint.SegmentMap{}, nil, nil, checkpoint.TailState{}
	o.Summary.LogName, o.Summary.LogBytes = "", 0
	o.Summary.Snapshot, o.Summary.Tag = layout.Own(st.Since, snapshot.Name(st.Summary.Seq, id)), tag
	body, err := o.Encode()
	if err != nil {
		return snapshot.Info{}, err
	}
	if err := s.Create(ctx, layout.SnapshotKey(s.Session, o.Summary.Snapshot), body); err != nil {
		return snapshot.Info{}, err
	}
	return snapshot.FromSummary(o.Summary, int64(len(body))), nil
}

// Snapshots yields the session's snapshots, newest first: one LIST, and one range read for each.
func (s *Store) Snapshots(ctx context.Context) iter.Seq2[snapshot.Info, error] {
	return func(yield func(snapshot.Info, error) bool) {
		prefix := layout.SessionPrefix(s.Session) + layout.Snapshots
		all, err := s.list(ctx, backend.ListOptions{Prefix: prefix})
		if err != nil {
			yield(snapshot.Info{}, err)
			return
		}
		for _, object := range slices.Backward(all) {
			if !s.isSnapshot(nameOf(object.Key)) {
				continue // a foreign object
			}
			info, err := s.snapshotInfo(ctx, object)
			if errors.Is(err, fs.ErrNotExist) {
				continue // pruned meanwhile
			}
			if !yield(info, err) || err != nil {
				return
			}
		}
	}
}

func (s *Store) snapshotInfo(ctx context.Context, object backend.Info) (snapshot.Info, error) {
	p, _, err := s.Backend.Get(ctx, object.Key, backend.Bytes(0, min(object.Size, summaryBytes)))
	if err != nil {
		return snapshot.Info{}, err
	}
	sum, err := checkpoint.DecodeSummary(p)
	if err == nil && (sum.ID != s.Session || sum.Snapshot != nameOf(object.Key)) {
		err = fmt.Errorf("it is snapshot %s of session %s: %w", sum.Snapshot, sum.ID, codec.ErrFormat)
	}
	if err != nil {
		return snapshot.Info{}, Corrupt(object.Key, 0, err)
	}
	return snapshot.FromSummary(sum, object.Size), nil
}

// isSnapshot reports whether a name is that of a snapshot of the session.
func (s *Store) isSnapshot(name string) bool {
	since, name := layout.ParseOwn(name)
	_, _, ok := snapshot.ParseName(name)
	return ok && since == s.Since()
}

// Shown returns the number of the newest commit with a snapshot if it is newer than st, else 0. Such a snapshot proves
// that commits after st existed. Snapshots that cannot be read are ignored.
func (s *Store) Shown(ctx context.Context, st *state.State) (uint64, error) {
	after := layout.SnapshotKey(s.Session, layout.Own(st.Since, snapshot.Name(st.Summary.Seq+1, "00000000")))
	all, err := s.list(ctx, backend.ListOptions{
		Prefix: layout.SessionPrefix(s.Session) + layout.Snapshots, After: after[:len(after)-len("-00000000")],
	})
	if err != nil {
		return 0, err
	}
	for _, object := range slices.Backward(all) {
		since, name := layout.ParseOwn(nameOf(object.Key))
		if seq, _, ok := snapshot.ParseName(name); !ok || since != st.Since || seq <= st.Summary.Seq {
			continue
		}
		info, err := s.snapshotInfo(ctx, object)
		switch {
		case err == nil:
			return info.Seq, nil
		case !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, ErrCorrupt):
			return 0, err
		}
	}
	return 0, nil
}

// list returns the infos of objects.
func (s *Store) list(ctx context.Context, o backend.ListOptions) (all []backend.Info, err error) {
	for info, err := range s.Backend.List(ctx, o) {
		if err != nil {
			return nil, err
		}
		all = append(all, info)
	}
	return all, nil
}

func nameOf(key string) string { return key[strings.LastIndexByte(key, '/')+1:] }

// ReadSnapshot reads one snapshot by name: one object.
func (s *Store) ReadSnapshot(ctx context.Context, name string) (*state.State, error) {
	if !s.isSnapshot(name) {
		return nil, fmt.Errorf("snapshot %q: no such name: %w", name, fs.ErrNotExist)
	}
	key := layout.SnapshotKey(s.Session, name)
	p, info, err := s.Backend.Get(ctx, key, backend.Range{})
	if err != nil {
		return nil, err
	}
	o, err := checkpoint.DecodeObject(p)
	if err == nil && (o.Summary.ID != s.Session || o.Summary.Snapshot != name) {
		err = fmt.Errorf("it is snapshot %s of session %s: %w", o.Summary.Snapshot, o.Summary.ID, codec.ErrFormat)
	}
	if err != nil {
		return nil, Corrupt(key, 0, err)
	}
	st, err := state.Restore(o, info)
	if err != nil {
		return nil, Corrupt(key, 0, err)
	}
	return st, nil
}

// DropSnapshot removes a snapshot; a missing one is no error.
func (s *Store) DropSnapshot(ctx context.Context, name string) error {
	if !s.isSnapshot(name) {
		return fmt.Errorf("snapshot %q: no such name: %w", name, fs.ErrNotExist)
	}
	return s.Backend.Delete(ctx, layout.SnapshotKey(s.Session, name))
}
