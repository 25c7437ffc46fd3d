package backend_test

import (
	"context"
	"errors"
	"net/url"
	"strings"
	"testing"

	"github.com/coppice-go/coppice/backend"
	"github.com/coppice-go/coppice/backend/memory"
)

var errSeen = errors.New("seen by the driver")

func init() {
	backend.Register("fuzz", func(context.Context, *url.URL) (backend.Backend, error) { return nil, errSeen })
}

// FuzzOpen opens any address: it reaches a driver or is an error, and no error contains a password.
func FuzzOpen(f *testing.F) {
	for _, s := range []string{
		"", "fuzz://bucket/prefix?a=b", "fuzz:x", "h/p", "[::1/%zz", "FUZZ://x", "mem:", "C:\\dir", "s3:", "file://%00", "://", "a b:", "nosuch://x", "h:port",
	} {
		f.Add(s)
	}
	const secret = "hunter22secret"
	f.Fuzz(func(t *testing.T, address string) {
		b, err := backend.Open(t.Context(), address)
		if err == nil {
			if err := b.Close(); err != nil {
				t.Fatal(err)
			}
		}
		if strings.HasPrefix(address, "fuzz:") && url.PathEscape(address[5:]) == address[5:] && address != "fuzz:" && !errors.Is(err, errSeen) {
			t.Fatalf("%q did not reach its driver: %v", address, err)
		}
		for _, scheme := range []string{"fuzz", "s3", "file", "nosuch"} {
			_, err := backend.Open(t.Context(), scheme+"://user:"+secret+"@"+address)
			if err != nil && strings.Contains(err.Error(), secret) && !strings.Contains(address, "hunter") {
				t.Fatalf("the password of %q stands in: %v", address, err)
			}
		}
	})
}

// A memory store below any prefix: objects written through the view are stored below it, and nowhere else.
func FuzzPrefix(f *testing.F) {
	for _, s := range [][2]string{{"a", "k"}, {"a/", "../b"}, {"..", "k"}, {"a/b", "k/l"}, {"", "k"}, {"/a", "/k"}, {"a", "."}} {
		f.Add(s[0], s[1])
	}
	f.Fuzz(func(t *testing.T, prefix, key string) {
		inner := memory.New()
		_, err := backend.WithPrefix(inner, prefix).Put(t.Context(), key, []byte("x"), backend.Cond{})
		found := 0
		for info, lerr := range inner.List(t.Context(), backend.ListOptions{}) {
			if lerr != nil {
				t.Fatal(lerr)
			}
			root := strings.Trim(prefix, "/")
			if found++; root != "" && !strings.HasPrefix(info.Key, root+"/") || !strings.HasSuffix(info.Key, key) {
				t.Fatalf("%q below %q was written as %q", key, prefix, info.Key)
			}
		}
		if (err == nil) != (found == 1) {
			t.Fatalf("%q below %q: %v, and %d objects", key, prefix, err, found)
		}
	})
}
