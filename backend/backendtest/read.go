package backendtest

import (
	"bytes"
	"strings"
	"testing"

	"github.com/coppice-go/coppice/backend"
)

var readCases = []testCase{
	{name: "Read/RoundTrip", run: testRoundTrip},
	{name: "Read/Missing", run: testMissing},
	{name: "Read/Ranges", run: testRanges},
	{name: "Read/Infos", run: testInfos},
	{name: "Read/LargestObject", run: testLargest},
	{name: "Read/SlicesAreNotShared", run: testSlices},
}

func testRoundTrip(e *env) {
	all := make([]byte, 256)
	for i := range all {
		all[i] = byte(i)
	}
	component := strings.Repeat("k", 255)
	for key, p := range map[string][]byte{
		"empty":           {},
		"one":             {0},
		"all/bytes":       all,
		"newlines":        []byte("a\r\nb\n\n"),
		"d/e/e/p/k/e/y/s": fill("deep", 5000),
		component:         fill("long", 10),
		"x/" + component + "/" + component + "/" + component: fill("longer", 10),
		"-":            []byte("dash"),
		"_":            []byte("underscore"),
		"a..b":         []byte("dots"),
		"name.tmp":     []byte("no special suffix"),
		"name.lock":    []byte("nor this"),
		"UPPER.case":   []byte("upper"),
		"page/aligned": fill("page", 4096),
		"page/over":    fill("page", 4097),
	} {
		e.put(key, p, backend.Cond{})
		e.holds(key, p)
	}
	if n := len(e.list(backend.ListOptions{})); n != 15 {
		e.Errorf("%d objects listed, want the 15 that were put and no other", n)
	}
}

func testMissing(e *env) {
	for _, key := range []string{"nothing", "no/such/folder"} {
		e.absent(key)
		_, _, err := e.b.Get(e.ctx(), key, backend.Bytes(0, 1))
		e.fails(err, "get", key, backend.ErrNotExist)
		_, _, err = e.b.Get(e.ctx(), key, backend.Tail(1))
		e.fails(err, "get", key, backend.ErrNotExist)
		e.delete(key)
	}
	e.put("folder/object", []byte("x"), backend.Cond{})
	e.absent("folder") // a folder is not an object
	e.delete("folder")
	e.holds("folder/object", []byte("x"))
}

func testRanges(e *env) {
	p := fill("range", 10000)
	e.put("object", p, backend.Cond{})
	e.put("empty", nil, backend.Cond{})
	const size, most = 10000, 1<<63 - 1
	for _, c := range []struct {
		key  string
		r    backend.Range
		want []byte
		err  bool
	}{
		{"object", backend.Range{}, p, false},
		{"object", backend.Bytes(0, size), p, false},
		{"object", backend.Bytes(0, 0), nil, false},
		{"object", backend.Bytes(0, 1), p[:1], false},
		{"object", backend.Bytes(4095, 2), p[4095:4097], false},
		{"object", backend.Bytes(size-1, 1), p[size-1:], false},
		{"object", backend.Bytes(size, 0), nil, false},
		{"object", backend.Bytes(size, 1), nil, true},
		{"object", backend.Bytes(size-1, 2), nil, true},
		{"object", backend.Bytes(size+1, 0), nil, true},
		{"object", backend.Bytes(0, size+1), nil, true},
		{"object", backend.Bytes(-1, 1), nil, true},
		{"object", backend.Bytes(0, -1), nil, true},
		{"object", backend.Bytes(1, most), nil, true},
		{"object", backend.Bytes(most, most), nil, true},
		{"object", backend.Bytes(most, 0), nil, true},
		{"object", backend.Tail(0), nil, false},
		{"object", backend.Tail(1), p[size-1:], false},
		{"object", backend.Tail(size), p, false},
		{"object", backend.Tail(size + 1), p, false},
		{"object", backend.Tail(most), p, false},
		{"object", backend.Tail(-1), nil, true},
		{"empty", backend.Range{}, nil, false},
		{"empty", backend.Bytes(0, 0), nil, false},
		{"empty", backend.Bytes(0, 1), nil, true},
		{"empty", backend.Tail(0), nil, false},
		{"empty", backend.Tail(7), nil, false},
	} {
		got, info, err := e.b.Get(e.ctx(), c.key, c.r)
		if c.err {
			e.fails(err, "get", c.key, backend.ErrRange)
			continue
		}
		if err != nil || !bytes.Equal(got, c.want) {
			e.Errorf("get %s (%s): %s, %v; want %s", c.key, c.r, show(got), err, show(c.want))
			continue
		}
		if whole := e.stat(c.key).Size; info.Size != whole || info.Key != c.key {
			e.Errorf("get %s (%s): info %+v, want the whole size %d", c.key, c.r, info, whole)
		}
	}
}

// Versions: those of Put, of a whole Get and of Stat are equal and never empty. A ranged Get and a listing may return
// an empty one but never a different one.
func testInfos(e *env) {
	put := e.put("dir/object", fill("info", 777), backend.Cond{})
	_, got := e.get("dir/object", backend.Range{})
	stat := e.stat("dir/object")
	if got.Version != put.Version || stat.Version != put.Version {
		e.Errorf("versions: put %q, get %q, stat %q; want one", put.Version, got.Version, stat.Version)
	}
	if got.ModTime.IsZero() || stat.ModTime.IsZero() {
		e.Errorf("times: get %v, stat %v; want both", got.ModTime, stat.ModTime)
	}
	for _, r := range []backend.Range{backend.Bytes(5, 10), backend.Tail(10)} {
		if _, info := e.get("dir/object", r); info.Version != "" && info.Version != put.Version {
			e.Errorf("get (%s): version %q, want none or %q", r, info.Version, put.Version)
		}
	}
	listed := e.list(backend.ListOptions{})
	if len(listed) != 1 {
		e.Fatalf("list: %+v, want one object", listed)
	}
	if i := listed[0]; i.Key != "dir/object" || i.Size != 777 || i.Prefix || i.ModTime.IsZero() ||
		(i.Version != "" && i.Version != put.Version) {
		e.Errorf("list: %+v, want key, size, time, and none or the version %q", i, put.Version)
	}
}

func testLargest(e *env) {
	if e.h.Short || testing.Short() {
		e.Skip("largest object left out of a short run")
	}
	p := make([]byte, backend.MaxObjectSize+1)
	for i := 0; i < len(p); i += 1 << 10 {
		p[i] = byte(i >> 10)
	}
	_, err := e.b.Put(e.ctx(), "large", p, backend.Cond{})
	e.refused(err, "put", "large", backend.ErrTooLarge)
	e.absent("large")
	p = p[:backend.MaxObjectSize]
	e.put("large", p, backend.IfAbsent())
	if got, _ := e.get("large", backend.Range{}); !bytes.Equal(got, p) {
		e.Fatal("the largest object came back different")
	}
	const off = backend.MaxObjectSize - 5000
	if got, _ := e.get("large", backend.Bytes(off, 5000)); !bytes.Equal(got, p[off:]) {
		e.Error("the last 5,000 bytes came back different")
	}
	if got, _ := e.get("large", backend.Tail(5000)); !bytes.Equal(got, p[off:]) {
		e.Error("the tail came back different")
	}
	if a, ok := e.b.(backend.Appender); ok {
		_, err := a.Append(e.ctx(), "large", backend.MaxObjectSize, []byte("x"))
		e.refused(err, "append", "large", backend.ErrTooLarge)
		if n := e.stat("large").Size; n != backend.MaxObjectSize {
			e.Errorf("size %d after a refused append", n)
		}
	}
}

func testSlices(e *env) {
	scribble := func(p []byte) {
		for i := range p {
			p[i] = '#'
		}
	}
	want := fill("mine", 3000)
	p := bytes.Clone(want)
	e.put("object", p, backend.Cond{})
	if !bytes.Equal(p, want) {
		e.Fatal("Put modified its argument")
	}
	scribble(p)
	e.holds("object", want)
	for _, r := range []backend.Range{{}, backend.Bytes(10, 100), backend.Tail(100)} {
		got, _ := e.get("object", r)
		scribble(got)
		_ = append(got, "and what lies behind"...)
		e.holds("object", want)
	}
	a, ok := e.b.(backend.Appender)
	if !ok {
		return
	}
	p = fill("more", 500)
	if _, err := a.Append(e.ctx(), "object", int64(len(want)), p); err != nil {
		e.Fatal(err)
	}
	want = append(want, p...)
	if !bytes.Equal(p, want[3000:]) {
		e.Fatal("Append modified its argument")
	}
	scribble(p)
	e.holds("object", want)
}
