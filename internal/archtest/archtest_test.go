package archtest

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/coppice-go/coppice/internal/testutil"
)

const root = "../.."

func TestModuleKeepsTheRules(t *testing.T) {
	testutil.SkipLong(t)
	m, err := Load(os.DirFS(root))
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range m.Check() {
		t.Error(f)
	}
}

// TestTableNamesFolders checks that each row of the import table, and each of its patterns, names a folder with Go files.
func TestTableNamesFolders(t *testing.T) {
	testutil.SkipLong(t)
	m, err := Load(os.DirFS(root))
	if err != nil {
		t.Fatal(err)
	}
	exists := func(pattern string) bool {
		return slices.ContainsFunc(m.packages, func(p *pkg) bool { return covers(pattern, p.dir) })
	}
	for _, row := range table {
		for _, pattern := range append([]string{row.dir}, row.ours...) {
			if !exists(pattern) {
				t.Errorf("row %q: no package in %q", row.dir, pattern)
			}
		}
	}
}

// source returns a package of which only the imports matter.
func source(name, imports string) string {
	return fmt.Sprintf("// Package %s is a fixture.\npackage %s\n\nimport _ %q\n", name, name, imports)
}

func lines(n int) string { return strings.Repeat("\n", n) }

// TestRulesCatch runs each rule on a tree that breaks it and on one that just does not.
func TestRulesCatch(t *testing.T) {
	ours := func(dir string) string { return ModulePath + "/" + dir }
	methods := func(n int) string {
		var b strings.Builder
		b.WriteString("package coppice\ntype Session struct{}\nfunc (s Session) quiet() {}\n")
		for i := range n {
			fmt.Fprintf(&b, "func (s *Session) M%d() {}\n", i)
		}
		return b.String()
	}
	named := "package main\n\nfunc main() {\n" // so that the rule on Examples finds nothing in the rows on methods
	for i := range maxMethods + 1 {
		named += fmt.Sprintf("\tx.M%d()\n", i)
	}
	named += "}\n"
	function := func(n int) string { return "package codec\n\nfunc f() {" + lines(n-1) + "}\n" }

	measuring := func(imports, signature, body string) string {
		return "package codec\n\nimport (" + imports + ")\n\nfunc " + signature + " { " + body + " }\n"
	}

	tests := []struct {
		name, file, src string
		want            string // violated rule; "" = none
	}{
		{"layer below", "transcript/a.go", source("transcript", ours("codec")), ""},
		{"layer above", "codec/a.go", source("codec", ours("transcript")), "import"},
		{"facade from below", "snapshot/a.go", source("snapshot", ModulePath), "import"},
		{"facade from a command", "cmd/coppice/a.go", source("main", ModulePath), ""},
		{"driver on the contract", "backend/local/a.go", source("local", ours("backend")), ""},
		{"driver on a driver", "backend/s3/a.go", source("s3", ours("backend/local")), "import"},
		{"driver on a codec", "backend/memory/a.go", source("memory", ours("codec")), "import"},
		{"contract on a driver", "backend/a.go", source("backend", ours("backend/local")), "import"},
		{"facade on a driver", "a.go", source("coppice", ours("backend/local")), "import"},
		{"facade on the journal", "a.go", source("coppice", ours("internal/journal")), ""},
		{"journal on the facade", "internal/journal/a.go", source("journal", ModulePath), "import"},
		{"example on internals", "examples/x/a.go", source("main", ours("internal/journal")), "import"},
		{"interop on the store", "interop/omp/a.go", source("omp", ours("backend")), "import"},
		{"interop on a neighbour", "interop/omp/a.go", source("omp", ours("interop/pi")), ""},
		{"foreign module allowed", "codec/a.go", source("codec", zstd+"/zstd"), ""},
		{"foreign module elsewhere", "entry/a.go", source("entry", zstd+"/zstd"), "import"},
		{"foreign module with a like name", "codec/a.go", source("codec", zstd+"ion"), "import"},
		{"standard library", "codec/a.go", source("codec", "encoding/json"), ""},
		{"test beside another layer", "codec/a_test.go", source("codec", ours("transcript")), ""},
		{"test with a test library", "codec/a_test.go", source("codec", "pgregory.net/rapid"), ""},
		{"test library in the code", "codec/a.go", source("codec", "pgregory.net/rapid"), "import"},
		{"test with an unknown library", "codec/a_test.go", source("codec", "example.com/x"), "import"},
		{"part of a layer", "codec/internal/part/a.go", source("part", "strings"), ""},
		{"layer on its part", "codec/a.go", source("codec", ours("codec/internal/part")), ""},
		{"part on its layer's module", "codec/internal/part/a.go", source("part", zstd+"/zstd"), ""},
		{"part on another layer", "codec/internal/part/a.go", source("part", ours("transcript")), "import"},
		{"the local driver on its file system", "backend/local/a.go", source("local", ours("internal/vfs")), ""},
		{"another driver on it", "backend/memory/a.go", source("memory", ours("internal/vfs")), "import"},
		{"folder without a layer", "attic/a.go", "package attic\n", "import"},

		{"file at its limit", "codec/a.go", "package codec\n" + lines(maxFileLines-1), ""},
		{"file over it", "codec/a.go", "package codec\n" + lines(maxFileLines), "file-length"},
		{"test file over it", "codec/a_test.go", "package codec\n" + lines(maxFileLines), "file-length"},
		{"function at its limit", "codec/a.go", function(maxFunctionLines), ""},
		{"function over it", "codec/a.go", function(maxFunctionLines + 1), "function-length"},
		{"function of a test", "codec/a_test.go", function(maxFunctionLines + 1), ""},
		{"function of a suite", "backend/backendtest/a.go", "package backendtest\n" + function(maxFunctionLines + 1)[14:], ""},
		{"methods at their limit", "a.go", methods(maxMethods), ""},
		{"methods over it", "a.go", methods(maxMethods + 1), "session-methods"},
		{"vague name", "codec/a.go", "package util\n", "package-name"},
		{"unfinished", "codec/a.go", "package codec\n\n// TO" + "DO: later\n", "unfinished"},
		{"unfinished in a string", "codec/a.go", "package codec\n\nconst s = `TO" + "DO`\n", ""},
		{"alias of another package's type", "codec/a.go", "package codec\n\ntype T = other.T\n", "alias"},
		{"alias with arguments", "codec/a.go", "package codec\n\ntype T = other.T[int]\n", "alias"},
		{"alias within a package", "codec/a.go", "package codec\n\ntype U struct{}\n\ntype T = U\n", ""},
		{"alias that is not exported", "codec/a.go", "package codec\n\ntype t = other.T\n", ""},
		{"alias in an internal package", "internal/rows/a.go", "package rows\n\ntype T = other.T\n", ""},
		{"a type of its own", "codec/a.go", "package codec\n\ntype T other.T\n", ""},
		{"function without an Example", "interop/a.go", "package interop\n\nfunc F() {}\n", "example"},
		{"function of a command", "cmd/coppice/a.go", "package main\n\nfunc F() {}\n", ""},
		{"allocations counted", "codec/bench_test.go", measuring(`"testing"`, "f(*testing.B)", "testing.AllocsPerRun(1, g)"), "measure"},
		{"benchmark in a test", "codec/a_test.go", measuring(`"testing"`, "f()", "testing.Benchmark(g)"), "measure"},
		{"clock in a test", "codec/a_test.go", measuring(`"time"`, "f()", "g(time.Since)"), "measure"},
		{"clock by another name", "codec/a_test.go", measuring(`c "time"`, "f()", "c.Now()"), "measure"},
		{"clock in a benchmark", "codec/bench_test.go", measuring(`"testing"; "time"`, "f(b *testing.B)", "time.Now()"), ""},
		{"clock in a test beside benchmarks", "codec/bench_test.go", measuring(`"testing"; "time"`, "TestF(t *testing.T)", "time.Now()"), "measure"},
		{"clock in a suite of proof", "internal/proof/sim/a_test.go", measuring(`"time"`, "f()", "time.Now()"), ""},
		{"a method of that name", "codec/a_test.go", measuring(`"time"`, "f()", "clock.Now()"), ""},
		{"memory in a test", "codec/a_test.go", measuring(`"runtime"`, "f()", "runtime.ReadMemStats(nil)"), "measure"},
		{"short timeout", "codec/a_test.go", measuring(`"time"`, "f()", "<-time.After(20*time.Millisecond)"), "measure"},
		{"short context", "codec/a_test.go", measuring(`"context"; "time"`, "f()", "context.WithTimeout(ctx, time.Second)"), "measure"},
		{"bound on a hang", "codec/a_test.go", measuring(`"time"`, "f()", "<-time.After(time.Minute)"), ""},
		{"unfinished in a test", "codec/a_test.go", "package codec\n\n// FIX" + "ME\n", "unfinished"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := rulesBroken(t, fstest.MapFS{
				tt.file: {Data: []byte(tt.src)}, "examples/named/a.go": {Data: []byte(named)},
			})
			var want []string
			if tt.want != "" {
				want = []string{tt.want}
			}
			if !slices.Equal(got, want) {
				t.Errorf("rules broken: %v, want %v", got, want)
			}
		})
	}
}

// TestExamplesRule runs the rule on Examples with functions and methods that are named somewhere, and some that are
// not.
func TestExamplesRule(t *testing.T) {
	ours := func(dir string) string { return fmt.Sprintf("import %q\n", ModulePath+"/"+dir) }
	code := "package held\n\ntype T struct{}\n\nfunc F() {}\nfunc (t *T) M() {}\nfunc (T) Error() string { return \"\" }\n" +
		"func f() {}\nfunc (T) m() {}\ntype u struct{}\nfunc (u) N() {}\n"
	example := func(name, body string) string {
		return "package held_test\n" + ours("interop/held") + "func " + name + "() { " + body + " }\n"
	}
	const at = "interop/held/a.go"
	tests := []struct {
		name string
		tree map[string]string
		want int // findings
	}{
		{"named in no Example", map[string]string{at: code}, 2},
		{"in an Example", map[string]string{
			at: code, "interop/held/a_test.go": example("ExampleF", "held.F(); x.M()"),
		}, 0},
		{"in an Example of another package", map[string]string{
			at: code, "codec/a_test.go": example("ExampleF", "held.F(); x.M()"),
		}, 0},
		{"in a test that is no Example", map[string]string{
			at: code, "interop/held/a_test.go": example("TestF", "held.F(); x.M()"),
		}, 2},
		{"another package's function of that name", map[string]string{
			at: code, "interop/held/a_test.go": example("ExampleF", "other.F(); x.M()"),
		}, 1},
		{"in a program", map[string]string{
			at: code, "examples/x/main.go": "package main\n" + strings.Replace(example("main", "h.F(); x.M()"),
				"package held_test\nimport ", "import h ", 1),
		}, 0},
		{"in a test of a program", map[string]string{
			at: code, "examples/x/main_test.go": example("TestMain", "held.F(); x.M()"),
		}, 2},
		{"of an internal package", map[string]string{"interop/internal/held/a.go": code}, 0},
		{"of a conformance suite", map[string]string{"backend/backendtest/a.go": code}, 0},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			tree := fstest.MapFS{}
			for name, src := range tt.tree {
				tree[name] = &fstest.MapFile{Data: []byte(src)}
			}
			rules := rulesBroken(t, tree)
			got := 0
			for _, r := range rules {
				if r == "example" {
					got++
				}
			}
			if got != tt.want {
				t.Errorf("%d findings on Examples, want %d: %v", got, tt.want, rules)
			}
		})
	}
}

func TestOtherModulesAndFixturesAreLeftAlone(t *testing.T) {
	bad := &fstest.MapFile{Data: []byte("package util\n")}
	tree := fstest.MapFS{
		"codec/testdata/a.go":      bad,
		".hidden/a.go":             bad,
		"integration/go.mod":       {Data: []byte("module x\n")},
		"integration/deep/in/a.go": bad,
	}
	if got := rulesBroken(t, tree); len(got) > 0 {
		t.Errorf("rules broken: %v", got)
	}
}

func TestLoadReportsWhatDoesNotParse(t *testing.T) {
	if _, err := Load(fstest.MapFS{"codec/a.go": {Data: []byte("package\n")}}); err == nil {
		t.Error("no error for a file that does not parse")
	}
}

func rulesBroken(t *testing.T, tree fstest.MapFS) []string {
	t.Helper()
	m, err := Load(tree)
	if err != nil {
		t.Fatal(err)
	}
	var rules []string
	for _, f := range m.Check() {
		rules = append(rules, f.Rule)
	}
	return rules
}
