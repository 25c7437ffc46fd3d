package checkpoint

import (
	"bytes"
	"encoding/binary"
	"errors"
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"

	"github.com/coppice-go/coppice/codec"
)

// The hash is on disk and must never change.
func TestKeyHash(t *testing.T) {
	for key, want := range map[string]uint64{
		"": 0xe3b0c44298fc1c14, "abc": 0xba7816bf8f01cfea, "job 17": 0x2454fc94bb29bb34, "\x00\xff": 0x06eb7d6a69ee19e5,
	} {
		got := KeyHash(key)
		if got != want {
			t.Errorf("%q: %#x, want %#x", key, got, want)
		}
		if got != binary.BigEndian.Uint64(encodeKeys([]KeyRef{{Hash: got}})) {
			t.Errorf("%q: the hash is not stored as its first 8 bytes", key)
		}
	}
}

// The bytes of a list, as in docs/format/checkpoint.md.
func TestKeysBytes(t *testing.T) {
	keys := []KeyRef{
		{Hash: 0x0102030405060708, Seq: 300, Ord: 70}, {Hash: 9, Seq: 301, Ord: 0}, {Hash: 9, Seq: 301, Ord: 1},
	}
	want := []byte{
		1, 2, 3, 4, 5, 6, 7, 8, 0xac, 0x02, 0x8c, 0x01, // 300, +70 in zigzag
		0, 0, 0, 0, 0, 0, 0, 9, 1, 0x8b, 0x01, // +1, -70
		0, 0, 0, 0, 0, 0, 0, 9, 0, 2, // +0, +1
	}
	if got := encodeKeys(keys); !bytes.Equal(got, want) {
		t.Errorf("got % x\nwant % x", got, want)
	}
	if got := encodeKeys(nil); got != nil {
		t.Errorf("no keys are % x, want no field", got)
	}
}

// Of the newest 1,024 keys as many are stored as fit into 16 KiB: all of them at realistic distances, only the newest
// at the largest possible ones.
func TestKeysRoundTrip(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for name, tt := range map[string]struct {
		n, want  int // keys, keys that are stored; -1 = as many as fit
		seq, ord func(i int) uint64
	}{
		"one":       {1, 1, linear(5), linear(9)},
		"usual":     {MaxKeys, MaxKeys, linear(3), linear(20)},
		"too many":  {MaxKeys + 500, MaxKeys, linear(3), linear(20)},
		"far apart": {MaxKeys, MaxKeys, linear(1 << 20), linear(1 << 24)},
		"not known": {MaxKeys, MaxKeys, linear(1000), everySecond(1 << 26)},
		"largest":   {MaxKeys, -1, everySecond(math.MaxUint64), everySecond(1 << 63)},
		"random":    {MaxKeys, -1, func(int) uint64 { return r.Uint64() }, func(int) uint64 { return r.Uint64() }},
	} {
		var keys []KeyRef
		for i := range tt.n {
			keys = append(keys, KeyRef{Hash: r.Uint64(), Seq: tt.seq(i), Ord: tt.ord(i)})
		}
		p := encodeKeys(keys)
		got, err := decodeKeys(p)
		if err != nil || len(p) > maxKeyBytes {
			t.Errorf("%s: %d bytes, %v", name, len(p), err)
			continue
		}
		if len(got) == 0 || len(got) > tt.n || !slices.Equal(got, keys[tt.n-len(got):]) {
			t.Errorf("%s: %d keys of %d came back, and not the newest", name, len(got), tt.n)
		}
		if tt.want >= 0 && len(got) != tt.want {
			t.Errorf("%s: %d keys came back, want %d", name, len(got), tt.want)
		}
		if tt.want < 0 && len(p) < maxKeyBytes-2*28 {
			t.Errorf("%s: %d keys were left out, though %d bytes are free", name, tt.n-len(got), maxKeyBytes-len(p))
		}
	}
}

func everySecond(n uint64) func(i int) uint64 {
	return func(i int) uint64 { return n * uint64(i%2) }
}

func linear(step uint64) func(i int) uint64 {
	return func(i int) uint64 { return step * uint64(i) }
}

// AppendKey drops the oldest, and does not change the list of an earlier state.
func TestAppendKey(t *testing.T) {
	var keys []KeyRef
	for i := range 3 * MaxKeys {
		before := slices.Clone(keys)
		next := AppendKey(keys, KeyRef{Seq: uint64(i)})
		if !slices.Equal(keys, before) {
			t.Fatalf("the list before key %d changed", i)
		}
		keys = next
		if n := len(keys); n != min(i+1, MaxKeys) || keys[n-1].Seq != uint64(i) || keys[0].Seq != uint64(i+1-n) {
			t.Fatalf("after key %d: %d keys, %+v to %+v", i, n, keys[0], keys[n-1])
		}
	}
}

func TestDecodeKeysRefuses(t *testing.T) {
	one := encodeKeys([]KeyRef{{Hash: 7, Seq: 300, Ord: 70_000}})
	for n := 1; n < len(one); n++ {
		if keys, err := decodeKeys(one[:n]); !errors.Is(err, codec.ErrFormat) {
			t.Errorf("first %d bytes of a key: %v, %v", n, keys, err)
		}
	}
	long := slices.Repeat([]byte{0xff}, 10)
	for name, p := range map[string][]byte{
		"bytes after the last key": append(bytes.Clone(one), 1),
		"seq over 64 bits":         append(make([]byte, 8), append(long, 1, 0)...),
		"ordinal over 64 bits":     append(make([]byte, 9), append(long, 1)...),
		"1,025 keys":               make([]byte, 10*(MaxKeys+1)),
	} {
		if keys, err := decodeKeys(p); !errors.Is(err, codec.ErrFormat) {
			t.Errorf("%s: %d keys, %v", name, len(keys), err)
		}
	}
	var limit *codec.LimitError
	if _, err := decodeKeys(make([]byte, maxKeyBytes+1)); !errors.As(err, &limit) || limit.Limit != maxKeyBytes {
		t.Errorf("more than 16 KiB: %v", err)
	}
	if keys, err := decodeKeys(make([]byte, 10*MaxKeys)); err != nil || len(keys) != MaxKeys {
		t.Errorf("1,024 keys: %d, %v", len(keys), err)
	}
	if keys, err := decodeKeys(nil); err != nil || keys != nil {
		t.Errorf("no field: %v, %v", keys, err)
	}
}

// A checkpoint has the field if there are keys, and only then.
func TestObjectKeys(t *testing.T) {
	with, without := mustEncode(t, keyedObject()), mustEncode(t, testObject())
	_, body, err := codec.DecodeContainer(with, kindOf(with), MaxBody)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Contains(body, []byte("\xa4keys")) {
		t.Error("the body has no field keys")
	}
	_, body, err = codec.DecodeContainer(without, kindOf(without), MaxBody)
	if err != nil || bytes.Contains(body, []byte("\xa4keys")) {
		t.Errorf("the body of a checkpoint without keys has the field, or %v", err)
	}
}

// A list that decodeKeys accepts is within its limits, and is encoded as the same list.
func FuzzDecodeKeys(f *testing.F) {
	f.Add(encodeKeys(keyedObject().Keys))
	f.Add(encodeKeys([]KeyRef{{Hash: 1, Seq: math.MaxUint64, Ord: 1 << 63}, {Hash: 1}}))
	f.Add(make([]byte, 10*MaxKeys))
	f.Add(append(make([]byte, 8), 0x80, 0x00, 0x80, 0x00)) // not the shortest form
	f.Fuzz(func(t *testing.T, p []byte) {
		keys, err := decodeKeys(p)
		if err != nil {
			return
		}
		if len(keys) > MaxKeys || len(keys) > len(p)/10 {
			t.Fatalf("%d keys of %d bytes", len(keys), len(p))
		}
		again, err := decodeKeys(encodeKeys(keys))
		if err != nil || !reflect.DeepEqual(again, keys) {
			t.Fatalf("read %v, then %v, %v", keys, again, err)
		}
	})
}
