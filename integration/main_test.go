package integration

import (
	"os"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/coppice-go/coppice/integration/s3test"
	"github.com/coppice-go/coppice/internal/cli"
)

// suite is this package's tests on a target.
type suite struct{ m *testing.M }

func (s suite) Run() int { return s3test.Main(s.m) }

// The test binary, started as "coppice", is the command.
func TestMain(m *testing.M) {
	testscript.Main(suite{m}, map[string]func(){
		"coppice": func() { os.Exit(cli.Main(os.Args[1:])) },
	})
}
