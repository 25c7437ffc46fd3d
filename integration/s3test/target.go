package s3test

import (
	"context"
	"crypto/rand"
	"fmt"
	"os"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	awss3 "github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/coppice-go/coppice/backend"
	"github.com/coppice-go/coppice/backend/s3"
)

// Target is a bucket for the tests of a package.
type Target struct {
	Endpoint  string // "" = Amazon's
	Bucket    string
	PathStyle bool
	External  bool // not a server of ours: short runs, and cleanup
	Config    aws.Config

	near   bool   // on this machine: the waits for a distant store are not needed
	plain  string // see Plain
	bundle string // file with the certificate of a front with HTTPS
}

// Target returns a bucket of the server, which does not exist yet.
func (s *Server) Target(bucket string) *Target {
	return &Target{
		Endpoint: s.URL(), Bucket: bucket, PathStyle: true, near: true, plain: s.URL(),
		Config: aws.Config{
			Region:      Region,
			Credentials: credentials.NewStaticCredentialsProvider(AccessKey, SecretKey, ""),
		},
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

// Via returns the same bucket, reached through a proxy that passes the Host header on.
func (t *Target) Via(endpoint string) *Target {
	via := *t
	via.Endpoint = endpoint
	return &via
}

// Environ returns the environment that another process needs to find the target: S3_TEST_ENDPOINT for s3test, and the
// variables of the SDK's default chain.
func (t *Target) Environ(ctx context.Context) (map[string]string, error) {
	env := map[string]string{
		"S3_TEST_LANE": "", "S3_TEST_ENDPOINT": t.Endpoint, "S3_TEST_BUCKET": t.Bucket,
		"S3_TEST_PATH_STYLE": strconv.FormatBool(t.PathStyle), "AWS_REGION": t.Config.Region,
	}
	if t.bundle != "" {
		env["AWS_CA_BUNDLE"] = t.bundle
	}
	if t.External {
		return env, nil // the target is from the environment
	}
	keys, err := t.Config.Credentials.Retrieve(ctx)
	env["AWS_ACCESS_KEY_ID"], env["AWS_SECRET_ACCESS_KEY"] = keys.AccessKeyID, keys.SecretAccessKey
	return env, err
}

// Options for backend/s3. On this machine pauses are a hundred times shorter: the faults of tests do not last.
func (t *Target) Options() *s3.Options {
	cfg := t.Config.Copy()
	o := &s3.Options{Endpoint: t.Endpoint, PathStyle: t.PathStyle, Config: &cfg, Region: cfg.Region}
	if t.near {
		o.Sleep, o.Now = Quick, quickClock()
	}
	return o
}

// haste is the factor by which waits on this machine are shorter.
const haste = 100

// quickClock returns a clock that is faster by the factor of Quick.
func quickClock() func() time.Time {
	start := time.Now()
	return func() time.Time { return start.Add(haste * time.Since(start)) }
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

// Prefix returns a folder that no other test uses. In an external store it is emptied at the end.
func (t *Target) Prefix(tb testing.TB) string {
	prefix := fmt.Sprintf("test-%d-%d", os.Getpid(), prefixes.Add(1))
	if !t.External {
		return prefix
	}
	prefix += "-" + rand.Text()
	tb.Cleanup(func() {
		b, err := s3.Open(context.Background(), t.Bucket, t.Options())
		if err != nil {
			tb.Errorf("clean up: %v", err)
			return
		}
		defer b.Close()
		for info, err := range b.List(context.Background(), backend.ListOptions{Prefix: prefix + "/"}) {
			if err != nil {
				tb.Errorf("clean up %s: %v", prefix, err)
				return
			}
			if err := b.Delete(context.Background(), info.Key); err != nil {
				tb.Errorf("clean up %s: %v", prefix, err)
				return
			}
		}
	})
	return prefix
}

// Store returns a fresh and empty store in the target.
func (t *Target) Store(tb testing.TB) backend.Backend {
	return backend.WithPrefix(t.Open(tb, nil), t.Prefix(tb))
}
