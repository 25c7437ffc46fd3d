package s3

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/smithy-go"
	smithyhttp "github.com/aws/smithy-go/transport/http"

	"github.com/coppice-go/coppice/backend"
)

// calls are the operations of a table, by name.
var calls = map[string]func(ctx context.Context, b *Backend) error{
	"put": func(ctx context.Context, b *Backend) error {
		_, err := b.Put(ctx, "key", []byte("bytes"), backend.Cond{})
		return err
	},
	"create": func(ctx context.Context, b *Backend) error {
		_, err := b.Put(ctx, "key", []byte("bytes"), backend.IfAbsent())
		return err
	},
	"replace": func(ctx context.Context, b *Backend) error {
		_, err := b.Put(ctx, "key", []byte("bytes"), backend.IfMatch("v1"))
		return err
	},
	"get": func(ctx context.Context, b *Backend) error {
		_, _, err := b.Get(ctx, "key", backend.Range{})
		return err
	},
	"stat":   func(ctx context.Context, b *Backend) error { _, err := b.Stat(ctx, "key"); return err },
	"delete": func(ctx context.Context, b *Backend) error { return b.Delete(ctx, "key") },
	"list": func(ctx context.Context, b *Backend) error {
		for _, err := range b.List(ctx, backend.ListOptions{}) {
			if err != nil {
				return err
			}
		}
		return nil
	},
}

// Each known answer of S3 and compatible stores: its meaning for the data, and the number of attempts.
func TestAnswers(t *testing.T) {
	const writes, conditional, reads = "put create replace delete", "create replace", "get stat list"
	for _, c := range []struct {
		status  int
		code    string // "" = not an answer of S3
		calls   string
		is      error
		outcome backend.Outcome
		asked   int32
		text    string
	}{
		{412, "PreconditionFailed", conditional, backend.ErrPrecondition, backend.NotApplied, 1, ""},
		{412, "", conditional, backend.ErrPrecondition, backend.NotApplied, 1, ""},
		{404, "NoSuchKey", "replace", backend.ErrPrecondition, backend.NotApplied, 1, "there is no object"},
		{404, "NoSuchKey", "get", backend.ErrNotExist, backend.NotApplied, 1, ""},
		{404, "NoSuchKey", "delete", nil, backend.Applied, 1, ""},
		{404, "NoSuchBucket", "put create replace get delete list", nil, backend.NotApplied, 1, `no bucket "bucket"`},
		{404, "", "put create replace delete", nil, backend.Unknown, 1, "not an S3 response"},
		{404, "", "get list", nil, backend.NotApplied, 1, "not an S3 response"},
		{409, "ConditionalRequestConflict", "put create replace", backend.ErrBusy, backend.NotApplied, 1, ""},
		{409, "OperationAborted", "put create replace", backend.ErrBusy, backend.NotApplied, 1, ""},
		{409, "OperationAborted", "delete", backend.ErrBusy, backend.NotApplied, 4, ""},
		{429, "", "put create replace", backend.ErrBusy, backend.NotApplied, 1, ""},
		{429, "TooManyRequests", "put create replace", backend.ErrBusy, backend.NotApplied, 1, ""},
		{503, "SlowDown", "put create replace", backend.ErrBusy, backend.NotApplied, 1, "the message"},
		{503, "SlowDown", "delete get list", backend.ErrBusy, backend.NotApplied, 4, ""},
		{503, "ServiceUnavailable", writes, nil, backend.Unknown, 1, "outcome unknown"},
		{503, "", writes, nil, backend.Unknown, 1, "outcome unknown"},
		{500, "InternalError", writes, nil, backend.Unknown, 1, "outcome unknown"},
		{502, "", writes, nil, backend.Unknown, 1, "outcome unknown"},
		{504, "", writes, nil, backend.Unknown, 1, "outcome unknown"},
		{408, "", writes, nil, backend.Unknown, 1, "outcome unknown"},
		{400, "RequestTimeout", writes, nil, backend.Unknown, 1, "outcome unknown"},
		{500, "InternalError", reads, nil, backend.NotApplied, 4, "answer 500"},
		{503, "", reads, nil, backend.NotApplied, 4, "answer 503"},
		{400, "BadDigest", "put create replace", nil, backend.NotApplied, 4, "BadDigest"},
		{501, "NotImplemented", conditional, backend.ErrNoCAS, backend.NotApplied, 1, ""},
		{501, "NotImplemented", "put", nil, backend.NotApplied, 1, "not supported"},
		{501, "", conditional, nil, backend.Unknown, 1, ""},
		{403, "AccessDenied", "put create replace delete get list", fs.ErrPermission, backend.NotApplied, 1, "AccessDenied"},
		{403, "SignatureDoesNotMatch", "put get", nil, backend.NotApplied, 1, "SignatureDoesNotMatch"},
		{403, "", "stat", fs.ErrPermission, backend.NotApplied, 2, ""},
		{403, "", writes, nil, backend.Unknown, 1, "not an S3 response"},
		{400, "EntityTooLarge", "put", backend.ErrTooLarge, backend.NotApplied, 1, ""},
		{400, "KeyTooLongError", "put get", backend.ErrKey, backend.NotApplied, 1, ""},
		{400, "InvalidRequest", writes + " get list", nil, backend.NotApplied, 1, `"the message" (request REQ1)`},
		{301, "PermanentRedirect", writes + " get list", nil, backend.NotApplied, 1, `region "eu-west-9"`},
		{307, "TemporaryRedirect", writes, nil, backend.NotApplied, 1, ""},
	} {
		for name := range strings.FieldsSeq(c.calls) {
			var asked atomic.Int32
			b := dial(t, serve(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				asked.Add(1)
				w.Header().Set("X-Amz-Bucket-Region", "eu-west-9")
				w.Header().Set("Location", "http://127.0.0.1:1/elsewhere")
				refuse(w, c.status, c.code)
			})), func(o *Options) { o.Attempts = 4 })
			err := calls[name](t.Context(), b)
			if out := backend.OutcomeOf(err); out != c.outcome || c.is != nil && !errors.Is(err, c.is) {
				t.Errorf("%s, %d %s: %v (%s); want %v (%s)", name, c.status, c.code, err, out, c.is, c.outcome)
			}
			if c.outcome == backend.Applied {
				continue
			}
			if err == nil {
				continue
			}
			if !strings.Contains(err.Error(), c.text) {
				t.Errorf("%s, %d %s: %q does not say %q", name, c.status, c.code, err, c.text)
			}
			if n := asked.Load(); n != c.asked {
				t.Errorf("%s, %d %s: asked %d times, want %d", name, c.status, c.code, n, c.asked)
			}
			for _, wrong := range []error{backend.ErrNotExist, backend.ErrPrecondition, backend.ErrBusy} {
				if !errors.Is(c.is, wrong) && errors.Is(err, wrong) {
					t.Errorf("%s, %d %s: %v is also %v", name, c.status, c.code, err, wrong)
				}
			}
		}
	}
}

// A missing object under IfMatch is a failed condition and nothing else: a caller that checks ErrNotExist first would
// take the session for a new one.
func TestMissingUnderIfMatchIsNoErrNotExist(t *testing.T) {
	b := dial(t, serve(t, newFake()), nil)
	if err := calls["replace"](t.Context(), b); !errors.Is(err, backend.ErrPrecondition) || errors.Is(err, backend.ErrNotExist) {
		t.Errorf("replace a missing object: %v", err)
	}
}

// A HEAD with the answer 404 does not show what is missing; the driver sends one more request.
func TestStatInMissingBucket(t *testing.T) {
	f := newFake()
	url := serve(t, f)
	b, err := Open(t.Context(), "elsewhere", &Options{Endpoint: url, PathStyle: true, Config: testConfig(), Sleep: noSleep})
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	if _, err := b.Stat(t.Context(), "key"); err == nil || errors.Is(err, backend.ErrNotExist) || !strings.Contains(err.Error(), "no bucket") {
		t.Errorf("stat in a missing bucket: %v", err)
	}
	b = dial(t, url, nil)
	for range 3 {
		if _, err := b.Stat(t.Context(), "key"); !errors.Is(err, backend.ErrNotExist) {
			t.Errorf("stat of a missing object: %v", err)
		}
	}
	if len(f.log) != 2+2+1+1 {
		t.Errorf("%d requests, want 6", len(f.log))
	}
}

// cut answers by an operation on the connection.
func cut(t *testing.T, how func(c net.Conn)) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		c, _, err := w.(http.Hijacker).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		how(c)
		_ = c.Close()
	})
}

func say(text string) func(c net.Conn) {
	return func(c net.Conn) { _, _ = io.WriteString(c, text) }
}

// An answer that does not arrive whole leaves a write in doubt. A read is retried.
func TestLostAnswers(t *testing.T) {
	for name, how := range map[string]func(c net.Conn){
		"closed":          func(net.Conn) {},
		"reset":           func(c net.Conn) { _ = c.(*net.TCPConn).SetLinger(0) },
		"half a header":   say("HTTP/1.1 200 OK\r\nETa"),
		"no ETag":         say("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"),
		"half a body":     say("HTTP/1.1 200 OK\r\nETag: \"x\"\r\nContent-Length: 10\r\n\r\nabc"),
		"half an error":   say("HTTP/1.1 500 Internal Server Error\r\nContent-Length: 100\r\n\r\n<Error><Co"),
		"half a 4xx":      say("HTTP/1.1 400 Bad Request\r\nContent-Length: 100\r\n\r\n<Error><Co"),
		"another's page":  say("HTTP/1.1 403 Forbidden\r\nContent-Length: 17\r\n\r\n<html>sorry</html"),
		"another's words": say("SSH-2.0-OpenSSH\r\n"),
	} {
		for _, op := range []string{"put", "create", "replace"} {
			b := dial(t, serve(t, cut(t, how)), nil)
			err := calls[op](t.Context(), b)
			if name == "half a body" && err == nil {
				continue // the status is enough: the body of a Put's answer has no meaning
			}
			if err == nil || backend.OutcomeOf(err) != backend.Unknown {
				t.Errorf("%s, %s: %v (%s), want unknown", op, name, err, backend.OutcomeOf(err))
			}
		}
		if name == "another's page" {
			continue
		}
		f := newFake()
		f.objects["key"] = fakeObject{body: []byte("abcdefghij"), sum: "FqgJaA=="}
		var asked atomic.Int32
		broken := cut(t, how)
		b := dial(t, serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if asked.Add(1) < 3 && name != "half a 4xx" {
				broken.ServeHTTP(w, r)
				return
			}
			f.ServeHTTP(w, r)
		})), nil)
		f.objects["key"] = sumOf(f.objects["key"])
		p, _, err := b.Get(t.Context(), "key", backend.Range{})
		if name == "no ETag" {
			continue // an empty object without an ETag is a valid answer
		}
		if err != nil || string(p) != "abcdefghij" {
			t.Errorf("get, %s twice: %q, %v", name, p, err)
		}
	}
}

func sumOf(o fakeObject) fakeObject {
	o.sum = checksum(o.body)
	return o
}

// A body that does not match its checksum, or that is longer or shorter than announced, is read again, and never
// returned.
func TestDamagedBody(t *testing.T) {
	for _, lasting := range []bool{false, true} {
		var asked atomic.Int32
		b := dial(t, serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			body := "abcdefghij"
			if asked.Add(1) == 1 || lasting {
				body = "abcdeFghij"
			}
			w.Header().Set("X-Amz-Checksum-Crc32c", checksum([]byte("abcdefghij")))
			w.Header().Set("ETag", `"v"`)
			_, _ = io.WriteString(w, body)
		})), func(o *Options) { o.Attempts = 3 })
		p, _, err := b.Get(t.Context(), "key", backend.Range{})
		switch {
		case lasting && (err == nil || asked.Load() != 3 || !strings.Contains(err.Error(), "checksum")):
			t.Errorf("damage that lasts: %q, %v after %d requests", p, err, asked.Load())
		case !lasting && (err != nil || string(p) != "abcdefghij"):
			t.Errorf("damage once: %q, %v", p, err)
		}
	}
}

// Nothing is sent without a connection: the outcome is certain, and another attempt may succeed.
func TestNoConnection(t *testing.T) {
	server := serve(t, newFake())
	target, pauses := "127.0.0.1:1", 0 // no server listens there
	b := dial(t, server, func(o *Options) {
		o.Attempts = 3
		o.Sleep = func(ctx context.Context, _ time.Duration) error { pauses++; return ctx.Err() }
		o.Config.HTTPClient = awshttp.NewBuildableClient().WithTransportOptions(func(tr *http.Transport) {
			tr.DialContext = func(ctx context.Context, network, _ string) (net.Conn, error) {
				return new(net.Dialer).DialContext(ctx, network, target)
			}
		})
	})
	for _, op := range []string{"put", "replace", "delete", "get", "list"} {
		pauses = 0
		if err := calls[op](t.Context(), b); err == nil || backend.OutcomeOf(err) != backend.NotApplied || pauses != 2 {
			t.Errorf("%s: %v (%s) after %d pauses, want not applied after 2", op, err, backend.OutcomeOf(err), pauses)
		}
	}
	b.o.Sleep = func(context.Context, time.Duration) error {
		target = strings.TrimPrefix(server, "http://")
		return nil
	}
	if err := calls["create"](t.Context(), b); err != nil {
		t.Errorf("create once the server is back: %v", err)
	}
}

// Without credentials, and with an untrusted certificate, nothing is sent.
func TestNothingSent(t *testing.T) {
	f := newFake()
	url := serve(t, f)
	b := dial(t, url, func(o *Options) {
		o.Config.Credentials = aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
			return aws.Credentials{}, errors.New("no credentials on this host")
		})
	})
	for op, call := range calls {
		if err := call(t.Context(), b); backend.OutcomeOf(err) != backend.NotApplied || !strings.Contains(err.Error(), "no credentials on this host") {
			t.Errorf("%s without credentials: %v (%s)", op, err, backend.OutcomeOf(err))
		}
	}
	if len(f.log) > 0 {
		t.Errorf("%d requests were sent", len(f.log))
	}
	strange := httptest.NewUnstartedServer(f)
	strange.Config.ErrorLog = log.New(io.Discard, "", 0)
	strange.StartTLS()
	defer strange.Close()
	b = dial(t, strange.URL, nil)
	if err := calls["replace"](t.Context(), b); backend.OutcomeOf(err) != backend.NotApplied || !strings.Contains(err.Error(), "certificate") {
		t.Errorf("put to a stranger: %v (%s)", err, backend.OutcomeOf(err))
	}
}

// Each attempt has its own deadline; after it the outcome is unknown.
func TestTimeout(t *testing.T) {
	release := make(chan struct{})
	var asked atomic.Int32
	f := newFake()
	b := dial(t, serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if asked.Add(1) == 1 {
			_, _ = io.Copy(io.Discard, r.Body)
			<-release
			return
		}
		f.ServeHTTP(w, r)
	})), func(o *Options) { o.Timeout = 50 * time.Millisecond })
	defer close(release)
	err := calls["create"](t.Context(), b)
	if backend.OutcomeOf(err) != backend.Unknown || !strings.Contains(err.Error(), "no answer in time (50ms)") || errors.Is(err, context.Canceled) {
		t.Errorf("create: %v (%s)", err, backend.OutcomeOf(err))
	}
	asked.Store(0)
	f.mu.Lock()
	f.objects["key"] = sumOf(fakeObject{body: []byte("x")})
	f.mu.Unlock()
	if err := calls["get"](t.Context(), b); err != nil {
		t.Errorf("get after a timeout: %v", err)
	}
}

// A call that is cancelled while the request is under way is in doubt; an answer that arrives anyway counts.
func TestCancelled(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	b := dial(t, serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		cancel()
		<-r.Context().Done()
	})), nil)
	if err := calls["create"](ctx, b); backend.OutcomeOf(err) != backend.Unknown || !errors.Is(err, context.Canceled) {
		t.Errorf("create: %v (%s)", err, backend.OutcomeOf(err))
	}
}

// Close wakes up waiting calls, and waits for active ones.
func TestClose(t *testing.T) {
	begun, release := make(chan struct{}), make(chan struct{})
	f := newFake()
	b := dial(t, serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		close(begun)
		<-release
		f.ServeHTTP(w, r)
	})), nil)
	put := make(chan error, 1)
	go func() { put <- calls["create"](t.Context(), b) }()
	<-begun
	closed := make(chan error, 1)
	go func() { closed <- b.Close() }()
	<-b.life.Done()
	if err := calls["get"](t.Context(), b); !errors.Is(err, backend.ErrClosed) {
		t.Errorf("get during close: %v", err)
	}
	close(release)
	if err := errors.Join(<-put, <-closed); err != nil {
		t.Errorf("a put that was under way: %v", err)
	}
	waiting := make(chan struct{})
	b = dial(t, serve(t, f), func(o *Options) {
		o.Rate = 1
		o.Sleep = func(ctx context.Context, _ time.Duration) error { close(waiting); <-ctx.Done(); return ctx.Err() }
	})
	if err := calls["put"](t.Context(), b); err != nil {
		t.Fatal(err)
	}
	go func() { put <- calls["put"](t.Context(), b) }()
	<-waiting
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	if err := <-put; !errors.Is(err, backend.ErrClosed) || backend.OutcomeOf(err) != backend.NotApplied {
		t.Errorf("a put that waited for its turn: %v (%s)", err, backend.OutcomeOf(err))
	}
}

// A source of credentials that fails is not an answer of the bucket: nothing was sent there.
func TestNoCredentials(t *testing.T) {
	imds := &smithy.OperationError{ServiceID: "ec2imds", OperationName: "GetMetadata", Err: &smithyhttp.ResponseError{
		Response: &smithyhttp.Response{Response: &http.Response{StatusCode: http.StatusForbidden}}, Err: errors.New("request to EC2 IMDS failed"),
	}}
	err := &smithy.OperationError{ServiceID: "S3", OperationName: "PutObject", Err: fmt.Errorf("get identity: get credentials: %w", imds)}
	v := (&Backend{bucket: "b"}).classify(t.Context(), &attempt{ctx: t.Context()}, err)
	if v.outcome != backend.NotApplied || v.again || !strings.Contains(v.cause.Error(), "no credentials") {
		t.Errorf("got %+v", v)
	}
}
