//go:build !linux

package coppice_test

import (
	"os"
	"testing"
	"time"
)

func syncData(f *os.File) error { return f.Sync() }

// processorTime is not told on this system: it is the time that went by.
func processorTime(testing.TB) time.Duration { return time.Since(started) }

var started = time.Now()
