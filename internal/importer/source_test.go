package importer

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/coppice-go/coppice/interop"
)

// What lies around a file is found by names that lead nowhere else.
func TestBesideAFile(t *testing.T) {
	root := t.TempDir()
	for _, name := range []string{
		"sessions/2026/01/02/s.jsonl", "sessions/2026/01/02/b.jsonl", "sessions/2026/01/02/a.txt", "sessions/2026/01/02/s/subagents/z.jsonl", "sessions/2026/01/02/s/subagents/y.jsonl",
		"sessions/2026/01/03/other.jsonl", "sessions/2026/blobs/aa", "secret", "session_index.jsonl", "archived_sessions/old.jsonl",
	} {
		p := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(p), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(p, []byte(name), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	day := filepath.Join(root, "sessions", "2026", "01", "02")
	if err := os.Symlink(filepath.Join(root, "secret"), filepath.Join(day, "link.jsonl")); err != nil {
		t.Log("no links here:", err)
	}
	src := FromFile(filepath.Join(day, "s.jsonl"))
	for dir, want := range map[string][]string{
		".":                   {"a.txt", "b.jsonl", "s.jsonl"},
		"s/subagents":         {"s/subagents/y.jsonl", "s/subagents/z.jsonl"},
		"s":                   nil, // folders are no files
		"../../../2026/01/03": {"../../../2026/01/03/other.jsonl"},

		"../../../../archived_sessions": {"../../../../archived_sessions/old.jsonl"},
	} {
		got, err := src.List(dir)
		if err != nil {
			t.Errorf("%s: %v", dir, err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: %s", dir, diff)
		}
		for _, name := range got {
			f, err := src.Beside(name)
			if err != nil {
				t.Errorf("%s is listed: %v", name, err)
				continue
			}
			if text, err := io.ReadAll(f); err != nil || f.Close() != nil || filepath.Base(string(text)) != filepath.Base(name) {
				t.Errorf("%s has %q, %v", name, text, err)
			}
		}
	}
	opens(t, src, "../../../../session_index.jsonl")
	archived := FromFile(filepath.Join(root, "archived_sessions", "old.jsonl"))
	opens(t, archived, "../session_index.jsonl")
	if names, err := archived.List("../sessions/2026/01/03"); err != nil || len(names) != 1 {
		t.Errorf("from among the archived ones: %q, %v", names, err)
	} else {
		opens(t, archived, names[0])
	}
	for _, dir := range []string{"gone", "..", "/", "../..", root, "s/../..", "../../../2026/01/03/..", "../../../../..", "../../../..", "../../../../archived_sessions/..", "../archived_sessions", ""} {
		if names, err := src.List(dir); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%q lists %q, %v", dir, names, err)
		}
	}
	for _, name := range []string{"gone", "../../../../archived_sessions/../secret", "../../../session_index.jsonl", "../../../../archived_sessions", "../../../../secret", filepath.Join(root, "secret"), "../b.jsonl", "../../../2026/01/03/../../../../secret"} {
		if f, err := src.Beside(name); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%q opens %v, %v", name, f, err)
		}
	}
}

// opens wants a name to lead to the file of that name.
func opens(t *testing.T, src interop.Source, name string) {
	t.Helper()
	f, err := src.Beside(name)
	if err != nil {
		t.Error(err)
		return
	}
	if text, err := io.ReadAll(f); err != nil || f.Close() != nil || filepath.Base(string(text)) != filepath.Base(name) {
		t.Errorf("%s has %q, %v", name, text, err)
	}
}

// A folder of very many files yields a bounded number of names.
func TestAFolderOfManyFiles(t *testing.T) {
	dir := t.TempDir()
	for i := range maxListed + 10 {
		f, err := os.Create(filepath.Join(dir, fmt.Sprintf("%05d", i)))
		if err != nil {
			t.Fatal(err)
		}
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if names, err := FromFile(filepath.Join(dir, "s.jsonl")).List("."); err != nil || len(names) != maxListed {
		t.Errorf("%d names, %v", len(names), err)
	}
}
