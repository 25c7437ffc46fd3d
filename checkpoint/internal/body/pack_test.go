package body

import (
	"bytes"
	"errors"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/coppice-go/coppice/codec"
)

func TestSums(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		ords := rapid.SliceOf(rapid.Uint64()).Draw(t, "ords")
		diffs, last := make([]int64, len(ords)), uint64(0)
		for i, ord := range ords {
			diffs[i], last = int64(ord-last), ord
		}
		if got := Sums(diffs); !slices.Equal(got, ords) {
			t.Fatalf("%v", got)
		}
	})
}

func TestSplit(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		parts := rapid.SliceOf(rapid.SliceOfN(rapid.Byte(), 0, 5)).Draw(t, "parts")
		var sizes []uint32
		var data []byte
		for _, p := range parts {
			sizes, data = append(sizes, uint32(len(p))), append(data, p...)
		}
		got, ok := Split(data, sizes)
		if !ok || !slices.EqualFunc(got, parts, bytes.Equal) {
			t.Fatalf("%v, %v", got, ok)
		}
	})
	for _, sizes := range [][]uint32{{1}, {3}, {1 << 31, 1 << 31}, {}} {
		if _, ok := Split([]byte("ab"), sizes); ok {
			t.Errorf("%v of two bytes", sizes)
		}
	}
}

func TestUnlist(t *testing.T) {
	for _, n := range []int{0, 1, 15, 16, 70000} {
		p, err := codec.Marshal(make([]uint64, n))
		if err != nil {
			t.Fatal(err)
		}
		if got, err := Unlist[uint64]("numbers", p, n); err != nil || len(got) != n {
			t.Errorf("%d: %d, %v", n, len(got), err)
		}
		var limit *codec.LimitError
		if _, err := Unlist[uint64]("numbers", p, n-1); n > 0 && (!errors.As(err, &limit) || limit.Value != int64(n)) {
			t.Errorf("%d, one too many: %v", n, err)
		}
	}
	for _, p := range [][]byte{nil, {0x80}, {0xdc, 0}, {0xdd, 0, 0, 0}, {0xc2}, {0x91}, {0x90, 0x90}} {
		if _, err := Unlist[uint64]("numbers", p, 10); !errors.Is(err, codec.ErrFormat) {
			t.Errorf("% x: %v", p, err)
		}
	}
}
