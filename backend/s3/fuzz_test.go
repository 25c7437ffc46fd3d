package s3

import (
	"net/url"
	"testing"

	"github.com/coppice-go/coppice/backend"
)

// FuzzParseURL parses any address: the result is an error, or a bucket with an empty prefix or one that is a key.
// Secrets in an address and unknown parameters are never accepted.
func FuzzParseURL(f *testing.F) {
	for _, s := range []string{
		"s3://bucket", "s3://bucket/a/b?region=eu&endpoint=http://127.0.0.1:9000&path-style=true&rate=3.5", "s3://bucket/../x", "s3://key:secret@bucket/x", "s3://bucket:80/x", "s3:bucket",
		"s3://bucket/x#f", "s3://bucket/a//b", "s3://bucket/%2e%2e/b", "s3://b?sse=", "s3://b?sse=a&sse=b", "s3://b?rate=NaN", "s3://b?rate=-1", "s3://b?request-payer=me", "s3://b?;",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, address string) {
		u, err := url.Parse(address)
		if err != nil {
			return
		}
		bucket, prefix, o, err := parseURL(u)
		if err != nil {
			return
		}
		if bucket == "" || o == nil || u.User != nil || u.Fragment != "" {
			t.Fatalf("%q: bucket %q, options %v", address, bucket, o)
		}
		if prefix != "" && backend.ValidKey(prefix) != nil {
			t.Fatalf("%q: prefix %q", address, prefix)
		}
		for name := range u.Query() {
			if parameters[name] == nil {
				t.Fatalf("%q: parameter %q was taken", address, name)
			}
		}
	})
}
