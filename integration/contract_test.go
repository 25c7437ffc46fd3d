package integration

import (
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"testing"

	"github.com/coppice-go/coppice/backend"
	"github.com/coppice-go/coppice/backend/backendtest"
	"github.com/coppice-go/coppice/integration/s3test"
)

// contract runs the conformance suite on a target. The suite needs several handles on one store.
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

// In full on our own server as a process and in a container. On external stores, and over TLS unless the run is a long
// one, the same checks with fewer rounds.
func TestContract(t *testing.T) {
	s3test.Each(t, func(t *testing.T, target *s3test.Target) {
		contract(t, target, target.External || testing.Short() || target.Secure() && !long())
	})
}

// The reason for the lane over TLS: the SDK signs the body only on unencrypted connections.
func TestSignedBody(t *testing.T) {
	s3test.Each(t, func(t *testing.T, target *s3test.Target) {
		if target.Plain() == "" {
			t.Skip("requests are looked at before a server on this machine only")
		}
		server := must(url.Parse(target.Plain()))(t)
		signed := make(chan string, 1)
		proxy := httptest.NewServer(&httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(server)
			r.Out.Host = r.In.Host
			if r.In.Method == http.MethodPut {
				signed <- r.In.Header.Get("X-Amz-Content-Sha256")
			}
		}})
		defer proxy.Close()
		b := backend.WithPrefix(target.Behind(t, proxy.URL).Open(t, nil), target.Prefix(t))
		must(b.Put(t.Context(), "k", []byte("body"), backend.IfAbsent()))(t)
		if got := <-signed; got == "" || target.Secure() != (got == "UNSIGNED-PAYLOAD") {
			t.Errorf("a PUT to %s signs %q for its body", target.Endpoint, got)
		}
	})
}
