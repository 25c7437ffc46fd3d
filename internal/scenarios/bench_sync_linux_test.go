package scenarios_test

import (
	"os"
	"syscall"
	"testing"
	"time"
)

func syncData(f *os.File) error { return syscall.Fdatasync(int(f.Fd())) }

// processorTime is what the process has used, of all its threads.
func processorTime(tb testing.TB) time.Duration {
	tb.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		tb.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
