package term

import (
	"github.com/coppice-go/coppice/internal/shortid"
	"github.com/coppice-go/coppice/transcript"
)

const (
	idCensus = 200_000 // maximum number of entries of a tree whose ids are compared with each other
	idLarge  = 18      // characters of an id in a larger tree: more than its time part if it begins with one
)

// EntryIDs returns the short ids of all entries of a tree, which are accepted wherever an entry is named. In a very
// large tree all have the same length, and a command with an ambiguous one lists the entries that it may name.
func EntryIDs(t *transcript.Tree) *shortid.Set {
	if t.Len() > idCensus {
		return shortid.Of(nil, idLarge)
	}
	var ids []string
	for ord := range uint64(t.Len()) {
		if !t.IsCommit(ord) { // commit lines are not named by entry ids
			ids = append(ids, t.ID(ord))
		}
	}
	return shortid.Of(ids, shortid.Least)
}
