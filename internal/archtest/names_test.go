package archtest

import (
	"go/ast"
	"io/fs"
	"os"
	"path"
	"regexp"
	"strings"
	"testing"
)

var (
	quoted     = regexp.MustCompile("`([^`\n]+)`")
	filePath   = regexp.MustCompile(`^[\w./-]+\.(go|tsx?|md)$`)
	identifier = regexp.MustCompile(`^(?:\w+\.)?\*?([A-Za-z]\w*)$`)
	exported   = regexp.MustCompile("`(\\w+)\\.(?:[A-Z]\\w*\\.)?([A-Z]\\w*)")
	webNames   = regexp.MustCompile(`(?m)(?:function|class|interface|const|readonly) (\w+)|^  (?:async )?(\w+)\(`)
)

// The walks of docs/architecture.md name files, functions, types and fields that exist.
func TestArchitectureNamesWhatExists(t *testing.T) {
	fsys := os.DirFS(root)
	page, err := fs.ReadFile(fsys, "docs/architecture.md")
	if err != nil {
		t.Fatal(err)
	}
	_, walks, _ := strings.Cut(string(page), "\n## A commit\n")
	walks, _, ok := strings.Cut(walks, "\n## Where does ")
	if !ok {
		t.Fatal("docs/architecture.md has no walks")
	}
	names := declaredNames(t, fsys)
	for _, m := range quoted.FindAllStringSubmatch(walks, -1) {
		name := strings.TrimPrefix(m[1], "*")
		if filePath.MatchString(name) {
			if _, err := fs.Stat(fsys, name); err != nil {
				t.Errorf("%s is not a file", name)
			}
			continue
		}
		if _, err := fs.Stat(fsys, name); err == nil {
			continue // a folder
		}
		if id := identifier.FindStringSubmatch(name); id != nil && !names[id[1]] {
			t.Errorf("%s is not declared", name)
		}
	}
}

// Pages name exported identifiers, such as `manager.Pick`, that exist. Records of decisions may name earlier ones.
func TestPagesNameWhatIsExported(t *testing.T) {
	fsys := os.DirFS(root)
	names := declaredNames(t, fsys)
	m, err := Load(fsys)
	if err != nil {
		t.Fatal(err)
	}
	packages := map[string]bool{}
	for _, p := range m.packages {
		packages[p.name] = packages[p.name] || public(p.dir)
	}
	pages, err := fs.Glob(fsys, "docs/*.md")
	if err != nil || len(pages) == 0 {
		t.Fatalf("%d pages, %v", len(pages), err)
	}
	for _, name := range append(pages, "README.md", "CONTRIBUTING.md") {
		page, err := fs.ReadFile(fsys, name)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range exported.FindAllStringSubmatch(string(page), -1) {
			if packages[m[1]] && !names[m[1]+"."+m[2]] {
				t.Errorf("%s names %s.%s, which is not declared", name, m[1], m[2])
			}
		}
	}
}

// declaredNames returns the names of functions, types, fields, parameters and constants in the module, alone and after
// the name of their package, and those of functions, classes and members in web.
func declaredNames(t *testing.T, fsys fs.FS) map[string]bool {
	t.Helper()
	m, err := Load(fsys)
	if err != nil {
		t.Fatal(err)
	}
	// An object of a session, and two codes of the API.
	names := map[string]bool{"checkpoint_latest": true, "conflict": true, "fenced": true}
	for _, p := range m.packages {
		for _, f := range p.files {
			add := func(ids ...*ast.Ident) {
				for _, id := range ids {
					names[id.Name], names[p.name+"."+id.Name] = true, true
				}
			}
			ast.Inspect(f.ast, func(n ast.Node) bool {
				switch n := n.(type) {
				case *ast.FuncDecl:
					add(n.Name)
				case *ast.TypeSpec:
					add(n.Name)
				case *ast.ValueSpec:
					add(n.Names...)
				case *ast.Field:
					add(n.Names...)
				}
				return true
			})
		}
	}
	err = fs.WalkDir(fsys, "web", func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && d.Name() == "node_modules":
			return fs.SkipDir
		case path.Ext(name) != ".ts" && path.Ext(name) != ".tsx":
			return nil
		}
		text, err := fs.ReadFile(fsys, name)
		for _, w := range webNames.FindAllSubmatch(text, -1) {
			names[string(w[1])+string(w[2])] = true
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return names
}
