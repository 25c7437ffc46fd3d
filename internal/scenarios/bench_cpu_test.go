package scenarios_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/coppice-go/coppice"
	"github.com/coppice-go/coppice/backend"
	"github.com/coppice-go/coppice/backend/memory"
	"github.com/coppice-go/coppice/entry"
	"github.com/coppice-go/coppice/snapshot"
)

// noSnapshots keeps the work that comes round every 50 commits out of a measurement of one.
var noSnapshots = &coppice.SessionOptions{Snapshots: snapshot.Policy{Every: -1}}

// stores without I/O, on which a commit costs the processor time of the protocol alone.
var memoryStores = []struct {
	name string
	open func() backend.Backend
}{
	{"append", func() backend.Backend { return memory.NewAppender() }},
	{"replace", func() backend.Backend { return memory.New() }},
}

// BenchmarkCommitCPU is a turn of two messages and a state of 1 KB: the processor time of the whole process,
// background work and collection included. Targets: 35 us where the store appends, 150 us where it replaces.
func BenchmarkCommitCPU(b *testing.B) {
	for _, kind := range memoryStores {
		b.Run(kind.name, func(b *testing.B) {
			s := sessionOf(b, kind.open(), noSnapshots)
			text, note := strings.Repeat("w", 400), strings.Repeat("s", 900)
			commitNote(b, s, text, note, 0)
			b.ReportAllocs()
			start := processorTime(b)
			for i := 1; b.Loop(); i++ {
				commitNote(b, s, text, note, i)
			}
			b.ReportMetric(float64((processorTime(b)-start).Nanoseconds())/1000/float64(b.N), "cpu-us/op")
		})
	}
}

// BenchmarkCommitByContext is the same turn where the store replaces objects, as S3 does, with contexts of 0.1, 1 and
// 4 MiB of prose: each commit PUTs the checkpoint, which holds the context.
func BenchmarkCommitByContext(b *testing.B) {
	for _, size := range []struct {
		name  string
		bytes int
	}{{"0.1MiB", 100 << 10}, {"1MiB", 1 << 20}, {"4MiB", 4 << 20}} {
		b.Run(size.name, func(b *testing.B) {
			o := *noSnapshots
			o.ContextBytes = -1
			s := sessionOf(b, memory.New(), &o)
			for n := 0; n < size.bytes; n += 4 << 10 { // n is the seed as well
				if _, err := s.Append(b.Context(), entry.User(prose(n, 4<<10))); err != nil {
					b.Fatal(err)
				}
			}
			commitNote(b, s, prose(0, 400), prose(1, 900), 0)
			before, start := s.IO().BytesWritten, processorTime(b)
			for i := 1; b.Loop(); i++ {
				commitNote(b, s, prose(2*i, 400), prose(2*i+1, 900), i)
			}
			b.ReportMetric(float64((processorTime(b)-start).Nanoseconds())/1000/float64(b.N), "cpu-us/op")
			b.ReportMetric(float64(s.IO().BytesWritten-before)/float64(b.N), "bytes-put/op")
		})
	}
}

// BenchmarkCommitAboveBound is the same turn where the context has passed its bound of 1 MiB, so that it is cut. It
// costs what a turn below the bound costs, and where the front moves a look at what the window holds.
func BenchmarkCommitAboveBound(b *testing.B) {
	o := *noSnapshots
	o.ContextBytes = 1 << 20
	s := sessionOf(b, memory.NewAppender(), &o)
	text, note := strings.Repeat("w", 400), strings.Repeat("s", 900)
	for range 2000 {
		if _, err := s.Append(b.Context(), entry.User(text), entry.Assistant(text)); err != nil {
			b.Fatal(err)
		}
	}
	commitNote(b, s, text, note, 0)
	start := processorTime(b)
	for i := 1; b.Loop(); i++ {
		commitNote(b, s, text, note, i)
	}
	b.ReportMetric(float64((processorTime(b)-start).Nanoseconds())/1000/float64(b.N), "cpu-us/op")
}

func commitNote(tb testing.TB, s *coppice.Session, text, note string, i int) {
	tb.Helper()
	if _, err := s.Append(tb.Context(), entry.User(text), entry.Assistant(text)); err != nil {
		tb.Fatal(err)
	}
	if _, err := s.Commit(tb.Context(), coppice.Turn{State: map[string]any{"turn": i, "note": note}}); err != nil {
		tb.Fatal(err)
	}
}

func sessionOf(tb testing.TB, d backend.Backend, o *coppice.SessionOptions) *coppice.Session {
	tb.Helper()
	store, err := coppice.New(d, nil)
	if err != nil {
		tb.Fatal(err)
	}
	s, err := store.Create("", o)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = s.Close() })
	return s
}

// prose is text of about n bytes that does not only repeat itself.
func prose(seed, n int) string {
	words := strings.Fields("the function returns an error when the file is not found so we check the path and then read it")
	var t strings.Builder
	x := uint32(seed)*2654435761 + 12345
	for t.Len() < n {
		x = x*1664525 + 1013904223
		t.WriteString(words[int(x>>8)%len(words)])
		if x>>28 == 3 {
			fmt.Fprintf(&t, " %x", x)
		}
		t.WriteByte(' ')
	}
	return t.String()
}
