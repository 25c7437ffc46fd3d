package demostore

import (
	"math/rand/v2"
	"testing"

	"github.com/coppice-go/coppice/backend/memory"
)

// BenchmarkBuild is what `coppice serve --demo` does before it listens.
func BenchmarkBuild(b *testing.B) {
	for b.Loop() {
		if _, err := Build(b.Context(), memory.New(), rand.NewChaCha8([32]byte{1})); err != nil {
			b.Fatal(err)
		}
	}
}
