package testutil

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
)

// RealFiles names files as real programs wrote them.
func RealFiles() []string {
	return []string{
		"fixtures/pi/before-compaction.jsonl", "fixtures/pi/large-session.jsonl",
		"fixtures/pi/prompt-cache-replay-session.v1.jsonl",
		"fixtures/claude-code/edge_cases.jsonl", "fixtures/claude-code/representative_messages.jsonl",
		"fixtures/claude-code/fe5e1c67-53e7-4862-81ae-d0e013e3270b.jsonl",
	}
}

// SharedFile reads a file of the folder that COPPICE_SHARED names, else of a folder "shared" next to the repository. It
// skips the test if COPPICE_SHARED is not set and there is no such file.
func SharedFile(t testing.TB, name string) []byte {
	t.Helper()
	root := os.Getenv("COPPICE_SHARED")
	named := root != ""
	for dir, _ := filepath.Abs("."); root == "" && filepath.Dir(dir) != dir; dir = filepath.Dir(dir) {
		if _, err := os.Stat(filepath.Join(dir, "..", "shared", "vectors")); err == nil {
			root = filepath.Join(dir, "..", "shared")
		}
	}
	data, err := os.ReadFile(filepath.Join(root, name))
	if !named && (root == "" || errors.Is(err, fs.ErrNotExist)) {
		t.Skipf("shared file %s is not there (set COPPICE_SHARED)", name)
	}
	OK(t, err)
	return data
}
