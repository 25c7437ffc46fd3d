package s3test

import (
	"context"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/credentials"
	awss3 "github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/coppice-go/coppice/backend"
	"github.com/coppice-go/coppice/backend/s3"
)

// Target is a bucket that a test package works on.
type Target struct {
	Endpoint  string // "" = Amazon's
	Bucket    string
	PathStyle bool
	External  bool // not a server of ours: short runs, and tidy up
	Config    aws.Config

	server *Server
	dir    string
}

var target *Target

// Main prepares the target of a package's tests, runs them, and gives the exit code for os.Exit.
func Main(m *testing.M) int {
	ctx := context.Background()
	t, err := prepare(ctx)
	if err != nil {
		fmt.Fprintln(os.Stderr, "s3test:", err)
		return 1
	}
	target = t
	code := m.Run()
	if err := t.close(); err != nil {
		fmt.Fprintln(os.Stderr, "s3test:", err)
		return max(code, 1)
	}
	return code
}

// For gives the target of this package.
func For(tb testing.TB) *Target {
	if target == nil {
		tb.Fatal("the package has no TestMain that calls s3test.Main")
	}
	return target
}

func prepare(ctx context.Context) (*Target, error) {
	if endpoint := os.Getenv("S3_TEST_ENDPOINT"); endpoint != "" {
		t := &Target{Endpoint: endpoint, Bucket: os.Getenv("S3_TEST_BUCKET"), External: true}
		if t.Bucket == "" {
			return nil, errors.New("S3_TEST_ENDPOINT is set: S3_TEST_BUCKET has to name a bucket that exists")
		}
		t.PathStyle, _ = strconv.ParseBool(os.Getenv("S3_TEST_PATH_STYLE"))
		var err error
		t.Config, err = config.LoadDefaultConfig(ctx)
		return t, err
	}
	dir, err := os.MkdirTemp("", "coppice-s3test-")
	if err != nil {
		return nil, err
	}
	server, err := Start(ctx, dir)
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	t := server.Target("coppice-test")
	t.server, t.dir = server, dir
	if err := t.MakeBucket(ctx); err != nil {
		return nil, errors.Join(err, t.close())
	}
	return t, nil
}

// Target is a bucket of the server. It is not made yet.
func (s *Server) Target(bucket string) *Target {
	return &Target{
		Endpoint: s.URL(), Bucket: bucket, PathStyle: true,
		Config: aws.Config{Region: Region, Credentials: credentials.NewStaticCredentialsProvider(AccessKey, SecretKey, "")},
	}
}

// MakeBucket creates the bucket.
func (t *Target) MakeBucket(ctx context.Context) error {
	_, err := t.client().CreateBucket(ctx, &awss3.CreateBucketInput{Bucket: aws.String(t.Bucket)})
	return err
}

func (t *Target) client() *awss3.Client {
	return awss3.NewFromConfig(t.Config, func(o *awss3.Options) {
		o.UsePathStyle = t.PathStyle
		if t.Endpoint != "" {
			o.BaseEndpoint = aws.String(t.Endpoint)
		}
	})
}

func (t *Target) close() error {
	if t.server == nil {
		return nil
	}
	return errors.Join(t.server.Stop(), os.RemoveAll(t.dir))
}

// Via is the same bucket, reached through a proxy that passes the Host header on.
func (t *Target) Via(endpoint string) *Target {
	via := *t
	via.Endpoint, via.server = endpoint, nil
	return &via
}

// Options for backend/s3, with pauses a hundred times as short: the faults of tests do not last.
func (t *Target) Options() *s3.Options {
	cfg := t.Config.Copy()
	o := &s3.Options{Endpoint: t.Endpoint, PathStyle: t.PathStyle, Config: &cfg, Region: cfg.Region}
	if !t.External {
		o.Sleep, o.Now = Quick, quickClock()
	}
	return o
}

// haste is how many times faster than usual our own stores are waited for.
const haste = 100

// quickClock runs as fast as Quick sleeps.
func quickClock() func() time.Time {
	start := time.Now()                                                     //nolint:forbidigo // of tests on real servers
	return func() time.Time { return start.Add(haste * time.Since(start)) } //nolint:forbidigo // as above
}

// Quick sleeps a hundredth of the time.
func Quick(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d / haste)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Open opens the bucket, and closes it with the test. Nil options are those of the target.
func (t *Target) Open(tb testing.TB, o *s3.Options) *s3.Backend {
	tb.Helper()
	if o == nil {
		o = t.Options()
	}
	b, err := s3.Open(tb.Context(), t.Bucket, o)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := b.Close(); err != nil {
			tb.Errorf("close: %v", err)
		}
	})
	return b
}

var prefixes atomic.Uint64

// Prefix gives a folder that no other test uses. In a store that is not ours it is emptied at the end.
func (t *Target) Prefix(tb testing.TB) string {
	prefix := fmt.Sprintf("test-%d-%d", os.Getpid(), prefixes.Add(1))
	if !t.External {
		return prefix
	}
	prefix += "-" + rand.Text() //nolint:forbidigo // nobody else's tests are to be met in a shared bucket
	tb.Cleanup(func() {
		b, err := s3.Open(context.Background(), t.Bucket, t.Options())
		if err != nil {
			tb.Errorf("clean up: %v", err)
			return
		}
		defer b.Close()
		for info, err := range b.List(context.Background(), backend.ListOptions{Prefix: prefix + "/"}) {
			if err == nil {
				err = b.Delete(context.Background(), info.Key)
			}
			if err != nil {
				tb.Errorf("clean up %s: %v", prefix, err)
				return
			}
		}
	})
	return prefix
}

// Store is a fresh and empty store in the target.
func (t *Target) Store(tb testing.TB) backend.Backend {
	return backend.WithPrefix(t.Open(tb, nil), t.Prefix(tb))
}

// TLS puts a front before the target that speaks HTTPS: the SDK signs, frames and checks otherwise there.
func (t *Target) TLS(tb testing.TB) *Target {
	tb.Helper()
	upstream, err := url.Parse(t.Endpoint)
	if err != nil {
		tb.Fatal(err)
	}
	front := httptest.NewTLSServer(&httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) {
		r.SetURL(upstream)
		r.Out.Host = r.In.Host // it is signed
	}})
	tb.Cleanup(front.Close)
	roots := x509.NewCertPool()
	roots.AddCert(front.Certificate())
	via := t.Via(front.URL)
	via.Config.HTTPClient = awshttp.NewBuildableClient().WithTransportOptions(func(tr *http.Transport) {
		tr.TLSClientConfig = &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}
	})
	return via
}
