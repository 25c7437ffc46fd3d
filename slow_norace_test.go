//go:build !race

package coppice_test

const slow = false
