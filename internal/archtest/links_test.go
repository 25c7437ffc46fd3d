package archtest

import (
	"os"
	"testing"
	"testing/fstest"
)

func TestLinksLeadSomewhere(t *testing.T) {
	found, err := CheckLinks(os.DirFS(root))
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range found {
		t.Error(f)
	}
}

func TestDeadLinksAreFound(t *testing.T) {
	tests := []struct {
		name, text string
		want       int
	}{
		{"there", "see [b](b.md) and [the folder](../docs)", 0},
		{"part of a page", "see [b](b.md#part) and [above](#above)", 0},
		{"elsewhere", "see [go](https://go.dev/doc)", 0},
		{"not there", "see [c](c.md) and [d](../d.md#x)", 2},
		{"in code", "```\n[c](c.md)\n```\n    [c](c.md)\n", 0},
		{"after code", "```\nx\n```\n[c](c.md)\n", 1},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			found, err := CheckLinks(fstest.MapFS{"docs/a.md": {Data: []byte(tt.text)}, "docs/b.md": {}})
			if err != nil {
				t.Fatal(err)
			}
			if len(found) != tt.want {
				t.Errorf("found %v, want %d", found, tt.want)
			}
		})
	}
}
