package harness_test

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/coppice-go/coppice/interop"
	"github.com/coppice-go/coppice/interop/pi/harness"
)

// A transaction of the harness sets an entry and the tip of a lane; the entry keeps its id.
func ExampleReader() {
	file := `{"v":4,"kind":"header","id":"s1","storageVersion":1,"createdAt":1767225600000,"cwd":"/home/me"}
[{"kind":"entry","id":"a","parentId":null,"type":"message","message":{"role":"user","content":"hi","timestamp":1767225600000},"seq":1,"timestamp":1767225600000},{"kind":"value","op":"set","seq":2,"namespace":"pi.branch.tip","key":"main","value":"a"}]
`
	src := interop.Source{Name: "s1.jsonl", Open: func() (io.ReadCloser, error) {
		return io.NopCloser(strings.NewReader(file)), nil
	}}
	r := harness.NewReader(src, interop.Options{})
	defer r.Close()
	for d, err := r.Next(); !errors.Is(err, io.EOF); d, err = r.Next() {
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(string(d.Raw))
	}
	// Output:
	// {"type":"custom","id":"ph-1.1","parentId":null,"timestamp":"2026-01-01T00:00:00.000Z","customType":"pi-harness.header","data":{"v":4,"kind":"header","id":"s1","storageVersion":1,"createdAt":1767225600000,"cwd":"/home/me"}}
	// {"type":"message","id":"a","parentId":"ph-1.1","timestamp":"2026-01-01T00:00:00.000Z","message":{"role":"user","content":"hi","timestamp":1767225600000}}
}
