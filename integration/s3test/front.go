package s3test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"strings"
	"testing"

	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
)

// openFront puts a front before the server of the base lane.
func openFront(ctx context.Context) (*Target, error) {
	behind, err := lanes[base()].make(ctx, base())
	if err != nil {
		return nil, err
	}
	if behind.plain == "" {
		return nil, errors.New("a front is put before a server on this machine only")
	}
	front, err := newFront(behind.plain)
	if err != nil {
		return nil, err
	}
	atEnd(func() error { front.Close(); return nil })
	t := behind.Via(front.URL)
	if t.bundle, err = bundle(front); err != nil {
		return nil, err
	}
	atEnd(func() error { return os.Remove(t.bundle) })
	trust(t, front)
	return t, nil
}

// newFront returns a server with HTTPS that passes everything on. A connection that is cut on one side is cut on the
// other too.
func newFront(server string) (*httptest.Server, error) {
	u, err := url.Parse(server)
	if err != nil {
		return nil, err
	}
	quiet := log.New(io.Discard, "", 0) // tests break connections
	front := httptest.NewUnstartedServer(&httputil.ReverseProxy{
		ErrorLog: quiet,
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(u)
			r.Out.Host = r.In.Host // the Host header is signed
		},
		ErrorHandler: func(http.ResponseWriter, *http.Request, error) { panic(http.ErrAbortHandler) },
	})
	front.Config.ErrorLog = quiet
	front.StartTLS()
	return front, nil
}

// bundle writes the front's certificate to a file, for AWS_CA_BUNDLE.
func bundle(front *httptest.Server) (string, error) {
	f, err := os.CreateTemp("", "coppice-s3test-*.pem")
	if err != nil {
		return "", err
	}
	err = pem.Encode(f, &pem.Block{Type: "CERTIFICATE", Bytes: front.Certificate().Raw})
	return f.Name(), errors.Join(err, f.Close())
}

func trust(t *Target, front *httptest.Server) {
	roots := x509.NewCertPool()
	roots.AddCert(front.Certificate())
	t.Config.HTTPClient = awshttp.NewBuildableClient().WithTransportOptions(func(tr *http.Transport) {
		tr.TLSClientConfig = &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}
	})
}

// Plain returns the address, without TLS, of the server behind the target, for a proxy; "" if no proxy can be put
// before it.
func (t *Target) Plain() string { return t.plain }

// Secure reports whether requests go over TLS.
func (t *Target) Secure() bool { return strings.HasPrefix(t.Endpoint, "https:") }

// Behind returns the same bucket, reached through a proxy that uses HTTP and keeps the Host header; if the target uses
// HTTPS, through a front before the proxy.
func (t *Target) Behind(tb testing.TB, proxy string) *Target {
	tb.Helper()
	if t.bundle == "" {
		return t.Via(proxy)
	}
	front, err := newFront(proxy)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(front.Close)
	via := t.Via(front.URL)
	trust(via, front)
	return via
}
