package segment

import (
	"strings"

	"github.com/coppice-go/coppice/codec"
	"github.com/coppice-go/coppice/transcript"
)

// LostType is the customType of the entries that record what a repair could not restore. One with a targetId records an
// object of the session, by its key within the session; one without replaces an entry.
const LostType = "coppice.lost"

// Erased reports whether row i of a skeleton is that of the stub of an erased entry. The row is enough: its preview is
// the text of a stub, or the customType.
func Erased(sk *codec.Skeleton, i int) bool {
	p := sk.Preview(i)
	return (p == transcript.ErasedText || p == transcript.ErasedKind) && sk.Flags(i)&codec.FlagCommit == 0
}

// Lost reports whether row i of a skeleton is such a record. The row is enough: its preview is the customType.
func Lost(sk *codec.Skeleton, i int) bool {
	typ, _ := sk.Kind(i)
	return typ == "custom" && sk.Flags(i)&codec.FlagCommit == 0 && sk.Preview(i) == LostType
}

// LostObject returns the object whose loss row i of a skeleton records; "" = none.
func LostObject(sk *codec.Skeleton, i int) string {
	if !Lost(sk, i) {
		return ""
	}
	if object := sk.Target(i); strings.Contains(object, "/") {
		return object
	}
	return ""
}
