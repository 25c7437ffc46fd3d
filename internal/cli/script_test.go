package cli

import (
	"flag"
	"os"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/coppice-go/coppice/internal/cli/clitest"
)

var update = flag.Bool("update", false, "write the golden files")

// The scripts run the program itself: the test binary, started as "coppice", is it.
func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){
		"coppice": func() { os.Exit(Main(os.Args[1:])) },
	})
}

func TestScripts(t *testing.T) {
	t.Parallel()
	clitest.Run(t, clitest.Options{
		Dir: "testdata/script", Update: *update, Disk: true,
		Store: func(work string) string { return work + "/store" },
	})
}
