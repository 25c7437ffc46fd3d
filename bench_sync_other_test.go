//go:build !linux

package coppice_test

import "os"

func syncData(f *os.File) error { return f.Sync() }
