package cli

import (
	"context"
	"math/rand/v2"
	"time"

	"github.com/coppice-go/coppice/internal/cli/demostore"
)

// demoPace is the time between two turns of the agent that works in the demo.
const demoPace = 5 * time.Second

// buildDemo fills the store with the demo, the same in each run: a link into it, or a picture of it, stays right. It
// returns the session that liveDemo continues.
func (s *service) buildDemo(ctx context.Context) (gauge string, err error) {
	content, err := demostore.Build(ctx, s.st.b, rand.NewChaCha8([32]byte{}))
	return content.Gauge, err
}

// liveDemo runs an agent in the demo, until it has committed its turns or the context is done.
func (s *service) liveDemo(ctx context.Context) error {
	return demostore.Live{
		Store: s.st.Store, Session: s.gauge, Turns: s.o.demoTurns, Every: demoPace,
		Rand: rand.NewChaCha8([32]byte{1}), Now: s.c.now, After: s.c.after,
	}.Run(ctx)
}
