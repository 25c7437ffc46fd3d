package local_test

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/coppice-go/coppice/backend"
	"github.com/coppice-go/coppice/backend/local"
	"github.com/coppice-go/coppice/internal/vfs"
)

// BenchmarkAppend measures Append of 4 KiB against a bare append and fdatasync of the same bytes on the same disk,
// alternately, and reports the ratio of the medians.
func BenchmarkAppend(b *testing.B) {
	dir := b.TempDir()
	store, err := local.Open(filepath.Join(dir, "store"), nil)
	if err != nil {
		b.Fatal(err)
	}
	defer store.Close()
	if _, err := store.Put(ctx, logKey, nil, backend.IfAbsent()); err != nil {
		b.Fatal(err)
	}
	bare, err := vfs.OS(dir).OpenFile("bare", os.O_RDWR|os.O_CREATE|os.O_APPEND)
	if err != nil {
		b.Fatal(err)
	}
	defer bare.Close()
	p := bytes.Repeat([]byte("x"), 4<<10)
	var (
		size        int64
		ours, plain []time.Duration
	)
	for b.Loop() {
		if size+int64(len(p)) > backend.MaxObjectSize {
			b.StopTimer()
			if _, err := store.Put(ctx, logKey, nil, backend.Cond{}); err != nil {
				b.Fatal(err)
			}
			size = 0
			b.StartTimer()
		}
		begin := time.Now()
		info, err := store.Append(ctx, logKey, size, p)
		ours = append(ours, time.Since(begin))
		if err != nil {
			b.Fatal(err)
		}
		size = info.Size
		b.StopTimer()
		begin = time.Now()
		if _, err := bare.Write(p); err != nil {
			b.Fatal(err)
		}
		if err := bare.Datasync(); err != nil {
			b.Fatal(err)
		}
		plain = append(plain, time.Since(begin))
		b.StartTimer()
	}
	slices.Sort(ours)
	slices.Sort(plain)
	us := func(d time.Duration) float64 { return float64(d.Nanoseconds()) / 1e3 }
	b.ReportMetric(us(ours[len(ours)/2]), "p50-us")
	b.ReportMetric(us(plain[len(plain)/2]), "bare-p50-us")
	b.ReportMetric(us(ours[len(ours)/2])/us(plain[len(plain)/2]), "ratio")
}
