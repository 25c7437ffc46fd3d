package formats

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/coppice-go/coppice/interop"
)

// benchFile returns a session of a coding agent with the given size: calls, results of a few KB, thinking, prose.
func benchFile(f interop.Format, size int) []byte {
	var out bytes.Buffer
	fmt.Fprintln(&out, headers[f][0])
	result := strings.Repeat(`func main() {\n\tfmt.Println(\"hello, world\")\n}\n`, 40)
	_, messages := shapeOf(f)
	parent := "null"
	for i := 0; out.Len() < size; i++ {
		m := messages[i%len(messages)]
		m = strings.Replace(m, `"result"`, `"`+result+`"`, 1)
		m = strings.Replace(m, `"done"`, `"`+result+`"`, 1)
		id := fmt.Sprintf("%08x", i)
		fmt.Fprintln(&out, oneLine(f, schema{"message", []string{"message=" + m}}, turns{}, id, parent, `"x"`, i))
		parent = fmt.Sprintf("%q", id)
	}
	return out.Bytes()
}

// BenchmarkRead measures the readers alone, in bytes of the file a second.
func BenchmarkRead(b *testing.B) {
	for _, f := range written {
		data := benchFile(f, 32<<20)
		b.Run(string(f), func(b *testing.B) {
			b.SetBytes(int64(len(data)))
			for b.Loop() {
				r, err := Open(source("x", data), f, options())
				if err != nil {
					b.Fatal(err)
				}
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

// BenchmarkWrite measures the writers, from pi's lines.
func BenchmarkWrite(b *testing.B) {
	data := benchFile(interop.Pi, 32<<20)
	s := readB(b, data)
	for _, f := range written {
		b.Run(string(f), func(b *testing.B) {
			b.SetBytes(int64(len(data)))
			for b.Loop() {
				if _, err := Write(io.Discard, f, s.header, s.seq(), s.last()); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func readB(b *testing.B, data []byte) session { return read(b, interop.Pi, data) }
