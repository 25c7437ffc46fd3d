package archtest

import (
	"fmt"
	"go/ast"
	"go/token"
	"path"
	"strconv"
	"strings"
	"time"
)

// leastTimeout is the minimum of timeouts in tests: a timeout turns a hang into a failure, and must not expire on a
// busy machine.
const leastTimeout = 10 * time.Second

var (
	// neverCalled are functions that measure within a test, by import path and name. Benchmarks call B.ReportAllocs and
	// B.Loop.
	neverCalled = map[string]bool{"testing.AllocsPerRun": true, "testing.Benchmark": true}
	// measures are for benchmarks: files bench*_test.go, outside of functions that take a *testing.T.
	measures = map[string]bool{
		"time.Now": true, "time.Since": true, "time.Until": true,
		"runtime.ReadMemStats": true, "runtime/metrics.Read": true, "syscall.Getrusage": true,
	}
	// timeouts maps functions to the index of the duration among their arguments.
	timeouts = map[string]int{
		"time.After": 0, "time.AfterFunc": 0, "time.NewTimer": 0,
		"context.WithTimeout": 1, "context.WithTimeoutCause": 1,
	}
)

// unbound reports whether the rule on measurements does not apply to a folder. The suites of internal/proof run for a
// length of time; testutil has the two memory measurements that tests share.
func unbound(dir string) bool { return below(dir, "internal/proof") || dir == "internal/testutil" }

// checkMeasures finds tests that depend on the speed of the machine or on the allocator: calls of neverCalled, measures
// outside of benchmarks, and constant timeouts below leastTimeout.
func checkMeasures(fset *token.FileSet, f *file) []Finding {
	dir := strings.TrimPrefix(path.Dir(f.path), ".")
	if !f.test || unbound(dir) {
		return nil
	}
	imports := importNames(f.ast)
	benchmarks := strings.HasPrefix(path.Base(f.path), "bench")
	var out []Finding
	for _, decl := range f.ast.Decls {
		fn, _ := decl.(*ast.FuncDecl)
		free := benchmarks && !takesT(fn)
		ast.Inspect(decl, func(n ast.Node) bool {
			if call, ok := n.(*ast.CallExpr); ok {
				if d, name := shortTimeout(call, imports); name != "" {
					out = append(out, Finding{
						"measure", placeOf(fset, call.Pos()),
						fmt.Sprintf("%s of %s, at least %s in a test: a timeout is for hangs", name, d, leastTimeout),
					})
				}
			}
			sel, ok := n.(*ast.SelectorExpr)
			if !ok {
				return true
			}
			name := qualified(sel, imports)
			if neverCalled[name] || measures[name] && !free {
				out = append(out, Finding{
					"measure", placeOf(fset, sel.Pos()),
					name + " in a test: assert results, requests or bytes, and measure in a benchmark",
				})
			}
			return true
		})
	}
	return out
}

// shortTimeout returns the duration and the name of a call that is a timeout below leastTimeout; "" for any other.
func shortTimeout(call *ast.CallExpr, imports map[string]string) (d time.Duration, name string) {
	sel, ok := call.Fun.(*ast.SelectorExpr)
	if !ok {
		return 0, ""
	}
	name = qualified(sel, imports)
	i, ok := timeouts[name]
	if !ok || i >= len(call.Args) {
		return 0, ""
	}
	d, ok = duration(call.Args[i], imports)
	if !ok || d >= leastTimeout {
		return 0, ""
	}
	return d, name
}

// duration evaluates a literal duration: time.Second, 20*time.Millisecond or time.Minute*2. ok is false for anything
// else.
func duration(e ast.Expr, imports map[string]string) (d time.Duration, ok bool) {
	switch e := e.(type) {
	case *ast.SelectorExpr:
		d, ok = map[string]time.Duration{
			"time.Nanosecond": time.Nanosecond, "time.Microsecond": time.Microsecond,
			"time.Millisecond": time.Millisecond, "time.Second": time.Second, "time.Minute": time.Minute,
			"time.Hour": time.Hour,
		}[qualified(e, imports)]
		return d, ok
	case *ast.BasicLit:
		n, err := strconv.ParseInt(e.Value, 0, 64)
		return time.Duration(n), err == nil
	case *ast.BinaryExpr:
		x, okX := duration(e.X, imports)
		y, okY := duration(e.Y, imports)
		return x * y, e.Op == token.MUL && okX && okY
	}
	return 0, false
}

// importNames returns the import paths of a file by their names in it.
func importNames(f *ast.File) map[string]string {
	names := map[string]string{}
	for _, spec := range f.Imports {
		full, err := strconv.Unquote(spec.Path.Value)
		if err != nil {
			continue
		}
		name := path.Base(full)
		if spec.Name != nil {
			name = spec.Name.Name
		}
		names[name] = full
	}
	return names
}

// qualified returns "import/path.Name" of a selector on a package, "" for any other.
func qualified(sel *ast.SelectorExpr, imports map[string]string) string {
	id, ok := sel.X.(*ast.Ident)
	if !ok || imports[id.Name] == "" {
		return ""
	}
	return imports[id.Name] + "." + sel.Sel.Name
}

// takesT reports whether a function has a parameter of type *testing.T.
func takesT(fn *ast.FuncDecl) bool {
	if fn == nil {
		return false
	}
	for _, field := range fn.Type.Params.List {
		star, ok := field.Type.(*ast.StarExpr)
		if !ok {
			continue
		}
		if sel, ok := star.X.(*ast.SelectorExpr); ok && sel.Sel.Name == "T" {
			return true
		}
	}
	return false
}
