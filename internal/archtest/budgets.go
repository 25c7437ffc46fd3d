package archtest

import (
	"fmt"
	"go/ast"
	"go/token"
	"path"
	"regexp"
	"slices"
)

// Size limits. Lines are counted with comments.
const (
	maxFileLines     = 800 // any file, tests too
	maxFunctionLines = 70  // from func to the closing brace; tests may be longer
	maxMethods       = 46  // of coppice.Session
)

// suites contain tests for use by other packages, in files that do not end in _test.go. They count as tests.
var suites = []string{"backend/backendtest", "internal/sessiontest"}

// vague are names that do not describe a package.
var vague = []string{"util", "utils", "common", "types", "models", "helper", "helpers", "misc", "shared", "base"}

// unfinished matches marks of unfinished work, in comments only.
var unfinished = regexp.MustCompile(`\b(TO` + `DO|FIX` + `ME|XX` + `X|HA` + `CK)\b`)

func checkPackage(p *pkg) []Finding {
	var out []Finding
	methods := 0
	for _, f := range p.files {
		if f.test {
			continue
		}
		methods += countMethods(f.ast, "Session")
	}
	if p.dir == "" && methods > maxMethods {
		out = append(out, Finding{
			"session-methods", display(p.dir),
			fmt.Sprintf("%d exported methods of Session, limit %d", methods, maxMethods),
		})
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
