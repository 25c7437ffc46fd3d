package s3test

import "syscall"

// withParent makes the kernel end a child when this process ends.
func withParent() *syscall.SysProcAttr { return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} }
