package testutil

import (
	"sync"
	"testing"
	"time"
)

// OK ends the test if there is an error.
func OK(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// Must takes the results of a call, and returns a function that ends the test if there is an error and else returns
// the value: testutil.Must(f())(t).
func Must[T any](v T, err error) func(t testing.TB) T {
	return func(t testing.TB) T {
		t.Helper()
		OK(t, err)
		return v
	}
}

// Clock returns a clock that begins at now and moves on by step with each call. It is safe for concurrent use.
func Clock(now time.Time, step time.Duration) func() time.Time {
	var mu sync.Mutex
	return func() time.Time {
		mu.Lock()
		defer mu.Unlock()
		now = now.Add(step)
		return now
	}
}
