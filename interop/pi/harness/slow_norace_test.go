//go:build !race

package harness

const slow = false
