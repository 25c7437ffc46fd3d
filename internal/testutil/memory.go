package testutil

import "runtime"

// Allocated returns how many bytes of the heap f allocates, in use or not. Tests compare it only with a bound on what a
// hostile input may take, at least twice the usual: the exact number depends on the compiler and on pools.
func Allocated(f func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

// Live returns the bytes of the heap that are in use after two collections: a sync.Pool is empty after the second. The
// same bounds apply.
func Live() uint64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}
