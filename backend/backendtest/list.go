package backendtest

import (
	"fmt"
	"slices"
	"strings"

	"github.com/coppice-go/coppice/backend"
)

var listCases = []testCase{
	{name: "List/Order", run: testListOrder},
	{name: "List/Options", run: testListOptions},
	{name: "List/Many", run: testListMany},
	{name: "List/Stop", run: testListStop},
	{name: "List/Churn", run: testListChurn},
}

// A sorted walk of folders is not key order: '-' and '.' sort before '/'.
var listKeys = []string{
	"a-b", "a.b/c", "a/b", "a/b-c", "a/b.c/d", "a/b0/c", "a0", "a_", "Q", "B/q", "-", "_x/y", "0/1",
	"ab/x", "abc/x", "z/1/2/3", "z/1/2-3", "z/1-2/3", "z-1/2/3", "z/1.2", "zz", "a/c/d/e", "a/c/d-e", "a/c/d0",
}

func (e *env) putAll(keys []string) {
	for _, key := range keys {
		e.put(key, []byte(key), backend.Cond{})
	}
}

// expect returns the listing that the contract requires.
func expect(keys []string, o backend.ListOptions) []backend.Info {
	var want []backend.Info
	for _, key := range slices.Sorted(slices.Values(keys)) {
		rest, ok := strings.CutPrefix(key, o.Prefix)
		if !ok {
			continue
		}
		next := backend.Info{Key: key}
		if i := strings.Index(rest, o.Delimiter); o.Delimiter != "" && i >= 0 {
			next = backend.Info{Key: o.Prefix + rest[:i+len(o.Delimiter)], Prefix: true}
		}
		if next.Key <= o.After || len(want) > 0 && want[len(want)-1].Key == next.Key {
			continue
		}
		if want = append(want, next); len(want) == o.Limit {
			break
		}
	}
	return want
}

// lists compares a listing with the required one: keys, order and kind.
func (e *env) lists(keys []string, o backend.ListOptions) {
	e.Helper()
	got, want := e.list(o), expect(keys, o)
	same := slices.EqualFunc(got, want, func(a, b backend.Info) bool { return a.Key == b.Key && a.Prefix == b.Prefix })
	if !same {
		e.Errorf("list %+v:\n got %s\nwant %s", o, names(got), names(want))
	}
}

func names(infos []backend.Info) string {
	var b strings.Builder
	for _, i := range infos {
		b.WriteString(" " + i.Key)
		if i.Prefix {
			b.WriteString("(prefix)")
		}
	}
	return b.String()
}

func testListOrder(e *env) {
	e.lists(nil, backend.ListOptions{}) // an empty store
	e.lists(nil, backend.ListOptions{Prefix: "a/", Delimiter: "/"})
	e.putAll(listKeys)
	e.lists(listKeys, backend.ListOptions{})
	for _, i := range e.list(backend.ListOptions{}) {
		if i.Size != int64(len(i.Key)) {
			e.Errorf("list: %s has %d bytes, want %d", i.Key, i.Size, len(i.Key))
		}
	}
}

func testListOptions(e *env) {
	e.putAll(listKeys)
	prefixes := []string{
		"", "a", "a/", "a/b", "a/b.", "ab", "ab/", "abc/", "z/1", "z/1/", "z/1/2/3", "z/1/2/3/", "none/", "b",
		"/", "a//", ".", "..", "../", "a/../", "a/./", "\\", "a b", "a/c/d",
	}
	afters := []string{"", "-", "a", "a-b", "a/", "a/b", "a/b.c", "a/c/", "a/zzz", "a0", "z/1/2", "z/1/2/3", "zzz", "."}
	for _, prefix := range prefixes {
		for _, after := range afters {
			for _, delimiter := range []string{"", "/"} {
				o := backend.ListOptions{Prefix: prefix, After: after, Delimiter: delimiter}
				for _, o.Limit = range []int{0, 1, 3, 1000} {
					e.lists(listKeys, o)
					if e.h.Short && o.Limit == 1 {
						break
					}
				}
				if e.Failed() {
					return
				}
			}
			if e.h.Short && after == "a" {
				break
			}
		}
	}
}

// Stores return more than a thousand objects in pages; a walk by Limit and After sees the same keys.
func testListMany(e *env) {
	n := e.size(1100, 30)
	keys := make([]string, n)
	for i := range keys {
		keys[i] = fmt.Sprintf("many/%02d/%05d", i%7, i)
	}
	e.together(8, func(w int) error {
		for i := w; i < n; i += 8 {
			if _, err := e.b.Put(e.ctx(), keys[i], []byte("x"), backend.Cond{}); err != nil {
				return err
			}
		}
		return nil
	})
	e.lists(keys, backend.ListOptions{})
	e.lists(keys, backend.ListOptions{Prefix: "many/"})
	e.lists(keys, backend.ListOptions{Prefix: "many/", Delimiter: "/"})
	e.lists(keys, backend.ListOptions{Limit: n - 1})
	var walked []string
	o := backend.ListOptions{Prefix: "many/", Limit: max(n/11, 1)}
	for range n + 1 {
		page := e.list(o)
		for _, i := range page {
			walked = append(walked, i.Key)
		}
		if len(page) < o.Limit {
			break
		}
		o.After = page[len(page)-1].Key
	}
	slices.Sort(keys)
	if !slices.Equal(walked, keys) {
		e.Errorf("a walk in pages of %d gave %d keys, want %d", o.Limit, len(walked), n)
	}
}

// A caller that stops a listing early gets no more results, may start it again, and may write inside the loop.
func testListStop(e *env) {
	e.putAll(listKeys)
	seq := e.b.List(e.ctx(), backend.ListOptions{})
	for range 2 {
		seen := 0
		for info, err := range seq {
			if err != nil {
				e.Fatal(err)
			}
			if seen++; seen == 3 {
				break
			}
			e.put(info.Key, []byte("rewritten inside the loop"), backend.Cond{})
			e.holds(info.Key, []byte("rewritten inside the loop"))
		}
		if seen != 3 {
			e.Fatalf("%d results before the stop, want 3", seen)
		}
	}
	for info, err := range e.b.List(e.ctx(), backend.ListOptions{}) {
		if err != nil {
			e.Fatal(err)
		}
		e.delete(info.Key)
	}
	e.lists(nil, backend.ListOptions{})
}

// Keys that stay are in every listing, once and in order, while other keys are created and deleted.
func testListChurn(e *env) {
	var stay []string
	for i := range 40 {
		stay = append(stay, fmt.Sprintf("churn/%02d/stay", i))
	}
	e.putAll(stay)
	rounds := e.size(40, 5)
	e.together(3, func(w int) error {
		for i := range rounds {
			if w < 2 {
				key := fmt.Sprintf("churn/%02d/come-%d", (i*7+w)%40, w)
				if _, err := e.b.Put(e.ctx(), key, []byte("x"), backend.Cond{}); err != nil {
					return err
				}
				if err := e.b.Delete(e.ctx(), key); err != nil {
					return err
				}
				continue
			}
			infos, err := collect(e.b.List(e.ctx(), backend.ListOptions{Prefix: "churn/"}))
			if err != nil {
				return err
			}
			if err := checkChurn(infos, stay); err != nil {
				return err
			}
		}
		return nil
	})
	e.lists(stay, backend.ListOptions{})
}

func checkChurn(infos []backend.Info, stay []string) error {
	for i := 1; i < len(infos); i++ {
		if infos[i].Key <= infos[i-1].Key {
			return fmt.Errorf("list: %s after %s", infos[i].Key, infos[i-1].Key)
		}
	}
	var found []string
	for _, i := range infos {
		if strings.HasSuffix(i.Key, "/stay") {
			found = append(found, i.Key)
		}
	}
	if !slices.Equal(found, stay) {
		return fmt.Errorf("list during churn: %d of %d lasting keys: %v", len(found), len(stay), found)
	}
	return nil
}
