// Package eino stores the checkpoints of eino's graphs and agents in a coppice store. An interrupted run can continue
// in another process, and every version of a checkpoint can be restored.
package eino

import (
	"context"

	"github.com/cloudwego/eino/compose"

	"github.com/coppice-go/coppice"
	"github.com/coppice-go/coppice/examples/adapter"
)

// New returns a checkpoint store for compose.WithCheckPointStore. A checkpoint is stored as the state of a session
// whose title is the id of the checkpoint. The caller closes store.
func New(store *coppice.Store) Store { return Store{adapter.Eino{Store: store}} }

// Store is a compose.CheckPointStore with an additional method Delete. It is safe for concurrent use.
type Store struct{ in adapter.Eino }

var _ compose.CheckPointStore = Store{}

// Get returns a checkpoint, and false if none is stored under the id.
func (s Store) Get(ctx context.Context, id string) ([]byte, bool, error) { return s.in.Get(ctx, id) }

// Set stores a checkpoint. If several writers set the same id, the last one wins; the earlier values stay in the log of
// the session.
func (s Store) Set(ctx context.Context, id string, p []byte) error { return s.in.Set(ctx, id, p) }

// Delete removes a checkpoint: Get returns false. Its earlier versions stay until the session is deleted from the
// store.
func (s Store) Delete(ctx context.Context, id string) error { return s.in.Delete(ctx, id) }
