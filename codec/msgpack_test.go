package codec

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"errors"
	"maps"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/coppice-go/coppice/internal/testutil"
)

type sample struct {
	Name  string            `msgpack:"name"`
	Count int               `msgpack:"count,omitempty"`
	Big   uint64            `msgpack:"big"`
	Body  json.RawMessage   `msgpack:"body"`
	List  []sample          `msgpack:"list,omitempty"`
	Tags  map[string]string `msgpack:"tags,omitempty"`
	Refs  []Ref             `msgpack:"refs,omitempty"`
	Sum   [16]byte          `msgpack:"sum"`
	Next  *sample           `msgpack:"next,omitempty"`
}

func sampleValue() sample {
	return sample{
		Name: "süß", Count: -3, Big: 1<<64 - 1, Body: json.RawMessage(`{"a":1}`),
		List: []sample{{Name: "inner", Tags: map[string]string{"b": "2", "a": "1", "c": "3"}}},
		Refs: []Ref{{First: 7, Count: 256, FirstSeq: 9, RawBytes: 300_000, Bytes: 70_000, Epoch: 2, Rnd: "00000000000000ff", Sum: [16]byte{1, 15: 2}}},
		Sum:  [16]byte{0: 0xff}, Next: &sample{Name: "next"},
	}
}

func TestMarshalRoundTrip(t *testing.T) {
	want := sampleValue()
	p, err := Marshal(want)
	if err != nil {
		t.Fatal(err)
	}
	golden(t, "sample.msgpack", p)
	var got sample
	if err := Unmarshal(p, &got); err != nil {
		t.Fatal(err)
	}
	a, _ := json.Marshal(want)
	b, _ := json.Marshal(got)
	if !bytes.Equal(a, b) {
		t.Errorf("got  %s\nwant %s", b, a)
	}
}

func TestMarshalIsDeterministic(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := map[string]any{}
		for _, k := range rapid.SliceOfN(rapid.String(), 0, 20).Draw(t, "keys") {
			m[k] = map[string]any{"x": len(k), "y": k, "z": []any{k, true, nil}}
		}
		a, err := Marshal(m)
		if err != nil {
			t.Fatal(err)
		}
		other := maps.Clone(m)
		b, err := Marshal(other)
		if err != nil || !bytes.Equal(a, b) {
			t.Fatalf("equal maps, other bytes: %v", err)
		}
	})
}

func TestMarshalRefuses(t *testing.T) {
	testutil.SkipLong(t)
	type tree struct{ Children []tree }
	deep := any(1)
	for range maxScanDepth + 1 {
		deep = []any{deep}
	}
	tests := []struct {
		name string
		v    any
		want error
	}{
		{"map of bytes", map[string][]byte{"a": nil}, ErrFormat},
		{"map by number", struct{ Pool map[uint64][]byte }{}, ErrFormat},
		{"map by number behind any", []any{map[int]string{1: "a"}}, ErrFormat},
		{"map by number deep behind any", map[string]any{"a": struct{ V any }{&struct{ M map[bool]int }{}}}, ErrFormat},
		{"map of a named string", map[Kind]string{"a": "b"}, ErrFormat},
		{"time", time.Unix(0, 0), ErrFormat},
		{"function", func() {}, ErrFormat},
		{"too deep", deep, ErrLimit},
		{"too many", make([]bool, 1<<20+1), ErrLimit},
	}
	for _, tt := range tests {
		if p, err := Marshal(tt.v); !errors.Is(err, tt.want) || !isOurs(err) || p != nil {
			t.Errorf("%s: %v, want %v", tt.name, err, tt.want)
		}
	}
	for _, v := range []any{nil, tree{Children: []tree{{}}}, (*sample)(nil), make([]bool, 1<<20), struct{ A any }{}} {
		if _, err := Marshal(v); err != nil {
			t.Errorf("%T: %v", v, err)
		}
	}
}

const maxScanDepth = 64

func TestUnmarshalRefuses(t *testing.T) {
	testutil.SkipLong(t)
	tests := []struct {
		name, hex string
		want      error
	}{
		{"nothing", "", ErrFormat},
		{"array of 2^32-1 in six bytes", "ddffffffff00", ErrFormat},
		{"map of 2^32-1 in six bytes", "dfffffffff00", ErrFormat},
		{"bytes of 2^32-1 in six bytes", "c6ffffffff00", ErrFormat},
		{"text of 2^32-1 in six bytes", "dbffffffff00", ErrFormat},
		{"array16 over what remains", "dcffff" + strings.Repeat("c0", 100), ErrFormat},
		{"map whose pairs are over what remains", "82c0c0c0", ErrFormat},
		{"text over what remains", "a361", ErrFormat},
		{"cut in a length", "da00", ErrFormat},
		{"cut in a number", "cf00000000", ErrFormat},
		{"a value after the value", "c0c0", ErrFormat},
		{"a code that is never used", "c1", ErrFormat},
		{"time as ext", "d6ff00000000", ErrFormat},
		{"ext8", "c70100ff", ErrFormat},
		{"fixext inside an array", "91d40000", ErrFormat},
		{"65 deep", strings.Repeat("91", 65) + "c0", ErrLimit},
		{"65 deep in maps", strings.Repeat("81a0", 65) + "c0", ErrLimit},
		{"a million deep", strings.Repeat("91", 1_000_000) + "c0", ErrLimit},
		{"a million deep in maps", strings.Repeat("81c0", 1_000_000) + "c0", ErrLimit},
		{"8 MiB of nils", "dd007ffffb" + strings.Repeat("c0", 8<<20-5), ErrLimit},
		{"too many elements in sum", "92" + strings.Repeat("dd00080000"+strings.Repeat("c0", 1<<19), 2), ErrLimit},
		{"too many empty arrays in sum", "dd00100000" + strings.Repeat("9100", 1<<20), ErrLimit},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			p, err := hex.DecodeString(tt.hex)
			if err != nil {
				t.Fatal(err)
			}
			for _, v := range []any{new(any), new(sample), new([]sample), new(map[string]any), new([]string)} {
				taken := allocated(func() { err = Unmarshal(p, v) })
				if !errors.Is(err, tt.want) || !isOurs(err) {
					t.Fatalf("into %T: %v, want %v", v, err, tt.want)
				}
				if taken > 64<<10 {
					t.Errorf("into %T: %d bytes allocated", v, taken)
				}
			}
		})
	}
}

func TestUnmarshalTakesWhatIsAllowed(t *testing.T) {
	testutil.SkipLong(t)
	var deep any
	p, _ := hex.DecodeString(strings.Repeat("91", 64) + "c0")
	if err := Unmarshal(p, &deep); err != nil {
		t.Errorf("64 deep: %v", err)
	}
	var many []bool
	p, _ = hex.DecodeString("dd00100000" + strings.Repeat("c2", 1<<20))
	if err := Unmarshal(p, &many); err != nil || len(many) != 1<<20 {
		t.Errorf("1,048,576 elements: %v", err)
	}
	var s struct{ A int }
	p, err := Marshal(map[string]any{"A": 5, "Unknown": map[string]any{"x": []any{1, "y"}}})
	if err != nil {
		t.Fatal(err)
	}
	if err := Unmarshal(p, &s); err != nil || s.A != 5 {
		t.Errorf("an unknown field: %+v, %v", s, err)
	}
}

// Data that the library cannot decode into a type is an error of this package and never a panic.
func TestUnmarshalIntoOtherTypes(t *testing.T) {
	values := []any{nil, true, -1, 1 << 40, 1.5, "text", []byte("bytes"), []any{1, "a"}, map[string]any{"name": 1, "list": "x", "refs": []any{[]any{1}}}}
	for _, v := range values {
		p, err := Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		for _, into := range []any{new(sample), new([]Ref), new(Ref), new(int8), new(string), new([16]byte), new(map[string]string), new(func()), sample{}, nil} {
			if err := Unmarshal(p, into); err != nil && !isOurs(err) {
				t.Errorf("%v into %T: %v", v, into, err)
			}
		}
	}
}
