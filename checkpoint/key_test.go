package checkpoint

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"
)

// The key found for one commit line of a segment verifies every other one, and none of another segment.
func TestKeyOf(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	line := func(key uint64, seq int) []byte {
		rec := Record{
			ID: fmt.Sprintf("c%d", seq), Time: time.Unix(1e9, 0), Seq: uint64(seq), Writer: "w", Reason: "turn", HeadOrd: -1,
			Branch: "main", Doc: []byte("{}"),
		}
		p, _, err := rec.AppendLine(nil, key, 7, nil)
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	for range 50 {
		key := rng.Uint64()
		found, ok := KeyOf(line(key, 1))
		if !ok {
			t.Fatal("no key")
		}
		for seq := range 4 {
			if _, ours, err := ParseRecord(line(key, seq), found); !ours || err != nil {
				t.Fatalf("key %x, found %x: line %d does not verify: %v", key, found, seq, err)
			}
			if _, ours, _ := ParseRecord(line(rng.Uint64(), seq), found); ours {
				t.Fatalf("a line of another segment verifies under %x", found)
			}
		}
	}
	for _, p := range []string{"", `"self":"`, `{"type":"custom","self":"zzzzzzzz"}}`} {
		if _, ok := KeyOf([]byte(p)); ok {
			t.Errorf("a key of %q", p)
		}
	}
}
