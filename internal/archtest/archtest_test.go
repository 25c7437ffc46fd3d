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
	testutil.SkipSizes(t)
	m, err := Load(os.DirFS(root))
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range m.Check() {
		t.Error(f)
	}
}

// source is a package whose import is the only thing of interest.
func source(name, imports string) string {
	return fmt.Sprintf("// Package %s is a fixture.\npackage %s\n\nimport _ %q\n", name, name, imports)
}

func lines(n int) string { return strings.Repeat("\n", n) }

// TestRulesCatch shows each rule a tree that breaks it and one that just does not.
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
	function := func(n int) string { return "package codec\n\nfunc f() {" + lines(n-1) + "}\n" }

	tests := []struct {
		name, file, src string
		want            string // rule that fires; "" = none
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
		{"unfinished in a test", "codec/a_test.go", "package codec\n\n// FIX" + "ME\n", "unfinished"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := rulesBroken(t, fstest.MapFS{tt.file: {Data: []byte(tt.src)}})
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
