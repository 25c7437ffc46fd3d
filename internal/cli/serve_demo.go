package cli

import (
	"context"
	"math/rand/v2"
	"time"

	"github.com/coppice-go/coppice/internal/cli/demostore"
)

// demoPace is the time between two turns of the agent that works in the demo.
const demoPace = 5 * time.Second

// liveDemo runs an agent in the demo, until it has committed its turns or the context is done.
func (s *service) liveDemo(ctx context.Context) error {
	return demostore.Live{
		Store: s.st.Store, Session: demostore.Gauge, Turns: s.o.demoTurns, Every: demoPace,
		Rand: rand.NewChaCha8([32]byte{1}), Now: s.c.now, After: s.c.after,
	}.Run(ctx)
}
