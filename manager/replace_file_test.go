package manager

import (
	"os"
	"path/filepath"
	"testing"
)

// A file is replaced, and its folder is created; a failure leaves no temporary file.
func TestReplaceFile(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "a", "b")
	name := filepath.Join(dir, "f.json")
	for _, text := range []string{"a longer one", "short"} {
		if err := replaceFile(name, []byte(text)); err != nil {
			t.Fatal(err)
		}
		if raw, err := os.ReadFile(name); err != nil || string(raw) != text {
			t.Errorf("%q, %v: want %q", raw, err, text)
		}
	}
	if err := os.MkdirAll(filepath.Join(dir, "taken", "x"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := replaceFile(filepath.Join(dir, "taken"), []byte("x")); err == nil {
		t.Error("a folder was replaced")
	}
	list, err := os.ReadDir(dir)
	if err != nil || len(list) != 2 {
		t.Errorf("%v, %v: want the file and the folder", list, err)
	}
}
