//go:build !unix

package hostile

var diskRows []row
