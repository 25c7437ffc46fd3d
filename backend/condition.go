package backend

import "fmt"

// Cond is the condition of a Put. The zero value always holds.
type Cond struct {
	absent bool
	match  Version
	set    bool
}

// IfAbsent holds iff the object does not exist.
func IfAbsent() Cond { return Cond{absent: true} }

// IfMatch holds iff the object exists and its version is v.
func IfMatch(v Version) Cond { return Cond{match: v, set: true} }

// Absent reports whether the condition is IfAbsent.
func (c Cond) Absent() bool { return c.absent }

// Match returns the version of an IfMatch condition; set is false for any other.
func (c Cond) Match() (v Version, set bool) { return c.match, c.set }

func (c Cond) String() string {
	switch {
	case c.absent:
		return "if-absent"
	case c.set:
		return fmt.Sprintf("if-match %s", c.match)
	}
	return "always"
}

type rangeKind uint8

const (
	rangeWhole rangeKind = iota
	rangeBytes
	rangeTail
)

// Range is the part of an object that a Get reads. The zero value is the whole object.
type Range struct {
	kind rangeKind
	off  int64
	n    int64
}

// Bytes is exactly the n bytes from off: a range that is not fully inside the object is ErrRange.
func Bytes(off, n int64) Range { return Range{kind: rangeBytes, off: off, n: n} }

// Tail is the last n bytes, or the whole object if it is shorter.
func Tail(n int64) Range { return Range{kind: rangeTail, n: n} }

// Resolve returns the offset and length, in bytes, of the range in an object of size bytes; ErrRange if it is not
// inside.
func (r Range) Resolve(size int64) (off, n int64, err error) {
	switch r.kind {
	case rangeWhole:
		return 0, size, nil
	case rangeTail:
		if r.n < 0 {
			return 0, 0, ErrRange
		}
		n = min(r.n, size)
		return size - n, n, nil
	case rangeBytes:
	}
	if r.off < 0 || r.n < 0 || r.off > size || r.n > size-r.off {
		return 0, 0, ErrRange
	}
	return r.off, r.n, nil
}

// Whole reports whether the range is the whole object.
func (r Range) Whole() bool { return r.kind == rangeWhole }

func (r Range) String() string {
	switch r.kind {
	case rangeBytes:
		return fmt.Sprintf("bytes %d+%d", r.off, r.n)
	case rangeTail:
		return fmt.Sprintf("tail %d", r.n)
	case rangeWhole:
	}
	return "whole"
}
