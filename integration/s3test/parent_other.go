//go:build !linux

package s3test

import "syscall"

func withParent() *syscall.SysProcAttr { return nil }
