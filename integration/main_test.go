package integration

import (
	"os"
	"testing"

	"github.com/coppice-go/coppice/integration/s3test"
)

func TestMain(m *testing.M) { os.Exit(s3test.Main(m)) }
