package crash

import (
	"context"

	"github.com/coppice-go/coppice/backend"
)

// watch is called during the work of a process on the disk.
type watch struct {
	begins  func(ctx context.Context) // called when an append begins; nil = none
	changes func()                    // called before each change of the disk; nil = none
}

func (w *watch) change() {
	if w.changes != nil {
		w.changes()
	}
}

// watchedDisk is the disk of a watched process.
type watchedDisk struct {
	backend.Appender
	watch *watch
}

func (d *watchedDisk) Append(ctx context.Context, key string, off int64, p []byte) (backend.Info, error) {
	if d.watch.begins != nil {
		d.watch.begins(ctx)
	}
	return d.Appender.Append(ctx, key, off, p)
}

// cancelled makes a call whose context is cancelled at moment number left of it. The moments are the start of an append
// and each change of the disk. The call continues when its request has seen the cancellation, so that equal runs are
// equal.
func (w *watch) cancelled(ctx context.Context, left int, call func(ctx context.Context) error) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var request context.Context
	w.changes = func() {
		if left--; left != -1 {
			return
		}
		cancel()
		if request != nil {
			<-request.Done()
		}
	}
	w.begins = func(ctx context.Context) {
		request = ctx
		w.changes()
	}
	defer func() { w.changes, w.begins = nil, nil }()
	return call(ctx)
}
