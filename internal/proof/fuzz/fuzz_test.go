// Package fuzz runs the fuzz targets of the module: every decoder, importer and reader of what others write.
// Their seeds are run by every `go test`; here the fuzzer itself goes on from them, with binaries that are
// built to tell it what it reached.
package fuzz

import (
	"bytes"
	"context"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/coppice-go/coppice/internal/proof"
)

const (
	root     = "../../.."
	executed = 3000             // inputs of a target at CI size
	long     = "60s"            // of a target at nightly size
	patience = 10 * time.Minute // for one step: a target that takes so long hangs
)

// first are the targets of CI size: whatever comes from a disk, a bucket or a file of somebody else's goes
// through one of them. COPPICE_FUZZ=all takes every one; those that build whole sessions for each input are
// among these.
var first = []string{
	"codec.FuzzDecodeSegment", "codec.FuzzUnmarshal", "checkpoint.FuzzParseRecord", "checkpoint.FuzzDecodeObjectBody",
	"internal/segment.FuzzScan", "internal/segment.FuzzRead", "internal/rawjson.FuzzValue",
}

// slow are targets that build a whole session for each input: fewer of them make the same time.
var slow = map[string]int{"internal/importer.FuzzImport": 600, "internal/journal.FuzzTail": 1500}

// target is a fuzz function of a package, by its folder below the root.
type target struct{ dir, name string }

func (g target) String() string { return g.dir + "." + g.name }

// targets finds all fuzz functions of the module.
func targets(t *testing.T) (out []target) {
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && path != root && (d.Name() == "testdata" || strings.HasPrefix(d.Name(), ".")):
			return fs.SkipDir
		case d.IsDir() && path != root && isModule(path):
			return fs.SkipDir
		case d.IsDir() || !strings.HasSuffix(path, "_test.go"):
			return nil
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		dir, err := filepath.Rel(root, filepath.Dir(path))
		for _, decl := range file.Decls {
			if f, ok := decl.(*ast.FuncDecl); ok && f.Recv == nil && strings.HasPrefix(f.Name.Name, "Fuzz") {
				out = append(out, target{filepath.ToSlash(dir), f.Name.Name})
			}
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	slices.SortFunc(out, func(a, b target) int { return strings.Compare(a.String(), b.String()) })
	return out
}

func isModule(dir string) bool {
	_, err := os.Stat(filepath.Join(dir, "go.mod"))
	return err == nil
}

// Every package that reads what it did not write has a target, and the list of the most important ones is of
// targets that there are.
func TestTargets(t *testing.T) {
	all := targets(t)
	for _, name := range first {
		if !slices.ContainsFunc(all, func(g target) bool { return g.String() == name }) {
			t.Errorf("%s is gone", name)
		}
	}
	for _, dir := range []string{
		".", "backend", "backend/s3", "checkpoint", "checkpoint/internal/canon", "codec", "export",
		"internal/blob", "internal/cli", "internal/importer", "internal/cli/term", "internal/journal", "internal/layout",
		"internal/rawjson", "internal/repair", "internal/segment",
		"interop/pi", "snapshot", "transcript",
	} {
		if !slices.ContainsFunc(all, func(g target) bool { return g.dir == dir }) {
			t.Errorf("%s has no target", dir)
		}
	}
	for _, g := range all {
		t.Log(g)
	}
}

// No target is brought down: no panic, no promise of the target broken, no input that takes for ever.
func TestProofFuzz(t *testing.T) {
	if proof.Asked(t) == proof.Quick {
		t.Skip("builds each package for the fuzzer: with COPPICE_PROOF=ci. The seeds are run by the packages' own tests")
	}
	r := proof.Begin(t, "fuzz")
	chosen := targets(t)
	if proof.Asked(t) == proof.CI && os.Getenv("COPPICE_FUZZ") != "all" {
		chosen = slices.DeleteFunc(chosen, func(g target) bool { return !slices.Contains(first, g.String()) })
	}
	byDir := map[string][]target{}
	for _, g := range chosen {
		byDir[g.dir] = append(byDir[g.dir], g)
	}
	todo := make(chan []target)
	var all sync.WaitGroup
	for range 2 {
		all.Go(func() {
			for group := range todo {
				fuzzPackage(t, r, group)
			}
		})
	}
	for _, group := range byDir {
		todo <- group
	}
	close(todo)
	all.Wait()
}

// fuzzPackage builds one package for the fuzzer, and runs the targets in it one after the other.
func fuzzPackage(t *testing.T, r *proof.Report, group []target) {
	dir := filepath.Join(root, group[0].dir)
	bin, err := filepath.Abs(filepath.Join(t.TempDir(), "fuzz.test"))
	if err != nil {
		r.Violation("%s: %v", dir, err)
		return
	}
	begun := time.Now()
	if out, err := run(t.Context(), root, "go", "test", "-vet=off", "-c", "-fuzz=.", "-o", bin, "./"+group[0].dir); err != nil {
		r.Violation("build %s: %v\n%s", dir, err, out)
		return
	}
	built := time.Since(begun)
	for _, g := range group {
		begun := time.Now()
		n, err := fuzz(t, bin, g)
		if r.Explored(n); err != nil {
			r.Violation("%v: %v", g, err)
		}
		t.Logf("%-45v %8d inputs in %.1f s, built in %.1f s", g, n, time.Since(begun).Seconds(), built.Seconds())
	}
}

var count = regexp.MustCompile(`execs: (\d+)`)

// fuzz runs one target, and counts the inputs. A failing input is kept below the package's testdata/fuzz,
// from where the package's own tests run it again.
func fuzz(t *testing.T, bin string, g target) (n int, err error) {
	inputs := executed
	if fewer, is := slow[g.String()]; is {
		inputs = fewer
	}
	much, cache := fmt.Sprintf("%dx", inputs), t.TempDir()
	if proof.Asked(t) == proof.Nightly {
		much = long
		if dir, err := os.UserCacheDir(); err == nil {
			cache = filepath.Join(dir, "coppice-fuzz", g.dir) // what one night reached the next one starts from
		}
	}
	// One worker: two targets run beside each other.
	out, err := run(t.Context(), filepath.Join(root, g.dir), bin, "-test.run=^$", "-test.fuzz=^"+g.name+"$", "-test.fuzztime="+much,
		"-test.parallel=1", "-test.fuzzcachedir="+cache, "-test.timeout="+patience.String(), "-test.fuzzminimizetime=10s")
	for _, m := range count.FindAllSubmatch(out, -1) {
		n, _ = strconv.Atoi(string(m[1]))
	}
	if err == nil && n == 0 {
		err = fmt.Errorf("no input was run")
	}
	if err != nil {
		return n, fmt.Errorf("%w\n%s", err, out)
	}
	return n, nil
}

// run runs a program and gives all that it says.
func run(ctx context.Context, dir, name string, args ...string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	c := exec.CommandContext(ctx, name, args...)
	c.Dir = dir
	c.WaitDelay = time.Minute // workers of the fuzzer end after it
	out, err := c.CombinedOutput()
	return bytes.TrimSpace(out), err
}
