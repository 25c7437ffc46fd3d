package integration

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/coppice-go/coppice"
	"github.com/coppice-go/coppice/backend"
	"github.com/coppice-go/coppice/entry"
	"github.com/coppice-go/coppice/integration/s3test"
	"github.com/coppice-go/coppice/snapshot"
)

// race measures two functions alternately, so that noise affects both, and reports the medians and their ratio.
func race(b *testing.B, ours, bare func(n int)) {
	b.Helper()
	var times [2][]time.Duration
	for n := 0; b.Loop(); n++ {
		for i, f := range []func(int){ours, bare} {
			begun := time.Now()
			f(n)
			times[i] = append(times[i], time.Since(begun))
		}
	}
	var p50 [2]time.Duration
	for i := range times {
		slices.Sort(times[i])
		p50[i] = times[i][len(times[i])/2]
	}
	b.ReportMetric(float64(p50[0].Microseconds()), "µs-p50")
	b.ReportMetric(float64(p50[1].Microseconds()), "µs-bare-p50")
	b.ReportMetric(float64(p50[0])/float64(p50[1]), "ratio")
	b.ReportMetric(0, "ns/op")
}

// agent returns a session with about 200 KB of context.
func agent(b *testing.B) (*coppice.Store, backend.Backend, *coppice.Session) {
	store := s3test.For(b).Store(b)
	cs := newStore(b, store, nil)
	s := must(cs.Create("agent", &coppice.SessionOptions{Snapshots: snapshot.Policy{Every: -1}}))(b)
	for range 100 {
		must(s.Append(b.Context(), entry.User(words(200)), entry.Assistant(words(1800))))(b)
	}
	must(s.Commit(b.Context(), coppice.Turn{State: counter{Turns: 1}}))(b)
	return cs, store, s
}

func words(n int) string { return strings.Repeat("some words of a turn ", n/20) }

// A turn's commit against a bare conditional PUT of as many bytes.
func BenchmarkCommit(b *testing.B) {
	_, store, s := agent(b)
	size := talk(b, s, 1).Bytes
	body := make([]byte, size)
	info := must(store.Put(b.Context(), "bare", body, backend.IfAbsent()))(b)
	race(b, func(n int) { size = talk(b, s, n).Bytes }, func(n int) {
		body = append(body[:0], make([]byte, size)...)
		body[0], body[1], body[2] = byte(n), byte(n>>8), byte(n>>16)
		info = must(store.Put(b.Context(), "bare", body, backend.IfMatch(info.Version)))(b)
	})
	b.ReportMetric(float64(size), "bytes")
}

// A resume, context and state included, against a bare GET of the same object.
func BenchmarkResume(b *testing.B) {
	cs, store, s := agent(b)
	if err := s.Close(); err != nil {
		b.Fatal(err)
	}
	race(b, func(int) {
		s := must(cs.Open(b.Context(), "agent", nil))(b)
		if c := must(s.Context(b.Context()))(b); len(c.Messages) != 200 || turns(b, s) != 1 {
			b.Fatalf("%d messages", len(c.Messages))
		}
		if err := s.Close(); err != nil {
			b.Fatal(err)
		}
	}, func(int) {
		if _, _, err := store.Get(b.Context(), "checkpoint_latest/agent", backend.Range{}); err != nil {
			b.Fatal(err)
		}
	})
}
