package serve

import (
	"fmt"
	"iter"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"testing"
	"time"

	coppice "github.com/coppice-go/coppice"
	"github.com/coppice-go/coppice/backend/local"
	"github.com/coppice-go/coppice/entry"
	"github.com/coppice-go/coppice/server"
	"github.com/coppice-go/coppice/transcript"
)

// BenchmarkResume is GET /resume of a session on a disk, whose context is 50 messages of 400 bytes: the time within the
// handler, from the request to the last written byte, p50; and the ratio of the longest session to one of 1,000
// entries. Target: 1 ms at 10 and at 1,000,000 entries (COPPICE_LONG=1; its import takes most of a minute).
func BenchmarkResume(b *testing.B) {
	sizes := []int{10, 1000, 50_000}
	if os.Getenv("COPPICE_LONG") != "" {
		sizes = append(sizes, 1_000_000)
	}
	d, err := local.Open(b.TempDir(), nil)
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = d.Close() }()
	st, err := coppice.New(d, nil)
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = st.Close() }()
	srv, err := server.New(server.Options{Store: st})
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = srv.Close() }()
	var ids []string
	for _, n := range sizes {
		s, err := st.Import(b.Context(), long(n), nil)
		if err != nil {
			b.Fatal(err)
		}
		if err := s.Close(); err != nil {
			b.Fatal(err)
		}
		ids = append(ids, s.ID())
	}
	times := make([][]time.Duration, len(sizes))
	for b.Loop() {
		for i, id := range ids { // alternately, so that noise affects all
			req := httptest.NewRequestWithContext(b.Context(), http.MethodGet, "/v1/sessions/"+id+"/resume", nil)
			req.Host = "localhost"
			w := httptest.NewRecorder()
			begun := time.Now()
			srv.ServeHTTP(w, req)
			times[i] = append(times[i], time.Since(begun))
			if w.Code != http.StatusOK || w.Body.Len() < 2000 {
				b.Fatalf("%d %s", w.Code, w.Body)
			}
		}
	}
	for i, n := range sizes {
		b.ReportMetric(median(times[i]).Seconds()*1000, fmt.Sprintf("ms-p50/%d", n))
	}
	b.ReportMetric(float64(median(times[len(sizes)-1]))/float64(median(times[1])), "x-of-1000-entries")
}

func median(list []time.Duration) time.Duration {
	slices.Sort(list)
	return list[len(list)/2]
}

// long yields a session of n entries that compacts every 100, the last time 50 before its end: however long it is, its
// context is 50 messages.
func long(n int) iter.Seq2[transcript.Draft, error] {
	return func(yield func(transcript.Draft, error) bool) {
		if !yield(entry.Line([]byte(`{"type":"session","version":3,"id":"long","timestamp":"2026-01-01T00:00:00.000Z","cwd":"/w"}`)), nil) {
			return
		}
		parent := "null"
		for i := range n {
			head := fmt.Sprintf(`"id":"%08x","parentId":%s,"timestamp":"2026-01-01T00:00:01.000Z"`, i, parent)
			line := fmt.Sprintf(`{"type":"message",%s,"message":{"role":"user","content":%q}}`, head,
				fill(fmt.Sprintf("message %d ", i), 400))
			if (n-i)%100 == 50 && n > 50 {
				line = fmt.Sprintf(`{"type":"compaction",%s,"summary":"so far","firstKeptEntryId":"%08x","tokensBefore":1000}`,
					head, i-1)
			}
			if !yield(entry.Line([]byte(line)), nil) {
				return
			}
			parent = fmt.Sprintf(`"%08x"`, i)
		}
	}
}
