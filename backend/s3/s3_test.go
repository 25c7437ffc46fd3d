package s3

import (
	"context"
	"net/http"
	"testing"
	"time"

	"github.com/coppice-go/coppice/backend"
	"github.com/coppice-go/coppice/backend/backendtest"
)

func noSleep(ctx context.Context, _ time.Duration) error { return ctx.Err() }

func TestBackend(t *testing.T) {
	servers := map[backend.Backend]string{}
	open := func(t *testing.T, url string) backend.Backend {
		b := dial(t, url, nil)
		servers[b] = url
		return b
	}
	backendtest.Run(t, backendtest.Harness{
		New:    func(t *testing.T) backend.Backend { return open(t, serve(t, newFake())) },
		Reopen: func(t *testing.T, b backend.Backend) backend.Backend { return open(t, servers[b]) },
		Short:  true,
	})
}

func TestBackendBelowPrefix(t *testing.T) {
	backendtest.Run(t, backendtest.Harness{
		New: func(t *testing.T) backend.Backend {
			f := newFake()
			f.objects["other/object"] = fakeObject{body: []byte("of another tenant")}
			return &folder{Backend: backend.WithPrefix(dial(t, serve(t, f), nil), "team/a"), bucket: dial(t, serve(t, http.NotFoundHandler()), nil)}
		},
		Short: true,
	})
}
