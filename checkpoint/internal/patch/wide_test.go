package patch

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

// The result of one pass equals that of the libraries, for any documents.
func TestWideAsTheLibraries(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	applied, made := 0, 0
	check := func(from, patch []byte, sorted bool) {
		t.Helper()
		got, ok := applyWide(from, patch, sorted)
		if !ok {
			return
		}
		applied++
		want, err := applyPatch(from, patch)
		if err == nil && sorted {
			want, err = reorder(want, from)
		}
		if err != nil || !bytes.Equal(got, want) {
			t.Fatalf("%s and %s, sorted %v:\n got %s\nwant %s, %v", from, patch, sorted, got, want, err)
		}
	}
	for i := range 20_000 {
		from := object(r, 3)
		to := object(r, 3)
		if r.IntN(3) > 0 {
			to = changed(r, from)
		}
		a, aerr := parseTree([]byte(from))
		b, berr := parseTree([]byte(to))
		if aerr != nil || berr != nil {
			continue
		}
		patch, _, err := diffTrees(a, b, false)
		if err != nil {
			t.Fatal(err)
		}
		w := walker{patch: []byte{'['}, limit: 1 << 20}
		if !w.walk([]byte(from), []byte(to), "") {
			t.Fatal("no patch")
		}
		for _, sorted := range []bool{false, true} {
			check([]byte(from), patch, sorted)
			check([]byte(from), append(slices.Clone(w.patch), ']'), sorted)
			check([]byte(to), patch, sorted) // most do not fit
		}
		if i%40 > 0 { // a document this long takes the libraries a while
			continue
		}
		long := fmt.Sprintf(`{"rest":%q,"state":`, strings.Repeat("x", wideFrom))
		f, g := []byte(long+from+"}"), []byte(long+to+"}")
		if patch, sorted, ok := makeWide(f, g); ok && from != to {
			made++
			if out, err := applyPatch(f, patch); !sorted && (err != nil || !bytes.Equal(out, g)) {
				t.Fatalf("%s to %s by %s: %v", from, to, patch, err)
			}
		}
	}
	if applied < 6_000 || made < 80 {
		t.Errorf("%d applied and %d made in one pass", applied, made)
	}
}

var wideNames = []string{"a", "b", "c", "d", "e", "", "aa", "B", "~", "/", "é", `\"`, `\u0061`, "<", "-", "0", "a/b"}

// object returns a random object; one in two has its names in order.
func object(r *rand.Rand, depth int) string {
	var names []string
	for _, i := range r.Perm(len(wideNames))[:r.IntN(6)] {
		if r.IntN(4) > 0 {
			i %= 8 // the plain ones
		}
		if !slices.Contains(names, wideNames[i]) {
			names = append(names, wideNames[i])
		}
	}
	if r.IntN(2) == 0 {
		slices.Sort(names)
	}
	var b strings.Builder
	for _, name := range names {
		if b.Len() > 0 {
			b.WriteByte(',')
		}
		fmt.Fprintf(&b, `"%s":%s`, name, value(r, depth-1))
	}
	return "{" + b.String() + "}"
}

func value(r *rand.Rand, depth int) string {
	switch n := r.IntN(8); {
	case n < 3 && depth > 0:
		return object(r, depth)
	case n == 3 && depth > 0:
		return "[" + value(r, depth-1) + "," + value(r, depth-1) + "]"
	case n == 4:
		return fmt.Sprintf(`"%s"`, wideNames[r.IntN(len(wideNames))])
	}
	return []string{"0", "1", "1.0", "null", "true", `""`, "[]", "{}"}[r.IntN(8)]
}

// changed replaces one scalar of an object.
func changed(r *rand.Rand, object string) string {
	at := strings.Count(object, "0")
	if at == 0 {
		return object
	}
	parts := strings.Split(object, "0")
	i := r.IntN(at)
	return strings.Join(parts[:i+1], "0") + "7" + strings.Join(parts[i+1:], "0")
}
