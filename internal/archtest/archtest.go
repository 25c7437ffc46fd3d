// Package archtest checks the structure of this module: which package may import which, and how large a file, a
// function and a package may be. Its own test fails when the tree breaks a rule, and names the place.
//
// A module is read with go/parser alone, so build tags hide nothing. Folders with a go.mod of their own, testdata,
// node_modules and hidden folders are left out.
//
// The import table (imports.go) is the only source of import rules.
package archtest

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path"
	"slices"
	"strings"
)

// ModulePath is the import path of the module to which the rules apply.
const ModulePath = "github.com/coppice-go/coppice"

// Finding is one broken rule.
type Finding struct {
	Rule  string // "import", "file-length", ...
	Place string // file, file:line or folder, relative to the module's root
	Text  string // the violation, with the limit and the value
}

func (f Finding) String() string { return fmt.Sprintf("%s: %s: %s", f.Place, f.Rule, f.Text) }

// Module is the parsed source of a module.
type Module struct {
	fset     *token.FileSet
	packages []*pkg // in order of their folders
}

type pkg struct {
	dir   string // slash-separated, "" = root
	name  string // of the first file that is not a test
	files []*file
}

type file struct {
	path  string
	test  bool
	lines int
	ast   *ast.File
}

// Load parses every Go file of the module whose root is fsys.
func Load(fsys fs.FS) (*Module, error) {
	m := &Module{fset: token.NewFileSet()}
	byDir := map[string]*pkg{}
	err := fs.WalkDir(fsys, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			return skipFolder(fsys, name)
		}
		if path.Ext(name) != ".go" {
			return nil
		}
		f, err := m.parse(fsys, name)
		if err != nil {
			return err
		}
		dir := strings.TrimPrefix(path.Dir(name), ".")
		p := byDir[dir]
		if p == nil {
			p = &pkg{dir: dir}
			byDir[dir] = p
			m.packages = append(m.packages, p)
		}
		p.files = append(p.files, f)
		if !f.test && p.name == "" {
			p.name = f.ast.Name.Name
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("load module: %w", err)
	}
	slices.SortFunc(m.packages, func(a, b *pkg) int { return strings.Compare(a.dir, b.dir) })
	return m, nil
}

func (m *Module) parse(fsys fs.FS, name string) (*file, error) {
	src, err := fs.ReadFile(fsys, name)
	if err != nil {
		return nil, err
	}
	tree, err := parser.ParseFile(m.fset, name, src, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	return &file{
		path:  name,
		test:  strings.HasSuffix(name, "_test.go"),
		lines: bytes.Count(src, []byte("\n")),
		ast:   tree,
	}, nil
}

func skipFolder(fsys fs.FS, dir string) error {
	if dir == "." {
		return nil
	}
	base := path.Base(dir)
	if base == "testdata" || base == "node_modules" || strings.HasPrefix(base, ".") || strings.HasPrefix(base, "_") {
		return fs.SkipDir
	}
	if _, err := fs.Stat(fsys, path.Join(dir, "go.mod")); err == nil {
		return fs.SkipDir
	}
	return nil
}

// Check applies every rule and returns the findings, in the order of the folders, rule on Examples last.
func (m *Module) Check() []Finding {
	var out []Finding
	for _, p := range m.packages {
		out = append(out, checkImports(m.fset, p)...)
		out = append(out, checkPackage(p)...)
		out = append(out, checkAliases(m.fset, p)...)
		for _, f := range p.files {
			out = append(out, checkFile(m.fset, f)...)
			out = append(out, checkMeasures(m.fset, f)...)
		}
	}
	return append(out, m.checkDocumented()...)
}

func placeOf(fset *token.FileSet, pos token.Pos) string {
	p := fset.Position(pos)
	return fmt.Sprintf("%s:%d", p.Filename, p.Line)
}
