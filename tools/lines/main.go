// Lines compares the lines of Go, TypeScript and Python of each folder, without and with tests, with those of a
// revision; HEAD unless it is named:
//
//	go -C tools run ./lines [-all] [REVISION]
//
// Folders that did not change are left out unless with -all. Generated, vendored and test data files do not count.
// After them come figures of the core: its lines without tests, the names that the root package exports, without
// methods, and the fields of journal.Journal.
package main

import (
	"archive/tar"
	"bytes"
	"cmp"
	"errors"
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"maps"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"text/tabwriter"
)

var (
	source    = regexp.MustCompile(`\.(go|ts|tsx|mts|py)$`)
	none      = regexp.MustCompile(`(^|/)(testdata|node_modules|vendor|dist)/|\.d\.ts$`)
	test      = regexp.MustCompile(`_test\.go$|\.(test|spec)\.m?tsx?$|(^|/)(test_[^/]*|conftest)\.py$|(^|/)tests?/`)
	generated = regexp.MustCompile(`(?m)^(//|#) Code generated .* DO NOT EDIT\.$`)
)

// When lines are counted, and which.
const (
	before, now = 0, 1
	code, tests = 0, 1
)

// tree is the lines of each folder, by when and which, and figures of the core by when.
type tree struct {
	lines           map[string]*[2][2]int
	exported, field [2]int
}

// core are the folders in which a commit is made.
var core = []string{
	".", "internal/session", "internal/journal", "internal/journal/state", "internal/journal/store",
	"internal/repair",
}

func main() {
	all := flag.Bool("all", false, "print folders that did not change too")
	flag.Parse()
	if err := run(cmp.Or(flag.Arg(0), "HEAD"), *all, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "lines:", err)
		os.Exit(1)
	}
}

func run(revision string, all bool, w io.Writer) error {
	top, err := git("rev-parse", "--show-toplevel")
	root, t := strings.TrimSpace(string(top)), &tree{lines: map[string]*[2][2]int{}}
	if err != nil {
		return err
	}
	names, err := git("-C", root, "ls-files", "-z", "--cached", "--others", "--exclude-standard")
	if err != nil {
		return err
	}
	for name := range strings.SplitSeq(string(names), "\x00") {
		if p, err := os.ReadFile(filepath.Join(root, name)); err == nil { // a deleted one has no lines now
			t.add(name, p, now)
		}
	}
	archive, err := git("-C", root, "archive", "--format=tar", revision)
	if err != nil {
		return err
	}
	for r := tar.NewReader(bytes.NewReader(archive)); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return t.print(w, all)
		}
		var p []byte
		if err == nil {
			p, err = io.ReadAll(r)
		}
		if err != nil {
			return err
		}
		t.add(h.Name, p, before)
	}
}

func git(args ...string) ([]byte, error) {
	cmd := exec.Command("git", args...)
	cmd.Stderr = os.Stderr
	return cmd.Output()
}

func (t *tree) add(name string, p []byte, when int) {
	if !source.MatchString(name) || none.MatchString(name) || generated.Match(p) {
		return
	}
	which, n := code, bytes.Count(p, []byte("\n"))
	if test.MatchString(name) {
		which = tests
	}
	for _, folder := range []string{path.Dir(name), "~ total"} {
		if t.lines[folder] == nil {
			t.lines[folder] = &[2][2]int{}
		}
		t.lines[folder][when][which] += n
	}
	if dir := path.Dir(name); which == code && path.Ext(name) == ".go" && (dir == "." || dir == "internal/journal") {
		t.names(dir, p, when)
	}
}

// names counts what a file declares.
func (t *tree) names(dir string, p []byte, when int) {
	f, err := parser.ParseFile(token.NewFileSet(), "", p, parser.SkipObjectResolution)
	if err != nil {
		return
	}
	count := func(id *ast.Ident) {
		if dir == "." && id.IsExported() {
			t.exported[when]++
		}
	}
	for _, d := range f.Decls {
		if d, is := d.(*ast.FuncDecl); is && d.Recv == nil {
			count(d.Name)
		}
		g, is := d.(*ast.GenDecl)
		for i := 0; is && i < len(g.Specs); i++ {
			switch s := g.Specs[i].(type) {
			case *ast.ValueSpec:
				for _, id := range s.Names {
					count(id)
				}
			case *ast.TypeSpec:
				count(s.Name)
				if st, ok := s.Type.(*ast.StructType); ok && dir != "." && s.Name.Name == "Journal" {
					t.field[when] += st.Fields.NumFields()
				}
			}
		}
	}
}

func (t *tree) print(w io.Writer, all bool) error {
	out := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(out, "before\tnow\tchange\ttests before\tnow\tchange\t  folder")
	for _, folder := range slices.Sorted(maps.Keys(t.lines)) {
		if c := t.lines[folder]; all || folder == "~ total" || c[before] != c[now] {
			fmt.Fprintf(out, "%d\t%d\t%+d\t%d\t%d\t%+d\t  %s\n", c[before][code], c[now][code],
				c[now][code]-c[before][code], c[before][tests], c[now][tests], c[now][tests]-c[before][tests], folder)
		}
	}
	var sum [2]int
	for _, folder := range core {
		if c := t.lines[folder]; c != nil {
			sum[before], sum[now] = sum[before]+c[before][code], sum[now]+c[now][code]
		}
	}
	err := out.Flush()
	fmt.Fprintf(w, "\ncore: %d lines, now %d; exported names of the root: %d, now %d; fields of Journal: %d, now %d\n",
		sum[before], sum[now], t.exported[before], t.exported[now], t.field[before], t.field[now])
	return err
}
