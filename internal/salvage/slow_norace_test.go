//go:build !race

package salvage_test

const slow = false
