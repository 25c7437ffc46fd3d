package local_test

import (
	"sync"
	"testing"

	"github.com/coppice-go/coppice/backend"
	"github.com/coppice-go/coppice/backend/backendtest"
	"github.com/coppice-go/coppice/backend/local"
)

// harness makes stores in temporary directories, and maps each to its directory for Reopen.
func harness(wrap func(backend.Backend) backend.Backend) backendtest.Harness {
	var dirs sync.Map
	open := func(t *testing.T, dir string) backend.Backend {
		b, err := local.Open(dir, nil)
		if err != nil {
			t.Fatal(err)
		}
		v := wrap(b)
		dirs.Store(v, dir)
		t.Cleanup(func() {
			if err := b.Close(); err != nil {
				t.Errorf("close: %v", err)
			}
		})
		return v
	}
	return backendtest.Harness{
		Short: testing.Short(),
		New:   func(t *testing.T) backend.Backend { return open(t, t.TempDir()+"/store") },
		Reopen: func(t *testing.T, b backend.Backend) backend.Backend {
			dir, ok := dirs.Load(b)
			if !ok {
				t.Fatal("a backend that the harness did not make")
			}
			return open(t, dir.(string))
		},
	}
}

func TestConformance(t *testing.T) {
	t.Parallel()
	backendtest.Run(t, harness(func(b backend.Backend) backend.Backend { return b }))
}

func TestConformanceOfView(t *testing.T) {
	t.Parallel()
	h := harness(func(b backend.Backend) backend.Backend { return backend.WithPrefix(b, "tenants/one") })
	h.Short = true
	backendtest.Run(t, h)
}
