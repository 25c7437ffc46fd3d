package testutil

import (
	"syscall"
	"time"
	"unsafe"
)

const threadClock = 3 // CLOCK_THREAD_CPUTIME_ID

// usedByThread returns the processor time that the calling thread has used; 0 if the system does not say.
func usedByThread() time.Duration {
	var at syscall.Timespec
	_, _, err := syscall.RawSyscall(syscall.SYS_CLOCK_GETTIME, threadClock, uintptr(unsafe.Pointer(&at)), 0)
	if err != 0 {
		return 0
	}
	return time.Duration(at.Nano())
}
