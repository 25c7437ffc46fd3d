// Package genkit keeps the sessions of genkit's flows in a coppice store: a session continues in another process, and
// every state that it had can be gone back to.
package genkit

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/firebase/genkit/go/core/x/session"

	"github.com/coppice-go/coppice"
	"github.com/coppice-go/coppice/examples/adapter"
)

// New returns the store of session.WithStore. A session of genkit is the state of a session here, whose title is its
// id. The caller closes the store.
func New[S any](store *coppice.Store) Store[S] { return Store[S]{adapter.Eino{Store: store}} }

// Store is a session.Store. It is safe for concurrent use.
type Store[S any] struct{ in adapter.Eino }

// Get returns the data of a session; nil = there is none.
func (s Store[S]) Get(ctx context.Context, id string) (*session.Data[S], error) {
	p, found, err := s.in.Get(ctx, id)
	if err != nil || !found {
		return nil, err
	}
	var d *session.Data[S]
	if err := json.Unmarshal(p, &d); err != nil {
		return nil, fmt.Errorf("get session %s: %w", id, err)
	}
	return d, nil
}

// Save replaces the data of a session. The last of several writers wins; what the others wrote stays in the log.
func (s Store[S]) Save(ctx context.Context, id string, d *session.Data[S]) error {
	p, err := json.Marshal(d)
	if err != nil {
		return fmt.Errorf("save session %s: not stored: %w", id, err)
	}
	return s.in.Set(ctx, id, p)
}
