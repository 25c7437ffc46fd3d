package s3test

import "syscall"

// withParent has the kernel end a child when this process is gone.
func withParent() *syscall.SysProcAttr { return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} }
