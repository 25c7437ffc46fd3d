package term

import (
	"github.com/coppice-go/coppice/internal/shortid"
	"github.com/coppice-go/coppice/transcript"
)

const (
	idCensus = 200_000 // entries up to which the ids of a tree are compared with each other
	idLarge  = 18      // characters of an id in a larger tree: of one that begins with its time more than the time
)

// EntryIDs returns the short ids of all entries of a tree, which are accepted wherever an entry is named. In a very
// large tree they are all of one length, and a command that is called with one that is not unique lists what it may
// mean.
func EntryIDs(t *transcript.Tree) *shortid.Set {
	if t.Len() > idCensus {
		return shortid.Of(nil, idLarge)
	}
	var ids []string
	for ord := range uint64(t.Len()) {
		if !t.IsCommit(ord) { // these are not named by entries' ids
			ids = append(ids, t.ID(ord))
		}
	}
	return shortid.Of(ids, shortid.Least)
}
