package backendtest

import (
	"fmt"

	"github.com/coppice-go/coppice/backend"
)

var writeCases = []testCase{
	{name: "Write/Overwrite", run: testOverwrite},
	{name: "Write/Delete", run: testDelete},
	{name: "Write/IfAbsent", run: testIfAbsent},
	{name: "Write/IfMatch", run: testIfMatch},
	{name: "Write/ABA", run: testABA},
}

func testOverwrite(e *env) {
	seen := map[backend.Version]int{}
	for i, n := range []int{10, 5000, 3, 0, 70000, 1} {
		p := fill(fmt.Sprint("overwrite", i), n)
		info := e.put("object", p, backend.Cond{})
		e.holds("object", p)
		if at, twice := seen[info.Version]; twice {
			e.Errorf("bodies %d and %d differ and have one version, %q", at, i, info.Version)
		}
		seen[info.Version] = i
	}
	if infos := e.list(backend.ListOptions{}); len(infos) != 1 {
		e.Errorf("list after overwrites: %+v, want one object", infos)
	}
}

func testDelete(e *env) {
	for _, key := range []string{"a/1", "a/1x", "a/2", "b"} {
		e.put(key, []byte(key), backend.Cond{})
	}
	e.delete("a/1")
	e.absent("a/1")
	e.delete("a/1") // again: nothing to do, no error
	for _, key := range []string{"a/1x", "a/2", "b"} {
		e.holds(key, []byte(key))
	}
	if infos := e.list(backend.ListOptions{}); len(infos) != 3 {
		e.Errorf("list after a delete: %+v, want three objects", infos)
	}
	e.put("a/1", []byte("again"), backend.IfAbsent())
	e.holds("a/1", []byte("again"))
	for _, key := range []string{"a/1", "a/1x", "a/2", "b"} {
		e.delete(key)
	}
	if infos := e.list(backend.ListOptions{}); len(infos) != 0 {
		e.Errorf("list of an emptied store: %+v", infos)
	}
}

func testIfAbsent(e *env) {
	first := e.put("object", []byte("first"), backend.IfAbsent())
	for _, p := range []string{"second", "first", ""} {
		_, err := e.b.Put(e.ctx(), "object", []byte(p), backend.IfAbsent())
		e.refused(err, "put", "object", backend.ErrPrecondition)
	}
	e.holds("object", []byte("first"))
	if v := e.stat("object").Version; v != first.Version {
		e.Errorf("version %q after refused puts, want %q still", v, first.Version)
	}
	e.put("empty", nil, backend.IfAbsent()) // an empty object exists too
	_, err := e.b.Put(e.ctx(), "empty", []byte("x"), backend.IfAbsent())
	e.refused(err, "put", "empty", backend.ErrPrecondition)
	e.holds("empty", nil)
}

func testIfMatch(e *env) {
	_, err := e.b.Put(e.ctx(), "object", []byte("x"), backend.IfMatch("no-such-version"))
	e.refused(err, "put", "object", backend.ErrPrecondition)
	_, err = e.b.Put(e.ctx(), "object", []byte("x"), backend.IfMatch(""))
	e.refused(err, "put", "object", backend.ErrPrecondition)
	e.absent("object")

	v1 := e.put("object", []byte("one"), backend.Cond{}).Version
	v2 := e.put("object", []byte("two"), backend.IfMatch(v1)).Version
	e.holds("object", []byte("two"))
	for _, stale := range []backend.Version{v1, "", "no-such-version", v2 + "x", "*", "\"" + v2 + "\"x"} {
		_, err := e.b.Put(e.ctx(), "object", []byte("three"), backend.IfMatch(stale))
		e.refused(err, "put", "object", backend.ErrPrecondition)
	}
	e.holds("object", []byte("two"))

	// The version of a read can be used like that of a write.
	_, info := e.get("object", backend.Range{})
	e.put("object", []byte("three"), backend.IfMatch(info.Version))
	e.put("object", []byte("four"), backend.IfMatch(e.stat("object").Version))
	e.holds("object", []byte("four"))

	v4 := e.stat("object").Version
	e.delete("object")
	_, err = e.b.Put(e.ctx(), "object", []byte("five"), backend.IfMatch(v4))
	e.refused(err, "put", "object", backend.ErrPrecondition)
	e.absent("object")
	v1 = e.put("other", []byte("other"), backend.Cond{}).Version
	_, err = e.b.Put(e.ctx(), "object", []byte("five"), backend.IfMatch(v1)) // another object's version
	e.refused(err, "put", "object", backend.ErrPrecondition)
}

// Bodies with something unique in each never have an old version again, whatever was written in between (I5). For equal
// bodies either answer is permitted, and it must be true.
func testABA(e *env) {
	a := e.put("object", []byte("A, write 1"), backend.Cond{}).Version
	e.put("object", []byte("B, write 2"), backend.Cond{})
	e.put("object", []byte("A, write 3"), backend.Cond{})
	_, err := e.b.Put(e.ctx(), "object", []byte("late"), backend.IfMatch(a))
	e.refused(err, "put", "object", backend.ErrPrecondition)
	e.holds("object", []byte("A, write 3"))

	e.delete("object")
	e.put("object", []byte("A, write 4"), backend.IfAbsent())
	_, err = e.b.Put(e.ctx(), "object", []byte("late"), backend.IfMatch(a))
	e.refused(err, "put", "object", backend.ErrPrecondition)
	e.holds("object", []byte("A, write 4"))

	a = e.put("twin", []byte("A"), backend.Cond{}).Version
	e.put("twin", []byte("B"), backend.Cond{})
	e.put("twin", []byte("A"), backend.Cond{})
	want := "late"
	if _, err = e.b.Put(e.ctx(), "twin", []byte("late"), backend.IfMatch(a)); err != nil {
		e.refused(err, "put", "twin", backend.ErrPrecondition)
		want = "A"
	}
	e.holds("twin", []byte(want))
}
