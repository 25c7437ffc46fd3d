package testutil

import (
	"fmt"
	"os"
	"sync"
	"time"
)

// ShiftVariable names the environment variable that moves the time of all tests: a duration such as 8760h. No test may
// depend on when it runs. With one below zero some files that tests read are of the future.
const ShiftVariable = "COPPICE_TEST_SHIFT"

// Shifted returns a time at which a test begins, moved by COPPICE_TEST_SHIFT.
func Shifted(at time.Time) time.Time { return at.Add(shift()) }

// Clock returns a clock that begins at a time, moved by COPPICE_TEST_SHIFT, and moves on by step with each call. It is
// safe for concurrent use.
func Clock(at time.Time, step time.Duration) func() time.Time {
	var mu sync.Mutex
	at = Shifted(at)
	return func() time.Time {
		mu.Lock()
		defer mu.Unlock()
		at = at.Add(step)
		return at
	}
}

func shift() time.Duration {
	text := os.Getenv(ShiftVariable)
	if text == "" {
		return 0
	}
	d, err := time.ParseDuration(text)
	if err != nil {
		panic(fmt.Sprintf("%s: %v", ShiftVariable, err))
	}
	return d
}
