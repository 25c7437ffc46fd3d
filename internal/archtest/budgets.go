package archtest

import (
	"fmt"
	"go/ast"
	"go/token"
	"path"
	"regexp"
	"slices"
	"strings"
)

// The limits of taste. Lines are counted as they stand, comments included.
const (
	maxFileLines     = 500   // any file, tests too
	maxFunctionLines = 70    // from func to the closing brace; tests may be longer
	maxPackageLines  = 1_500 // without tests
	maxExported      = 25    // names of a package; methods do not count, see countExported
	maxMethods       = 32    // of coppice.Session: the 29 of its design and a few
)

// suites hold tests that others run, in files that do not end in _test.go. They count as tests.
var suites = []string{"backend/backendtest"}

// vague are names that say nothing of what a package is for.
var vague = []string{"util", "utils", "common", "types", "models", "helper", "helpers", "misc", "shared", "base"}

// unfinished marks work that was left. It is matched in comments only.
var unfinished = regexp.MustCompile(`\b(TO` + `DO|FIX` + `ME|XX` + `X|HA` + `CK)\b`)

func checkPackage(p *pkg) []Finding {
	var out []Finding
	lines, exported, methods := 0, 0, 0
	for _, f := range p.files {
		if f.test {
			continue
		}
		lines += f.lines
		exported += countExported(f.ast)
		methods += countMethods(f.ast, "Session")
	}
	over := func(rule string, limit, value int, what string) {
		if value > limit {
			out = append(out, Finding{rule, display(p.dir), fmt.Sprintf("%d %s, limit %d", value, what, limit)})
		}
	}
	if !slices.Contains(suites, p.dir) {
		over("package-length", maxPackageLines, lines, "lines without tests")
	}
	over("exported-names", maxExported, exported, "exported names")
	if p.dir == "" {
		over("session-methods", maxMethods, methods, "exported methods of Session")
	}
	if slices.Contains(vague, p.name) {
		out = append(out, Finding{"package-name", display(p.dir), p.name + " does not say what the package is for"})
	}
	return out
}

func checkFile(fset *token.FileSet, f *file) []Finding {
	var out []Finding
	if f.lines > maxFileLines {
		out = append(out, Finding{"file-length", f.path, fmt.Sprintf("%d lines, limit %d", f.lines, maxFileLines)})
	}
	for _, group := range f.ast.Comments {
		for _, c := range group.List {
			if mark := unfinished.FindString(c.Text); mark != "" {
				out = append(out, Finding{"unfinished", placeOf(fset, c.Pos()), "comment says " + mark})
			}
		}
	}
	if f.test || slices.Contains(suites, path.Dir(f.path)) {
		return out
	}
	for _, decl := range f.ast.Decls {
		fn, ok := decl.(*ast.FuncDecl)
		if !ok {
			continue
		}
		n := fset.Position(fn.End()).Line - fset.Position(fn.Pos()).Line + 1
		if n > maxFunctionLines {
			out = append(out, Finding{
				"function-length", placeOf(fset, fn.Pos()),
				fmt.Sprintf("%s has %d lines, limit %d", fn.Name.Name, n, maxFunctionLines),
			})
		}
	}
	return out
}

// countExported counts what a package offers by name: types, functions and variables. A const block
// counts as one, and so does a block of sentinel errors, which are constants in all but the language.
func countExported(f *ast.File) int {
	n := 0
	for _, decl := range f.Decls {
		switch d := decl.(type) {
		case *ast.FuncDecl:
			if d.Recv == nil && d.Name.IsExported() {
				n++
			}
		case *ast.GenDecl:
			names := exportedNames(d)
			if d.Tok == token.CONST || areSentinels(d) {
				names = min(names, 1)
			}
			n += names
		}
	}
	return n
}

// areSentinels reports whether a declaration is of error variables only, by their names.
func areSentinels(d *ast.GenDecl) bool {
	for _, spec := range d.Specs {
		s, ok := spec.(*ast.ValueSpec)
		if !ok {
			return false
		}
		for _, name := range s.Names {
			if !strings.HasPrefix(name.Name, "Err") {
				return false
			}
		}
	}
	return true
}

func exportedNames(d *ast.GenDecl) int {
	n := 0
	for _, spec := range d.Specs {
		switch s := spec.(type) {
		case *ast.TypeSpec:
			if s.Name.IsExported() {
				n++
			}
		case *ast.ValueSpec:
			for _, name := range s.Names {
				if name.IsExported() {
					n++
				}
			}
		}
	}
	return n
}

// countMethods counts the exported methods of a type.
func countMethods(f *ast.File, typ string) int {
	n := 0
	for _, decl := range f.Decls {
		fn, ok := decl.(*ast.FuncDecl)
		if !ok || fn.Recv == nil || !fn.Name.IsExported() {
			continue
		}
		recv := fn.Recv.List[0].Type
		if star, ok := recv.(*ast.StarExpr); ok {
			recv = star.X
		}
		if id, ok := recv.(*ast.Ident); ok && id.Name == typ {
			n++
		}
	}
	return n
}
