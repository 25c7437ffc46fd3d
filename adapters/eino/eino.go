// Package eino keeps the checkpoints of eino's graphs and agents in a coppice store: a run that was interrupted
// continues in another process, and every version of a checkpoint can be gone back to.
package eino

import (
	"context"

	"github.com/cloudwego/eino/compose"

	"github.com/coppice-go/coppice"
	"github.com/coppice-go/coppice/examples/adapter"
)

// New returns the checkpoint store of compose.WithCheckPointStore. A checkpoint is the state of a session, whose title
// is the id of the checkpoint. The caller closes the store.
func New(store *coppice.Store) Store { return Store{adapter.Eino{Store: store}} }

// Store is a compose.CheckPointStore, and has a Delete. It is safe for concurrent use.
type Store struct{ in adapter.Eino }

var _ compose.CheckPointStore = Store{}

// Get returns a checkpoint; false = there is none.
func (s Store) Get(ctx context.Context, id string) ([]byte, bool, error) { return s.in.Get(ctx, id) }

// Set replaces a checkpoint. The last of several writers wins; what the others wrote stays in the log of the session.
func (s Store) Set(ctx context.Context, id string, p []byte) error { return s.in.Set(ctx, id, p) }

// Delete makes Get find nothing. The versions stay until the session is deleted from the store.
func (s Store) Delete(ctx context.Context, id string) error { return s.in.Delete(ctx, id) }
