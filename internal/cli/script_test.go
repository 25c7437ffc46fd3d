package cli

import (
	"context"
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/coppice-go/coppice/internal/cli/clitest"
	"github.com/coppice-go/coppice/internal/testutil"
)

var update = flag.Bool("update", false, "write the golden files")

// Commands that need a process of their own are the test binary, started as "coppice".
func TestMain(m *testing.M) {
	time.Local = time.UTC
	testscript.Main(m, map[string]func(){
		"coppice": func() { os.Exit(mainAt(clitest.NewClock(), os.Args[1:])) },
	})
}

func TestScripts(t *testing.T) {
	testutil.SkipLong(t)
	clitest.Run(t, clitest.Options{
		Dir: "testdata/script", Update: *update, Disk: true,
		Store: func(work string) string { return work + "/store" },
		InProcess: func(ctx context.Context, call clitest.Call) int {
			env := Env{Stdin: call.Stdin, Stdout: call.Stdout, Stderr: call.Stderr, Getenv: call.Getenv, Now: call.Now}
			return Run(ctx, env, call.Args)
		},
	})
}

// Every command is run by a script.
func TestEveryCommandHasAScript(t *testing.T) {
	names, err := filepath.Glob("testdata/script/*.txtar")
	if err != nil || len(names) == 0 {
		t.Fatalf("%d scripts, %v", len(names), err)
	}
	run := map[string]bool{"demo": true, "help": true, "completion": true} // TestDemo; cobra's own
	call := regexp.MustCompile(`(?m)^.*\bcoppice( .*)$`)
	for _, name := range names {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range call.FindAllSubmatch(text, -1) {
			for word := range strings.FieldsSeq(string(m[1])) {
				run[word] = true
			}
		}
	}
	c, _, _ := bare()
	for _, cmd := range c.root("").Commands() {
		if !run[cmd.Name()] {
			t.Errorf("no script runs coppice %s", cmd.Name())
		}
	}
}
