package archtest

import (
	"go/ast"
	"go/token"
	"path"
	"slices"
	"strings"
)

// standardMethods implement interfaces of the standard library and of codecs: callers do not call them.
var standardMethods = []string{
	"Error", "Unwrap", "Is", "As", "String", "Format", "MarshalJSON", "UnmarshalJSON", "MarshalText", "UnmarshalText",
	"MarshalBinary", "UnmarshalBinary", "EncodeMsgpack", "DecodeMsgpack", "Read", "Write", "Close", "ReadAt", "Seek",
}

// public reports whether a folder holds a package for other modules, which go doc shows and Examples explain.
func public(dir string) bool {
	for part := range strings.SplitSeq(dir, "/") {
		if part == "internal" || part == "examples" || part == "cmd" || part == "backendtest" {
			return false
		}
	}
	return true
}

// checkDocumented finds exported functions, and exported methods of exported types, of public packages that no Example
// and no program under examples/ names. A method counts as named wherever a selector has its name: types are not known
// here.
func (m *Module) checkDocumented() []Finding {
	used := m.namedInExamples()
	var out []Finding
	for _, p := range m.packages {
		if !public(p.dir) {
			continue
		}
		for _, f := range p.files {
			if f.test {
				continue
			}
			for _, decl := range f.ast.Decls {
				fn, ok := decl.(*ast.FuncDecl)
				if !ok || !fn.Name.IsExported() {
					continue
				}
				name := fn.Name.Name
				typ := receiver(fn)
				switch {
				case fn.Recv == nil && used[p.dir+"."+name],
					fn.Recv != nil && (!token.IsExported(typ) || slices.Contains(standardMethods, name) || used[name]):
					continue
				}
				full := strings.TrimPrefix(typ+"."+name, ".")
				out = append(out, Finding{
					"example", placeOf(m.fset, fn.Pos()), full + " is in no Example and in no program under examples/",
				})
			}
		}
	}
	return out
}

// namedInExamples returns the names in Examples, in the helpers in the same example_test.go, and in the programs under
// examples/: functions as "folder.Name", and the name of every selector by itself.
func (m *Module) namedInExamples() map[string]bool {
	used := map[string]bool{}
	for _, p := range m.packages {
		program := strings.HasPrefix(p.dir, "examples/")
		for _, f := range p.files {
			imports := localNames(f.ast)
			whole := program && !f.test || path.Base(f.path) == "example_test.go"
			for _, decl := range f.ast.Decls {
				fn, ok := decl.(*ast.FuncDecl)
				if !ok || !whole && !(f.test && strings.HasPrefix(fn.Name.Name, "Example")) {
					continue
				}
				ast.Inspect(fn, func(n ast.Node) bool {
					s, ok := n.(*ast.SelectorExpr)
					if !ok {
						return true
					}
					used[s.Sel.Name] = true
					if id, ok := s.X.(*ast.Ident); ok {
						if dir, ok := imports[id.Name]; ok {
							used[dir+"."+s.Sel.Name] = true
						}
					}
					return true
				})
			}
		}
	}
	return used
}

// localNames returns the folders of this module that a file imports, by their names in the file. A package has the name
// of its folder, and the one of the root is coppice.
func localNames(f *ast.File) map[string]string {
	names := map[string]string{}
	for name, full := range importNames(f) {
		if dir, ours := strings.CutPrefix(full, ModulePath); ours {
			names[name] = strings.TrimPrefix(dir, "/")
		}
	}
	return names
}

// receiver returns the name of the receiver type of a method, "" for a function.
func receiver(fn *ast.FuncDecl) string {
	if fn.Recv == nil {
		return ""
	}
	typ := fn.Recv.List[0].Type
	for {
		switch t := typ.(type) {
		case *ast.StarExpr:
			typ = t.X
		case *ast.IndexExpr:
			typ = t.X
		case *ast.IndexListExpr:
			typ = t.X
		case *ast.Ident:
			return t.Name
		default:
			return ""
		}
	}
}

// checkAliases finds exported names of public packages that are aliases of a type of another package: go doc shows no
// fields of them.
func checkAliases(fset *token.FileSet, p *pkg) []Finding {
	if !public(p.dir) {
		return nil
	}
	var out []Finding
	for _, f := range p.files {
		if f.test {
			continue
		}
		for _, decl := range f.ast.Decls {
			gen, ok := decl.(*ast.GenDecl)
			if !ok {
				continue
			}
			for _, s := range gen.Specs {
				spec, ok := s.(*ast.TypeSpec)
				if !ok || !spec.Assign.IsValid() || !spec.Name.IsExported() || !foreign(spec.Type) {
					continue
				}
				out = append(out, Finding{
					"alias", placeOf(fset, spec.Pos()),
					spec.Name.Name + " is an alias of a type of another package: define it, or use that one",
				})
			}
		}
	}
	return out
}

// foreign reports whether a type is from another package, with or without arguments.
func foreign(typ ast.Expr) bool {
	switch t := typ.(type) {
	case *ast.SelectorExpr:
		return true
	case *ast.StarExpr:
		return foreign(t.X)
	case *ast.IndexExpr:
		return foreign(t.X)
	case *ast.IndexListExpr:
		return foreign(t.X)
	}
	return false
}
