package harness_test

import (
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/coppice-go/coppice/interop"
	"github.com/coppice-go/coppice/interop/pi/harness"
	"github.com/coppice-go/coppice/transcript"
)

// A transaction of the harness sets an entry and the tip of a lane; the entry keeps its id.
func ExampleReader() {
	file := `{"v":4,"kind":"header","id":"s1","storageVersion":1,"createdAt":1767225600000,"cwd":"/home/me"}
[{"kind":"entry","id":"a","parentId":null,"type":"message","message":{"role":"user","content":"hi","timestamp":1767225600000},"seq":1,"timestamp":1767225600000},{"kind":"value","op":"set","seq":2,"namespace":"pi.branch.tip","key":"main","value":"a"}]
`
	src := interop.Bytes("s1.jsonl", file)
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

// A file of the harness continues: the added entries are a transaction after its last line.
func ExampleReadEnd() {
	file := `{"v":4,"kind":"header","id":"s1","storageVersion":1,"createdAt":1767225600000,"cwd":"/home/me"}
[{"kind":"entry","id":"a","parentId":null,"type":"message","message":{"role":"user","content":"hi","timestamp":1767225600000},"seq":1,"timestamp":1767225600000},{"kind":"value","op":"set","seq":2,"namespace":"pi.branch.tip","key":"main","value":"a"}]
`
	src := interop.Bytes("s1.jsonl", file)
	fmt.Println("detected:", harness.Detect([]byte(file)))
	r := harness.NewReader(src, interop.Options{})
	defer r.Close()
	var entries []transcript.Draft
	for d, err := r.Next(); !errors.Is(err, io.EOF); d, err = r.Next() {
		if err != nil {
			fmt.Println(err)
			return
		}
		entries = append(entries, d)
	}
	fmt.Println("bad lines:", r.BadLines(), "- the original is kept:", !r.Verbatim())
	known := len(entries)
	entries = append(entries, transcript.Draft{Raw: []byte(
		`{"type":"message","id":"b","parentId":"a","timestamp":"2026-01-01T00:00:09.000Z","message":{"role":"user","content":"are you there?"}}`)})

	end, err := harness.ReadEnd(src)
	if err != nil {
		fmt.Println(err)
		return
	}
	all := transcript.Drafts(entries...)
	losses, err := end.Append(os.Stdout, known, all, "b")
	fmt.Println(losses, err)
	// Output:
	// detected: true
	// bad lines: 0 - the original is kept: true
	// [{"kind":"entry","id":"b","parentId":"a","type":"message","message":{"role":"user","timestamp":1767225609000,"content":"are you there?"},"seq":3,"timestamp":1767225609000},{"kind":"value","op":"set","seq":4,"namespace":"pi.branch.tip","key":"main","value":"b"}]
	// map[messages that lack what the format needs, or are in another provider's shape: rewritten:1] <nil>
}
