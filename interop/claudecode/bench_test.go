package claudecode

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/coppice-go/coppice/interop"
)

// realistic makes a file with the mix of lines that real ones have: messages in pieces, progress, results of
// some kilobytes with what the tool gave beside them.
func realistic(turns int) []byte {
	var b bytes.Buffer
	words := func(n int) string {
		return strings.Repeat("The quick brown fox jumps over the lazy dog. \\n\\tif err != nil { return \\\"x\\\" }\\n", n)
	}
	uuid := func(n int) string { return fmt.Sprintf("00000000-0000-4000-8000-%012x", n) }
	env := `"isSidechain":false,"userType":"external","cwd":"/home/user/project","sessionId":"11111111-1111-4111-8111-111111111111","version":"2.0.14","gitBranch":"main"`
	stamp := `"timestamp":"2026-01-01T00:00:00.000Z"`
	parent := "null"
	n := 0
	line := func(format string, args ...any) {
		n++
		fmt.Fprintf(&b, `{"parentUuid":%s,%s,`, parent, env)
		fmt.Fprintf(&b, format, args...)
		fmt.Fprintf(&b, `,"uuid":"%s",%s}`+"\n", uuid(n), stamp)
		parent = `"` + uuid(n) + `"`
	}
	for i := range turns {
		line(`"type":"user","message":{"role":"user","content":"please do %d"}`, i)
		for k := range 5 {
			id := fmt.Sprintf("msg_%d_%d", i, k)
			usage := `"stop_reason":null,"stop_sequence":null,"usage":{"input_tokens":3,"cache_creation_input_tokens":10816,"cache_read_input_tokens":4734,"output_tokens":172}`
			line(`"type":"assistant","message":{"id":%q,"type":"message","role":"assistant","model":"claude-x","content":[{"type":"text","text":"%s"}],%s}`, id, words(7), usage)
			line(`"type":"assistant","message":{"id":%q,"type":"message","role":"assistant","model":"claude-x","content":[{"type":"tool_use","id":"toolu_%d_%d","name":"Edit","input":{"file_path":"/a/b.go","old_string":"%s","new_string":"%s"}}],%s}`, id, i, k, words(6), words(5), usage)
			line(`"type":"progress","data":{"type":"bash_progress","output":"%s"},"toolUseID":"toolu_%d_%d"`, words(6), i, k)
			line(`"type":"user","message":{"role":"user","content":[{"tool_use_id":"toolu_%d_%d","type":"tool_result","content":"%s"}]},"toolUseResult":{"stdout":"%s","stderr":"","interrupted":false}`, i, k, words(30), words(30))
		}
	}
	return b.Bytes()
}

func BenchmarkRead(b *testing.B) {
	data := realistic(800)
	src := interop.Source{Name: "s.jsonl", Open: func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(data)), nil }}
	b.SetBytes(int64(len(data)))
	b.ReportAllocs()
	for b.Loop() {
		r := NewReader(src, options())
		n := 0
		for {
			_, err := r.Next()
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				b.Fatal(err)
			}
			n++
		}
		if n < 800*16 {
			b.Fatal(n)
		}
	}
}
