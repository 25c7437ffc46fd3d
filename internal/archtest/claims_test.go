package archtest

import (
	"io/fs"
	"os"
	"path"
	"regexp"
	"testing"
)

var (
	named    = regexp.MustCompile("`((?:Test|Benchmark|Fuzz)[A-Z][A-Za-z0-9_]*)`")
	declared = regexp.MustCompile(`(?m)^func ((?:Test|Benchmark|Fuzz)[A-Z][A-Za-z0-9_]*)\(`)
)

// A test that a document names as evidence exists, in whichever module.
func TestNamedTestsExist(t *testing.T) {
	fsys := os.DirFS(root)
	tests, claims := map[string]bool{}, map[string]string{}
	err := fs.WalkDir(fsys, ".", func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (d.Name() == "node_modules" || d.Name() == ".git"):
			return fs.SkipDir
		case d.IsDir(), path.Ext(name) != ".go" && path.Ext(name) != ".md":
			return nil
		}
		text, err := fs.ReadFile(fsys, name)
		for _, m := range declared.FindAllSubmatch(text, -1) {
			tests[string(m[1])] = true
		}
		if path.Ext(name) == ".md" {
			for _, m := range named.FindAllSubmatch(text, -1) {
				claims[string(m[1])] = name
			}
		}
		return err
	})
	if err != nil || len(claims) == 0 {
		t.Fatalf("%d tests are named: %v", len(claims), err)
	}
	for test, name := range claims {
		if !tests[test] {
			t.Errorf("%s names %s, which does not exist", name, test)
		}
	}
}
