package s3test

import (
	"fmt"
	"os"
	"runtime"
	"strings"
	"testing"
)

func TestMain(m *testing.M) { os.Exit(Main(m)) }

// told is a test that records its messages.
type told struct {
	testing.TB
	skipped, failed string
}

func (*told) Helper()                     {}
func (t *told) Skip(args ...any)          { t.skipped = fmt.Sprint(args...); runtime.Goexit() }
func (t *told) Fatal(args ...any)         { t.failed = fmt.Sprint(args...); runtime.Goexit() }
func (t *told) Fatalf(f string, a ...any) { t.failed = fmt.Sprintf(f, a...); runtime.Goexit() }

// Without Docker its lane is skipped, with the reason; with REQUIRE_DOCKER it fails.
func TestWithoutDocker(t *testing.T) {
	l := lanes[container]
	defer func() { lanes[container] = l }()
	lanes[container] = &lane{err: fmt.Errorf("lane container: %w: the reason", errNoDocker)}
	for _, c := range []struct {
		require string
		fails   bool
	}{{"", false}, {"0", false}, {"1", true}, {"true", true}} {
		t.Setenv("REQUIRE_DOCKER", c.require)
		tb, over := &told{TB: t}, make(chan struct{})
		go func() {
			defer close(over)
			use(tb, container)
		}()
		<-over
		said, other := tb.skipped, tb.failed
		if c.fails {
			said, other = other, said
		}
		if !strings.Contains(said, "the reason") || other != "" {
			t.Errorf("REQUIRE_DOCKER=%q: skipped %q, failed %q", c.require, tb.skipped, tb.failed)
		}
	}
}

// The available lanes, by the environment.
func TestChosen(t *testing.T) {
	for _, c := range []struct{ lane, endpoint, want string }{
		{"", "", "process tls container"},
		{"container", "", "container"},
		{"", "http://127.0.0.1:9000", "endpoint tls"},
		{"", "http://localhost:9000", "endpoint tls"},
		{"", "https://127.0.0.1:9000", "endpoint"},
		{"", "https://s3.example.com", "endpoint"},
		{"", "http://s3.example.com", "endpoint"},
		{"tls", "http://[::1]:9000", "tls"},
	} {
		t.Setenv("S3_TEST_LANE", c.lane)
		t.Setenv("S3_TEST_ENDPOINT", c.endpoint)
		if got := strings.Join(chosen(), " "); got != c.want {
			t.Errorf("lane %q, endpoint %q: %s, want %s", c.lane, c.endpoint, got, c.want)
		}
	}
}
