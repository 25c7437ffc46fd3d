//go:build !linux

package scenarios_test

import (
	"os"
	"testing"
	"time"
)

func syncData(f *os.File) error { return f.Sync() }

// processorTime is not available on this system: it returns the elapsed time.
func processorTime(testing.TB) time.Duration { return time.Since(started) }

var started = time.Now()
