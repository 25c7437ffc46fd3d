package checkpoint

import (
	"bytes"
	"testing"

	"pgregory.net/rapid"

	"github.com/coppice-go/coppice/codec"
)

// TestWrittenAsMarshal compares the hand-written encoders with codec.Marshal.
func TestWrittenAsMarshal(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		same := func(what string, got []byte, v any) {
			if want, err := codec.Marshal(v); err != nil || !bytes.Equal(got, want) {
				t.Fatalf("%s: % x, want % x, %v", what, got, want, err)
			}
		}
		s := rapid.Make[wireSummary]().Draw(t, "summary")
		same("summary", appendMap(nil, &s), s)
		branches := rapid.SliceOfN(rapid.Make[BranchRef](), -1, 20).Draw(t, "branches")
		same("branches", appendMaps(branches), branches)
		plain := rapid.SliceOfN(rapid.Make[PlainRef](), -1, 20).Draw(t, "plain")
		same("unsealed segments", appendMaps(plain), plain)
		refs := rapid.SliceOfN(rapid.Make[codec.Ref](), -1, 20).Draw(t, "refs")
		same("references", appendRefs(refs), refs)
	})
	for _, p := range [][]byte{appendMaps[BranchRef](nil), appendMaps[PlainRef](nil), appendRefs(nil)} {
		if want, err := codec.Marshal([]BranchRef(nil)); err != nil || !bytes.Equal(p, want) {
			t.Errorf("nil is % x, want % x, %v", p, want, err)
		}
	}
}
