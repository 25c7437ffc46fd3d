//go:build !linux

package vfs

// Datasync is os.File.Sync: F_FULLFSYNC on darwin, FlushFileBuffers on Windows.
func (f osFile) Datasync() error { return f.Sync() }
