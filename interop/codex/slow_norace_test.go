//go:build !race

package codex

const slow = false
