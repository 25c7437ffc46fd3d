package testutil

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Samples returns the contents of the files testdata/*.jsonl.
func Samples(t testing.TB) (all [][]byte) {
	t.Helper()
	for _, name := range Must(filepath.Glob("testdata/*.jsonl"))(t) {
		all = append(all, Must(os.ReadFile(name))(t))
	}
	return all
}

// Goldens compares what at least so many files testdata/*.jsonl become with the golden files next to them.
func Goldens(t *testing.T, update bool, least int, become func(t *testing.T, data []byte) string) {
	t.Helper()
	names := Must(filepath.Glob("testdata/*.jsonl"))(t)
	if len(names) < least {
		t.Fatal(names)
	}
	for _, name := range names {
		t.Run(filepath.Base(name), func(t *testing.T) {
			got := become(t, Must(os.ReadFile(name))(t))
			Golden(t, update, strings.TrimSuffix(name, ".jsonl")+".golden", []byte(got))
		})
	}
}

// Golden compares got with a golden file, which it writes first if update is set, and returns what is in the file.
func Golden(t testing.TB, update bool, file string, got []byte) []byte {
	t.Helper()
	if update {
		OK(t, os.MkdirAll(filepath.Dir(file), 0o755))
		OK(t, os.WriteFile(file, got, 0o644))
	}
	want := Must(os.ReadFile(file))(t)
	if !bytes.Equal(got, want) {
		a, b := bytes.Split(got, []byte("\n")), bytes.Split(want, []byte("\n"))
		n := 0
		for n < min(len(a), len(b))-1 && bytes.Equal(a[n], b[n]) {
			n++
		}
		t.Errorf("%s differs in line %d; -update writes it\n got %.2000q\nwant %.2000q", file, n+1, a[n], b[n])
	}
	return want
}
