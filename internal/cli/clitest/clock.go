package clitest

import (
	"fmt"
	"os"
	"sync/atomic"
	"time"
)

// ShiftVariable names the environment variable that moves the time of all tests: a duration, such
// as 8760h.
const ShiftVariable = "COPPICE_TEST_SHIFT"

// epoch is the time at which tests begin. It is later than the times in their files.
var epoch = time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC)

// Clock is the time of a test. It is independent of the machine's clock: each reading is a
// millisecond later than the one before, so that what happens later has a later time. Safe for
// concurrent use.
type Clock struct{ readings atomic.Int64 }

// NewClock returns a clock at the time at which tests begin.
func NewClock() *Clock { return &Clock{} }

// Now returns the time.
func (c *Clock) Now() time.Time {
	return epoch.Add(shift() + time.Duration(c.readings.Add(1))*time.Millisecond)
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
