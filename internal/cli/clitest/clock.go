package clitest

import (
	"time"

	"github.com/coppice-go/coppice/internal/testutil"
)

// NewClock returns the clock of a test. It is independent of the machine's and begins later than the times in the files
// of the tests. Each reading is a millisecond later than the one before, so that what happens later has a later time.
// Safe for concurrent use.
func NewClock() func() time.Time {
	return testutil.Clock(time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC), time.Millisecond)
}
