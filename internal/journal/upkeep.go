package journal

import (
	"context"
	"time"

	"github.com/coppice-go/coppice/internal/journal/state"
)

// background is the one job that a handle has under way beside its commits, and what earlier ones made.
// It is guarded by Journal.mu.
type background struct {
	ctx      context.Context //nolint:containedctx // cancelled by Close; jobs outlive the calls that start them
	cancel   context.CancelFunc
	busy     bool
	made     []state.Change // for the next state to take in
	taken    []state.Change // taken in by a state that is not acknowledged yet
	boundary uint64         // the tail up to this ordinal is being sealed, or was: the commit behind it begins a segment
	age      int            // grows whenever the handle stands somewhere else: what was made before is forgotten
}

// closeWait bounds how long Close waits for background work.
const closeWait = 10 * time.Second

// ended books what a job has made.
func (j *Journal) ended(age int, made []state.Change, err error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.bg.busy = false
	switch {
	case age != j.bg.age:
	case err != nil:
		j.bg.boundary = 0 // it is tried again: the threshold is still passed
	default:
		j.bg.made = append(j.bg.made, made...)
	}
}

// forget drops what the background made: the handle stands somewhere else now. j.mu is held.
func (j *Journal) forget() {
	j.bg.age++
	j.bg.made, j.bg.taken, j.bg.boundary = nil, nil, 0
}

// giveBack keeps what a state had taken in that came to nothing: the next one takes it in. j.mu is held.
func (j *Journal) giveBack() {
	j.bg.made, j.bg.taken = append(j.bg.taken, j.bg.made...), nil
}

// stand moves the handle to a state that it did not make itself. j.mu is held.
func (j *Journal) stand(st *state.State) {
	j.st, j.fresh = st, true
	j.forget()
}
