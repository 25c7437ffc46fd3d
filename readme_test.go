package coppice_test

import (
	"os"
	"strings"
	"testing"
)

// The program in the README is the Example that runs.
func TestReadmeExampleRuns(t *testing.T) {
	readme, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	example, err := os.ReadFile("example_test.go")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(readme), "```go\n")
	block, _, found := strings.Cut(rest, "```")
	if !found {
		t.Fatal("the README has no Go program")
	}
	for line := range strings.Lines(block) {
		if line = strings.TrimSpace(line); line != "" && !strings.Contains(string(example), line) {
			t.Errorf("the README has a line that the Example has not: %s", line)
		}
	}
	if n := strings.Count(block, "\n"); n > 25 {
		t.Errorf("the program has %d lines, 25 is enough", n)
	}
}
