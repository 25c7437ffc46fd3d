//go:build !race

package gc_test

const slow = false
