package coppice_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/coppice-go/coppice"
	"github.com/coppice-go/coppice/backend/memory"
	"github.com/coppice-go/coppice/entry"
	"github.com/coppice-go/coppice/snapshot"
)

// The memory store takes no time of its own, so these benchmarks are the processor time of the protocol that
// an object store has.

// noSnapshots keeps the work that comes round every 50 commits out of a measurement of one.
var noSnapshots = &coppice.SessionOptions{Snapshots: snapshot.Policy{Every: -1}}

func memoryStore(b *testing.B) *coppice.Store {
	b.Helper()
	s, err := coppice.New(memory.New(), nil)
	if err != nil {
		b.Fatal(err)
	}
	return s
}

// BenchmarkCommitInMemory is a turn of two messages on a store that only replaces, upon contexts of several sizes.
func BenchmarkCommitInMemory(b *testing.B) {
	for _, kb := range []int{0, 20, 200} {
		b.Run(fmt.Sprintf("context=%dKB", kb), func(b *testing.B) {
			s, err := memoryStore(b).Create("", &coppice.SessionOptions{Snapshots: noSnapshots.Snapshots, ContextBytes: max(4, kb) << 10})
			if err != nil {
				b.Fatal(err)
			}
			defer s.Close()
			for i := range kb / 2 {
				turn(b, s, i, 200, 1800)
			}
			commitTurn(b, s, 0)
			b.ReportAllocs()
			size := 0
			for i := 1; b.Loop(); i++ {
				turn(b, s, i, 60, 60)
				size += commitTurn(b, s, i)
			}
			b.ReportMetric(float64(size)/float64(b.N), "B/put")
		})
	}
}

// prose is text of about n bytes that does not only repeat itself.
func prose(seed, n int) string {
	words := strings.Fields("the function returns an error when the file is not found so we check the path first and then read it again before we open what it names")
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

func turn(b *testing.B, s *coppice.Session, i, ask, answer int) {
	b.Helper()
	if _, err := s.Append(b.Context(), entry.User(prose(2*i, ask)), entry.Assistant(prose(2*i+1, answer))); err != nil {
		b.Fatal(err)
	}
}

func commitTurn(b *testing.B, s *coppice.Session, i int) int {
	b.Helper()
	r, err := s.Commit(b.Context(), coppice.Turn{State: map[string]int{"turn": i}})
	if err != nil {
		b.Fatal(err)
	}
	return r.Bytes
}

// BenchmarkSmallSession is a session from its creation over five commits to its next opening, as a program
// that simulates many of them does it.
func BenchmarkSmallSession(b *testing.B) {
	store := memoryStore(b)
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		s, err := store.Create(fmt.Sprintf("s%d", i), noSnapshots)
		if err != nil {
			b.Fatal(err)
		}
		for j := range 5 {
			turn(b, s, j, 40, 40)
			commitTurn(b, s, j)
		}
		if err := s.Close(); err != nil {
			b.Fatal(err)
		}
		if s, err = store.Open(b.Context(), s.ID(), noSnapshots); err != nil {
			b.Fatal(err)
		}
		c, err := s.Context(b.Context())
		if err != nil || len(c.Messages) != 10 {
			b.Fatalf("%d messages, %v", len(c.Messages), err)
		}
		if err := s.Close(); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkResumeInMemory is a session of 200 KB of context, opened and shown.
func BenchmarkResumeInMemory(b *testing.B) {
	store := memoryStore(b)
	s, err := store.Create("", noSnapshots)
	if err != nil {
		b.Fatal(err)
	}
	for i := range 100 {
		turn(b, s, i, 200, 1800)
	}
	commitTurn(b, s, 1)
	if err := s.Close(); err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		s, err := store.Open(b.Context(), s.ID(), nil)
		if err != nil {
			b.Fatal(err)
		}
		if c, err := s.Context(b.Context()); err != nil || len(c.Messages) != 200 {
			b.Fatalf("%d messages, %v", len(c.Messages), err)
		}
		if err := s.Close(); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkEarlierState is a state of 40 KB that is 60 commits from the last whole document: it allocates a few copies
// of itself, not one for each commit between.
func BenchmarkEarlierState(b *testing.B) {
	s, err := memoryStore(b).Create("", noSnapshots)
	if err != nil {
		b.Fatal(err)
	}
	pad := strings.Repeat("x", 40<<10)
	for i := range 80 {
		if _, err := s.Commit(b.Context(), coppice.Turn{State: map[string]any{"pad": pad, "n": i}}); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportAllocs()
	for b.Loop() {
		v, err := s.At(b.Context(), coppice.Target{Seq: 60})
		if err != nil || len(v.Document().State) < len(pad) {
			b.Fatal(len(v.Document().State), err)
		}
	}
}
