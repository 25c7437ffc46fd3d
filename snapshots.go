package coppice

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"sync"

	"github.com/coppice-go/coppice/codec"
	"github.com/coppice-go/coppice/internal/journal"
	"github.com/coppice-go/coppice/internal/journal/state"
	"github.com/coppice-go/coppice/internal/journal/store"
	"github.com/coppice-go/coppice/snapshot"
	"github.com/coppice-go/coppice/transcript"
)

// Snapshot stores the state of the last commit as a snapshot, under a tag, which may be "". One PUT.
func (s *Session) Snapshot(ctx context.Context, tag string) (snapshot.Info, error) {
	if err := s.writable(ctx); err != nil {
		return snapshot.Info{}, s.fail("snapshot", err)
	}
	st := s.state()
	if st.Summary.Commit == "" {
		return snapshot.Info{}, s.fail("snapshot", missing("commit", "head"))
	}
	if err := checkName("tag", tag); err != nil {
		return snapshot.Info{}, s.fail("snapshot", err)
	}
	info, err := s.j.Snapshot(ctx, st, tag)
	return info, s.fail("snapshot", err)
}

// Snapshots yields the session's snapshots, newest first.
func (s *Session) Snapshots(ctx context.Context) iter.Seq2[snapshot.Info, error] {
	return iterate(ctx, s, "snapshots", func(yield func(snapshot.Info, error) bool) error {
		return forward(s.j.Snapshots(ctx), yield)
	})
}

// Prune removes the snapshots that a retention does not keep, and returns them; with DryRun it only returns
// them. Commits are not changed: each can still be restored from the log. Prune reads every snapshot before it removes
// it, and keeps one whose state can, because of damage, no longer be restored from the log.
func (s *Session) Prune(ctx context.Context, keep snapshot.Retention) ([]snapshot.Info, error) {
	if !keep.DryRun && s.o.ReadOnly {
		return nil, s.fail("prune", journal.ErrReadOnly)
	}
	if s.state().Summary.Held() {
		return nil, s.fail("prune", ErrHeld)
	}
	var list []snapshot.Info
	for info, err := range s.Snapshots(ctx) {
		if err != nil {
			return nil, s.fail("prune", err)
		}
		list = append(list, info)
	}
	_, drop := keep.Select(list)
	only, err := s.onlyWays(ctx, drop)
	if err != nil {
		return nil, s.fail("prune", err)
	}
	for i := range list {
		list[i].Only = only[list[i].ID]
	}
	if _, drop = keep.Select(list); keep.DryRun {
		return drop, nil
	}
	for i, info := range drop {
		if err := s.j.DropSnapshot(ctx, info.ID); err != nil {
			return drop[:i], s.fail("prune", fmt.Errorf("drop snapshot %s: %w", info.ID, err))
		}
	}
	return drop, nil
}

// onlyWays returns the ids of those snapshots of a list that are the only way to their states: damage has taken the
// commit, its document or an entry of its window from the log, or a repair has put something else in their place. It
// reads each snapshot, the segment of its commit, and every entry of the windows once.
func (s *Session) onlyWays(ctx context.Context, list []snapshot.Info) (map[string]bool, error) {
	if len(list) == 0 {
		return nil, nil
	}
	st, err := s.j.Latest(ctx)
	if err != nil {
		return nil, err
	}
	only, checked := map[string]bool{}, map[uint64]uint32{}
	for _, info := range list {
		then, err := s.j.ReadSnapshot(ctx, info.ID)
		if lost(err) {
			continue // it is no way to any state
		}
		if err != nil {
			return nil, err
		}
		leads, err := s.leadsTo(ctx, st, then, checked)
		if err != nil {
			return nil, fmt.Errorf("snapshot %s: %w", info.ID, err)
		}
		if !leads {
			only[info.ID] = true
		}
	}
	return only, nil
}

// leadsTo reports whether the log of st has the commit, the document and the window of then. checked holds the
// checksums of entries that were compared before, by ordinal.
func (s *Session) leadsTo(ctx context.Context, st, then *state.State, checked map[uint64]uint32) (bool, error) {
	mo, err := s.j.At(ctx, st, then.Summary.Seq)
	if lost(err) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	head := journal.PlaceOf(then)
	same := mo.Commit.Commit == then.Summary.Commit && bytes.Equal(mo.DocRaw, then.DocJSON) &&
		mo.Commit.Entry == head.ID && mo.Commit.HeadOrd == head.Ord
	if !same {
		return false, nil
	}
	if then.Window == nil {
		return true, nil
	}
	want := map[uint64][]byte{}
	var ords []uint64
	for e := range then.Window.All {
		if sum, known := checked[e.Ordinal]; !keptWhole(e) || known && sum == codec.CRC(e.Raw) {
			continue
		}
		want[e.Ordinal] = e.Raw
		ords = append(ords, e.Ordinal)
	}
	if len(ords) == 0 {
		return true, nil
	}
	for l, err := range s.j.Lines(ctx, st, ords) {
		if lost(err) {
			return false, nil
		}
		if err != nil {
			return false, err
		}
		if !bytes.Equal(l.Raw, want[l.Ord]) {
			return false, nil
		}
		checked[l.Ord] = codec.CRC(l.Raw)
	}
	return true, nil
}

// keptWhole reports whether a window keeps an entry's line as it is; of others it may keep the head only.
func keptWhole(e transcript.Entry) bool {
	switch e.Type {
	case "message", "compaction", "branch_summary", "custom_message":
		return true
	}
	return false
}

// lost reports whether an error means that the object is damaged or gone.
func lost(err error) bool { return errors.Is(err, store.ErrCorrupt) || errors.Is(err, fs.ErrNotExist) }

// snapshots takes snapshots by policy, in the background after a commit is acknowledged. The next commit names what was
// taken.
type snapshots struct {
	mu     sync.Mutex
	policy snapshot.Policy
	last   uint64   // seq of the newest one, as far as is known
	name   string   // of one that no commit has named yet
	failed []string // warnings that no receipt has had yet
}

// newSnapshots returns nil for a policy that never wants one. It assumes that the handles before this one kept to the
// same policy: none has taken one of the newest commit yet, which is taken after the next.
func newSnapshots(seq uint64, p snapshot.Policy) *snapshots {
	if p.Every < 0 && !p.BeforeCompaction {
		return nil
	}
	every, before := uint64(50), max(seq, 1)-1
	if p.Every > 0 {
		every = uint64(p.Every)
	}
	return &snapshots{policy: p, last: before - before%every}
}

// taken returns the snapshot that the next commit is to name.
func (sn *snapshots) taken() string {
	sn.mu.Lock()
	defer sn.mu.Unlock()
	name := sn.name
	sn.name = ""
	return name
}

// giveBack keeps a name that a failed commit was to name.
func (sn *snapshots) giveBack(name string) {
	sn.mu.Lock()
	defer sn.mu.Unlock()
	if sn.name == "" {
		sn.name = name
	}
}

// warnings adds what failed since the last receipt.
func (sn *snapshots) warnings(list []string) []string {
	sn.mu.Lock()
	defer sn.mu.Unlock()
	list, sn.failed = append(list, sn.failed...), nil
	return list
}

// due has a snapshot taken of the state before a commit, if the policy wants one. One that is due while another is
// being written is due again after the next commit.
func (sn *snapshots) due(j *journal.Journal, before *state.State, reason string) {
	seq := before.Summary.Seq
	sn.mu.Lock()
	due := before.Summary.Commit != "" && seq > sn.last && sn.policy.When(int(seq-sn.last), reason)
	sn.mu.Unlock()
	if !due {
		return
	}
	started := j.SnapshotLater(before, func(info snapshot.Info, err error) {
		sn.mu.Lock()
		defer sn.mu.Unlock()
		if err != nil {
			sn.failed = append(sn.failed, fmt.Sprintf("no snapshot of seq %d: %v", seq, err))
			return
		}
		sn.name = info.ID
	})
	if started {
		sn.mu.Lock()
		sn.last = max(sn.last, seq)
		sn.mu.Unlock()
	}
}
