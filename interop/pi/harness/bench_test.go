package harness

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
)

// benchFile returns a session of a coding agent with the given size and form: questions, calls, results of a few KB,
// and between them the harness's records of its work.
func benchFile(old bool, size int) []byte {
	var out bytes.Buffer
	out.WriteString(headerOf(old) + "\n")
	result := strings.Repeat(`func main() {\n\tfmt.Println(\"hello, world\")\n}\n`, 60)
	usage := `{"input":1,"output":2,"cacheRead":0,"cacheWrite":0,"totalTokens":3,"cost":{"input":0,"output":0,"cacheRead":0,"cacheWrite":0,"total":0}}`
	messages := []string{
		`{"role":"user","content":[{"type":"text","text":"go on"}],"timestamp":1767225600000}`,
		`{"role":"assistant","content":[{"type":"thinking","thinking":"hm"},{"type":"toolCall","id":"c","name":"read","arguments":{"path":"a.go"}}],"api":"a","provider":"p","model":"m","usage":` + usage + `,"stopReason":"toolUse","timestamp":1767225600000}`,
		`{"role":"toolResult","toolCallId":"c","toolName":"read","content":[{"type":"text","text":"` + result + `"}],"isError":false,"timestamp":1767225600000}`,
		`{"role":"assistant","content":[{"type":"text","text":"` + result + `"}],"api":"a","provider":"p","model":"m","usage":` + usage + `,"stopReason":"stop","timestamp":1767225600000}`,
	}
	parent, seq := "null", 0
	for i := 0; out.Len() < size; i++ {
		id := fmt.Sprintf("01941f29-7c00-7000-8000-%012x", i)
		message := messages[i%len(messages)]
		if old {
			seq++
			fmt.Fprintf(&out, `{"kind":"entry","lane":"main","id":%q,"type":"message","message":%s,"parentId":%s,"seq":%d,"timestamp":1767225600000}`+"\n", id, message, parent, seq)
		} else {
			fmt.Fprintf(&out, `[{"kind":"entry","id":%q,"parentId":%s,"type":"message","message":%s,"seq":%d,"timestamp":1767225600000},{"kind":"value","op":"set","seq":%d,"namespace":"pi.branch.tip","key":"main","value":%q},{"kind":"value","op":"set","seq":%d,"namespace":"pi.op.state","key":"o","value":{"at":"checkpoint","control":{"status":"running"}}}]`+"\n",
				id, parent, message, seq+1, seq+2, id, seq+3)
			seq += 3
		}
		parent = fmt.Sprintf("%q", id)
	}
	return out.Bytes()
}

// BenchmarkRead measures the reader alone, in bytes of the file a second.
func BenchmarkRead(b *testing.B) {
	for _, old := range []bool{false, true} {
		data := benchFile(old, 32<<20)
		b.Run(map[bool]string{false: "transactions", true: "lanes"}[old], func(b *testing.B) {
			b.SetBytes(int64(len(data)))
			for b.Loop() {
				r := NewReader(source(data), options())
				var err error
				for err == nil {
					_, err = r.Next()
				}
				if !errors.Is(err, io.EOF) || r.Close() != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
