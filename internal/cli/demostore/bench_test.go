package demostore

import (
	"testing"

	"github.com/coppice-go/coppice/backend/memory"
)

// BenchmarkBuild is what `coppice serve --demo` does before it listens.
func BenchmarkBuild(b *testing.B) {
	for b.Loop() {
		if err := Build(b.Context(), memory.New()); err != nil {
			b.Fatal(err)
		}
	}
}
