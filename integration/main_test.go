package integration

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/coppice-go/coppice/integration/s3test"
	"github.com/coppice-go/coppice/internal/cli"
)

// commandEnv names a built coppice for the scripts. The scripts' own package runs them under the race detector; here,
// where that would take most of the time, the released form of the command is tested.
const commandEnv = "S3TEST_COPPICE"

// suite is this package's tests on a target.
type suite struct{ m *testing.M }

func (s suite) Run() int { return s3test.Main(s.m) }

// The command "coppice" is the built one, or the test binary started under that name.
func TestMain(m *testing.M) {
	commands := map[string]func(){}
	if built := os.Getenv(commandEnv); built != "" {
		path := filepath.Dir(built) + string(os.PathListSeparator) + os.Getenv("PATH")
		if err := os.Setenv("PATH", path); err != nil {
			panic(err)
		}
	} else {
		commands["coppice"] = func() { os.Exit(cli.Main(os.Args[1:])) }
	}
	testscript.Main(suite{m}, commands)
}
