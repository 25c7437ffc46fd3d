package s3

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"

	"github.com/coppice-go/coppice/backend"
	"github.com/coppice-go/coppice/internal/testutil"
)

func checksum(p []byte) string {
	return base64.StdEncoding.EncodeToString(binary.BigEndian.AppendUint32(nil, crc32.Checksum(p, castagnoli)))
}

// The content of a request: condition, checksum, encryption, class, payer. Also over TLS the body is sent unchanged,
// with a length and without a trailer.
func TestRequests(t *testing.T) {
	for _, secure := range []bool{false, true} {
		f := newFake()
		server := httptest.NewUnstartedServer(f)
		if secure {
			server.StartTLS()
		} else {
			server.Start()
		}
		t.Cleanup(server.Close)
		b := dial(t, server.URL, func(o *Options) {
			o.SSE, o.KMSKey, o.StorageClass, o.RequesterPays = "aws:kms", "alias/k", "STANDARD_IA", true
			if secure {
				roots := x509.NewCertPool()
				roots.AddCert(server.Certificate())
				o.Config.HTTPClient = awshttp.NewBuildableClient().WithTransportOptions(func(tr *http.Transport) {
					tr.TLSClientConfig = &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}
				})
			}
		})
		body := bytes.Repeat([]byte("large "), 1<<20)
		info, err := b.Put(t.Context(), "a/key", body, backend.IfAbsent())
		if err != nil {
			t.Fatal(err)
		}
		if _, err := b.Put(t.Context(), "a/key", []byte("x"), backend.IfMatch(info.Version)); err != nil {
			t.Fatal(err)
		}
		for i, want := range []map[string]string{
			{"If-None-Match": "*", "X-Amz-Checksum-Crc32c": checksum(body)},
			{"If-Match": `"` + string(info.Version) + `"`, "X-Amz-Checksum-Crc32c": checksum([]byte("x"))},
		} {
			r := f.log[i]
			want["X-Amz-Server-Side-Encryption"], want["X-Amz-Server-Side-Encryption-Aws-Kms-Key-Id"] = "aws:kms", "alias/k"
			want["X-Amz-Storage-Class"], want["X-Amz-Request-Payer"] = "STANDARD_IA", "requester"
			want["X-Amz-Trailer"], want["Content-Encoding"] = "", ""
			for name, value := range want {
				if got := r.Header.Get(name); got != value {
					t.Errorf("secure %v, request %d, %s: %q, want %q", secure, i, name, got, value)
				}
			}
			if unsigned := r.Header.Get("X-Amz-Content-Sha256") == "UNSIGNED-PAYLOAD"; unsigned != secure || len(r.TransferEncoding) > 0 {
				t.Errorf("secure %v, request %d: payload %q, transfer encoding %v", secure, i, r.Header.Get("X-Amz-Content-Sha256"), r.TransferEncoding)
			}
			if !strings.Contains(r.UserAgent(), "coppice") {
				t.Errorf("user agent %q", r.UserAgent())
			}
		}
		if strings.Contains(string(info.Version), `"`) {
			t.Errorf("version %q holds a quote", info.Version)
		}
	}
}

// One GET for each range, and a HEAD if no byte is needed; also if the store ignores ranges.
func TestRangeRequests(t *testing.T) {
	f := newFake()
	ignore := false
	b := dial(t, serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked := r.Header.Get("Range")
		if ignore {
			r.Header.Del("Range")
		}
		f.ServeHTTP(w, r)
		r.Header.Set("Range", asked)
	})), nil)
	if _, err := b.Put(t.Context(), "key", []byte("0123456789"), backend.Cond{}); err != nil {
		t.Fatal(err)
	}
	for _, ignore = range []bool{false, true} {
		for _, c := range []struct {
			r                    backend.Range
			method, header, want string
		}{
			{backend.Range{}, "GET", "", "0123456789"},
			{backend.Bytes(2, 3), "GET", "bytes=2-4", "234"},
			{backend.Bytes(9, 1), "GET", "bytes=9-9", "9"},
			{backend.Bytes(10, 0), "HEAD", "", ""},
			{backend.Tail(0), "HEAD", "", ""},
			{backend.Tail(4), "GET", "bytes=-4", "6789"},
			{backend.Tail(99), "GET", "bytes=-99", "0123456789"},
			{backend.Tail(1 << 62), "GET", "bytes=-67108865", "0123456789"},
		} {
			f.log = nil
			p, info, err := b.Get(t.Context(), "key", c.r)
			if err != nil || string(p) != c.want || info.Size != 10 {
				t.Errorf("%s: %q, %+v, %v", c.r, p, info, err)
			}
			if len(f.log) != 1 || f.log[0].Method != c.method || f.log[0].Header.Get("Range") != c.header {
				t.Errorf("%s: %d requests, %s %q; want %s %q", c.r, len(f.log), f.log[0].Method, f.log[0].Header.Get("Range"), c.method, c.header)
			}
		}
	}
}

// A tail that is longer than the object is the object, also if the store refuses such a range.
func TestLongTailRefused(t *testing.T) {
	f := newFake()
	b := dial(t, serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Range") != "" {
			refuse(w, http.StatusRequestedRangeNotSatisfiable, "InvalidRange")
			return
		}
		f.ServeHTTP(w, r)
	})), nil)
	for _, body := range []string{"0123456789", ""} {
		if _, err := b.Put(t.Context(), "key", []byte(body), backend.Cond{}); err != nil {
			t.Fatal(err)
		}
		if p, info, err := b.Get(t.Context(), "key", backend.Tail(20)); err != nil || string(p) != body || info.Size != int64(len(body)) {
			t.Errorf("tail of %q: %q, %+v, %v", body, p, info, err)
		}
	}
}

// A host with a wrong clock corrects it by the first answer.
func TestClockSkew(t *testing.T) {
	f := newFake()
	ahead := testutil.Shifted(time.Date(2126, 3, 1, 12, 0, 0, 0, time.UTC)) // ahead of any machine
	b := dial(t, serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		at, err := time.Parse("20060102T150405Z", r.Header.Get("X-Amz-Date"))
		w.Header().Set("Date", ahead.Format(http.TimeFormat))
		if err != nil || at.Sub(ahead).Abs() > 15*time.Minute {
			_, _ = io.Copy(io.Discard, r.Body)
			refuse(w, http.StatusForbidden, "RequestTimeTooSkewed")
			return
		}
		f.ServeHTTP(w, r)
	})), nil)
	if err := calls["create"](t.Context(), b); err != nil {
		t.Errorf("put by a clock three hours late: %v", err)
	}
}

// lateReader is an HTTP client that answers before it has read the body, and keeps the body.
type lateReader struct{ kept []io.Reader }

func (c *lateReader) Do(r *http.Request) (*http.Response, error) {
	var first [1]byte
	if _, err := io.ReadFull(r.Body, first[:]); err != nil {
		return nil, err
	}
	c.kept = append(c.kept, r.Body)
	if len(c.kept) == 1 {
		return nil, errors.New("broken pipe")
	}
	w := httptest.NewRecorder()
	refuse(w, http.StatusServiceUnavailable, "SlowDown")
	return w.Result(), nil
}

// TestBodyIsGivenBack: after a call has ended the caller may change the bytes, and an HTTP client that still has the
// body reads none of them.
func TestBodyIsGivenBack(t *testing.T) {
	client := &lateReader{}
	b := dial(t, "http://127.0.0.1:1", func(o *Options) { o.Config.HTTPClient = client })
	for range 2 {
		if _, err := b.Put(t.Context(), "key", []byte("caller's bytes"), backend.Cond{}); err == nil {
			t.Error("the put succeeded")
		}
	}
	if len(client.kept) != 2 {
		t.Fatalf("%d requests, want 2", len(client.kept))
	}
	for i, body := range client.kept {
		if p, _ := io.ReadAll(body); len(p) > 0 {
			t.Errorf("request %d: the client read %q after the call", i, p)
		}
	}
}

// Writes to one key are spaced; other writes, and reads, do not wait.
func TestPace(t *testing.T) {
	now := time.Unix(0, 0)
	var waits []time.Duration
	var refused atomic.Bool
	f := newFake()
	b := dial(t, serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if refused.Load() {
			refuse(w, http.StatusTooManyRequests, "TooManyRequests")
			return
		}
		f.ServeHTTP(w, r)
	})), nil)
	b.pace.now = func() time.Time { return now }
	put := func(key string) time.Duration {
		t.Helper()
		d := b.pace.next(key)
		waits = append(waits, d)
		now = now.Add(d)
		return d
	}
	for range 3 {
		if d := put("a"); d != 0 {
			t.Errorf("without a rate: waits %v", d)
		}
	}
	refused.Store(true)
	if _, err := b.Put(t.Context(), "a", nil, backend.Cond{}); err == nil {
		t.Fatal("not refused")
	}
	for i, want := range []time.Duration{time.Second, time.Second, time.Second} {
		if d := put("a"); d != want {
			t.Errorf("wait %d after a 429: %v, want %v", i, d, want)
		}
	}
	if d := put("b"); d != 0 {
		t.Errorf("another key waits %v", d)
	}
	now = now.Add(slowMemory + 2*time.Second)
	if d := put("a"); d != 0 {
		t.Errorf("a minute later: waits %v", d)
	}

	b.pace.gap = 500 * time.Millisecond
	for i, want := range []time.Duration{0, 500 * time.Millisecond, 500 * time.Millisecond} {
		if d := put("c"); d != want {
			t.Errorf("wait %d at two writes a second: %v, want %v", i, d, want)
		}
	}
	now = now.Add(200 * time.Millisecond)
	if d := put("c"); d != 300*time.Millisecond {
		t.Errorf("wait after 200 ms: %v", d)
	}
	for i := range 3 * paceKeys {
		b.pace.next(string(rune('a'+i%26)) + strings.Repeat("x", i%1000) + string(rune('a'+i/1000)))
	}
	if n := len(b.pace.keys); n > paceKeys {
		t.Errorf("%d keys are remembered", n)
	}
}
