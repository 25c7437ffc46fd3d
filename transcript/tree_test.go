package transcript

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/coppice-go/coppice/codec"
)

// tr builds the rows of a small tree. One word a row: "id<parent kind", kinds below.
type rowKind struct {
	typ, role string
	flags     uint8
}

var rowKinds = map[string]rowKind{
	"user":  {"message", "user", codec.FlagText},
	"asst":  {"message", "assistant", codec.FlagText},
	"calls": {"message", "assistant", codec.FlagCalls},
	"fail":  {"message", "assistant", codec.FlagCalls | codec.FlagFailed},
	"res":   {"message", "toolResult", codec.FlagText},
	"model": {"model_change", "", 0},
	"cust":  {"custom", "", 0},
	"note":  {"custom_message", "", 0},
	"comp":  {"compaction", "", 0},
	"label": {"label", "", 0},
	"leaf":  {"leaf", "", 0},
	"new":   {"from_the_future", "", 0},
	"cmt":   {"custom", "", codec.FlagCommit},
}

// rowsOf reads "id<parent:kind[:target:text]" separated by white space; parent "-" is none.
func rowsOf(t testing.TB, spec string) []codec.Row {
	t.Helper()
	words := strings.Fields(spec)
	ordinals := map[string]int64{"-": codec.NoParent}
	for i, w := range words {
		id, _, _ := strings.Cut(w, "<")
		ordinals[id] = int64(i)
	}
	rows := make([]codec.Row, len(words))
	for i, w := range words {
		id, rest, _ := strings.Cut(w, "<")
		f := strings.Split(rest, ":")
		k, ok := rowKinds[f[1]]
		parent, known := ordinals[f[0]]
		if !ok || !known {
			t.Fatalf("bad word %q", w)
		}
		rows[i] = codec.Row{
			ID: id, Parent: parent, Type: k.typ, Role: k.role, Flags: k.flags, Preview: "text of " + id,
			Size: uint32(100 + i), Time: int64(1000 * (i + 1)),
		}
		if len(f) > 2 {
			rows[i].Target, rows[i].Preview = f[2], f[3]
		}
	}
	return rows
}

func skeletonOf(t testing.TB, first int, rows []codec.Row) *codec.Skeleton {
	t.Helper()
	p, err := codec.EncodeSkeleton(uint64(first), rows)
	if err != nil {
		t.Fatal(err)
	}
	sk, err := codec.DecodeSkeleton(p)
	if err != nil {
		t.Fatal(err)
	}
	return sk
}

// treeOf returns a tree of rows: a skeleton, single rows, and pending ones, so that all three occur.
func treeOf(t testing.TB, head string, rows []codec.Row, packed, single int) *Tree {
	t.Helper()
	b := NewTreeBuilder()
	if packed > 0 {
		if err := b.AddSkeleton(skeletonOf(t, 0, rows[:packed])); err != nil {
			t.Fatal(err)
		}
	}
	for _, r := range rows[packed : packed+single] {
		b.AddRow(r)
	}
	return b.Tree(head, []Branch{{"main", head}}, rows[packed+single:])
}

func ids(nodes []Node) string {
	var s []string
	for _, n := range nodes {
		s = append(s, n.ID)
	}
	return strings.Join(s, " ")
}

// forest prints nodes as id<parent.
func forest(nodes []Node) string {
	var s []string
	for _, n := range nodes {
		s = append(s, n.ID+"<"+n.ParentID)
	}
	return strings.Join(s, " ")
}

const chat = `
	c0<-:cmt m0<-:model u1<m0:user a1<u1:calls r1<a1:res a2<r1:asst c1<a2:cmt
	u2<a2:user a3<u2:fail c2<a3:cmt
	l1<a3:label:a2:works lc<a3:cmt
	m1<a2:model u3<m1:user k1<u3:comp n1<k1:note x1<n1:cust a4<x1:calls c3<a4:cmt f1<a4:new
	l2<a4:label:u3:tried l3<a4:label:u3: u4<-:user`

func TestTree(t *testing.T) {
	rows := rowsOf(t, chat)
	for _, split := range [][2]int{{0, 0}, {len(rows), 0}, {0, len(rows)}, {7, 6}, {12, 0}} {
		t.Run(fmt.Sprint(split), func(t *testing.T) {
			tree := treeOf(t, "a4", rows, split[0], split[1])
			check := func(what, got, want string) {
				t.Helper()
				if got != want {
					t.Errorf("%s:\n got %s\nwant %s", what, got, want)
				}
			}
			for f, want := range map[Filter]string{
				"":                "u1< a1<u1 r1<a1 a2<r1 u2<a2 a3<u2 u3<a2 k1<u3 n1<k1 a4<n1 f1<a4 u4<",
				FilterDefault:     "u1< a1<u1 r1<a1 a2<r1 u2<a2 a3<u2 u3<a2 k1<u3 n1<k1 a4<n1 f1<a4 u4<",
				FilterNoTools:     "u1< a2<u1 u2<a2 a3<u2 u3<a2 k1<u3 n1<k1 a4<n1 f1<a4 u4<",
				FilterUserOnly:    "u1< u2<u1 u3<u1 u4<",
				FilterLabeledOnly: "a2<",
				FilterAll:         "m0< u1<m0 a1<u1 r1<a1 a2<r1 u2<a2 a3<u2 l1<a3 m1<a2 u3<m1 k1<u3 n1<k1 x1<n1 a4<x1 f1<a4 l2<a4 l3<a4 u4<",
				"nonsense":        "",
			} {
				check("filter "+string(f), forest(slices.Collect(tree.Nodes(f))), want)
			}
			check("path", ids(slices.Collect(tree.Path("a4"))), "m0 u1 a1 r1 a2 m1 u3 k1 n1 x1 a4")
			check("path of nothing", ids(slices.Collect(tree.Path(""))), "")
			check("children", ids(tree.Children("a2")), "u2 m1")
			check("roots", ids(tree.Children("")), "m0 u4")
			check("no children", ids(tree.Children("u4")), "")
			for id, want := range map[string]string{
				"u1": "u1 u4 0", "u4": "u1 u4 1", "u2": "u2 u3 0", "u3": "u2 u3 1", "a4": "a4 0", "m1": " -1", "c1": " -1", "l1": " -1", "zz": " -1",
			} {
				versions, at := tree.Siblings(id)
				check("siblings of "+id, fmt.Sprintf("%s %d", ids(versions), at), want)
			}
			for id, want := range map[string]string{"": "u4", "m0": "f1", "a2": "f1", "u2": "a3", "a3": "a3", "l1": "l1", "u4": "u4", "c1": "", "zz": ""} {
				n, _ := tree.Newest(id)
				check("newest below "+id, n.ID, want)
			}
			for id, want := range map[string]string{"m0": "c0", "u1": "c0", "a2": "c1", "u2": "c1", "a3": "lc", "u3": "c1", "f1": "c3", "u4": "c0"} {
				o, err := tree.Ordinal(id)
				if err != nil {
					t.Fatal(err)
				}
				c, ok := tree.CommitOn(o)
				check("commit on "+id, fmt.Sprint(tree.NodeAt(c).ID, ok), want+"true")
			}
			check("search", ids(slices.Collect(tree.Search("TEXT a"))), "a1 a2 a3 a4")
			check("search label", ids(slices.Collect(tree.Search("orks"))), "a2 l1")
			check("search nothing", ids(slices.Collect(tree.Search("zzz"))), "")
			var on []Node
			for n := range tree.Nodes(FilterAll) {
				if n.OnPath {
					on = append(on, n)
				}
			}
			check("on the path", ids(on), "m0 u1 a1 r1 a2 m1 u3 k1 n1 x1 a4")
			n, ok := tree.Node("a2")
			want := Node{
				ID: "a2", ParentID: "r1", Type: "message", Role: "assistant", Preview: "text of a2", Label: "works",
				Ordinal: 5, Time: time.UnixMilli(6000).UTC(), Size: 105, OnPath: true,
			}
			if d := cmp.Diff(want, n); d != "" || !ok {
				t.Errorf("node: -want +got\n%s", d)
			}
			if _, ok := tree.Node("c1"); ok {
				t.Error("a commit is a node")
			}
			if tree.Len() != len(rows) || tree.Head() != "a4" || tree.Branches()[0] != (Branch{"main", "a4"}) || tree.Diagnostics() != nil {
				t.Errorf("len %d, head %q, branches %v, diagnostics %v", tree.Len(), tree.Head(), tree.Branches(), tree.Diagnostics())
			}
			if p, ok := tree.Parent(5); p != 4 || !ok {
				t.Errorf("parent of 5: %d %v", p, ok)
			}
			if _, ok := tree.Parent(1); ok {
				t.Error("a root has a parent")
			}
			for range tree.Nodes(FilterAll) {
				break // iterators can be left
			}
		})
	}
}

// The head is shown by no-tools even if it holds nothing but calls; any other entry like it is not.
func TestTreeNoToolsHead(t *testing.T) {
	tree := treeOf(t, "", rowsOf(t, chat), 3, 2)
	if got := ids(slices.Collect(tree.Nodes(FilterNoTools))); strings.Contains(got, "a4") {
		t.Errorf("without a head: %s", got)
	}
	if _, ok := tree.CommitOn(99); ok {
		t.Error("a commit on nothing")
	}
	if n := tree.NodeAt(99); n != (Node{}) {
		t.Errorf("a node behind the end: %+v", n)
	}
}

func TestTreeOrdinal(t *testing.T) {
	rows := rowsOf(t, "abc1<-:user abc2<abc1:asst abd<abc2:user cab1<abd:cmt x<abd:user x<abd:asst xy<x:user "+
		"wave.model<xy:user wave<wave.model:asst wave.2<wave:user")
	for _, split := range [][2]int{{0, 0}, {10, 0}, {2, 3}} {
		tree := treeOf(t, "x", rows, split[0], split[1])
		for id, want := range map[string]string{
			"abc1": "0", "abd": "2", "abc": "ambiguous", "ab": "ambiguous", "abc11": "none", "": "none", "c": "none", "cab1": "none", "x": "5", "xy": "6",
			"wav": "8", "wave": "8", "wave.": "ambiguous", "wave.m": "7",
		} {
			i, err := tree.Ordinal(id)
			got := fmt.Sprint(i)
			switch {
			case errors.Is(err, ErrAmbiguous):
				got = "ambiguous"
			case errors.Is(err, ErrNotFound) && errors.Is(err, fs.ErrNotExist):
				got = "none"
			case err != nil:
				t.Fatal(err)
			}
			if got != want {
				t.Errorf("split %v: ordinal of %q: got %s, want %s", split, id, got, want)
			}
		}
	}
}

// A prefix that two rows of the same id have is not ambiguous; the last one answers.
func TestTreeDuplicateIDs(t *testing.T) {
	rows := rowsOf(t, "dup1<-:user b<-:asst dup1<b:user d<b:asst")
	tree := treeOf(t, "d", rows, 4, 0)
	if n, ok := tree.Node("dup"); !ok || n.Ordinal != 2 {
		t.Errorf("got %+v %v", n, ok)
	}
	if d := tree.Diagnostics(); len(d) != 1 || d[0].Kind != DiagDuplicateID || d[0].Ordinal != 0 {
		t.Errorf("diagnostics: %+v", d)
	}
	// An older tree does not see what came later.
	b := NewTreeBuilder()
	b.AddRow(rows[0])
	b.AddRow(rows[1])
	old := b.Tree("b", nil, nil)
	b.AddRow(rows[2])
	young := b.Tree("b", nil, nil)
	if n, _ := young.Node("dup1"); n.Ordinal != 2 {
		t.Errorf("the young tree: %+v", n)
	}
	if n, _ := old.Node("dup1"); n.Ordinal != 0 || old.Len() != 2 {
		t.Errorf("the old tree: %+v", n)
	}
}

// Rows that no honest writer makes: circles, selves, parents that are not there, forward references,
// commits as parents. Everything ends, every row is there once, and all is reported.
func TestTreeHostile(t *testing.T) {
	rows := rowsOf(t, "a<c:user b<a:asst c<b:user d<c:asst e<d:user f<g:asst g<e:cmt h<g:user i<h:cmt j<i:cmt k<j:user")
	self := codec.Row{ID: "s", Parent: 11, Type: "message", Role: "user"}
	far := codec.Row{ID: "t", Parent: 1 << 40, Type: "message", Role: "user"}
	beyond := codec.Row{ID: "v", Parent: 99, Type: "message", Role: "user"}
	orphan := codec.Row{ID: "o", Parent: codec.NoParent, Type: "message", Role: "user", Flags: codec.FlagOrphan}
	noted := codec.Row{ID: "p", Parent: codec.NoParent, Type: "message", Role: "user", Flags: codec.FlagDiagnosed}
	rows = append(rows, self, far, beyond, orphan, noted)
	for _, split := range []int{0, 3, len(rows)} {
		tree := treeOf(t, "k", rows, 0, split)
		all := forest(slices.Collect(tree.Nodes(FilterAll)))
		if want := "a< b<a c<b d<c e<d f<e h<e k<h s< t< v< o< p<"; all != want {
			t.Errorf("split %d:\n got %s\nwant %s", split, all, want)
		}
		if got := ids(slices.Collect(tree.Path("k"))); got != "a b c d e h k" {
			t.Errorf("path: %s", got)
		}
		var kinds []string
		for _, d := range tree.Diagnostics() {
			kinds = append(kinds, d.Entry+":"+d.Kind)
		}
		slices.Sort(kinds)
		if got, want := strings.Join(kinds, " "), "a:cycle o:orphan p:noted s:self-parent v:orphan"; got != want {
			t.Errorf("diagnostics: got %s, want %s", got, want)
		}
		if n, _ := tree.Newest("a"); n.ID != "k" {
			t.Errorf("newest: %+v", n)
		}
		if n, _ := tree.Newest(""); n.ID != "p" {
			t.Errorf("newest of all: %+v", n)
		}
		if c, ok := tree.CommitOn(10); !ok || tree.NodeAt(c).ID != "j" {
			t.Errorf("commit on k: %+v", tree.NodeAt(c))
		}
	}
	// A leaf that comes before its own ancestors, and a later one on another branch.
	tree := treeOf(t, "", rowsOf(t, "leaf<mid:user mid<top:asst top<-:user lab<leaf:label:mid:x"), 4, 0)
	if n, _ := tree.Newest("top"); n.ID != "leaf" {
		t.Errorf("newest of forward references: %+v", n)
	}
	if n, _ := tree.Newest("lab"); n.ID != "lab" {
		t.Errorf("newest of a label: %+v", n)
	}
}

func TestTreeBuilderRefuses(t *testing.T) {
	rows := rowsOf(t, "a<-:user b<a:asst")
	b := NewTreeBuilder()
	if err := b.AddSkeleton(skeletonOf(t, 1, rows)); err == nil {
		t.Error("a gap was accepted")
	}
	if err := b.AddSkeleton(skeletonOf(t, 0, rows)); err != nil {
		t.Error(err)
	}
	if err := b.AddSkeleton(skeletonOf(t, 0, rows)); err == nil {
		t.Error("a repetition was accepted")
	}
}

func TestTreeManyDiagnostics(t *testing.T) {
	b := NewTreeBuilder()
	for i := range 500 {
		b.AddRow(codec.Row{ID: fmt.Sprint(i % 300), Parent: codec.NoParent, Flags: codec.FlagOrphan})
	}
	d := b.Tree("", nil, nil).Diagnostics()
	if len(d) != MaxDiagnostics+1 || d[MaxDiagnostics].Kind != DiagMore || d[MaxDiagnostics].Detail != "600 more" {
		t.Errorf("%d diagnostics, the last %+v", len(d), d[len(d)-1])
	}
}

// Trees are read while the builder continues.
func TestTreeConcurrent(t *testing.T) {
	b := NewTreeBuilder()
	var wg sync.WaitGroup
	for i := range 600 {
		b.AddRow(codec.Row{ID: fmt.Sprintf("%08x", i), Parent: int64(i) - 1, Type: "message", Role: "user"})
		if i%50 != 49 {
			continue
		}
		tree := b.Tree(fmt.Sprintf("%08x", i), nil, []codec.Row{{ID: "pending", Parent: int64(i), Type: "label", Target: "00000000", Preview: "l"}})
		for range 2 {
			wg.Go(func() {
				if got := len(slices.Collect(tree.Path("pending"))); got != i+2 {
					t.Errorf("a path of %d at %d", got, i)
				}
				if n, ok := tree.Node(fmt.Sprintf("%08x", i/2)); !ok || !n.OnPath || n.Ordinal != uint64(i/2) {
					t.Errorf("got %+v at %d", n, i)
				}
				if n, ok := tree.Node("00000000"); !ok || n.Label != "l" {
					t.Errorf("got %+v at %d", n, i)
				}
				if _, ok := tree.Node(fmt.Sprintf("%08x", i+1)); ok {
					t.Errorf("a tree of %d rows grew", i+1)
				}
			})
		}
	}
	wg.Wait()
}
