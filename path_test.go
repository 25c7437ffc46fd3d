package coppice_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/coppice-go/coppice/internal/testutil"
)

// pathMax bounds the files of pathPackages that one commit passes through. It only goes down.
const pathMax = 20

var pathPackages = []string{
	"github.com/coppice-go/coppice",
	"github.com/coppice-go/coppice/internal/journal",
}

// One commit in an open session on a local disk passes through few files of this package and the journal, so
// that it can be read as a whole. The counters are those of testdata/path, which commits once.
func TestPathOfACommit(t *testing.T) {
	testutil.SkipLong(t) // with other flags the whole module is compiled once more
	if testing.Short() {
		t.Skip("builds a program")
	}
	dir := t.TempDir()
	program, cover := filepath.Join(dir, "path"), "-coverpkg="+strings.Join(pathPackages, ",")
	cover += ",github.com/coppice-go/coppice/testdata/path" // without main there are no counters
	goTool(t, "build", "-cover", "-covermode=atomic", cover, "-o", program, "./testdata/path")
	run := exec.Command(program, dir)
	run.Env = append(os.Environ(), "GOCOVERDIR="+t.TempDir()) // what the program leaves at its end is of no interest
	if out, err := run.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	profile := filepath.Join(dir, "profile")
	goTool(t, "tool", "covdata", "textfmt", "-i="+dir, "-o="+profile)
	text := string(must(os.ReadFile(profile))(t))
	var files []string
	for line := range strings.Lines(text) {
		file, block, _ := strings.Cut(line, ":")
		ran := strings.HasSuffix(file, ".go") && !strings.HasSuffix(strings.TrimSpace(block), " 0")
		if ran && !strings.Contains(file, "testdata") {
			files = append(files, strings.TrimPrefix(file, "github.com/coppice-go/coppice/"))
		}
	}
	files = slices.Compact(slices.Sorted(slices.Values(files)))
	for _, want := range []string{"commit.go", "internal/journal/request.go"} {
		if !slices.Contains(files, want) {
			t.Errorf("%s is not on the path: the profile is not of a commit", want)
		}
	}
	if len(files) > pathMax {
		t.Errorf("a commit passes through %d files, at most %d are allowed", len(files), pathMax)
	}
	t.Logf("%d files: %s", len(files), strings.Join(files, " "))
}

func goTool(t *testing.T, args ...string) {
	t.Helper()
	if out, err := exec.Command("go", args...).CombinedOutput(); err != nil {
		t.Fatalf("go %s: %v: %s", strings.Join(args, " "), err, out)
	}
}
