package operator_test

import (
	"fmt"
	"os"

	"github.com/coppice-go/coppice/interop"
	"github.com/coppice-go/coppice/interop/operator"
	"github.com/coppice-go/coppice/transcript"
)

// Operator writes fields in snake case and times in seconds.
func ExampleWrite() {
	entries := func(yield func(transcript.Draft, error) bool) {
		yield(transcript.Draft{Raw: []byte(`{"type":"label","id":"b","parentId":null,"timestamp":"2026-01-02T03:04:06.250Z","label":"here","targetId":"a"}`)}, nil)
	}
	if _, err := operator.Write(os.Stdout, interop.Header{ID: "s1", Cwd: "/home/me"}, entries, "b"); err != nil {
		fmt.Println(err)
	}
	// Output:
	// {"type":"session","version":3,"id":"s1","timestamp":0.0,"cwd":"/home/me"}
	// {"type":"label","id":"b","parent_id":null,"timestamp":1767323046.25,"label":"here","target_id":"a"}
}
