package backend_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"testing"

	"pgregory.net/rapid"

	"github.com/coppice-go/coppice/backend"
)

func TestRangeResolve(t *testing.T) {
	const most = 1<<63 - 1
	for _, c := range []struct {
		r            backend.Range
		size, off, n int64
		bad          bool
	}{
		{r: backend.Range{}, size: 10, n: 10},
		{r: backend.Range{}},
		{r: backend.Bytes(3, 4), size: 10, off: 3, n: 4},
		{r: backend.Bytes(10, 0), size: 10, off: 10},
		{r: backend.Bytes(10, 1), size: 10, bad: true},
		{r: backend.Bytes(11, 0), size: 10, bad: true},
		{r: backend.Bytes(1, most), size: 10, bad: true},
		{r: backend.Bytes(most, most), size: most, bad: true},
		{r: backend.Bytes(-1, 1), size: 10, bad: true},
		{r: backend.Bytes(1, -1), size: 10, bad: true},
		{r: backend.Tail(4), size: 10, off: 6, n: 4},
		{r: backend.Tail(most), size: 10, n: 10},
		{r: backend.Tail(0), size: 10, off: 10},
		{r: backend.Tail(-1), size: 10, bad: true},
	} {
		off, n, err := c.r.Resolve(c.size)
		if errors.Is(err, backend.ErrRange) != c.bad || off != c.off || n != c.n {
			t.Errorf("%s of %d: %d+%d, %v", c.r, c.size, off, n, err)
		}
	}
}

func TestRangeResolveStaysInside(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		size := rapid.Int64Min(0).Draw(t, "size")
		a, b := rapid.Int64().Draw(t, "a"), rapid.Int64().Draw(t, "b")
		for _, r := range []backend.Range{{}, backend.Bytes(a, b), backend.Tail(a)} {
			off, n, err := r.Resolve(size)
			if err == nil && (off < 0 || n < 0 || off+n > size || off+n < 0) {
				t.Fatalf("%s of %d: %d+%d", r, size, off, n)
			}
		}
	})
}

func TestOutcomeOf(t *testing.T) {
	inner := &backend.Error{Op: "put", Key: "k", Outcome: backend.NotApplied, Err: io.ErrShortWrite}
	for _, c := range []struct {
		err  error
		want backend.Outcome
	}{
		{nil, backend.Applied},
		{io.EOF, backend.Unknown},
		{&backend.Error{Op: "put", Err: io.EOF}, backend.Unknown},
		{inner, backend.NotApplied},
		{fmt.Errorf("commit: %w", inner), backend.NotApplied},
		{&backend.Error{Op: "put", Err: inner}, backend.Unknown}, // the outer error has considered the inner one
		{&backend.Error{Op: "put", Outcome: backend.Applied, Err: io.EOF}, backend.Applied},
	} {
		if got := backend.OutcomeOf(c.err); got != c.want {
			t.Errorf("%v: %s, want %s", c.err, got, c.want)
		}
	}
}

func TestErrorText(t *testing.T) {
	for want, err := range map[string]error{
		"put a/b: EOF (outcome unknown)": &backend.Error{Op: "put", Key: "a/b", Err: io.EOF},
		"put a/b: EOF":                   &backend.Error{Op: "put", Key: "a/b", Outcome: backend.NotApplied, Err: io.EOF},
		"get a/b: EOF":                   &backend.Error{Op: "get", Key: "a/b", Err: io.EOF},
		"list: EOF":                      &backend.Error{Op: "list", Err: io.EOF},
		`stat "a\x1b": EOF`:              &backend.Error{Op: "stat", Key: "a\x1b", Err: io.EOF},
	} {
		if err.Error() != want {
			t.Errorf("got %q, want %q", err, want)
		}
	}
}

func TestIO(t *testing.T) {
	a := backend.IO{Get: 1, Put: 2, Append: 3, Stat: 4, List: 5, Delete: 6, BytesRead: 7, BytesWritten: 8}
	b := backend.IO{Get: 10, Put: 20, Append: 30, Stat: 40, List: 50, Delete: 60, BytesRead: 70, BytesWritten: 80}
	sum := backend.IO{Get: 11, Put: 22, Append: 33, Stat: 44, List: 55, Delete: 66, BytesRead: 77, BytesWritten: 88}
	if a.Add(b) != sum || sum.Sub(a) != b || sum.Sub(b) != a {
		t.Errorf("sum %+v, differences %+v and %+v", a.Add(b), sum.Sub(a), sum.Sub(b))
	}
	got, err := json.Marshal(a)
	const want = `{"get":1,"put":2,"append":3,"stat":4,"list":5,"delete":6,"bytesRead":7,"bytesWritten":8}`
	if err != nil || string(got) != want {
		t.Errorf("json %s, %v; want %s", got, err, want)
	}
}
