package testutil

import (
	"runtime"
	"runtime/debug"
	"testing"
	"time"
)

const (
	growth = 10 // how much larger the larger input is
	loose  = 40 // how many times the work it may be: a quadratic walk takes 100 times as much
)

// Linear fails the test if the work on an input ten times as large as n takes far more than ten times as much: a
// quadratic walk. prepare makes the input and returns the work on it. What is compared is the processor time of one
// thread, the least of three runs without a collection, so that neither the speed of the machine nor what runs
// beside the test matters. Where a system does not say what a thread used, the work is done and not compared.
func Linear(t testing.TB, what string, n int, prepare func(n int) (work func())) {
	t.Helper()
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	small, large := threadTime(prepare(n)), threadTime(prepare(growth*n))
	if large > loose*small {
		t.Errorf("%s: %v for %d, %v for %d", what, small, n, large, growth*n)
	}
}

func threadTime(work func()) time.Duration {
	least := time.Duration(-1)
	for range 3 {
		runtime.GC()
		defer debug.SetGCPercent(debug.SetGCPercent(-1))
		before := usedByThread()
		work()
		if used := usedByThread() - before; least < 0 || used < least {
			least = used
		}
	}
	return least
}
