package integration

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/coppice-go/coppice/backend"
	"github.com/coppice-go/coppice/integration/s3test"
	"github.com/coppice-go/coppice/internal/fault"
	"github.com/coppice-go/coppice/internal/proof"
	"github.com/coppice-go/coppice/internal/proof/linear"
)

// Histories of several hosts on one session of a real server, over a network that refuses, loses and delays, are
// linearizable.
func TestProofLinearS3(t *testing.T) {
	target := s3test.For(t)
	r := proof.Begin(t, "linear-s3")
	b := target.Open(t, nil)
	prefix := target.Prefix(t)
	for seed := range uint64(proof.Pick(t, 4, 16, 3000)) {
		clean := backend.WithPrefix(b, fmt.Sprintf("%s/linear-%d", strings.Trim(prefix, "/"), seed))
		f := fault.New(clean, seed, fault.Chaos([]float64{0.1, 0.3, 0.6}[seed%3])...)
		_, err := linear.Run(t.Context(), linear.Options{
			Clean: clean, Faulty: f, Deliver: func(ctx context.Context) { _ = f.Deliver(ctx) },
			Clients: 2 + int(seed%4), Ops: 40, Seed: seed,
		})
		r.Explored(1)
		if err != nil {
			r.Violation("seed %d: %v", seed, err)
		}
		if r.Full() {
			return
		}
	}
}
