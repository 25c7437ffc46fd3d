package session

import (
	"context"
	"fmt"
	"sync"

	"github.com/coppice-go/coppice/internal/journal"
	"github.com/coppice-go/coppice/internal/journal/state"
	"github.com/coppice-go/coppice/snapshot"
)

// snapshots takes snapshots by policy, after a commit is acknowledged.
type snapshots struct {
	mu     sync.Mutex
	policy snapshot.Policy
	last   uint64 // seq of the newest one, as far as is known
	name   string // of one that no commit has named yet
}

// start assumes that the handles before this one kept to the same policy.
func (sn *snapshots) start(seq uint64, p snapshot.Policy) {
	every := uint64(50)
	if p.Every > 0 {
		every = uint64(p.Every)
	}
	sn.policy, sn.last = p, seq-seq%every
}

// taken gives the snapshot that the next commit is to name.
func (sn *snapshots) taken() string {
	sn.mu.Lock()
	defer sn.mu.Unlock()
	name := sn.name
	sn.name = ""
	return name
}

// due takes a snapshot of the state before a commit, if the policy wants one. A failure is a warning.
func (sn *snapshots) due(ctx context.Context, j *journal.Journal, before *state.State, reason string, warn []string) (string, []string) {
	seq := before.Summary.Seq
	sn.mu.Lock()
	due := before.Summary.Commit != "" && seq > sn.last && sn.policy.When(int(seq-sn.last), reason)
	if due {
		sn.last = seq
	}
	sn.mu.Unlock()
	if !due {
		return "", warn
	}
	info, err := j.Snapshot(ctx, before, "")
	if err != nil {
		return "", append(warn, fmt.Sprintf("no snapshot of seq %d: %v", seq, err))
	}
	sn.mu.Lock()
	defer sn.mu.Unlock()
	sn.name = info.ID
	return info.ID, warn
}
