package archtest

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/coppice-go/coppice/internal/testutil"
)

// The Makefile finds the packages that start goroutines by a pattern. It has to match each file in which the syntax
// tree has one: a package without a match is tested without the race detector.
func TestRaceDetectorSeesGoroutines(t *testing.T) {
	testutil.SkipLong(t)
	const root = "../.."
	makefile, err := os.ReadFile(filepath.Join(root, "Makefile"))
	if err != nil {
		t.Fatal(err)
	}
	m := regexp.MustCompile(`(?m)^GOROUTINES = (.*)$`).FindSubmatch(makefile)
	if m == nil {
		t.Fatal("the Makefile has no pattern GOROUTINES")
	}
	pattern, started := regexp.MustCompile(`(?m)`+string(m[1])), 0
	err = filepath.WalkDir(root, func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && slices.Contains([]string{".git", "integration", "testdata", "tools"}, d.Name()):
			return filepath.SkipDir
		case d.IsDir() || !strings.HasSuffix(name, ".go"):
			return nil
		}
		text, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		f, err := parser.ParseFile(token.NewFileSet(), name, text, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		if !startsGoroutines(f) {
			return nil
		}
		started++
		if !pattern.Match(text) {
			t.Errorf("%s starts goroutines, and the Makefile does not see it", name)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if started < 10 {
		t.Errorf("%d files start goroutines: the test does not see them", started)
	}
}

// startsGoroutines reports whether a file has a go statement, or a call of a method that is one.
func startsGoroutines(f *ast.File) bool {
	found := false
	ast.Inspect(f, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.GoStmt:
			found = true
		case *ast.CallExpr:
			sel, ok := n.Fun.(*ast.SelectorExpr)
			found = found || ok && (sel.Sel.Name == "Go" || sel.Sel.Name == "RunParallel")
		case *ast.ImportSpec:
			found = found || strings.HasSuffix(n.Path.Value, `/internal/parallel"`) ||
				strings.HasSuffix(n.Path.Value, `/backend/backendtest"`)
		}
		return !found
	})
	return found
}
