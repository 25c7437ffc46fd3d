package formats

import (
	"errors"
	"testing"

	"github.com/coppice-go/coppice/interop"
)

// FuzzWrite: whatever a reader makes of the bytes, every writer makes a file of it that its program loads.
func FuzzWrite(f *testing.F) {
	for _, from := range written {
		f.Add([]byte(lf(everyType(from, true)...)))
		f.Add([]byte(lf(everyType(from, false)...)))
	}
	f.Add([]byte(lf(headers[interop.Pi][0], `{"type":"message","id":"a","parentId":"a","message":{"role":"tool","content":[{"type":"tool_result"},"x"]}}`)))
	for _, data := range harnessFiles {
		f.Add([]byte(data))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		s, err := tryRead("", source("x", data))
		if err != nil {
			if !errors.Is(err, interop.ErrNotSession) {
				t.Fatal(err)
			}
			return
		}
		for _, to := range written {
			text, _ := write(t, to, s, s.last())
			if back := read(t, to, []byte(text)); len(back.entries) < len(s.entries) {
				t.Fatalf("as %s: %d entries, there were %d", to, len(back.entries), len(s.entries))
			}
		}
	})
}
