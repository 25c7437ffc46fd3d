package memory_test

import (
	"testing"

	"go.uber.org/goleak"

	"github.com/coppice-go/coppice/backend"
	"github.com/coppice-go/coppice/backend/backendtest"
	"github.com/coppice-go/coppice/backend/memory"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestContract(t *testing.T) {
	backendtest.Run(t, backendtest.Harness{
		New:    func(*testing.T) backend.Backend { return memory.New() },
		Reopen: func(_ *testing.T, b backend.Backend) backend.Backend { return b.(*memory.Backend).Share() },
		Short:  testing.Short(),
	})
}

func TestAppenderContract(t *testing.T) {
	backendtest.Run(t, backendtest.Harness{
		New:    func(*testing.T) backend.Backend { return memory.NewAppender() },
		Reopen: func(_ *testing.T, b backend.Backend) backend.Backend { return b.(*memory.Appender).Share() },
		Short:  testing.Short(),
	})
}
