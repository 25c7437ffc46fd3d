package transcript

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/coppice-go/coppice/codec"
	"github.com/coppice-go/coppice/internal/testutil"
)

// largeSkeletons returns the skeletons of a session of n entries, 4,096 each, with UUIDv7 ids; parent returns the
// parent of entry i.
func largeSkeletons(t testing.TB, n int, parent func(i int) int64) [][]byte {
	t.Helper()
	r := rand.New(rand.NewPCG(1, 2))
	var out [][]byte
	var rows []codec.Row
	for i := range n {
		row := codec.Row{
			ID:     fmt.Sprintf("%08x-%04x-7%03x-8%03x-%012x", i>>8, i&0xff, r.Uint32()&0xfff, r.Uint32()&0xfff, r.Uint64()&0xffffffffffff),
			Parent: parent(i), Type: "message", Flags: codec.FlagText | codec.FlagVisible, Size: 300 + r.Uint32()%2000, Time: 1767225600000 + int64(i)*700,
		}
		switch i % 4 {
		case 0:
			row.Role, row.Preview = "user", fmt.Sprintf("please have a look at file number %d and mend it", r.IntN(5000))
		case 1:
			row.Role, row.Flags, row.Preview = "assistant", codec.FlagCalls|codec.FlagVisible, fmt.Sprintf("read(internal/journal/file_%d.go)", r.IntN(900))
		case 2:
			row.Role, row.Preview = "toolResult", "package journal"
		case 3:
			row.Type, row.Role, row.Flags, row.Preview = "custom", "", codec.FlagCommit, "coppice.commit"
		}
		if rows = append(rows, row); len(rows) == 4096 || i == n-1 {
			p, err := codec.EncodeSkeleton(uint64(i+1-len(rows)), rows)
			if err != nil {
				t.Fatal(err)
			}
			out, rows = append(out, p), rows[:0]
		}
	}
	return out
}

// inTurn hangs entries on one another; commits (every fourth) hang on the entry before them.
func inTurn(i int) int64 {
	if i%4 == 0 && i > 0 {
		return int64(i) - 2
	}
	return int64(i) - 1
}

func buildLarge(t testing.TB, skeletons [][]byte, head string) *Tree {
	b := NewTreeBuilder()
	for _, p := range skeletons {
		sk, err := codec.DecodeSkeleton(p)
		if err != nil {
			t.Fatal(err)
		}
		if err := b.AddSkeleton(sk); err != nil {
			t.Fatal(err)
		}
	}
	return b.Tree(head, nil, nil)
}

// A chain of a million entries, one of a million structure entries, and a million children of one entry:
// no recursion, nothing quadratic.
func TestSizeTree(t *testing.T) {
	testutil.SkipLong(t)
	shapes := []struct {
		name, typ string
		n         int
		parent    func(i, n int) int
	}{
		{"chain", "message", 1_000_000, func(i, _ int) int { return i - 1 }},
		{"children", "custom", 1_000_000, func(i, _ int) int { return min(0, i-1) }},
		{"hidden chain", "custom", 200_000, func(i, _ int) int { return i - 1 }},
		{"backwards", "message", 200_000, func(i, n int) int { return (i+2)%(n+1) - 1 }},
		{"circle", "message", 200_000, func(i, n int) int { return (i + 1) % n }},
	}
	for _, shape := range shapes {
		t.Run(shape.name, func(t *testing.T) {
			b, n := NewTreeBuilder(), shape.n
			rows := make([]codec.Row, 0, 4096)
			for i := range n {
				rows = append(rows, codec.Row{ID: fmt.Sprintf("%08x", i), Parent: int64(shape.parent(i, n)), Type: shape.typ, Role: "user"})
				if len(rows) == 4096 || i == n-1 {
					if err := b.AddSkeleton(skeletonOf(t, i+1-len(rows), rows)); err != nil {
						t.Fatal(err)
					}
					rows = rows[:0]
				}
			}
			last := fmt.Sprintf("%08x", n-1)
			tree := b.Tree(last, nil, []codec.Row{{ID: "v1", Parent: int64(n) - 1, Type: "message"}, {ID: "v2", Parent: int64(n) - 1, Type: "message"}})
			if v, at := tree.Siblings("v2"); at < 0 || v[at].ID != "v2" || len(v) < 2 {
				t.Errorf("%d versions, at %d", len(v), at)
			}
			if leaf, ok := tree.Newest(last); !ok || leaf.ID != "v2" {
				t.Errorf("newest %+v", leaf)
			}
			if _, ok := tree.CommitOn(uint64(n)); ok {
				t.Error("a commit")
			}
			count := 0
			for range tree.Nodes(FilterUserOnly) {
				count++
			}
			if count > n {
				t.Errorf("%d nodes", count)
			}
		})
	}
}

// BenchmarkTree builds a tree of a million entries from decoded skeletons (target: 100 ms), and asks it.
func BenchmarkTree(b *testing.B) {
	const n = 1_000_000
	encoded := largeSkeletons(b, n, inTurn)
	decoded := make([]*codec.Skeleton, len(encoded))
	for i, p := range encoded {
		sk, err := codec.DecodeSkeleton(p)
		if err != nil {
			b.Fatal(err)
		}
		decoded[i] = sk
	}
	build := func() *Tree {
		t := NewTreeBuilder()
		for _, sk := range decoded {
			if err := t.AddSkeleton(sk); err != nil {
				b.Fatal(err)
			}
		}
		return t.Tree("", nil, nil)
	}
	tree := build()
	leaf, _ := tree.Newest("")
	b.Run("build", func(b *testing.B) {
		for b.Loop() {
			build()
		}
	})
	b.Run("decode+build", func(b *testing.B) {
		for b.Loop() {
			buildLarge(b, encoded, "")
		}
	})
	b.Run("build+children", func(b *testing.B) {
		for b.Loop() {
			build().Children("")
		}
	})
	b.Run("build+lookup", func(b *testing.B) {
		for b.Loop() {
			build().Node(leaf.ID)
		}
	})
	b.Run("siblings", func(b *testing.B) {
		for b.Loop() {
			tree.Siblings(leaf.ID)
		}
	})
	b.Run("search", func(b *testing.B) {
		for b.Loop() {
			for range tree.Search("number 4711") {
			}
		}
	})
}
