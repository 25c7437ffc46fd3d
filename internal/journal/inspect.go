package journal

import (
	"github.com/coppice-go/coppice/checkpoint"
	"github.com/coppice-go/coppice/internal/journal/state"
)

// FromObject makes the state that a checkpoint or a snapshot holds, and with it finds out whether its
// window, its pool and its tail agree. It reads nothing else: on a disk the log may be ahead of it.
func FromObject(o *checkpoint.Object) (*State, error) { return state.FromObject(o) }
