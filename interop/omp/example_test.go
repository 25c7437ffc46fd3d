package omp_test

import (
	"fmt"
	"os"

	"github.com/coppice-go/coppice/interop"
	"github.com/coppice-go/coppice/interop/omp"
	"github.com/coppice-go/coppice/transcript"
)

// A session's title is in omp's header, and the model is one string.
func ExampleWrite() {
	entries := func(yield func(transcript.Draft, error) bool) {
		yield(transcript.Draft{Raw: []byte(`{"type":"model_change","id":"a","parentId":null,"timestamp":"2026-01-02T03:04:06.000Z","provider":"p","modelId":"m"}`)}, nil)
	}
	if _, err := omp.Write(os.Stdout, interop.Header{ID: "s1", Title: "First steps"}, entries, "a"); err != nil {
		fmt.Println(err)
	}
	// Output:
	// {"type":"session","version":3,"id":"s1","timestamp":"1970-01-01T00:00:00.000Z","cwd":"","title":"First steps","titleSource":"user"}
	// {"type":"model_change","id":"a","parentId":null,"timestamp":"2026-01-02T03:04:06.000Z","model":"p/m"}
}
