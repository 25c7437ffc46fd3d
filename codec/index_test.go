package codec

import (
	"bytes"
	"encoding/binary"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/coppice-go/coppice/internal/testutil"
)

func smallIndex(t testing.TB) (refs []Ref, skeletons [][]byte, p []byte) {
	t.Helper()
	for i := range 3 {
		_, rows := session(uint64(i), uint64(4*i), 4, 60)
		s, err := EncodeSkeleton(uint64(4*i), rows)
		if err != nil {
			t.Fatal(err)
		}
		r := Ref{First: uint64(4 * i), Count: 4, FirstSeq: uint64(2 * i), RawBytes: 900, Epoch: 3, Rnd: "00ff00ff00ff00ff"}
		r.Seal(s)
		refs, skeletons = append(refs, r), append(skeletons, s)
	}
	p, err := EncodeIndex(refs, skeletons)
	if err != nil {
		t.Fatal(err)
	}
	return refs, skeletons, p
}

func TestIndexRoundTrip(t *testing.T) {
	refs, skeletons, p := smallIndex(t)
	gotRefs, gotSkeletons, err := DecodeIndex(golden(t, "index.bin", p))
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(refs, gotRefs) + cmp.Diff(skeletons, gotSkeletons); d != "" {
		t.Error(d)
	}
	for _, n := range []int{0, 1, 64} { // references only, as one level up
		p, err := EncodeIndex(make([]Ref, n), nil)
		if err != nil {
			t.Fatal(err)
		}
		if gotRefs, gotSkeletons, err := DecodeIndex(p); err != nil || len(gotRefs) != n || len(gotSkeletons) != 0 {
			t.Errorf("%d references: %d and %d, %v", n, len(gotRefs), len(gotSkeletons), err)
		}
	}
}

func TestIndexRefuses(t *testing.T) {
	testutil.SkipLong(t)
	if _, err := EncodeIndex(make([]Ref, 2), make([][]byte, 1)); !errors.Is(err, ErrLimit) {
		t.Errorf("two references, one skeleton: %v", err)
	}
	if _, err := EncodeIndex(make([]Ref, maxRefs+1), nil); !errors.Is(err, ErrLimit) {
		t.Errorf("too many references: %v", err)
	}
	if _, err := EncodeIndex(make([]Ref, 1), [][]byte{make([]byte, maxIndex)}); !errors.Is(err, ErrLimit) {
		t.Errorf("over 64 MiB: %v", err)
	}
	refs, err := Marshal(make([]Ref, 2))
	if err != nil {
		t.Fatal(err)
	}
	body := func(parts ...any) []byte {
		var p []byte
		for _, part := range parts {
			switch part := part.(type) {
			case int:
				p = binary.AppendUvarint(p, uint64(part))
			case []byte:
				p = append(p, part...)
			}
		}
		return p
	}
	ref := func(fields ...any) []byte { p, _ := Marshal([]any{fields}); return body(len(p), p, 0) }
	sum := make([]byte, 16)
	tests := []struct {
		name string
		body []byte
		want error
	}{
		{"empty", nil, ErrFormat},
		{"references over the rest", body(1 << 40), ErrLimit},
		{"references that are none", body(1, []byte{0xc1}), ErrFormat},
		{"one skeleton for two", body(len(refs), refs, 1, 0), ErrFormat},
		{"three skeletons for two", body(len(refs), refs, 3, 0, 0, 0), ErrLimit},
		{"2^40 skeletons", body(len(refs), refs, 1<<40), ErrLimit},
		{"skeleton over the rest", body(len(refs), refs, 2, 1, 1, []byte{0}), ErrFormat},
		{"a byte too many", body(len(refs), refs, 2, 0, 0, []byte{0}), ErrFormat},
		{"reference of seven fields", ref(1, 2, 3, 4, 5, 6, "r"), ErrFormat},
		{"reference with a short sum", ref(1, 2, 3, 4, 5, 6, "r", sum[:15]), ErrFormat},
		{"reference with a long sum", ref(1, 2, 3, 4, 5, 6, "r", append(sum, 0)), ErrFormat},
		{"reference of less than nothing", ref(1, 2, 3, 4, -5, 6, "r", sum), ErrFormat},
		{"reference by text", ref("1", 2, 3, 4, 5, 6, "r", sum), ErrFormat},
	}
	for _, tt := range tests {
		p, err := EncodeContainer(KindIndex, nil, tt.body, Default)
		if err != nil {
			t.Fatal(err)
		}
		if _, _, err := DecodeIndex(p); !errors.Is(err, tt.want) || !isOurs(err) {
			t.Errorf("%s: %v, want %v", tt.name, err, tt.want)
		}
	}
	p, _ := EncodeContainer(KindIndex, nil, ref(1, 2, 3, 4, 5, 6, "r", sum[:16]), Default)
	if got, _, err := DecodeIndex(p); err != nil || got[0].Epoch != 6 {
		t.Errorf("the base of the table is not valid: %v", err)
	}
}

func TestRefVerify(t *testing.T) {
	object := []byte("the bytes of an object")
	var r Ref
	r.Seal(object)
	if err := r.Verify(object); err != nil {
		t.Error(err)
	}
	if err := r.Verify(object[1:]); !errors.Is(err, ErrFormat) {
		t.Errorf("another length: %v", err)
	}
	other := bytes.ToUpper(object)
	if err := r.Verify(other); !errors.Is(err, ErrChecksum) {
		t.Errorf("other bytes: %v", err)
	}
	values, err := Marshal(struct{ A, B Ref }{A: r})
	if err != nil {
		t.Fatal(err)
	}
	var back struct{ A, B Ref }
	if err := Unmarshal(values, &back); err != nil || back.A != r {
		t.Errorf("%+v, %v", back, err)
	}
}

// Incompressible data is stored unchanged, and read without decompression.
func TestIndexIsStoredPlainly(t *testing.T) {
	r := newRand(16)
	noise := make([]byte, 300_000)
	for i := range noise {
		noise[i] = byte(r.Uint32())
	}
	p, err := EncodeIndex(make([]Ref, 1), [][]byte{noise})
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Contains(p, noise[:100_000]) {
		t.Error("300,000 bytes of noise were compressed")
	}
	if _, s, err := DecodeIndex(p); err != nil || !bytes.Equal(s[0], noise) {
		t.Errorf("%v", err)
	}
}
