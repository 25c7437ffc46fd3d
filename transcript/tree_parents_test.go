package transcript

import (
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/coppice-go/coppice/internal/testutil"
)

// linesOf reads "id<parent" pairs: a parent "-" is null, "?" no parent that is a string.
func linesOf(spec string) []Line {
	var lines []Line
	for s := range strings.FieldsSeq(spec) {
		id, parent, _ := strings.Cut(s, "<")
		l := Line{Type: "message", ID: id}
		if parent != "-" && parent != "?" {
			l.HasParent, l.ParentID = true, parent
		}
		lines = append(lines, l)
	}
	return lines
}

func TestResolveParents(t *testing.T) {
	tests := []struct{ name, lines, parents, diag string }{
		{"none", "", "[]", ""},
		{"chain", "a<- b<a c<b", "[-1 0 1]", ""},
		{"branches", "a<- b<a c<a d<b", "[-1 0 0 1]", ""},
		{"two roots", "a<- b<?", "[-1 -1]", ""},
		{"missing", "a<- b<x c<b", "[-1 -1 1]", "orphan:b@1"},
		{"self", "a<- b<b c<b", "[-1 -1 1]", "self-parent:b@1"},
		{"ahead", "a<- b<c c<a", "[-1 2 0]", ""},
		{"cycle of two, cut before the last line", "a<b b<a", "[-1 0]", "cycle:a@0"},
		{"cycle of three", "a<c b<a c<b", "[-1 0 1]", "cycle:a@0"},
		{"cycle above the leaf", "a<c b<a c<b d<a", "[2 -1 1 0]", "cycle:b@1"},
		{"two cycles", "a<b b<a c<d d<c", "[-1 0 -1 2]", "cycle:a@0 cycle:c@2"},
		{"last one with an id wins", "a<- b<a b<a c<b", "[-1 0 0 2]", "duplicate-id:b@1"},
		{"a repeated id closes a cycle", "a<- b<a a<b c<a", "[-1 -1 1 2]", "duplicate-id:a@0 cycle:b@1"},
		{"a repeated id names itself", "a<- a<a b<a", "[-1 -1 1]", "duplicate-id:a@0 self-parent:a@1"},
		{"empty ids are nobody's parent", "<- a<- b<a", "[-1 -1 1]", ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			parents, diag := ResolveParents(linesOf(tt.lines))
			var got []string
			for _, d := range diag {
				got = append(got, fmt.Sprintf("%s:%s@%d", d.Kind, d.Entry, d.Ordinal))
			}
			if fmt.Sprint(parents) != tt.parents || strings.Join(got, " ") != tt.diag {
				t.Errorf("%v %v, want %v %v", parents, got, tt.parents, tt.diag)
			}
		})
	}
}

// TestResolveParentsEnds: every walk ends, and the walk from the last line is the one that omp makes: by
// id, last line of an id first, until an id comes again.
func TestResolveParentsEnds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 12).Draw(t, "n")
		lines := make([]Line, n)
		last := map[string]int{}
		for i := range lines {
			lines[i] = Line{ID: fmt.Sprint("e", rapid.IntRange(0, n).Draw(t, "id"))}
			if p := rapid.IntRange(-1, n).Draw(t, "parent"); p >= 0 {
				lines[i].HasParent, lines[i].ParentID = true, fmt.Sprint("e", p)
			}
			last[lines[i].ID] = i
		}
		parents, _ := ResolveParents(lines)
		for i := range lines {
			for at, steps := int64(i), 0; at >= 0; at = parents[at] {
				if steps++; steps > n {
					t.Fatalf("the walk from %d does not end: %v", i, parents)
				}
			}
		}
		var want, got []int64
		seen := map[string]bool{}
		for at, ok := n-1, true; ok && !seen[lines[at].ID]; at, ok = last[lines[at].ParentID] {
			seen[lines[at].ID] = true
			want = append(want, int64(at))
			if !lines[at].HasParent {
				break
			}
		}
		for at := int64(n - 1); at >= 0; at = parents[at] {
			got = append(got, at)
		}
		if fmt.Sprint(want) != fmt.Sprint(got) {
			t.Fatalf("walk %v, want %v", got, want)
		}
	})
}

// TestResolveParentsIsLinear resolves a chain, a star and one great cycle of 2^20 lines each. A walk that is quadratic
// takes 2^39 steps, and does not end before the time limit of the test binary.
func TestResolveParentsIsLinear(t *testing.T) {
	testutil.SkipLong(t)
	testutil.SkipLong(t)
	const n = 1 << 20
	lines := make([]Line, n)
	for i := range lines {
		lines[i] = Line{ID: fmt.Sprint("e", i), HasParent: true}
	}
	for name, parent := range map[string]func(i int) int{
		"chain": func(i int) int { return i - 1 },
		"ahead": func(i int) int { return i + 1 },
		"star":  func(int) int { return 0 },
		"cycle": func(i int) int { return (i + n - 1) % n },
	} {
		for i := range lines {
			lines[i].ParentID = fmt.Sprint("e", parent(i))
		}
		if parents, diag := ResolveParents(lines); len(parents) != n || len(diag) > 101 {
			t.Errorf("%s: %d parents, %d diagnostics", name, len(parents), len(diag))
		}
	}
}
