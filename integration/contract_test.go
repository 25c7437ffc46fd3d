package integration

import (
	"testing"

	"github.com/coppice-go/coppice/backend"
	"github.com/coppice-go/coppice/backend/backendtest"
	"github.com/coppice-go/coppice/integration/s3test"
)

// contract runs the conformance suite on a target. The suite wants several handles on one store.
func contract(t *testing.T, target *s3test.Target, short bool) {
	prefixes := map[backend.Backend]string{}
	open := func(t *testing.T, prefix string) backend.Backend {
		b := backend.WithPrefix(target.Open(t, nil), prefix)
		prefixes[b] = prefix
		return b
	}
	backendtest.Run(t, backendtest.Harness{
		New:    func(t *testing.T) backend.Backend { return open(t, target.Prefix(t)) },
		Reopen: func(t *testing.T, b backend.Backend) backend.Backend { return open(t, prefixes[b]) },
		Short:  short,
	})
}

func TestContract(t *testing.T) {
	target := s3test.For(t)
	contract(t, target, target.External || testing.Short())
}

// Once more over TLS, where the SDK neither signs the body nor sends it in the same frame.
func TestContractTLS(t *testing.T) {
	target := s3test.For(t)
	if target.External {
		t.Skip("a store of one's own is tested as it is")
	}
	contract(t, target.TLS(t), true)
}
