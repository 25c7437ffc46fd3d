package term

import (
	"slices"

	"github.com/coppice-go/coppice/transcript"
)

const (
	idLeast  = 8       // characters of a shortened id, at least
	idCensus = 200_000 // rows up to which ids are shortened
)

// ShortIDs returns a function that shortens the ids of a list, all to one length at which they
// differ.
func ShortIDs(ids []string) func(id string) string {
	n := uniqueLength(ids)
	return func(id string) string { return id[:min(n, len(id))] }
}

// WholeID returns an id as it is.
func WholeID(id string) string { return id }

// uniqueLength returns the length to which all ids can be shortened and still differ: at least 8.
func uniqueLength(ids []string) int {
	ids = slices.Clone(ids)
	slices.Sort(ids)
	ids = slices.Compact(ids)
	n := idLeast
	for i := 1; i < len(ids); i++ {
		n = max(n, 1+commonPrefix(ids[i-1], ids[i]))
	}
	return n
}

func commonPrefix(a, b string) int {
	n := 0
	for n < len(a) && n < len(b) && a[n] == b[n] {
		n++
	}
	return n
}

// ShortEntryIDs is ShortIDs for all entries of a tree: a short id is accepted wherever an entry is
// named. In a very large tree ids stay whole.
func ShortEntryIDs(t *transcript.Tree) func(id string) string {
	if t.Len() > idCensus {
		return WholeID
	}
	ids := make([]string, t.Len())
	for i := range ids {
		ids[i] = t.NodeAt(uint64(i)).ID
	}
	return ShortIDs(ids)
}
