package claudecode

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "write the golden files anew")

// TestGolden: what files become, to the byte: entries, children, diagnostics, and the file written again.
func TestGolden(t *testing.T) {
	names, err := filepath.Glob("testdata/*.jsonl")
	if err != nil || len(names) < 5 {
		t.Fatal(names, err)
	}
	for _, name := range names {
		t.Run(filepath.Base(name), func(t *testing.T) {
			data, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			s, r := read(t, string(data))
			var b strings.Builder
			show := func(what string, s session) {
				fmt.Fprintf(&b, "%s %s\n", what, s.header.Raw)
				for _, e := range s.entries {
					fmt.Fprintf(&b, "%s\n", e.Raw)
				}
			}
			show("session", s)
			for _, c := range children(t, r) {
				show("child", c)
			}
			for _, d := range r.Diagnostics() {
				fmt.Fprintf(&b, "line %d: %s: %s\n", d.Ordinal, d.Kind, d.Detail)
			}
			b.WriteString("written\n")
			losses, err := Write(&b, s.header, drafts(&s))
			if err != nil {
				t.Fatal(err)
			}
			fmt.Fprintf(&b, "losses %v\n", losses)
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
