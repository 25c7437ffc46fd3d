package coppice

import (
	"context"
	"time"
)

// SetSleep replaces how a store waits: between tries, and between two looks of Watch.
func SetSleep(s *Store, f func(ctx context.Context) error) {
	s.sleep = func(ctx context.Context, _ time.Duration) error { return f(ctx) }
}

// Inline makes the handles of a store do within a commit what they else do beside it: what they write does not depend
// on how far a goroutine has come.
func Inline(s *Store) { s.spawn = func(job func()) { job() } }
