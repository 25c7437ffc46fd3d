package journal

import (
	"github.com/coppice-go/coppice/backend"
	"github.com/coppice-go/coppice/checkpoint"
)

// FromObject makes the state that a checkpoint or a snapshot of the session holds, and with it finds out
// whether its window, its pool and its tail agree. It reads nothing else: on a disk the log may be ahead of it.
func (Config) FromObject(o *checkpoint.Object) (*State, error) { return restore(o, backend.Info{}) }
