//go:build !race

package local_test

const slow = false
