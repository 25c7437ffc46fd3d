package coppice_test

import (
	"os"
	"strings"
	"testing"
)

// Every line of Go in the README is a line of an Example that runs.
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
		if line = spaced(line); line != "" && !strings.Contains(spaced(string(example)), line) {
			t.Errorf("the README has a line that no Example has: %s", line)
		}
	}
	if n := strings.Count(block, "\n"); n > 6 {
		t.Errorf("the program has %d lines, 6 is enough", n)
	}
}

// spaced returns text with each run of white space as one space: gofmt aligns the comments of the Example.
func spaced(text string) string { return strings.Join(strings.Fields(text), " ") }
