package session

import (
	"fmt"
	"sync"

	"github.com/coppice-go/coppice/internal/journal"
	"github.com/coppice-go/coppice/internal/journal/state"
	"github.com/coppice-go/coppice/snapshot"
)

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
