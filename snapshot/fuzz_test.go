package snapshot_test

import (
	"testing"

	"github.com/coppice-go/coppice/snapshot"
)

// A parsed name equals the name built from its parts: no snapshot has two names (I4).
func FuzzParseName(f *testing.F) {
	for _, name := range []string{
		snapshot.Name(7, "0192f3a0-0000-7000-8000-000000000001"), "18446744073709551615-abcdefgh", "18446744073709551616-abcdefgh",
		"+0000000000000000007-abcdefgh", "00000000000000000007-../../..", "00000000000000000007-abcdefg", "00000000000000000007_abcdefgh", "",
	} {
		f.Add(name)
	}
	f.Fuzz(func(t *testing.T, name string) {
		if seq, id, ok := snapshot.ParseName(name); ok && snapshot.Name(seq, id) != name {
			t.Fatalf("%q is read as %q", name, snapshot.Name(seq, id))
		}
	})
}
