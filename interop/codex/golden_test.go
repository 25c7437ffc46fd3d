package codex

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/coppice-go/coppice/interop"
)

var update = flag.Bool("update", false, "write the golden files anew")

// TestGolden: what files become, to the byte: entries and diagnostics.
func TestGolden(t *testing.T) {
	names, err := filepath.Glob("testdata/*.jsonl")
	if err != nil || len(names) < 3 {
		t.Fatal(names, err)
	}
	for _, name := range names {
		t.Run(filepath.Base(name), func(t *testing.T) {
			data, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			r := reader(string(data))
			s := collect(t, r)
			var b strings.Builder
			fmt.Fprintf(&b, "%s\n", s.header.Raw)
			for _, e := range s.entries {
				fmt.Fprintf(&b, "%s\n", e.Raw)
			}
			for _, d := range r.Diagnostics() {
				fmt.Fprintf(&b, "line %d: %s: %s\n", d.Ordinal, d.Kind, d.Detail)
			}
			golden := strings.TrimSuffix(name, ".jsonl") + ".golden"
			if *update {
				if err := os.WriteFile(golden, []byte(b.String()), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(golden)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(strings.Split(string(want), "\n"), strings.Split(b.String(), "\n")); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func BenchmarkRead(b *testing.B) {
	words := strings.Repeat("The quick brown fox jumps over the lazy dog.\n\tif err != nil { return \"x\" }\n", 20)
	var text bytes.Buffer
	text.WriteString(meta)
	const turns = 2000
	for i := range turns {
		id := fmt.Sprint("c", i)
		text.WriteString(user("do it") + event(`{"type":"user_message","message":"do it"}`) + said(words[:400]) + event(fmt.Sprintf(`{"type":"agent_message","message":%q}`, words[:400])) +
			calls(id) + event(tokens) + output(id, words))
	}
	src := interop.Source{Name: "s", Open: func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(text.Bytes())), nil }}
	b.SetBytes(int64(text.Len()))
	b.ReportAllocs()
	for b.Loop() {
		r := NewReader(src, interop.Options{Now: now})
		n := 0
		for ; ; n++ {
			if _, err := r.Next(); errors.Is(err, io.EOF) {
				break
			} else if err != nil {
				b.Fatal(err)
			}
		}
		if n < 4*turns {
			b.Fatal(n)
		}
	}
}
