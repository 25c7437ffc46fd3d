package s3

import (
	"context"
	"errors"
	"net/url"
	"strings"
	"testing"

	"github.com/coppice-go/coppice/backend"
)

func TestAddress(t *testing.T) {
	u, err := url.Parse("s3://bucket.of.mine/a/prefix/?region=eu-central-1&endpoint=https%3A%2F%2Fs3.example.com%3A9000&path-style=true&sse=aws:kms&kms-key=alias/k&storage-class=STANDARD_IA&request-payer=requester&rate=1.5")
	if err != nil {
		t.Fatal(err)
	}
	bucket, prefix, o, err := parseURL(u)
	want := Options{
		Region: "eu-central-1", Endpoint: "https://s3.example.com:9000", PathStyle: true,
		SSE: "aws:kms", KMSKey: "alias/k", StorageClass: "STANDARD_IA", RequesterPays: true, Rate: 1.5,
	}
	if err != nil || bucket != "bucket.of.mine" || prefix != "a/prefix" {
		t.Fatalf("%q, %q, %v", bucket, prefix, err)
	}
	if o.Region != want.Region || o.Endpoint != want.Endpoint || o.PathStyle != want.PathStyle || o.SSE != want.SSE || o.KMSKey != want.KMSKey ||
		o.StorageClass != want.StorageClass || o.RequesterPays != want.RequesterPays || o.Rate != want.Rate {
		t.Errorf("%+v, want %+v", *o, want)
	}
}

func TestBadAddresses(t *testing.T) {
	t.Setenv("AWS_REGION", "")
	t.Setenv("AWS_DEFAULT_REGION", "")
	t.Setenv("AWS_CONFIG_FILE", t.TempDir()+"/none")
	t.Setenv("AWS_SHARED_CREDENTIALS_FILE", t.TempDir()+"/none")
	for address, says := range map[string]string{
		"s3:":                                "s3://bucket/prefix",
		"s3:///prefix":                       "s3://bucket/prefix",
		"s3:bucket":                          "s3://bucket/prefix",
		"s3://key:secret@bucket":             "credentials",
		"s3://bucket:9000/prefix":            "s3://bucket/prefix",
		"s3://bucket#x":                      "fragment",
		"s3://bucket/a//b":                   "invalid key",
		"s3://bucket/../b":                   "invalid key",
		"s3://bucket?see=aws:kms":            `unknown parameter "see"`,
		"s3://bucket?region=":                "want one value",
		"s3://bucket?region=a&region=b":      "want one value",
		"s3://bucket?path-style=perhaps":     "path-style",
		"s3://bucket?rate=fast":              "rate",
		"s3://bucket?region=x&rate=-1":       "rate",
		"s3://bucket?region=x&rate=NaN":      "rate",
		"s3://bucket?request-payer=me":       "requester",
		"s3://bucket?region=x&sse=rot13":     "sse",
		"s3://bucket?region=x&kms-key=k":     "KMS key",
		"s3://bucket?endpoint=localhost:900": "http://host:port",
		"s3://bucket?endpoint=ftp://host":    "http://host:port",
		"s3://bucket":                        "no region",
	} {
		_, err := backend.Open(t.Context(), address)
		if err == nil || !strings.Contains(err.Error(), says) || strings.Contains(err.Error(), "secret") {
			t.Errorf("open %s: %v, want an error that says %q", address, err, says)
		}
	}
}

// Opening sends no request; closing the view closes the bucket.
func TestOpenByAddress(t *testing.T) {
	t.Setenv("AWS_ACCESS_KEY_ID", "AKIDTEST")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "secret")
	f := newFake()
	address := "s3://" + testBucket + "/team/a?path-style=1&endpoint=" + url.QueryEscape(serve(t, f))
	b, err := backend.Open(context.Background(), address)
	if err != nil {
		t.Fatal(err)
	}
	if len(f.log) > 0 {
		t.Errorf("opening asked %d times", len(f.log))
	}
	if _, err := b.Put(t.Context(), "key", []byte("x"), backend.IfAbsent()); err != nil {
		t.Fatal(err)
	}
	if _, ok := f.objects["team/a/key"]; !ok {
		t.Error("the object is not below the prefix")
	}
	for range 2 {
		if err := b.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	}
	if _, err := b.(*folder).bucket.Stat(t.Context(), "key"); !errors.Is(err, backend.ErrClosed) {
		t.Errorf("the bucket is open after the view was closed: %v", err)
	}
}

func TestListOutOfOrder(t *testing.T) {
	b := dial(t, serve(t, disorder{newFake()}), nil)
	err := calls["list"](t.Context(), b)
	if err == nil || !strings.Contains(err.Error(), "does not list in order") {
		t.Errorf("list: %v", err)
	}
}
