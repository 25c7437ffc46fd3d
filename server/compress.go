package server

import (
	"net/http"
	"strings"

	"github.com/klauspost/compress/gzhttp"
)

// minCompressed is the least size of an answer that is compressed, in bytes.
const minCompressed = 1024

// compressed compresses answers as the client accepts it, with zstd or gzip. ETags stay: they name what is stored.
// Streams of events pass as they are, for nothing may hold an event back, and ranges of blobs too.
func compressed(next http.Handler) (http.Handler, error) {
	wrap, err := gzhttp.NewWrapper(gzhttp.MinSize(minCompressed), gzhttp.EnableZstd(true), gzhttp.PreferZstd(true),
		gzhttp.ContentTypeFilter(func(kind string) bool {
			return strings.HasPrefix(kind, "application/json") || strings.HasPrefix(kind, "application/problem+json") ||
				strings.HasPrefix(kind, "application/x-ndjson") || strings.HasPrefix(kind, "text/plain") ||
				strings.HasPrefix(kind, "text/html") || strings.HasPrefix(kind, "text/css") ||
				strings.HasPrefix(kind, "text/javascript")
		}))
	if err != nil {
		return nil, err
	}
	packed := wrap(next)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "/events") || strings.Contains(r.URL.Path, "/blobs/") {
			next.ServeHTTP(w, r)
			return
		}
		packed.ServeHTTP(w, r)
	}), nil
}
