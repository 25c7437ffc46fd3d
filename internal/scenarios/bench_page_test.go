package scenarios_test

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"testing"
	"time"

	"github.com/coppice-go/coppice"
	"github.com/coppice-go/coppice/backend"
)

// BenchmarkPage is 50 entries of sessions of several lengths on a warm disk, in each direction and from random places,
// the tree being there: the median time over that at the first length, taken in turn, and at the longest the time, the
// requests and the bytes. COPPICE_LONG adds 1,000,000 entries.
func BenchmarkPage(b *testing.B) {
	all := lengths()
	store, ids := longStore(b, all...)
	sessions := make([]*coppice.Session, len(all))
	for i, id := range ids {
		s, err := store.Open(b.Context(), id, &coppice.SessionOptions{ReadOnly: true})
		if err != nil {
			b.Fatal(err)
		}
		defer s.Close()
		sessions[i] = s
	}
	for name, p := range map[string]coppice.Page{
		"newest": {Reverse: true}, "up": {Reverse: true, After: "x"}, "down": {After: "x"},
		"backward": {All: true, Reverse: true, After: "x"},
	} {
		b.Run(name, func(b *testing.B) {
			places := rand.New(rand.NewPCG(1, 2))
			times := make([][]time.Duration, len(all))
			var io backend.IO
			for b.Loop() {
				for i, s := range sessions {
					if p.After != "" {
						p.After = fmt.Sprintf("%08x", 60+places.IntN(all[i]-120))
					}
					p.Limit = 50
					before, begun := s.IO(), time.Now()
					readPage(b, s, p)
					times[i], io = append(times[i], time.Since(begun)), s.IO().Sub(before)
				}
			}
			first, last := median(times[0]), len(all)-1
			for i, n := range all {
				b.ReportMetric(float64(median(times[i]))/float64(first), fmt.Sprintf("x-of-%d-at-%d", all[0], n))
			}
			b.ReportMetric(float64(median(times[last]).Microseconds())/1000, "ms-p50")
			b.ReportMetric(float64(io.Get), "get")
			b.ReportMetric(float64(io.BytesRead), "bytes-read")
			b.ReportMetric(0, "ns/op")
		})
	}
}

func readPage(b *testing.B, s *coppice.Session, p coppice.Page) {
	b.Helper()
	got := 0
	for _, err := range s.Page(b.Context(), p) {
		if err != nil {
			b.Fatal(err)
		}
		got++
	}
	if got != p.Limit {
		b.Fatalf("%d entries of %+v", got, p)
	}
}

// BenchmarkFirstTree is the first Session.Tree of a handle on a warm disk: time, what it allocates, what it keeps, and
// what it reads.
func BenchmarkFirstTree(b *testing.B) {
	all := lengths()
	store, sessions := longStore(b, all...)
	for i, n := range all {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			b.ReportAllocs()
			var kept, read int64
			for b.Loop() {
				b.StopTimer()
				s, err := store.Open(b.Context(), sessions[i], &coppice.SessionOptions{ReadOnly: true})
				if err != nil {
					b.Fatal(err)
				}
				heap, io := heapNow(), s.IO()
				b.StartTimer()
				tree, err := s.Tree(b.Context())
				if err != nil {
					b.Fatal(err)
				}
				b.StopTimer()
				kept, read = kept+heapNow()-heap, read+s.IO().Sub(io).BytesRead
				if err := s.Close(); err != nil || tree.Len() < n {
					b.Fatal(err, tree.Len())
				}
				b.StartTimer()
			}
			b.ReportMetric(float64(kept)/float64(b.N)/float64(n), "bytes-kept/entry")
			b.ReportMetric(float64(read)/float64(b.N)/float64(n), "bytes-read/entry")
		})
	}
}

func heapNow() int64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}
