//go:build !race

package formats

const slow = false
