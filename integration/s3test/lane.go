package s3test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/smithy-go/logging"
)

// The lanes; see the package comment.
const (
	process   = "process"
	endpoint  = "endpoint"
	tlsFront  = "tls"
	container = "container"
)

// lane is a target that is created when the first test needs it, and exists as long as the package's tests.
type lane struct {
	sync.Mutex
	target *Target
	err    error
}

var lanes = map[string]*lane{process: {}, endpoint: {}, tlsFront: {}, container: {}}

func open(ctx context.Context, name string) (*Target, error) {
	switch name {
	case process:
		return openProcess(ctx)
	case endpoint:
		return openEndpoint(ctx)
	case tlsFront:
		return openFront(ctx)
	default:
		return openContainer(ctx)
	}
}

// make returns the lane's target. It is created only once, even if that failed.
func (l *lane) make(ctx context.Context, name string) (*Target, error) {
	l.Lock()
	defer l.Unlock()
	if l.target == nil && l.err == nil {
		if l.target, l.err = open(ctx, name); l.err != nil {
			l.err = fmt.Errorf("lane %s: %w", name, l.err)
			fmt.Fprintln(os.Stderr, "s3test:", l.err)
		}
	}
	return l.target, l.err
}

// closers ends the targets of the lanes, the last first.
var closers struct {
	sync.Mutex
	ready bool // Main runs, and will call them
	list  []func() error
}

func atEnd(f func() error) {
	closers.Lock()
	defer closers.Unlock()
	closers.list = append(closers.list, f)
}

// Main runs a package's tests, ends the servers that they used, and returns the exit code for os.Exit.
func Main(m *testing.M) int {
	closers.ready = true
	code := m.Run()
	for _, f := range slices.Backward(closers.list) {
		if err := f(); err != nil {
			fmt.Fprintln(os.Stderr, "s3test:", err)
			code = max(code, 1)
		}
	}
	return code
}

// base returns the lane without a front.
func base() string {
	if os.Getenv("S3_TEST_ENDPOINT") != "" {
		return endpoint
	}
	return process
}

// chosen returns the lanes of this run.
func chosen() []string {
	if one := os.Getenv("S3_TEST_LANE"); one != "" {
		return []string{one}
	}
	if base() == endpoint {
		if withoutTLS(os.Getenv("S3_TEST_ENDPOINT")) == "" {
			return []string{endpoint}
		}
		return []string{endpoint, tlsFront}
	}
	return []string{process, tlsFront, container}
}

// Each runs f as a subtest for every lane.
func Each(t *testing.T, f func(t *testing.T, target *Target)) {
	t.Helper()
	for _, name := range chosen() {
		t.Run(name, func(t *testing.T) { f(t, use(t, name)) })
	}
}

// For returns the target of tests that run on one lane.
func For(tb testing.TB) *Target {
	tb.Helper()
	return use(tb, chosen()[0])
}

func use(tb testing.TB, name string) *Target {
	tb.Helper()
	if !closers.ready {
		tb.Fatal("the package has no TestMain that calls s3test.Main")
	}
	l := lanes[name]
	if l == nil {
		tb.Fatalf("S3_TEST_LANE: %s is no lane", name)
	}
	t, err := l.make(context.Background(), name)
	required, _ := strconv.ParseBool(os.Getenv("REQUIRE_DOCKER"))
	switch {
	case errors.Is(err, errNoDocker) && !required:
		tb.Skip(err)
	case errors.Is(err, errNoDocker):
		tb.Fatalf("REQUIRE_DOCKER=%s: %v", os.Getenv("REQUIRE_DOCKER"), err)
	case err != nil:
		tb.Fatal(err)
	}
	return t
}

func openProcess(ctx context.Context) (*Target, error) {
	dir, err := os.MkdirTemp("", "coppice-s3test-")
	if err != nil {
		return nil, err
	}
	atEnd(func() error { return os.RemoveAll(dir) })
	server, err := Start(ctx, dir)
	if err != nil {
		return nil, err
	}
	atEnd(server.Stop)
	t := server.Target("coppice-test")
	return t, t.MakeBucket(ctx)
}

func openEndpoint(ctx context.Context) (*Target, error) {
	t := &Target{Endpoint: os.Getenv("S3_TEST_ENDPOINT"), Bucket: os.Getenv("S3_TEST_BUCKET"), External: true}
	if t.Endpoint == "" || t.Bucket == "" {
		return nil, errors.New("S3_TEST_ENDPOINT has to be set, and S3_TEST_BUCKET to name a bucket that exists")
	}
	t.plain, t.near = withoutTLS(t.Endpoint), loopback(t.Endpoint)
	t.PathStyle, _ = strconv.ParseBool(os.Getenv("S3_TEST_PATH_STYLE"))
	var err error
	t.Config, err = config.LoadDefaultConfig(ctx, config.WithLogger(logging.Nop{})) // for connections that tests break
	return t, err
}

// withoutTLS returns the address of a server on this machine that uses HTTP, so that a proxy or a front can be put
// before it; "" for any other.
func withoutTLS(address string) string {
	if strings.HasPrefix(address, "http://") && loopback(address) {
		return address
	}
	return ""
}

func loopback(address string) bool {
	u, err := url.Parse(address)
	if err != nil {
		return false
	}
	ip := net.ParseIP(u.Hostname())
	return u.Hostname() == "localhost" || ip != nil && ip.IsLoopback()
}
