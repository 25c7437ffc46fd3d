package hostile

import "syscall"

// mknod makes a character device; only root can.
func mknod(path string, major, minor int) error {
	return syscall.Mknod(path, syscall.S_IFCHR|0o600, major<<8|minor)
}
