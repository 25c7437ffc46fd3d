package check

import (
	"fmt"
	"strings"

	"github.com/coppice-go/coppice/codec"
	"github.com/coppice-go/coppice/internal/layout"
)

// LostType is the customType of the entries that record what a repair could not bring back. One with a targetId
// records an object of the session, by its key within the session; one without takes the place of an entry.
const LostType = "coppice.lost"

// span is a run of ordinals.
type span struct{ first, last uint64 }

// lostRow takes note of what a row of a skeleton records as lost. The skeleton is enough: its preview is the
// customType, its target the object.
func (v *verifier) lostRow(sk *codec.Skeleton, i int) {
	if typ, _ := sk.Kind(i); typ != "custom" || sk.Flags(i)&codec.FlagCommit != 0 || sk.Preview(i) != LostType {
		return
	}
	ord := sk.First() + uint64(i)
	if object := sk.Target(i); strings.Contains(object, "/") {
		v.lost[object] = ord
		return
	}
	if n := len(v.standIns); n > 0 && v.standIns[n-1].last+1 == ord {
		v.standIns[n-1].last = ord
		return
	}
	v.standIns = append(v.standIns, span{ord, ord})
}

// recorded reports whether an earlier repair recorded the loss of an object of the session.
func (v *verifier) recorded(key string) bool {
	_, ok := v.lost[strings.TrimPrefix(key, layout.SessionPrefix(v.id))]
	return ok
}

// losses lists what earlier repairs recorded as lost.
func (v *verifier) losses() {
	for _, s := range v.standIns {
		what := fmt.Sprintf("entry %d is lost", s.first)
		if s.last > s.first {
			what = fmt.Sprintf("entries %d to %d are lost", s.first, s.last)
		}
		v.note(Lost, layout.SessionPrefix(v.id)+layout.Transcript, 0, nil, "%s; a repair recorded that in their place",
			what)
	}
	for _, object := range sorted(v.lost) {
		key := layout.SessionPrefix(v.id) + object
		if strings.HasPrefix(object, layout.Checkpoints) {
			key = object
		}
		v.note(Lost, key, 0, nil, "lost; a repair recorded that in entry %d", v.lost[object])
	}
}
